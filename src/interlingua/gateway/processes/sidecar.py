"""Gateway as a sidecar: a child process that runs as long as the program of its parent.

The child has its own session, so that the terminal cannot signal it: Ctrl-C in the middle of a turn is meant for the
program and must not end the gateway. The child stops when its parent stops it, and also when the parent is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from interlingua.gateway.processes.inspector_process import InspectorProcess
from interlingua.gateway.processes.worker import Worker
from interlingua.gateway.settings.loader import LoadedSettings

__all__ = ["SidecarProcess", "run_sidecar"]

STOP_TIMEOUT_SECONDS = 5.0
"""Time to stop before the child is killed. It can be short: no client is left to read the streams."""
FAILURE_EXIT_STATUS = 1


class SidecarProcess:
    """Handle of the parent for the process of the gateway."""

    def __init__(self, process: int, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline  # the child stops when this pipe is closed, by `stop` or by the end of the parent

    def has_died(self) -> bool:
        """Return whether the child has exited without `stop`."""
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
    """Run a gateway on this socket until the block ends. The child writes its output to `log_fd`."""
    child_end, parent_end = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(parent_end)
        os._exit(_serve(loaded, listener, seal_key, log_fd, child_end))
    os.close(child_end)
    listener.close()  # otherwise clients would wait forever for a gateway that has died
    gateway = SidecarProcess(process, parent_end)
    try:
        yield gateway
    finally:
        gateway.stop()


def _serve(loaded: LoadedSettings, listener: socket.socket, seal_key: bytes, log_fd: int, parent_pipe: int) -> int:
    """Run the worker in the child process and return the exit status."""
    inspector: InspectorProcess | None = None
    try:
        os.setsid()
        _redirect_stdio(log_fd)
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP})
        inspector = InspectorProcess(loaded.settings.inspect) if loaded.settings.inspect.enabled else None
        Worker(loaded, listener, seal_key, lambda: loaded, parent_pipe=parent_pipe, inspector=inspector).run()
    except BaseException:  # noqa: BLE001 - the process ends here, so no caller can report it
        traceback.print_exc()
        return FAILURE_EXIT_STATUS
    finally:
        if inspector is not None:
            inspector.stop()
    return 0


def _redirect_stdio(log_fd: int) -> None:
    """Redirect stdin to /dev/null and output to `log_fd`: the terminal belongs to the program of the parent."""
    null_input = os.open(os.devnull, os.O_RDONLY)
    for source, standard in ((null_input, 0), (log_fd, 1), (log_fd, 2)):
        os.dup2(source, standard)
