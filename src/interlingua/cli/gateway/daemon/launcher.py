"""How does a gateway come to run in the background, and where does it say that it listens?"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from interlingua import __version__
from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.instances import Instance, InstanceStore
from interlingua.cli.gateway.daemon.log_reader import LogPosition
from interlingua.cli.gateway.daemon.process_identity import process_start_id
from interlingua.errors import BadInput
from interlingua.gateway.settings.schema import Settings

__all__ = ["launch"]

START_TIMEOUT_SECONDS = 60.0
"""Seconds in which it has to listen."""
MAX_LOG_LINES = 20
"""Lines of the log of one that did not start."""


def launch(instances: InstanceStore, name: str, settings: Settings, log: Path, arguments: list[str]) -> Instance:
    """Runs `serve` with these arguments. Returns once it listens; raises, and shows its log, if it does not."""
    log_position = LogPosition(log)
    with _signals_as_exceptions(), _notify_socket() as listener:
        process = _spawn_detached(log, arguments, listener.getsockname())
        try:
            instance = Instance(
                name=name,
                pid=process.pid,
                began=process_start_id(process.pid),
                since=time.time(),
                version=__version__,
                log=str(log),
                drain=settings.drain,
                workers=settings.workers,
            )
            instances.save(instance)
            address = _wait_for_address(listener, process, log_position)
            instance = structs.replace(instance, address=address)
            instances.save(instance)
            return instance
        except BaseException:  # also Ctrl-C and other signals: nobody would know of it
            process.kill()
            process.wait()
            instances.remove(name)
            raise


def _spawn_detached(log: Path, arguments: list[str], notify_address: str) -> subprocess.Popen[bytes]:
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(f"cannot write the log {log}: {error.strerror}", "is it a link? move it away") from error
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
def _signals_as_exceptions() -> Iterator[None]:
    """Who is told to end meanwhile ends as an error does: what was begun is taken back, and nothing is left."""

    def exit_on_signal(number: int, _: object) -> None:
        for handled in handled_signals:
            signal.signal(handled, signal.SIG_IGN)  # once is enough: the rest takes no time
        raise SystemExit(128 + number)

    previous_handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    handled_signals = [
        number for number, handler in previous_handlers.items() if handler != signal.SIG_IGN
    ]  # as with nohup
    for number in handled_signals:
        signal.signal(number, exit_on_signal)
    try:
        yield
    finally:
        for number in handled_signals:
            signal.signal(number, previous_handlers[number])


@contextmanager
def _notify_socket() -> Iterator[socket.socket]:
    """Where it says that it listens, as it would say it to systemd. The path of a socket has to be short."""
    with (
        tempfile.TemporaryDirectory(prefix="interlingua-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        listener.bind(f"{folder}/ready")
        listener.settimeout(0.05)
        yield listener


def _wait_for_address(listener: socket.socket, process: subprocess.Popen[bytes], log_position: LogPosition) -> str:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            ready, _, status = listener.recv(4096).decode().partition("\n")
        except TimeoutError:
            continue
        if ready == "READY=1":
            return status.rpartition(" ")[2]
    lines = log_position.read_after().decode("utf-8", "replace").splitlines()
    if process.returncode is None:
        problem = f"it does not listen after {START_TIMEOUT_SECONDS:.0f} seconds, and was ended"
    else:
        problem = f"it ended at once, with status {process.returncode}"
    tail = [io.printable(line) for line in lines[-MAX_LOG_LINES:] if line]
    io.print_stderr("\n".join(["its log:", *(f"  {line}" for line in tail)]) if tail else "its log is empty")
    raise BadInput(f"the gateway has not started: {problem}", "its log says why; `interlingua serve` shows it at once")
