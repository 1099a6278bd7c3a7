"""Gateways for the clients, on loopback: with the demo model, and with a plain model server."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from interlingua.captures.capture_format import ClientRequestLine, EndLine, read_capture

__all__ = ["Exchange", "Gateway", "GatewayPool", "serve"]

LISTENING = re.compile(r"listening on (http://[^\s\"]+)[\" ]")
SECONDS = 60
REFUSED = '"message": "request refused"'
DEFAULT_SERVER = "vllm"
"""Upstream of a gateway whose clients use only the demo model."""


class Exchange(Struct, frozen=True):
    """One captured request with the outcome of its reply."""

    body: bytes
    calls: int
    outcome: str
    error: str
    status: int = 200
    findings: Mapping[str, int] = {}


class Gateway(Struct, frozen=True):
    base: str
    key: str
    captures: Path
    log: Path

    def exchanges(self, about: str, since: float) -> list[Exchange]:
        """Return the exchanges since this time that are about this text, in order.

        The text may be only in the request to the upstream, if the client's request refers to stored items.
        """
        found: list[Exchange] = []
        for path in sorted(self.captures.glob("*.jsonl")):
            if path.stat().st_mtime < since or about.encode() not in path.read_bytes():
                continue
            captured = read_capture(path)
            for request, end in zip(captured.lines_of(ClientRequestLine), captured.lines_of(EndLine), strict=False):
                fields = end.exchange
                found.append(
                    Exchange(
                        body=request.data,
                        calls=fields["calls"],
                        outcome=fields["outcome"],
                        error=fields["error"],
                        status=fields["status"],
                        findings=fields["findings"],
                    )
                )
        return found


class GatewayPool:
    """Starts gateways and servers when they are needed, and stops them at the end of the block.

    Args:
        folder: Folder for logs and captures.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._urls: dict[tuple[str, ...], str] = {}
        self._gateways: dict[tuple[str, tuple[tuple[str, str], ...]], Gateway] = {}

    def __enter__(self) -> GatewayPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def gateway(self, server: str, settings: Mapping[str, str]) -> Gateway:
        """Return the gateway in front of this plain server (empty: the demo model) with these settings."""
        with self._lock:
            key = server, tuple(sorted(settings.items()))
            if key not in self._gateways:
                upstream = self._url("e2e.plain_servers", server or DEFAULT_SERVER)
                filled = {
                    name: value.format(search=self._url("e2e.search_server")) if "{" in value else value
                    for name, value in settings.items()
                }
                folder = self._folder / f"gateway-{len(self._gateways)}"
                self._gateways[key] = self._stack.enter_context(_run_gateway(folder, upstream, filled))
            return self._gateways[key]

    def count_refusals(self) -> int:
        """Return the number of requests that the gateways have refused at other paths than those of the model APIs.

        No capture has them, and they belong to no run.
        """
        return sum(gateway.log.read_text(errors="replace").count(REFUSED) for gateway in self._gateways.values())

    def _url(self, *module_and_arguments: str) -> str:
        if module_and_arguments not in self._urls:
            self._urls[module_and_arguments] = self._stack.enter_context(_run_server(*module_and_arguments))
        return self._urls[module_and_arguments]


@contextmanager
def _run_server(*module_and_arguments: str) -> Iterator[str]:
    """Run a server until the block ends. Yields the URL that it prints."""
    argv = [sys.executable, "-m", *module_and_arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def _run_gateway(folder: Path, upstream_url: str, settings: Mapping[str, str]) -> Iterator[Gateway]:
    """Run `interlingua serve --demo` until the block ends, with its log and captures in this folder.

    Models that do not begin with `demo/` are those of the upstream.
    """
    with serve(folder, "--demo", "--upstream", upstream_url, settings=settings) as gateway:
        yield gateway


@contextmanager
def serve(folder: Path, *options: str, settings: Mapping[str, str] | None = None) -> Iterator[Gateway]:
    """Run `interlingua serve` with these options until the block ends, with its log and captures in this folder.

    `settings` are settings as environment variables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log, captures, key = folder / "gateway.log", folder / "captures", secrets.token_urlsafe(16)
    known = {name: text for name, text in os.environ.items() if not name.startswith("INTERLINGUA_")}
    environment = {
        **known,
        "INTERLINGUA_KEYS": key,
        "INTERLINGUA_DEMO_PACE": "0.001",
        "INTERLINGUA_CAPTURE__KEEP": "100000",
        "XDG_CONFIG_HOME": str(folder),  # do not read the caller's own settings
        "XDG_STATE_HOME": str(folder),  # nor its stored responses
        **(settings or {}),
    }
    argv = [sys.executable, "-m", "interlingua", "serve", *options, "--port", "0", "--log-format", "json"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*argv, "--capture", str(captures)], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=output
        )
    try:
        yield Gateway(_base(process, log), key, captures, log)
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
