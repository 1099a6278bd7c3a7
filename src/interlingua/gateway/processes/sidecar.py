"""How does a gateway run beside another program, for as long as that does? In a process that the terminal cannot reach.

What a user types is for the program: Ctrl-C in the middle of a turn must not end the gateway. It ends when it is told,
and also when whoever started it is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from interlingua.gateway.processes.worker import Worker
from interlingua.gateway.settings.loader import LoadedSettings

__all__ = ["SidecarProcess", "run_sidecar"]

STOP_TIMEOUT_SECONDS = 5.0
"""How long it may take to stop before it is killed. Nobody is left to read its streams."""
FAILURE_EXIT_STATUS = 1


class SidecarProcess:
    """The gateway's process, as its parent knows it."""

    def __init__(self, process: int, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline  # the process stops once this is closed, by us or by our end

    def has_died(self) -> bool:
        """Whether it has ended before it was told."""
        return os.waitid(os.P_PID, self._process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def stop(self) -> None:
        os.close(self._lifeline)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
                return
            time.sleep(0.01)


@contextmanager
def run_sidecar(
    loaded: LoadedSettings, listener: socket.socket, seal_key: bytes, log_fd: int
) -> Iterator[SidecarProcess]:
    """A gateway on this socket until the block ends. What it tells goes to this open file."""
    listener.listen()  # who asks before it serves has to wait, and is not refused
    child_end, parent_end = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(parent_end)
        os._exit(_serve(loaded, listener, seal_key, log_fd, child_end))
    os.close(child_end)
    listener.close()  # or clients would wait for ever for a gateway that has died
    gateway = SidecarProcess(process, parent_end)
    try:
        yield gateway
    finally:
        gateway.stop()


def _serve(loaded: LoadedSettings, listener: socket.socket, seal_key: bytes, log_fd: int, parent_pipe: int) -> int:
    """In the new process: returns its exit status."""
    try:
        os.setsid()
        _redirect_stdio(log_fd)
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP})
        Worker(loaded, listener, seal_key, lambda: loaded, parent_pipe=parent_pipe).run()
    except BaseException:  # noqa: BLE001 - nobody above could tell it: this process ends here
        traceback.print_exc()
        return FAILURE_EXIT_STATUS
    return 0


def _redirect_stdio(log_fd: int) -> None:
    """The terminal is the program's alone."""
    null_input = os.open(os.devnull, os.O_RDONLY)
    for source, standard in ((null_input, 0), (log_fd, 1), (log_fd, 2)):
        os.dup2(source, standard)
