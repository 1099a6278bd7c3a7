"""Run a peer on a free loopback port, with its own home, and end its process group."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Peer", "free_port", "run_peer"]

START_TIMEOUT_SECONDS = 120.0
"""LiteLLM needs ten seconds for its imports alone."""
STOP_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Peer:
    """Running gateway to compare with."""

    name: str
    version: str
    pid: int
    port: int
    ask: Callable[[str], str]
    """Return the model id that clients must send for a model."""
    log: Path

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def run_peer(
    args: list[str], home: Path, port: int, health: str, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a peer and yield its process once it answers.

    Args:
        args: Command line.
        home: Home and working directory.
        port: Port on which it listens.
        health: Path of its health check.
        env: Environment variables. Only PATH is inherited from this process.
    """
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(home)}
    # The peer must not outlive this process, even if this process is killed.
    bound = [setpriv, "--pdeathsig", "KILL"] if (setpriv := shutil.which("setpriv")) else []
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [*bound, *args],
            cwd=home,
            env=known | env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_answering(process, f"http://127.0.0.1:{port}{health}", home / "log")
        yield process
    finally:
        _end(process)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_until_answering(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    output = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"{process.args!r} does not answer at {url}\n{output}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group, including processes whose parent has ended."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_SECONDS)
