"""Benchmark of our gateway against nginx, LiteLLM and claude-code-router: one table from one run.

    python -m bench.peers            about ten minutes; the first time two more, to install the peers
    python -m bench.peers --quick    one short round, less exact
    python -m bench.peers --write    the same, and write the results to docs/peers.md

All have the same upstream and the same clients, and take turns on one core; the other core is for the rest. nginx only
forwards bytes; the others parse and translate. The pace of the streams is slow enough for all. Only ratios can be
compared between machines. Needs Linux, two cores, a C compiler, nginx and npm.
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

from bench.gateway import CONFIG, Run, measure_rounds
from bench.loopback import (
    CORES,
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
from bench.peers import ccr, install, litellm
from bench.peers.report import Loads, Row, report
from bench.traffic import PATHS, agent_request, http_request, native, short, small_request, structured

CHAT, MESSAGES = "openai-chat", "anthropic-messages"

PAGE = Path(__file__).resolve().parents[2] / "docs" / "peers.md"
STREAMS, RATE = 20, 10
"""LiteLLM uses a whole core at about 700 events per second, and other programs use the cores too."""
TOGETHER, BURST = 4, 1000
"""Number of streams at full speed, and events in each. LiteLLM reads one such stream to its end before the next, and
the time window starts only when every client has received an event."""
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
    """One row of the table: a server, and how to send requests to it."""

    name: str
    server: Process
    wire: str
    ask: Callable[[str], str]
    """Return the model id that selects a script."""
    scripts: str = "structured"
    first: bool = True
    """True for the first row of its server. Later rows reuse freed memory, so their memory is not measured."""
    forwarded: bool = False
    """True if requests use the upstream's path instead of the path of the wire."""

    def path(self, script: str) -> str:
        return f"/{script}/v1/chat/completions" if self.forwarded else PATHS[self.wire]


class Comparison:
    """Upstream, and the servers that are compared."""

    def __init__(self, folder: Path, stack: ExitStack, lengths: Lengths) -> None:
        self._folder = folder
        self._client = compile_program(folder, "client")
        # The first half is text, the second half a call; the time window covers the middle.
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
        files = [(name, pause, self._write_file(name, text.encode())) for name, (pause, text) in scripts.items()]
        self.model = stack.enter_context(upstream(compile_program(folder, "upstream"), files))
        self._urls = {name: f"http://127.0.0.1:{self.model.port}/{name}/v1" for name in scripts}

    def contenders(self, stack: ExitStack) -> list[Contender]:
        """Start all servers."""
        passing = stack.enter_context(nginx(self._folder, self.model))
        ours = stack.enter_context(gateway(self._folder, self._config()))
        with pin_to_core(UNDER_TEST):
            lite = stack.enter_context(litellm(self._urls))
            router = stack.enter_context(ccr(self._urls))
        their, routing = Process(lite.pid, lite.port), Process(router.pid, router.port)
        return [
            Contender("nginx", passing, CHAT, _same, forwarded=True),
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
        file = self._write_file(f"{script}.{one.name}.{size}".replace("/", "-"), http_request(one.path(script), body))
        return Run(one.name, Load(self._client, file, clients), one.server)

    def direct(self) -> Run:
        """Return clients that send requests directly to the upstream."""
        return self.run(Contender("direct", self.model, CHAT, _same, forwarded=True), "paced", STREAMS)

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


def _same(name: str) -> str:
    return name


def compare(comparison: Comparison, lengths: Lengths) -> list[Row]:
    # Unfinished streams may stay in a peer, so events and requests are measured with newly started servers.
    with ExitStack() as stack:
        log("starting all: idle streams")
        all_ = comparison.contenders(stack)
        measure_rounds([comparison.run(one, "short", 4) for one in all_], 1.0, 1)
        idle = {one.name: comparison.run(one, "idle", lengths.idle).measure(0.5).memory for one in all_ if one.first}
    with ExitStack() as stack:
        log("starting all: events and requests")
        all_ = comparison.contenders(stack)
        measure_rounds([comparison.run(one, "short", 4) for one in all_], 1.0, 1)
        log("paced streams")
        runs = [comparison.direct(), *(comparison.run(one, "paced", STREAMS) for one in all_)]
        direct, *paced = measure_rounds(runs, lengths.paced, lengths.rounds)
        log("requests")
        requests = {
            size: measure_rounds(
                [comparison.run(one, "short", 4, size) for one in all_], lengths.request, lengths.rounds
            )
            for size in SIZES
        }
        log("saturated streams")
        fast = measure_rounds(
            [comparison.run(one, "saturated", TOGETHER) for one in all_], lengths.saturated, lengths.rounds
        )
    return [
        Row(
            one.name,
            event=[seen.cpu / max(1, seen.events) * 1e6 for seen in paced[n]],
            p50=[max(1.0, seen.p50 - alone.p50) for seen, alone in zip(paced[n], direct, strict=True)],
            kept=_rate(paced[n]) > 0.9 * STREAMS * RATE,
            idle=idle[one.name] / lengths.idle / 1024 if one.first else None,
            small=[seen.cpu / max(1, seen.responses) * 1e3 for seen in requests[SIZES[0]][n]],
            large=[seen.cpu / max(1, seen.responses) * 1e3 for seen in requests[SIZES[1]][n]],
            fast=[seen.events / seen.seconds for seen in fast[n]],
        )
        for n, one in enumerate(all_)
    ]


def _rate(seen: list[Measurement]) -> float:
    return sum(one.events for one in seen) / sum(one.seconds for one in seen)


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="one short round")
    options.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    chosen = options.parse_args()
    if sys.platform != "linux" or len(CORES) < 2 or not shutil.which("nginx"):
        print("bench.peers skipped: it needs Linux, two cores and nginx (apt-get install nginx-light)")
        return 0
    install.litellm()
    install.ccr()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        rows = compare(Comparison(Path(name), stack, lengths := QUICK if chosen.quick else FULL), lengths)
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
