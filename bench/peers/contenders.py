"""Servers and rows of `bench.peers`: all in front of one upstream, each server started on the core under test."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.gateway import CONFIG, Run
from bench.loopback import (
    UNDER_TEST,
    Load,
    Measurement,
    Process,
    compile_program,
    gateway,
    nginx,
    pin_to_core,
    upstream,
)
from bench.peers import agentic_api, ccr, litellm, sglang_router, smg
from bench.peers.install import CannotInstall
from bench.peers.probes import ask, check_reply
from bench.peers.running import Peer
from bench.traffic import PATHS, agent_session, http_requests, small_request

__all__ = [
    "CHAT",
    "CHECK",
    "FAILURES",
    "MESSAGES",
    "RESPONSES",
    "ROWS",
    "Comparison",
    "Contender",
    "Running",
    "Servers",
]

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
FAILURES = (RuntimeError, OSError, CannotInstall, subprocess.SubprocessError)
"""Errors of one server, which must not end the comparison."""
CHECK = "check"
"""Kind of scripts with a short reply that has a call, for the check of each row."""
CHECK_TIMEOUT_SECONDS = 30.0
"""sglang-router and smg find their upstreams only after their start."""


@dataclass(frozen=True)
class Contender:
    """One row of the tables: a server, and how to send requests to it."""

    name: str
    server: str
    wire: str
    scripts: str = "structured"
    first: bool = True
    """True for the first row of its server. Later rows reuse freed memory, so their memory is not measured."""
    own_path: bool = False
    """True if requests use the upstream's path instead of the path of the wire."""
    forwards: bool = False
    """True if the server forwards the same API and converts nothing."""

    def path(self, script: str) -> str:
        return f"/{script}/v1/chat/completions" if self.own_path else PATHS[self.wire]


ROWS = (
    Contender("nginx", "nginx", CHAT, own_path=True, forwards=True),
    Contender("ours, Messages → Kimi's text", "ours", MESSAGES, "native"),
    Contender("ours, Messages → chat", "ours", MESSAGES, first=False),
    Contender("ours, chat → chat", "ours", CHAT, first=False),
    Contender("LiteLLM, Messages → chat", "LiteLLM", MESSAGES),
    Contender("LiteLLM, chat → chat", "LiteLLM", CHAT, first=False),
    Contender("claude-code-router, Messages → chat", "claude-code-router", MESSAGES),
    Contender("agentic-api, chat → chat", "agentic-api", CHAT, forwards=True),
    Contender("sglang-router, chat → chat", "sglang-router", CHAT, forwards=True),
    Contender("smg, chat → chat", "smg", CHAT, forwards=True),
)


@dataclass(frozen=True)
class Running:
    process: Process
    ask: Callable[[str], str]
    """Return the model id that clients must send for a script."""


@contextmanager
def _run_own(server: AbstractContextManager[Process]) -> Iterator[Running]:
    with server as process:
        yield Running(process, str)


@contextmanager
def _run_peer(server: AbstractContextManager[Peer]) -> Iterator[Running]:
    with ExitStack() as stack:
        with pin_to_core(UNDER_TEST):
            peer = stack.enter_context(server)
        yield Running(Process(peer.pid, peer.port), peer.ask)


class Servers:
    """Servers that are running, and the rows that have failed, with the reason."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        """`failures`: rows that have failed before."""
        self.running: dict[str, Running] = {}
        self.failures = dict(failures)

    def fail_server(self, name: str, error: BaseException) -> None:
        for one in ROWS:
            if one.server == name:
                self.fail(one, error)

    def fail(self, one: Contender, error: BaseException) -> None:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        print(f"{one.name} failed: {reason}", file=sys.stderr, flush=True)
        self.failures.setdefault(one.name, reason)

    def rows(self) -> list[Contender]:
        """Return the rows that have not failed."""
        return [one for one in ROWS if one.name not in self.failures]

    def measure(
        self, rows: Iterable[Contender], run: Callable[[Contender, Running], Run], seconds: float
    ) -> dict[str, Measurement]:
        """Measure each row once. A row that fails has no measurement."""
        found = {}
        for one in rows:
            try:
                found[one.name] = run(one, self.running[one.server]).measure(seconds)
            except (FileNotFoundError, ProcessLookupError):
                self.fail(one, RuntimeError("its process has ended"))
            except FAILURES as error:
                self.fail(one, error)
        return found


class Comparison:
    """Upstream, and the servers that are compared."""

    def __init__(self, folder: Path, stack: ExitStack, scripts: Mapping[str, tuple[int, str]]) -> None:
        """Start the upstream.

        Args:
            folder: Folder for files.
            stack: Ends the upstream.
            scripts: Microseconds between two events, and events, by the name of the script, which is `structured-` or
                `native-` and a kind. There must be scripts of the kind `CHECK`.
        """
        self._folder = folder
        self._client = compile_program(folder, "client")
        files = [(name, pause, self._write_file(name, text.encode())) for name, (pause, text) in scripts.items()]
        self.model = stack.enter_context(upstream(compile_program(folder, "upstream"), files, "/chat/completions"))
        self._root = f"http://127.0.0.1:{self.model.port}"
        self._urls = {name: f"{self._root}/{name}/v1" for name, _, _ in files}

    def start(self, stack: ExitStack, failures: Mapping[str, str]) -> Servers:
        """Start all servers, and check the reply of each row to one request.

        Args:
            stack: Ends the servers.
            failures: Rows that have failed before, and why.
        """
        servers = Servers(failures)
        starts: dict[str, AbstractContextManager[Running]] = {
            "nginx": _run_own(nginx(self._folder, self.model)),
            "ours": _run_own(gateway(self._folder, self._config())),
            "LiteLLM": _run_peer(litellm(self._urls)),
            "claude-code-router": _run_peer(ccr(self._urls)),
            "agentic-api": _run_peer(agentic_api(self._root)),
            "sglang-router": _run_peer(sglang_router(self._root)),
            "smg": _run_peer(smg(self._urls)),
        }
        for name, start in starts.items():
            try:
                servers.running[name] = stack.enter_context(start)
            except FAILURES as error:
                servers.fail_server(name, error)
        for one in servers.rows():
            try:
                self._check(one, servers.running[one.server])
            except FAILURES as error:
                servers.fail(one, error)
        return servers

    def _check(self, one: Contender, running: Running) -> None:
        """Send one request, until its reply is right. Raise RuntimeError if it stays wrong."""
        script = f"{one.scripts}-{CHECK}"
        until = time.monotonic() + CHECK_TIMEOUT_SECONDS
        while True:
            reply = ask(running.process.port, one.path(script), one.wire, running.ask(script))
            if not (reason := check_reply(reply, one.wire)):
                return
            if time.monotonic() > until:
                raise RuntimeError(reason)
            time.sleep(0.5)

    def run(self, one: Contender, server: Running, kind: str, clients: int, size: int = 0) -> Run:
        """Return the clients of one row, with an agent's request of this size; 0: a short request."""
        script = f"{one.scripts}-{kind}"
        model = server.ask(script)
        bodies = agent_session(one.wire, model, size) if size else [small_request(one.wire, model)]
        requests = http_requests(one.path(script), *bodies)
        file = self._write_file(f"{script}.{one.name}.{size}".replace("/", "-"), requests)
        return Run(one.name, Load(self._client, file, clients), server.process)

    def direct(self, kind: str, clients: int) -> Run:
        """Return clients that send requests directly to the upstream."""
        return self.run(Contender("direct", "", CHAT, own_path=True), Running(self.model, str), kind, clients)

    def _config(self) -> str:
        upstreams = "".join(f"  {name}: {{url: '{url}', api: {CHAT}}}\n" for name, url in self._urls.items())
        models = "".join(
            f"  {name}: {{upstream: {name}, model: {name}, dialect: "
            f"{'kimi_k2' if name.startswith('native') else 'standard'}}}\n"
            for name in self._urls
        )
        return CONFIG.format(upstreams=upstreams, models=models)

    def _write_file(self, name: str, text: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(text)
        return path
