"""Supervisor: starts several workers on one port, forwards signals to them and replaces workers that die or hang.

The supervisor keeps its signals blocked and takes them one at a time with `sigwait`. No signal handler can interrupt it
between two steps.
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
from interlingua.gateway.http.client_limits import reset_open_requests
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.observability.metrics import reset_gauges
from interlingua.gateway.observability.rotating_file import RotatingFile
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.processes.heartbeat import Heartbeat
from interlingua.gateway.processes.inspector_process import InspectorProcess
from interlingua.gateway.processes.worker import FORCED_STOP_GRACE_SECONDS, Worker
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.shared_memory.worker_memory import SharedMemory, WorkerMemory

__all__ = ["Supervisor"]

STDERR_FD = 2
MIN_WORKER_LIFETIME_SECONDS = 1.0
"""A worker that dies sooner than this is restarted with a delay."""
TICK_SECONDS = 1.0
"""Interval at which the supervisor checks the heartbeats and restarts workers that died too soon."""
HANDLED_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM}
EXIT_CRASHED, EXIT_NEVER_SERVED = 1, 3
"""Exit statuses of a worker that failed."""


class _WorkerProcess(NamedTuple):
    worker: int
    started_at: float
    is_first: bool
    """True if this process does not replace a worker that died."""
    heartbeat: Heartbeat


class Supervisor:
    """Parent process. It serves no requests and keeps the sockets: connections wait while a worker is replaced."""

    def __init__(
        self,
        loaded: LoadedSettings,
        sockets: list[socket.socket],
        seal_key: bytes,
        reload: Callable[[], LoadedSettings],
        inspector: InspectorProcess | None = None,
        *,
        stops_on_hangup: bool = False,
    ) -> None:
        self._stops_on_hangup = stops_on_hangup
        self._loaded = loaded
        self._sockets = sockets
        self._seal_key = seal_key
        self._reload = reload
        self._inspector = inspector
        log_settings = loaded.settings.log
        self._log = GatewayLog(
            log_settings, loaded.all_secrets, RotatingFile(log_settings.file) if log_settings.file else _StderrWriter()
        )
        self._memory = SharedMemory(len(sockets))
        self._children: dict[int, _WorkerProcess] = {}  # by process id
        self._killed: set[int] = set()  # process ids of hung workers
        self._pending_restarts: list[int] = []  # indexes of workers that died too soon
        self._stop_requested_at: float | None = None  # time of the first stop signal
        # Only the parent holds the writer. When the parent is gone, the reader becomes readable in each worker.
        self._lifeline_reader, self._lifeline_writer = os.pipe()

    def run(self) -> None:
        """Run until all workers have ended. Raises BadInput if a worker cannot start."""
        for number in HANDLED_SIGNALS:
            signal.signal(number, _ignore_signal)  # an ignored signal would never be delivered to sigwait
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
        for index in range(len(self._sockets)):
            self._start(index, is_first=True)
        failed: list[_WorkerProcess] = []
        while self._children or self._pending_restarts:
            received = signal.sigwait(HANDLED_SIGNALS)
            if received == signal.SIGCHLD:
                failed += self._replace_dead_workers()
            elif received == signal.SIGALRM:
                self._tick()
            elif received == signal.SIGHUP and not self._stops_on_hangup:
                self._reload_settings()
            else:
                self._stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        if failed:
            raise BadInput("a worker could not start", "see the error above")

    def _tick(self) -> None:
        notify.send_watchdog()
        pending, self._pending_restarts = self._pending_restarts, []
        for index in pending:
            self._start(index)
        self._kill_hung_workers()
        is_running = self._stop_requested_at is None
        if is_running and self._inspector is not None and self._inspector.restart_if_dead():
            self._log.write_now("the inspector's process has died; it was started again, without its exchanges")

    # ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, index: int, is_first: bool = False) -> None:
        heartbeat: Heartbeat | None = None
        try:
            heartbeat = Heartbeat(self._memory.table, index)
            process = os.fork()
        except OSError as error:  # a limit of processes or files is reached, or no memory is left
            if heartbeat is not None:
                heartbeat.close()
            self._log.write_now("cannot fork a worker; will retry", worker=index, error=error.strerror)
            self._pending_restarts.append(index)
            return
        if process == 0:
            os._exit(self._run_worker(index, heartbeat))
        self._children[process] = _WorkerProcess(index, time.monotonic(), is_first, heartbeat)

    def _kill_hung_workers(self) -> None:
        """Kill workers whose event loop does not run. They are replaced like all that die."""
        limit = self._loaded.settings.watchdog
        for process, child in self._children.items():
            if limit and process not in self._killed and (age := child.heartbeat.age) > limit:
                self._killed.add(process)
                stack = child.heartbeat.request_stack(process)
                self._log.write_now(
                    "a worker hangs; killing it", worker=child.worker, process=process, seconds=round(age), trace=stack
                )
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def _run_worker(self, index: int, heartbeat: Heartbeat) -> int:
        """Run a worker in the child process and return the exit status."""
        worker = Worker(
            self._loaded,
            self._sockets[index],
            self._seal_key,
            self._reload,
            WorkerMemory(self._memory, index),
            self._lifeline_reader,
            heartbeat,
            self._inspector,
            stops_on_hangup=self._stops_on_hangup,
        )
        try:
            os.close(self._lifeline_writer)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent sends SIGTERM
            self._close_sockets(except_index=index)
            worker.run()
            return 0
        except InterlinguaError as error:
            self._log.write_now("a worker cannot start", worker=index, error=str(error), hint=error.hint)
        except BaseException:  # noqa: BLE001 - the process ends here, so no caller can report it
            self._log.write_now("a worker crashed", worker=index, trace=traceback.format_exc())
        return EXIT_CRASHED if worker.has_served else EXIT_NEVER_SERVED

    def _replace_dead_workers(self) -> list[_WorkerProcess]:
        """Replace workers that died, and return those that failed at their first start.

        A failure at the first start stops all workers. A replacement that fails is retried while other workers serve.
        """
        failed = []
        while ended := _reap_child():
            process, code = ended
            child = self._children.pop(process, None)
            if child is None:  # not a worker
                continue
            child.heartbeat.close()
            self._killed.discard(process)
            self._forget_state(child.worker)
            if self._stop_requested_at is not None:
                continue
            if code == EXIT_NEVER_SERVED and child.is_first:
                failed.append(child)
                self._stop()
                continue
            self._memory.table.restarts[child.worker] += 1
            self._log.write_now(
                "a worker died; restarting it", worker=child.worker, process=process, **_exit_fields(code)
            )
            if time.monotonic() - child.started_at < MIN_WORKER_LIFETIME_SECONDS:
                self._pending_restarts.append(child.worker)
            else:
                self._start(child.worker)
        return failed

    def _forget_state(self, worker: int) -> None:
        """Reset what a dead worker had open. Its counters, and the events that it sent to others, remain."""
        self._memory.table.clear_row(worker)
        reset_gauges(self._memory.regions[worker])
        reset_open_requests(self._memory.regions[worker])

    # ── signals ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _reload_settings(self) -> None:
        """Reload the settings for workers that start later, then forward SIGHUP to the running workers."""
        try:
            self._loaded = self._reload()
        except (InterlinguaError, OSError) as error:
            hint = getattr(error, "hint", "")
            self._log.write_now("cannot reload the settings; the old ones stay in use", error=str(error), hint=hint)
            return
        self._log.add_secrets(self._loaded.all_secrets)
        self._signal_workers(signal.SIGHUP)

    def _stop(self) -> None:
        if self._stop_requested_at is None:
            self._stop_requested_at = time.monotonic()
            self._pending_restarts.clear()
            self._memory.table.set_stopping()
            notify.send_stopping()
            self._close_sockets()
            self._signal_workers(signal.SIGTERM)
        elif time.monotonic() - self._stop_requested_at > FORCED_STOP_GRACE_SECONDS:
            self._signal_workers(signal.SIGKILL)

    def _close_sockets(self, except_index: int | None = None) -> None:
        """Close the sockets of the other workers: an open copy would keep listening without accepting connections."""
        for index, listener in enumerate(self._sockets):
            if index != except_index:
                listener.close()

    def _signal_workers(self, number: int) -> None:
        for process in self._children:
            with suppress(ProcessLookupError):  # the worker has just died
                os.kill(process, number)


class _StderrWriter:
    """Non-blocking writer to stderr. Data is dropped if stderr is a full pipe: the supervisor must never block."""

    def write(self, data: bytes, /) -> int | None:
        if not select.select([], [STDERR_FD], [], 0)[1]:
            return None
        return os.write(STDERR_FD, data[: select.PIPE_BUF])


def _ignore_signal(*_: object) -> None:
    pass


def _reap_child() -> tuple[int, int] | None:
    """Reap one child process that has ended.

    Returns:
        Its process id and its exit code (negative: the signal that ended it), or None if no child has ended.
    """
    try:
        process, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:  # there are no children
        return None
    return (process, os.waitstatus_to_exitcode(status)) if process else None


def _exit_fields(code: int) -> dict[str, int]:
    return {"status": code} if code >= 0 else {"signal": -code}
