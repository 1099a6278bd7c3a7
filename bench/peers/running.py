"""A peer that runs: on a free port of loopback, with a home of its own, and ended as a group."""

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

__all__ = ["Peer", "free_port", "running"]

BEGINNING = 120.0
"""Seconds within which a peer must answer; LiteLLM alone takes ten to import."""
ENDING = 5.0


@dataclass(frozen=True)
class Peer:
    """Another gateway, which answers."""

    name: str
    version: str
    pid: int
    port: int
    ask: Callable[[str], str]
    """The name under which clients ask it for a model."""
    log: Path

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(
    args: list[str], home: Path, port: int, health: str, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, once it answers at this path; it knows nothing of this process' environment but the path."""
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(home)}
    # It must not outlive us, however we end.
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
        _answering(process, f"http://127.0.0.1:{port}{health}", home / "log")
        yield process
    finally:
        _end(process)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answering(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + BEGINNING
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    told = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"{process.args!r} does not answer at {url}\n{told}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The group ends as a whole: also those of it whose parent has gone."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)
