"""What each gateway makes of each fault, on one page: ours, LiteLLM and claude-code-router.

python -m bench.conformance              all of them, some minutes each; writes docs/conformance.md
python -m bench.conformance ours         one of them; the others are as they were last judged here
python -m bench.conformance --page       only the page, of what was judged here before

Each stands in front of the same fault server, which it asks for chat completions. What was found is kept in
.peers/conformance. Whoever has not been judged here is named on the page, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.conformance_page import page
from bench.peers import Peer, ccr, litellm
from bench.peers.install import PEERS
from bench.peers.running import free_port, running
from interlingua import __version__
from interlingua.faults.apis import APIS, MESSAGES_PATH
from interlingua.faults.catalog import SCENARIOS, scripts_for
from interlingua.faults.checker.trial import GatewayTarget
from interlingua.faults.runner import ScenarioResult, run_scenarios, wait_until_answering
from interlingua.faults.upstream.server import UpstreamServer

FOUND = PEERS / "conformance"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "conformance.md"
KEY = "sk-upstream-0123456789abcdef"
TIMEOUT = 3.0
"""How long each gateway is told to wait for an upstream, where it can be told."""
PATIENCE = 25.0
"""How long the client waits."""
RECOVERY = 10.0
"""How long is waited until a gateway answers again, before it is started anew."""
OURS = """
upstreams:
  faults:
    url: {url}
    key: {key}
    timeouts: {{first_event: {timeout}, idle: {timeout}}}
"""


@contextmanager
def ours(models: Mapping[str, str]) -> Iterator[Peer]:
    """Our gateway, started as the others are."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        config = Path(folder) / "interlingua.yaml"
        (url,) = models.values()
        config.write_text(OURS.format(url=url, key=KEY, timeout=TIMEOUT), encoding="utf-8")
        config.chmod(0o600)
        args = [sys.executable, "-m", "interlingua", "serve", "--config", str(config), "--port", str(port)]
        env = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        with running(args, Path(folder), port, "/readyz", env) as process:
            yield Peer("Interlingua", __version__, process.pid, port, lambda model: model, Path(folder) / "log")


@dataclass(frozen=True)
class Gateway:
    """How one is started and asked."""

    title: str
    start: Callable[[Mapping[str, str]], AbstractContextManager[Peer]]
    model: str = "*"
    """The name of its only model."""
    prefix: str = ""
    """What it wants before a model's id."""
    apis: tuple[str, ...] = APIS


GATEWAYS = {
    "ours": Gateway("Interlingua", ours),
    "litellm": Gateway("LiteLLM", partial(litellm, key=KEY, timeout=TIMEOUT)),
    "ccr": Gateway("claude-code-router", partial(ccr, key=KEY), "faults", "faults,", (MESSAGES_PATH,)),
}


class Standing:
    """A gateway that stands in front of the fault server, and is started anew if a fault was the end of it."""

    def __init__(self, gateway: Gateway, server: UpstreamServer) -> None:
        self.gateway = gateway
        self._server = server
        self._running = ExitStack()
        self.peer = self._started()

    def target(self, api: str) -> GatewayTarget:
        """Where it is, and it answers."""
        if not wait_until_answering(self._target(), api, RECOVERY):
            self.end()
            self.peer = self._started()
        return self._target()

    def end(self) -> None:
        self._running.close()

    def _started(self) -> Peer:
        return self._running.enter_context(self.gateway.start({self.gateway.model: self._server.url}))

    def _target(self) -> GatewayTarget:
        faults = self._server.url.removesuffix("/v1")
        return GatewayTarget(self.peer.base_url, faults, self.gateway.prefix, timeout=PATIENCE)


def judged(standing: Standing) -> Iterator[ScenarioResult]:
    apis = standing.gateway.apis
    yield from run_scenarios(standing.target(MESSAGES_PATH), [one for one in SCENARIOS if not one.alone], apis)
    for scenario in (one for one in SCENARIOS if one.alone):
        for api in apis:
            yield from run_scenarios(standing.target(api), [scenario], [api])


def judge(name: str) -> dict[str, Any]:
    server = UpstreamServer(script_source=scripts_for)
    standing = Standing(GATEWAYS[name], server)
    results: list[dict[str, str]] = []
    try:
        for one in judged(standing):
            told = {"name": one.scenario.name, "api": one.api, "outcome": one.verdict.outcome.value}
            results.append({**told, "why": one.verdict.reason})
            print(f"{name}: {told['outcome']:10} {told['name']} ({one.api}): {one.verdict.reason[:100]}", flush=True)
    finally:
        standing.end()
        server.stop()
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    return {"gateway": standing.gateway.title, "version": standing.peer.version, "day": day, "results": results}


def write_page() -> list[str]:
    """Of what was judged here. Who was not."""
    files = {name: FOUND / f"{name}.json" for name in GATEWAYS}
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files.values() if file.exists()]
    missing = [GATEWAYS[name].title for name, file in files.items() if not file.exists()]
    PAGE.write_text(page(found, missing, TIMEOUT, PATIENCE), encoding="utf-8")
    return missing


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gateways", nargs="*", metavar="GATEWAY", help=f"{', '.join(GATEWAYS)}; default: all")
    parser.add_argument("--page", action="store_true", help="judge nothing; write the page of what was found before")
    args = parser.parse_args(argv)
    if strange := set(args.gateways) - set(GATEWAYS):
        parser.error(f"there is no gateway {min(strange)!r}: {', '.join(GATEWAYS)}")
    FOUND.mkdir(parents=True, exist_ok=True)
    for name in () if args.page else args.gateways or GATEWAYS:
        (FOUND / f"{name}.json").write_text(json.dumps(judge(name)), encoding="utf-8")
        write_page()  # the next one may fail
    missing = write_page()
    print(PAGE)
    if missing:
        print(f"error: not judged here: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
