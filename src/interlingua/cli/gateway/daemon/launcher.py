"""Launcher: start `serve` as a detached process and wait until it reports that it is ready."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from interlingua import __version__
from interlingua.cli.common import console
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore
from interlingua.cli.gateway.daemon.log_reader import LogPosition
from interlingua.cli.gateway.daemon.process_identity import process_start_id
from interlingua.errors import BadInput
from interlingua.gateway.processes.socket_folder import make_socket_folder
from interlingua.gateway.settings.schema import Settings

__all__ = ["launch"]

START_TIMEOUT_SECONDS = 60.0
"""Maximum time until the gateway listens."""
MAX_LOG_LINES = 20
"""Maximum number of log lines that are printed if the gateway does not start."""


def launch(instances: InstanceStore, name: str, settings: Settings, log: Path, arguments: list[str]) -> Instance:
    """Run `serve` with these arguments and return when it listens.

    Raises:
        BadInput: The gateway did not start. Its log has been printed.
    """
    log_position = LogPosition(log)
    with _recorded_signals() as raise_if_signalled, _notify_socket() as listener:
        process = _spawn_detached(log, arguments, listener.getsockname())
        try:
            instance = Instance(
                name=name,
                pid=process.pid,
                start_id=process_start_id(process.pid),
                started_at=time.time(),
                version=__version__,
                log=str(log),
                drain=settings.drain,
                workers=settings.workers,
            )
            instances.save(instance)
            address = _wait_for_address(listener, process, log_position, raise_if_signalled)
            instance = structs.replace(instance, address=address)
            instances.save(instance)
            raise_if_signalled()
            return instance
        except BaseException:  # also Ctrl-C and other signals: leave no unknown process behind
            process.kill()
            process.wait()
            instances.remove(name)
            raise


def _spawn_detached(log: Path, arguments: list[str], notify_address: str) -> subprocess.Popen[bytes]:
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(
            f"cannot write the log {log}: {error.strerror}", "if it is a symbolic link, remove it"
        ) from error
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "interlingua", "serve", *arguments],
            env={**os.environ, "INTERLINGUA_LOG__FILE": str(log), "NOTIFY_SOCKET": notify_address},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)


@contextmanager
def _recorded_signals() -> Iterator[Callable[[], None]]:
    """Record SIGINT, SIGTERM and SIGHUP, and yield a function that raises an exception if one has arrived.

    A handler that raises could interrupt any step. In `Popen.poll`, for example, it could leave a lock locked that
    `Popen.wait` needs.
    """
    received: list[int] = []

    def record(number: int, _: object) -> None:
        received.append(number)

    def raise_if_signalled() -> None:
        if received:
            raise KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])

    previous_handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if (handler := signal.getsignal(number)) != signal.SIG_IGN  # ignored signals stay ignored, as with nohup
    }
    for number in previous_handlers:
        signal.signal(number, record)
    try:
        yield raise_if_signalled
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _notify_socket() -> Iterator[socket.socket]:
    """Create the socket on which the gateway reports readiness (systemd's sd_notify protocol)."""
    folder = make_socket_folder()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(f"{folder}/ready")
            listener.settimeout(0.05)
            yield listener
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_address(
    listener: socket.socket,
    process: subprocess.Popen[bytes],
    log_position: LogPosition,
    raise_if_signalled: Callable[[], None],
) -> str:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        raise_if_signalled()
        try:
            ready, _, status = listener.recv(4096).decode().partition("\n")
        except TimeoutError:
            continue
        if ready == "READY=1":
            return status.rpartition(" ")[2]
    lines = log_position.read_after().decode("utf-8", "replace").splitlines()
    if process.returncode is None:
        problem = f"it was not listening after {START_TIMEOUT_SECONDS:.0f} seconds and was killed"
    else:
        problem = f"it ended with status {process.returncode}"
    tail = [console.printable(line) for line in lines[-MAX_LOG_LINES:] if line]
    console.print_stderr("\n".join(["log:", *(f"  {line}" for line in tail)]) if tail else "the log is empty")
    raise BadInput(
        f"the gateway did not start: {problem}", "see its log above, or run `interlingua serve` in the foreground"
    )
