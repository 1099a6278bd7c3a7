"""How do several processes share a port? A parent starts them, tells them what it is told, and replaces the dead.

The parent has no handlers that could come between two steps: its signals stay blocked, and it takes one at a time.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from interlingua.errors import BadInput, InterlinguaError
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.observability.rotating_file import RotatingFile
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.processes.worker import FORCED_STOP_GRACE_SECONDS, Worker
from interlingua.gateway.settings.loader import LoadedSettings

__all__ = ["Supervisor"]

STDERR_FD = 2
MIN_WORKER_LIFETIME_SECONDS = 1.0
"""A worker that lives for a shorter time is not started again at once."""
HANDLED_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM}
EXIT_CRASHED, EXIT_NEVER_SERVED = 1, 3
"""What a worker exits with."""


class _WorkerProcess(NamedTuple):
    worker: int
    started_at: float
    is_first: bool
    """Whether nobody was at this place before."""


class Supervisor:
    """The parent: it serves nobody, and keeps the sockets, so that connections wait while a worker is replaced."""

    def __init__(
        self,
        loaded: LoadedSettings,
        sockets: list[socket.socket],
        seal_key: bytes,
        reload: Callable[[], LoadedSettings],
    ) -> None:
        self._loaded = loaded
        self._sockets = sockets
        self._seal_key = seal_key
        self._reload = reload
        log_settings = loaded.settings.log
        self._log = GatewayLog(
            log_settings, loaded.all_secrets, RotatingFile(log_settings.file) if log_settings.file else _StderrWriter()
        )
        self._children: dict[int, _WorkerProcess] = {}  # by process
        self._pending_restarts: list[int] = []  # places whose workers died too soon
        self._stop_requested_at: float | None = None  # when it was told to stop
        self._lifeline_reader, self._lifeline_writer = (
            os.pipe()
        )  # the first can be read once nobody has the second: when the parent is gone

    def run(self) -> None:
        """Raises BadInput if a worker cannot even begin."""
        for number in HANDLED_SIGNALS:
            signal.signal(number, _ignore_signal)  # what is ignored does not come, blocked or not
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        for index in range(len(self._sockets)):
            self._start(index, is_first=True)
        failed: list[_WorkerProcess] = []
        while self._children or self._pending_restarts:
            received = signal.sigwait(HANDLED_SIGNALS)
            if received == signal.SIGCHLD:
                failed += self._replace_dead_workers()
            elif received == signal.SIGALRM:
                pending, self._pending_restarts = self._pending_restarts, []
                for index in pending:
                    self._start(index)
            elif received == signal.SIGHUP:
                self._reload_settings()
            else:
                self._stop()
        if failed:
            raise BadInput("a worker could not begin", "the line above says why")

    # ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, index: int, is_first: bool = False) -> None:
        try:
            process = os.fork()
        except OSError as error:  # no more processes, no more memory
            self._log.write_now("a worker cannot be started yet", worker=index, error=error.strerror)
            self._schedule_start(index)
            return
        if process == 0:
            os._exit(self._run_worker(index))
        self._children[process] = _WorkerProcess(index, time.monotonic(), is_first)

    def _schedule_start(self, index: int) -> None:
        self._pending_restarts.append(index)
        signal.setitimer(signal.ITIMER_REAL, MIN_WORKER_LIFETIME_SECONDS)

    def _run_worker(self, index: int) -> int:
        """In the new process: returns its exit status."""
        worker = Worker(
            self._loaded, self._sockets[index], self._seal_key, self._reload, str(index), self._lifeline_reader
        )
        try:
            os.close(self._lifeline_writer)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's goes to all, and the parent tells
            self._close_sockets(except_index=index)
            worker.run()
            return 0
        except InterlinguaError as error:
            self._log.write_now("a worker cannot begin", worker=index, error=str(error), hint=error.hint)
        except BaseException:  # noqa: BLE001 - nobody above could tell it: this process ends here
            self._log.write_now("a worker has failed", worker=index, trace=traceback.format_exc())
        return EXIT_CRASHED if worker.has_served else EXIT_NEVER_SERVED

    def _replace_dead_workers(self) -> list[_WorkerProcess]:
        """Those that could not begin: then all stop. Who takes another's place is tried again, while others serve."""
        failed = []
        while ended := _reap_child():
            process, code = ended
            child = self._children.pop(process, None)
            if child is None or self._stop_requested_at is not None:  # not one of ours, or it was told to go
                continue
            if code == EXIT_NEVER_SERVED and child.is_first:
                failed.append(child)
                self._stop()
                continue
            self._log.write_now(
                "a worker has died: started again", worker=child.worker, process=process, **_exit_fields(code)
            )
            if time.monotonic() - child.started_at < MIN_WORKER_LIFETIME_SECONDS:
                self._schedule_start(child.worker)
            else:
                self._start(child.worker)
        return failed

    # ── what it is told ───────────────────────────────────────────────────────────────────────────────────────────────

    def _reload_settings(self) -> None:
        """First for workers that are yet to come, then for those that are there."""
        try:
            self._loaded = self._reload()
        except (InterlinguaError, OSError) as error:
            hint = getattr(error, "hint", "")
            self._log.write_now("the new settings are wrong, and the old ones stay", error=str(error), hint=hint)
            return
        self._log.add_secrets(self._loaded.all_secrets)
        self._signal_workers(signal.SIGHUP)

    def _stop(self) -> None:
        if self._stop_requested_at is None:
            self._stop_requested_at = time.monotonic()
            self._pending_restarts.clear()
            notify.send_stopping()
            self._close_sockets()
            self._signal_workers(signal.SIGTERM)
        elif time.monotonic() - self._stop_requested_at > FORCED_STOP_GRACE_SECONDS:
            self._signal_workers(signal.SIGKILL)

    def _close_sockets(self, except_index: int | None = None) -> None:
        """Whoever has one open keeps it listening, though nobody takes the connections."""
        for index, listener in enumerate(self._sockets):
            if index != except_index:
                listener.close()

    def _signal_workers(self, number: int) -> None:
        for process in self._children:
            with suppress(ProcessLookupError):  # it has died this moment
                os.kill(process, number)


class _StderrWriter:
    """Takes what it can without waiting: a pipe that nobody reads is no reason to serve nobody."""

    def write(self, data: bytes, /) -> int | None:
        if not select.select([], [STDERR_FD], [], 0)[1]:
            return None
        return os.write(STDERR_FD, data[: select.PIPE_BUF])


def _ignore_signal(*_: object) -> None:
    pass


def _reap_child() -> tuple[int, int] | None:
    """A process that has ended, and its exit code; less than 0: the signal that ended it."""
    try:
        process, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:  # there are none
        return None
    return (process, os.waitstatus_to_exitcode(status)) if process else None


def _exit_fields(code: int) -> dict[str, int]:
    return {"status": code} if code >= 0 else {"signal": -code}
