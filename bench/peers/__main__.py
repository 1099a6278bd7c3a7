"""Benchmark of our gateway against nginx and other gateways: one page from one run.

    python -m bench.peers            under ten minutes; the first time two more, to install the peers
    python -m bench.peers --quick    one short round, less exact
    python -m bench.peers --write    the same, and write the results to docs/peers.md
    python -m bench.peers --features --write    only try the features, and write that part of the page; under a minute

All have the same upstream and the same clients, and take turns on one core; the other core is for the rest. nginx,
agentic-api, sglang-router and smg forward the same API; the others parse and translate. A server that cannot be
installed or started, or that answers wrong, has a row with the reason. Only ratios can be compared between machines.
Needs Linux, two cores, a C compiler, nginx and npm.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.gateway import Run, reads_per_event
from bench.loopback import CORES, Measurement
from bench.peers.contenders import CHAT, CHECK, ROWS, Comparison, Contender, Running, Servers
from bench.peers.features import feature_table, try_features
from bench.peers.report import Environment, Pace, PacedStreams, Results, Row, replace_features, report
from bench.traffic import native, short, structured
from interlingua.gateway.settings.descriptor_limit import raise_descriptor_limit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "peers.md"
PACES = (Pace(streams=20, rate=10), Pace(streams=20, rate=50))
"""LiteLLM uses a whole core at 700 to 1,000 events per second."""
TOGETHER, BURST = 4, 1000
"""Number of streams at full speed, and events in each. LiteLLM reads one such stream to its end before the next, and
the time window starts only when every client has received an event."""
SMALL, LARGE = 40_000, 400_000
"""Bytes of requests."""
CHECK_INTERVAL_MICROSECONDS = 5_000
HELD = 0.95
"""Part of the events that clients receive directly from the upstream, from which on a pace counts as held."""
IDLE_WARM_UP_STREAMS = 10
"""Streams before the memory of others is measured. They must be few, because their memory is used again."""
BUSY_CORE = 0.85
"""Part of a core from which on a server counts as at its limit."""


@dataclass(frozen=True)
class Lengths:
    rounds: int
    paced: float
    saturated: float
    small: float
    large: float
    idle: int


# LiteLLM answers four requests of 400 KB together, in about 1.5 seconds.
FULL = Lengths(rounds=3, paced=3.0, saturated=1.0, small=1.5, large=3.0, idle=200)
QUICK = Lengths(rounds=1, paced=2.0, saturated=0.8, small=0.8, large=1.5, idle=100)


class Progress:
    """Lines on stderr with the time since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, message: str) -> None:
        print(f"{time.monotonic() - self._start:4.0f} s  {message}", file=sys.stderr, flush=True)


def scripts(lengths: Lengths) -> dict[str, tuple[int, str]]:
    """Return the interval in microseconds and the events of each script of the upstream."""
    found: dict[str, tuple[int, str]] = {}
    for name, stream in (("structured", structured), ("native", native)):
        for pace in PACES:
            # The first half is text, the second half a call; the time window covers the middle.
            found[f"{name}-{pace.events}"] = (1_000_000 // pace.rate, stream(int(pace.rate * (lengths.paced + 1))))
        found[f"{name}-saturated"] = (0, stream(BURST))
        found[f"{name}-idle"] = (3600_000_000, stream(2))
        found[f"{name}-short"] = (0, short(CHAT))
        found[f"{name}-{CHECK}"] = (CHECK_INTERVAL_MICROSECONDS, stream(20))
    return found


class Benchmark:
    """All measurements of one run. A row that has failed once is left out from then on."""

    def __init__(self, comparison: Comparison, lengths: Lengths, progress: Progress) -> None:
        self._comparison = comparison
        self._lengths = lengths
        self._progress = progress

    def run(self) -> Results:
        # Unfinished streams may stay in a peer, and freed memory is used again: events and requests are measured with
        # newly started servers.
        with ExitStack() as stack:
            servers = self._start(stack)
            idle = self._idle(servers)
        with ExitStack() as stack:
            servers = self._start(stack, servers.failures)
            self._progress("warming up")
            self._measure(servers, servers.rows(), "short", 4, 1.0)
            streams = {pace.events: self._paced(servers, pace) for pace in PACES}
            small = self._rounds(servers, "requests of 40 KB", "short", 4, self._lengths.small, SMALL)
            large = self._rounds(servers, "requests of 400 KB", "short", 4, self._lengths.large, LARGE)
            fast = self._rounds(servers, "streams at full speed", "saturated", TOGETHER, self._lengths.saturated)
            self._progress("features")
            tried = try_features(servers)

        def row(one: Contender) -> Row:
            if one.name in servers.failures:
                return Row(one.name, one.forwards, servers.failures[one.name])
            return Row(
                one.name,
                one.forwards,
                paces={events: streams[events][one.name] for events in streams},
                idle=idle.get(one.name),
                small=[_cpu_per_response(seen) for seen in small[one.name]],
                large=[_cpu_per_response(seen) for seen in large[one.name]],
                fast=[seen.events / seen.seconds for seen in fast[one.name]],
            )

        return Results([row(one) for one in ROWS], tried)

    def _start(self, stack: ExitStack, failures: dict[str, str] | None = None) -> Servers:
        self._progress("starting all servers")
        return self._comparison.start(stack, failures or {})

    def _idle(self, servers: Servers) -> dict[str, float]:
        """Return the KiB per idle stream, for the first row of each server."""
        self._progress("idle streams")
        first = [one for one in servers.rows() if one.first]
        count = self._lengths.idle
        self._measure(servers, first, "idle", IDLE_WARM_UP_STREAMS, 0.3)
        first = [one for one in first if one.name not in servers.failures]
        measured = self._measure(servers, first, "idle", count, 0.5)
        return {name: seen.memory / count / 1024 for name, seen in measured.items()}

    def _paced(self, servers: Servers, pace: Pace) -> dict[str, PacedStreams]:
        kind = str(pace.events)
        direct: list[Measurement] = []

        def measure_direct() -> None:
            direct.append(self._comparison.direct(kind, pace.streams).measure(self._lengths.paced))

        found = self._rounds(servers, str(pace), kind, pace.streams, self._lengths.paced, before=measure_direct)
        return {name: _paced_streams(seen, direct) for name, seen in found.items() if len(seen) == len(direct)}

    def _rounds(
        self,
        servers: Servers,
        title: str,
        kind: str,
        clients: int,
        seconds: float,
        size: int = 0,
        before: Callable[[], None] = lambda: None,
    ) -> dict[str, list[Measurement]]:
        """Measure every row in every round. The rows take turns. `before` runs before each round."""
        found: dict[str, list[Measurement]] = {one.name: [] for one in ROWS}
        for number in range(self._lengths.rounds):
            self._progress(f"{title}, round {number + 1} of {self._lengths.rounds}")
            before()
            for name, seen in self._measure(servers, servers.rows(), kind, clients, seconds, size).items():
                found[name].append(seen)
        return found

    def _measure(
        self, servers: Servers, rows: list[Contender], kind: str, clients: int, seconds: float, size: int = 0
    ) -> dict[str, Measurement]:
        def run(one: Contender, server: Running) -> Run:
            return self._comparison.run(one, server, kind, clients, size)

        return servers.measure(rows, run, seconds)


def _paced_streams(seen: list[Measurement], direct: list[Measurement]) -> PacedStreams:
    seconds = sum(one.seconds for one in seen)
    rate = sum(one.events for one in seen) / seconds
    # Some events have no time stamp, and the second one of a stream is late: the upstream has less than the full rate.
    direct_rate = sum(one.events for one in direct) / sum(one.seconds for one in direct)
    return PacedStreams(
        cpu=[one.cpu / max(1, one.events) * 1e6 for one in seen],
        p50=[max(1.0, one.p50 - alone.p50) for one, alone in zip(seen, direct, strict=True)],
        reads=[reads_per_event(one) for one in seen],
        rate=rate,
        held=rate >= HELD * direct_rate,
        at_limit=sum(one.cpu for one in seen) / seconds >= BUSY_CORE,
    )


def _cpu_per_response(seen: Measurement) -> float:
    """Return the CPU time in milliseconds."""
    return seen.cpu / max(1, seen.responses) * 1e3


def feature_section() -> str:
    """Try the features without measurements, and return their part of the page."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        servers = Comparison(Path(name), stack, scripts(QUICK)).start(stack, {})
        return feature_table(try_features(servers))


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="one short round")
    options.add_argument("--features", action="store_true", help="only try the features, without measurements")
    options.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    chosen = options.parse_args()
    if sys.platform != "linux" or len(CORES) < 2 or not shutil.which("nginx"):
        print("bench.peers skipped: it needs Linux, two cores and nginx (apt-get install nginx-light)")
        return 0
    raise_descriptor_limit()
    progress = Progress()
    if chosen.features:
        features = feature_section()
        print(features)
        if chosen.write:
            PAGE.write_text(replace_features(PAGE.read_text(encoding="utf-8"), features), encoding="utf-8")
        return 0
    lengths = QUICK if chosen.quick else FULL
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        results = Benchmark(Comparison(Path(name), stack, scripts(lengths)), lengths, progress).run()
    environment = Environment(
        load_before=load_before,
        load_after=os.getloadavg()[0],
        paces=PACES,
        saturated=f"{TOGETHER} streams of {BURST:,} events",
        idle=lengths.idle,
        rounds=lengths.rounds,
    )
    page = report(results, environment)
    print(page)
    if chosen.write:
        PAGE.write_text(page, encoding="utf-8")
    progress("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
