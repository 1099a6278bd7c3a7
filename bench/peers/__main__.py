"""What ours costs beside nginx, LiteLLM and claude-code-router: one table from one run.

    python -m bench.peers            about ten minutes; the first time two more, to install the peers
    python -m bench.peers --quick    one short round, and noisier
    python -m bench.peers --write    the same, and docs/peers.md is what it has found

All stand in front of the same upstream, are asked by the same clients, and take turns on one core; the rest has the
other. nginx passes through and understands nothing; the others read and translate. The streams are paced so that all
can follow. Only ratios carry over from machine to machine. Needs Linux, two cores, a C compiler, nginx and npm.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.gateway import CONFIG, Run, measured
from bench.loopback import CORES, UNDER_TEST, Load, Process, Seen, born_on, compiled, gateway, nginx, upstream
from bench.peers import ccr, install, litellm
from bench.peers.report import Loads, Row, report
from bench.traffic import PATHS, agent_request, http_request, native, short, small_request, structured
from interlingua.upstreams.profile import CHAT, MESSAGES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "peers.md"
STREAMS, RATE = 20, 10
"""LiteLLM's core is full at about 700 events a second, and no core is all its own."""
TOGETHER, BURST = 4, 1000
"""Streams, and events in each, that come as fast as they are taken. LiteLLM reads one such stream to its end before the
next, and no window opens until each has heard a word."""
SIZES = (40_000, 400_000)


@dataclass(frozen=True)
class Lengths:
    rounds: int
    paced: float
    saturated: float
    request: float
    idle: int


FULL = Lengths(rounds=3, paced=3.0, saturated=1.5, request=1.5, idle=200)
QUICK = Lengths(rounds=1, paced=2.0, saturated=0.8, request=0.8, idle=100)


@dataclass(frozen=True)
class Contender:
    """One row of the table: a server, and how it is asked."""

    name: str
    server: Process
    wire: str
    ask: Callable[[str], str]
    """The model that it is asked for, to hear a script."""
    scripts: str = "structured"
    first: bool = True
    """Whether it is the first of its server: what a later one would take, memory that is free again may serve."""
    passed: bool = False
    """Whether it is asked where the upstream is, not where its wire is asked."""

    def path(self, script: str) -> str:
        return f"/{script}/v1/chat/completions" if self.passed else PATHS[self.wire]


class Ring:
    """The upstream, and all that stand in front of it."""

    def __init__(self, folder: Path, stack: ExitStack, lengths: Lengths) -> None:
        self._folder = folder
        self._client = compiled(folder, "client")
        # Text for the first half and a call for the second: the window lies over the middle.
        count = int(RATE * (lengths.paced + 1))
        scripts = {
            "structured-paced": (1_000_000 // RATE, structured(count)),
            "native-paced": (1_000_000 // RATE, native(count)),
            "structured-saturated": (0, structured(BURST)),
            "native-saturated": (0, native(BURST)),
            "structured-idle": (3600_000_000, structured(2)),
            "native-idle": (3600_000_000, native(2)),
            "structured-short": (0, short(CHAT)),
            "native-short": (0, short(CHAT)),
        }
        files = [(name, pause, self._written(name, text.encode())) for name, (pause, text) in scripts.items()]
        self.model = stack.enter_context(upstream(compiled(folder, "upstream"), files))
        self._urls = {name: f"http://127.0.0.1:{self.model.port}/{name}/v1" for name in scripts}

    def contenders(self, stack: ExitStack) -> list[Contender]:
        """Fresh ones."""
        passing = stack.enter_context(nginx(self._folder, self.model))
        ours = stack.enter_context(gateway(self._folder, self._config()))
        with born_on(UNDER_TEST):
            lite = stack.enter_context(litellm(self._urls))
            router = stack.enter_context(ccr(self._urls))
        their, routing = Process(lite.pid, lite.port), Process(router.pid, router.port)
        return [
            Contender("nginx", passing, CHAT, _same, passed=True),
            Contender("ours, Messages → Kimi's text", ours, MESSAGES, _same, "native"),
            Contender("ours, Messages → chat", ours, MESSAGES, _same, first=False),
            Contender("ours, chat → chat", ours, CHAT, _same, first=False),
            Contender("LiteLLM, Messages → chat", their, MESSAGES, lite.ask),
            Contender("LiteLLM, chat → chat", their, CHAT, lite.ask, first=False),
            Contender("claude-code-router, Messages → chat", routing, MESSAGES, router.ask),
        ]

    def run(self, one: Contender, kind: str, clients: int, size: int = 0) -> Run:
        script = f"{one.scripts}-{kind}"
        model = one.ask(script)
        body = agent_request(one.wire, model, size) if size else small_request(one.wire, model)
        file = self._written(f"{script}.{one.name}.{size}".replace("/", "-"), http_request(one.path(script), body))
        return Run(one.name, Load(self._client, file, clients), one.server)

    def direct(self) -> Run:
        """Clients that ask the upstream itself, with nobody between."""
        return self.run(Contender("direct", self.model, CHAT, _same, passed=True), "paced", STREAMS)

    def _config(self) -> str:
        upstreams = "".join(f"  {name}: {{url: '{url}', api: {CHAT}}}\n" for name, url in self._urls.items())
        models = "".join(
            f"  {name}: {{upstream: {name}, model: {name}, dialect: "
            f"{'kimi_k2' if name.startswith('native') else 'standard'}}}\n"
            for name in self._urls
        )
        return CONFIG.format(upstreams=upstreams, models=models)

    def _written(self, name: str, text: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(text)
        return path


def _same(name: str) -> str:
    return name


def compared(ring: Ring, lengths: Lengths) -> list[Row]:
    # Streams that were never heard to the end may stay behind in a peer: those are for the fresh ones that come after.
    with ExitStack() as stack:
        told("starting all: idle streams")
        all_ = ring.contenders(stack)
        measured([ring.run(one, "short", 4) for one in all_], 1.0, 1)
        idle = {one.name: ring.run(one, "idle", lengths.idle).seen(0.5).memory for one in all_ if one.first}
    with ExitStack() as stack:
        told("starting all: events and requests")
        all_ = ring.contenders(stack)
        measured([ring.run(one, "short", 4) for one in all_], 1.0, 1)
        told("paced streams")
        runs = [ring.direct(), *(ring.run(one, "paced", STREAMS) for one in all_)]
        direct, *paced = measured(runs, lengths.paced, lengths.rounds)
        told("requests")
        asked = {
            size: measured([ring.run(one, "short", 4, size) for one in all_], lengths.request, lengths.rounds)
            for size in SIZES
        }
        told("saturated streams")
        fast = measured([ring.run(one, "saturated", TOGETHER) for one in all_], lengths.saturated, lengths.rounds)
    return [
        Row(
            one.name,
            event=[seen.cpu / max(1, seen.events) * 1e6 for seen in paced[n]],
            p50=[max(1.0, seen.p50 - alone.p50) for seen, alone in zip(paced[n], direct, strict=True)],
            kept=_rate(paced[n]) > 0.9 * STREAMS * RATE,
            idle=idle[one.name] / lengths.idle / 1024 if one.first else None,
            small=[seen.cpu / max(1, seen.responses) * 1e3 for seen in asked[SIZES[0]][n]],
            large=[seen.cpu / max(1, seen.responses) * 1e3 for seen in asked[SIZES[1]][n]],
            fast=[seen.events / seen.seconds for seen in fast[n]],
        )
        for n, one in enumerate(all_)
    ]


def _rate(seen: list[Seen]) -> float:
    return sum(one.events for one in seen) / sum(one.seconds for one in seen)


def told(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="one short round")
    options.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    chosen = options.parse_args()
    if sys.platform != "linux" or len(CORES) < 2 or not shutil.which("nginx"):
        print("bench.peers is left out: it needs Linux, two cores and nginx (apt-get install nginx-light)")
        return 0
    install.litellm()
    install.ccr()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        rows = compared(Ring(Path(name), stack, lengths := QUICK if chosen.quick else FULL), lengths)
    loads = Loads(
        paced=f"{STREAMS} streams × {RATE} events/s",
        saturated=f"{TOGETHER} streams of {BURST} events",
        idle=lengths.idle,
        rounds=lengths.rounds,
    )
    page = report(rows, loads)
    print(page)
    if chosen.write:
        PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
