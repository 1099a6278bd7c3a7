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
from interlingua.gateway.observability.log import Log
from interlingua.gateway.observability.rotating_file import LogFile
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.processes.worker import TWICE, Worker
from interlingua.gateway.settings.loader import Loaded

__all__ = ["Crew"]

STANDARD_ERROR = 2
TOO_SOON = 1.0
"""A worker that lives for a shorter time is not started again at once."""
WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM}
DIED, NEVER_SERVED = 1, 3
"""What a worker exits with."""


class _Child(NamedTuple):
    place: int
    began: float
    is_first: bool
    """Whether nobody was at this place before."""


class Crew:
    """The parent: it serves nobody, and keeps the sockets, so that connections wait while a worker is replaced."""

    def __init__(
        self, loaded: Loaded, sockets: list[socket.socket], seal_key: bytes, reload: Callable[[], Loaded]
    ) -> None:
        self._loaded = loaded
        self._sockets = sockets
        self._seal_key = seal_key
        self._reload = reload
        wanted = loaded.settings.log
        self._log = Log(wanted, loaded.hidden, LogFile(wanted.file) if wanted.file else _StandardError())
        self._children: dict[int, _Child] = {}  # by process
        self._later: list[int] = []  # places whose workers died too soon
        self._told: float | None = None  # when it was told to stop
        self._life, self._death = os.pipe()  # the first can be read once nobody has the second: when the parent is gone

    def run(self) -> None:
        """Raises BadInput if a worker cannot even begin."""
        for number in WATCHED:
            signal.signal(number, _nothing)  # what is ignored does not come, blocked or not
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        for place in range(len(self._sockets)):
            self._start(place, is_first=True)
        failed: list[_Child] = []
        while self._children or self._later:
            told = signal.sigwait(WATCHED)
            if told == signal.SIGCHLD:
                failed += self._replace_the_dead()
            elif told == signal.SIGALRM:
                places, self._later = self._later, []
                for place in places:
                    self._start(place)
            elif told == signal.SIGHUP:
                self._read_again()
            else:
                self._stop()
        if failed:
            raise BadInput("a worker could not begin", "the line above says why")

    # ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, place: int, is_first: bool = False) -> None:
        try:
            process = os.fork()
        except OSError as error:  # no more processes, no more memory
            self._log.at_once("a worker cannot be started yet", worker=place, error=error.strerror)
            self._start_later(place)
            return
        if process == 0:
            os._exit(self._work(place))
        self._children[process] = _Child(place, time.monotonic(), is_first)

    def _start_later(self, place: int) -> None:
        self._later.append(place)
        signal.setitimer(signal.ITIMER_REAL, TOO_SOON)

    def _work(self, place: int) -> int:
        """In the new process: returns its exit status."""
        worker = Worker(self._loaded, self._sockets[place], self._seal_key, self._reload, str(place), self._life)
        try:
            os.close(self._death)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's goes to all, and the parent tells
            self._close_sockets(but=place)
            worker.run()
            return 0
        except InterlinguaError as error:
            self._log.at_once("a worker cannot begin", worker=place, error=str(error), hint=error.hint)
        except BaseException:  # noqa: BLE001 - nobody above could tell it: this process ends here
            self._log.at_once("a worker has failed", worker=place, trace=traceback.format_exc())
        return DIED if worker.has_served else NEVER_SERVED

    def _replace_the_dead(self) -> list[_Child]:
        """Those that could not begin: then all stop. Who takes another's place is tried again, while others serve."""
        failed = []
        while found := _dead():
            process, code = found
            child = self._children.pop(process, None)
            if child is None or self._told is not None:  # not one of ours, or it was told to go
                continue
            if code == NEVER_SERVED and child.is_first:
                failed.append(child)
                self._stop()
                continue
            self._log.at_once(
                "a worker has died: started again", worker=child.place, process=process, **_how_it_ended(code)
            )
            if time.monotonic() - child.began < TOO_SOON:
                self._start_later(child.place)
            else:
                self._start(child.place)
        return failed

    # ── what it is told ───────────────────────────────────────────────────────────────────────────────────────────────

    def _read_again(self) -> None:
        """First for workers that are yet to come, then for those that are there."""
        try:
            self._loaded = self._reload()
        except (InterlinguaError, OSError) as error:
            hint = getattr(error, "hint", "")
            self._log.at_once("the new settings are wrong, and the old ones stay", error=str(error), hint=hint)
            return
        self._log.hide(self._loaded.hidden)
        self._tell(signal.SIGHUP)

    def _stop(self) -> None:
        if self._told is None:
            self._told = time.monotonic()
            self._later.clear()
            notify.stopping()
            self._close_sockets()
            self._tell(signal.SIGTERM)
        elif time.monotonic() - self._told > TWICE:
            self._tell(signal.SIGKILL)

    def _close_sockets(self, but: int | None = None) -> None:
        """Whoever has one open keeps it listening, though nobody takes the connections."""
        for place, one in enumerate(self._sockets):
            if place != but:
                one.close()

    def _tell(self, number: int) -> None:
        for process in self._children:
            with suppress(ProcessLookupError):  # it has died this moment
                os.kill(process, number)


class _StandardError:
    """Takes what it can without waiting: a pipe that nobody reads is no reason to serve nobody."""

    def write(self, data: bytes, /) -> int | None:
        if not select.select([], [STANDARD_ERROR], [], 0)[1]:
            return None
        return os.write(STANDARD_ERROR, data[: select.PIPE_BUF])


def _nothing(*_: object) -> None:
    pass


def _dead() -> tuple[int, int] | None:
    """A process that has ended, and its exit code; less than 0: the signal that ended it."""
    try:
        process, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:  # there are none
        return None
    return (process, os.waitstatus_to_exitcode(status)) if process else None


def _how_it_ended(code: int) -> dict[str, int]:
    return {"status": code} if code >= 0 else {"signal": -code}
