"""`interlingua serve`: one process, or several that share a port and are started again when they die."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from interlingua.errors import BadInput
from interlingua.gateway.settings import Settings
from interlingua.gateway.settings_file import Loaded
from interlingua.gateway.worker import Worker

__all__ = ["listen", "serve"]

STANDARD_ERROR = 2
TOO_SOON = 1.0
"""A worker that lives for a shorter time is not started again at once."""


def listen(settings: Settings) -> list[socket.socket]:
    """A socket for each worker, all on one port: the system shares connections out among them."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sockets: list[socket.socket] = []
    port = settings.port
    for _ in range(settings.workers):
        one = socket.socket(family, socket.SOCK_STREAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.workers > 1:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            one.bind((settings.host.strip("[]"), port))
        except OSError as error:
            raise BadInput(
                f"cannot listen on {settings.host}:{port}: {error.strerror}", "choose another one with --port"
            ) from error
        port = one.getsockname()[1]
        sockets.append(one)
    return sockets


def serve(loaded: Loaded, sockets: list[socket.socket], seal_key: bytes, reload: Callable[[], Loaded]) -> None:
    """Returns once it was told to stop and all streams have ended."""
    if len(sockets) == 1:
        Worker(loaded, sockets[0], seal_key, reload).run()
    else:
        _Crew(loaded, sockets, seal_key, reload).run()


def _tell_people(line: str) -> None:
    """Only if that does not block: a pipe that nobody reads is no reason to serve nobody."""
    with suppress(OSError):
        if select.select([], [STANDARD_ERROR], [], 0)[1]:
            os.write(STANDARD_ERROR, line.encode())


class _Crew:
    """The parent: it serves nobody, and keeps the sockets, so that connections wait while a worker is replaced."""

    def __init__(
        self, loaded: Loaded, sockets: list[socket.socket], seal_key: bytes, reload: Callable[[], Loaded]
    ) -> None:
        self._loaded = loaded
        self._sockets = sockets
        self._seal_key = seal_key
        self._reload = reload
        self._workers: dict[int, tuple[int, float]] = {}  # by process: its place, and when it began
        self._stopping = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, lambda number, _: self._tell(number))
        for place in range(len(self._sockets)):
            self._start(place)
        while self._workers:
            process, _ = os.waitpid(-1, 0)
            place, began = self._workers.pop(process)
            if self._stopping:
                continue
            _tell_people(f"interlingua: worker {place} (process {process}) has died: started again\n")
            if time.monotonic() - began < TOO_SOON:
                time.sleep(TOO_SOON)
            if not self._stopping:
                self._start(place)

    def _start(self, place: int) -> None:
        process = os.fork()
        if process:
            self._workers[process] = (place, time.monotonic())
            return
        status = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            self._close_sockets(but=place)
            Worker(self._loaded, self._sockets[place], self._seal_key, self._reload, str(place)).run()
            status = 0
        finally:
            os._exit(status)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        self._close_sockets()
        self._tell(signal.SIGTERM)

    def _close_sockets(self, but: int | None = None) -> None:
        """Whoever has one open keeps it listening, though nobody takes the connections."""
        for place, one in enumerate(self._sockets):
            if place != but:
                one.close()

    def _tell(self, number: int) -> None:
        for process in self._workers:
            with suppress(ProcessLookupError):  # it has died this moment
                os.kill(process, number)
