"""Gateway process for all clients, on loopback, with the demo model and a plain inference server."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from interlingua.gateway.observability.capture_format import ClientRequestLine, EndLine, read_capture

__all__ = ["Exchange", "Gateway", "run_gateway", "run_plain_server", "serve"]

LISTENING = re.compile(r"listening on (http://\S+) ")
SECONDS = 60


class Exchange(Struct, frozen=True):
    """One captured request with the outcome of its reply."""

    body: bytes
    calls: int
    outcome: str
    error: str


class Gateway(Struct, frozen=True):
    base: str
    key: str
    captures: Path

    def exchanges(self, about: str, since: float) -> list[Exchange]:
        """Return the exchanges since this time whose request contains this text, in order."""
        found: list[Exchange] = []
        for path in sorted(self.captures.glob("*.jsonl")):
            if path.stat().st_mtime < since or about.encode() not in path.read_bytes():
                continue
            captured = read_capture(path)
            for request, end in zip(captured.lines_of(ClientRequestLine), captured.lines_of(EndLine), strict=False):
                summary = end.exchange
                found.append(Exchange(request.data, summary["calls"], summary["outcome"], summary["error"]))
        return [exchange for exchange in found if about.encode() in exchange.body]


@contextmanager
def run_plain_server() -> Iterator[str]:
    """Run the plain inference server until the block ends. Yields its URL."""
    with subprocess.Popen([sys.executable, "-m", "e2e.plain_server"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def run_gateway(folder: Path, plain_url: str) -> Iterator[Gateway]:
    """Run `interlingua serve --demo` until the block ends, with its log and captures in this folder.

    Models that do not begin with `demo/` are those of the plain server.
    """
    with serve(folder, "--demo", "--upstream", plain_url) as gateway:
        yield gateway


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[Gateway]:
    """Run `interlingua serve` with these options until the block ends, with its log and captures in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    log, captures, key = folder / "gateway.log", folder / "captures", secrets.token_urlsafe(16)
    known = {name: text for name, text in os.environ.items() if not name.startswith("INTERLINGUA_")}
    environment = {
        **known,
        "INTERLINGUA_KEYS": key,
        "INTERLINGUA_DEMO_PACE": "0.001",
        "INTERLINGUA_CAPTURE__KEEP": "100000",
        "XDG_CONFIG_HOME": str(folder),  # do not read the caller's own settings
    }
    argv = [sys.executable, "-m", "interlingua", "serve", *options, "--port", "0", "--log-format", "json"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*argv, "--capture", str(captures)], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=output
        )
    try:
        yield Gateway(_base(process, log), key, captures)
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _base(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        if found := LISTENING.search(log.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"the gateway did not start:\n{log.read_text(errors='replace')[-2000:]}")
