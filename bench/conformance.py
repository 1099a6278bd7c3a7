"""Conformance test of three gateways with every fault: Interlingua, LiteLLM and claude-code-router.

python -m bench.conformance              all gateways, some minutes each; writes docs/conformance.md
python -m bench.conformance ours         one gateway; the page keeps the last results of the others
python -m bench.conformance --page       write only the page, from earlier results

All gateways use the same fault server as their upstream, with chat completions. The results are stored in
.peers/conformance. The page names gateways without results; then the exit status is 1.
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
from bench.peers.install import PEERS, CannotInstall
from bench.peers.running import free_port, run_peer
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
"""Upstream timeout in seconds, configured in every gateway that has such a setting."""
CLIENT_TIMEOUT = 25.0
"""Timeout of the client in seconds."""
RECOVERY_TIMEOUT = 10.0
"""Seconds to wait until a gateway answers again, before it is restarted."""
OURS = """
upstreams:
  faults:
    url: {url}
    key: {key}
    timeouts: {{first_event: {timeout}, idle: {timeout}}}
"""


@contextmanager
def ours(models: Mapping[str, str]) -> Iterator[Peer]:
    """Run our gateway in the same way as the others."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        config = Path(folder) / "interlingua.yaml"
        (url,) = models.values()
        config.write_text(OURS.format(url=url, key=KEY, timeout=TIMEOUT), encoding="utf-8")
        config.chmod(0o600)
        args = [sys.executable, "-m", "interlingua", "serve", "--config", str(config), "--port", str(port)]
        env = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        with run_peer(args, Path(folder), port, "/readyz", env) as process:
            yield Peer("Interlingua", __version__, process.pid, port, lambda model: model, Path(folder) / "log")


@dataclass(frozen=True)
class Gateway:
    """Gateway under test: its start function and its model ids."""

    title: str
    start: Callable[[Mapping[str, str]], AbstractContextManager[Peer]]
    model: str = "*"
    """Name of its only model."""
    prefix: str = ""
    """Prefix of model ids in requests."""
    apis: tuple[str, ...] = APIS


GATEWAYS = {
    "ours": Gateway("Interlingua", ours),
    "litellm": Gateway("LiteLLM", partial(litellm, key=KEY, timeout=TIMEOUT)),
    "ccr": Gateway("claude-code-router", partial(ccr, key=KEY), "faults", "faults,", (MESSAGES_PATH,)),
}


class RunningGateway:
    """Running gateway in front of the fault server, restarted if a fault ended it."""

    def __init__(self, gateway: Gateway, server: UpstreamServer) -> None:
        self.gateway = gateway
        self._server = server
        self._running = ExitStack()
        self.peer = self._start()

    def target(self, api: str) -> GatewayTarget:
        """Return the address of the gateway, once it answers."""
        if not wait_until_answering(self._target(), api, RECOVERY_TIMEOUT):
            self.end()
            self.peer = self._start()
        return self._target()

    def end(self) -> None:
        self._running.close()

    def _start(self) -> Peer:
        return self._running.enter_context(self.gateway.start({self.gateway.model: self._server.url}))

    def _target(self) -> GatewayTarget:
        faults = self._server.url.removesuffix("/v1")
        return GatewayTarget(self.peer.base_url, faults, self.gateway.prefix, timeout=CLIENT_TIMEOUT)


def run_all_scenarios(running_gateway: RunningGateway) -> Iterator[ScenarioResult]:
    apis = running_gateway.gateway.apis
    yield from run_scenarios(running_gateway.target(MESSAGES_PATH), [one for one in SCENARIOS if not one.alone], apis)
    for scenario in (one for one in SCENARIOS if one.alone):
        for api in apis:
            yield from run_scenarios(running_gateway.target(api), [scenario], [api])


def judge(name: str) -> dict[str, Any]:
    server = UpstreamServer(script_source=scripts_for)
    running_gateway = RunningGateway(GATEWAYS[name], server)
    results: list[dict[str, str]] = []
    try:
        for result in run_all_scenarios(running_gateway):
            outcome, scenario = result.verdict.outcome.value, result.scenario.name
            reason = result.verdict.reason
            results.append({"name": scenario, "api": result.api, "outcome": outcome, "why": reason})
            print(f"{name}: {outcome:10} {scenario} ({result.api}): {reason[:100]}", flush=True)
    finally:
        running_gateway.end()
        server.stop()
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    return {
        "gateway": running_gateway.gateway.title,
        "version": running_gateway.peer.version,
        "day": day,
        "results": results,
    }


def write_page() -> list[str]:
    """Write the page from the stored results.

    Returns:
        Titles of the gateways without results.
    """
    files = {name: FOUND / f"{name}.json" for name in GATEWAYS}
    results = [json.loads(file.read_text(encoding="utf-8")) for file in files.values() if file.exists()]
    missing = [GATEWAYS[name].title for name, file in files.items() if not file.exists()]
    PAGE.write_text(page(results, missing, TIMEOUT, CLIENT_TIMEOUT), encoding="utf-8")
    return missing


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gateways", nargs="*", metavar="GATEWAY", help=f"{', '.join(GATEWAYS)}; default: all")
    parser.add_argument("--page", action="store_true", help="run no tests; write the page from earlier results")
    args = parser.parse_args(argv)
    if unknown := set(args.gateways) - set(GATEWAYS):
        parser.error(f"unknown gateway {min(unknown)!r}; known: {', '.join(GATEWAYS)}")
    FOUND.mkdir(parents=True, exist_ok=True)
    for name in () if args.page else args.gateways or GATEWAYS:
        try:
            judged = judge(name)
        except CannotInstall as error:
            sys.exit(str(error))
        (FOUND / f"{name}.json").write_text(json.dumps(judged), encoding="utf-8")
        write_page()  # now, because the next gateway may fail
    missing = write_page()
    print(PAGE)
    if missing:
        print(f"error: no results of {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
