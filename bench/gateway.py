"""Benchmark of the gateway against nginx, which forwards the same streams without parsing them.

    python -m bench.gateway            under three minutes
    python -m bench.gateway --quick    under forty seconds, less exact

Both servers run in turn, on the same core and in front of the same upstream. The upstream and the clients are small C
programs on another core, whose CPU time is not counted. Only ratios can be compared between machines. The output shows
medians of several rounds, with the spread where it is wide. nginx comes from the system (`apt-get install
nginx-light`); without it there are no ratios. Needs Linux, two cores and a C compiler; all sockets are on loopback.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.loopback import CORES, Load, Measurement, Process, compile_program, gateway, nginx, upstream
from bench.traffic import PATHS, agent_request, http_request, native, short, small_request, structured

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"

STREAMS = 100
LITELLM = 10.0
"""Published CPU time of LiteLLM for a request of 40 KB, in milliseconds; not measured by this run."""
CONFIG = """\
upstreams:
{upstreams}
models:
{models}
"""


@dataclass(frozen=True)
class Run:
    """One row of a table: a load, and the server under test."""

    name: str
    load: Load
    server: Process

    def measure(self, seconds: float) -> Measurement:
        self.server.wait_until_idle()
        return self.load.run_against(self.server, seconds)


@dataclass(frozen=True)
class Lengths:
    rounds: int
    paced: float
    saturated: float
    request: float
    idle: int


FULL = Lengths(rounds=3, paced=2.5, saturated=1.5, request=1.0, idle=1000)
QUICK = Lengths(rounds=1, paced=1.5, saturated=0.6, request=0.4, idle=300)


class Bench:
    """Upstream, servers under test, and the load for each of them."""

    def __init__(self, folder: Path, stack: ExitStack, lengths: Lengths, rate: int) -> None:
        self._folder = folder
        self._client = compile_program(folder, "client")
        self.rate = rate
        long = int(rate * (lengths.paced + 3))
        scripts = {
            "native-paced": (1_000_000 // rate, native(long)),
            "structured-paced": (1_000_000 // rate, structured(long)),
            "native-saturated": (0, native(5000)),
            "structured-saturated": (0, structured(5000)),
            "native-idle": (3600_000_000, native(2)),
            **{f"short-{wire}": (0, short(wire)) for wire in PATHS},
        }
        files = [(name, interval, self._write_file(name, text)) for name, (interval, text) in scripts.items()]
        self.model = stack.enter_context(upstream(compile_program(folder, "upstream"), files))
        self.gateway = stack.enter_context(gateway(folder, self._config(list(scripts))))
        self.nginx = stack.enter_context(nginx(folder, self.model)) if shutil.which("nginx") else None

    def _config(self, names: list[str]) -> str:
        upstreams, models = "", ""
        for name in names:
            api = name.removeprefix("short-") if name.startswith("short-") else CHAT
            dialect = "kimi_k2" if name.startswith("native") else "standard"
            upstreams += f"  {name}: {{url: 'http://127.0.0.1:{self.model.port}/{name}/v1', api: {api}}}\n"
            models += f"  {name}: {{upstream: {name}, model: kimi-k2, dialect: {dialect}}}\n"
        return CONFIG.format(upstreams=upstreams, models=models)

    def _write_file(self, name: str, text: str | bytes) -> Path:
        path = self._folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def load(self, script: str, wire: str, clients: int, size: int = 0) -> Load:
        """Return clients that send the gateway an agent's request of this size on this wire; 0: a short request."""
        body = agent_request(wire, script, size) if size else small_request(wire, script)
        return Load(self._client, self._write_file(f"{script}.{wire}.{size}", http_request(PATHS[wire], body)), clients)

    def direct_load(self, script: str, clients: int, size: int = 0) -> Load:
        """Return clients that send requests to the upstream's own path, directly or through nginx."""
        body = agent_request(CHAT, script, size) if size else small_request(CHAT, script)
        request = http_request(f"/{script}/v1/chat/completions", body)
        return Load(self._client, self._write_file(f"{script}.direct.{size}", request), clients)

    def streams(self, pace: str) -> list[Run]:
        clients = STREAMS if pace == "paced" else 16
        rows = [
            ("chat → chat", f"structured-{pace}", CHAT),
            ("Kimi's text → chat", f"native-{pace}", CHAT),
            ("Kimi's text → Messages", f"native-{pace}", MESSAGES),
            ("Kimi's text → Responses", f"native-{pace}", RESPONSES),
        ]
        runs = [Run(name, self.load(script, wire, clients), self.gateway) for name, script, wire in rows]
        return self.with_nginx(self.direct_load(f"native-{pace}", clients), runs)

    def requests(self, size: int, pairs: list[tuple[str, str]]) -> list[Run]:
        runs = [
            Run(f"{source} → {target}", self.load(f"short-{target}", source, 4, size), self.gateway)
            for source, target in pairs
        ]
        return self.with_nginx(self.direct_load(f"short-{CHAT}", 4, size), runs)

    def idle(self, clients: int) -> list[Run]:
        runs = [
            Run("Kimi's text → Messages", self.load("native-idle", MESSAGES, clients), self.gateway),
            Run("the same, after requests of 40 KB", self.load("native-idle", MESSAGES, clients, 40_000), self.gateway),
        ]
        return self.with_nginx(self.direct_load("native-idle", clients), runs)

    def with_nginx(self, load: Load, runs: list[Run]) -> list[Run]:
        return [Run("nginx, forwarding only", load, self.nginx), *runs] if self.nginx else runs


def measure_rounds(runs: list[Run], seconds: float, rounds: int) -> list[list[Measurement]]:
    """Measure every run in every round. The runs take turns.

    Returns:
        One list per run, with one measurement per round.
    """
    measurements: list[list[Measurement]] = [[] for _ in runs]
    for _ in range(rounds):
        for mine, run in zip(measurements, runs, strict=True):
            mine.append(run.measure(seconds))
    return measurements


def table(
    runs: list[Run],
    measurements: list[list[Measurement]],
    unit: str,
    value: Callable[[Measurement], float],
    target: float,
) -> None:
    """Print one row per run: the median, its spread, and its ratio to nginx."""
    print(f"\n{unit}" + (f"; target: {target:g} × nginx" if target else ""))
    base = 0.0
    for run, each in zip(runs, measurements, strict=True):
        values = [value(one) for one in each]
        middle = statistics.median(values)
        spread = f"({min(values):.1f} to {max(values):.1f})" if max(values) > 1.15 * min(values) else ""
        ratio = f"{middle / base:6.2f} ×" if base else ""
        base = base or (middle if "nginx" in run.name else 0.0)
        print(f"  {run.name:<40}{middle:9.1f}{ratio:>10}  {spread}", flush=True)


def per_event(measurement: Measurement) -> float:
    return measurement.cpu / max(1, measurement.events) * 1e6


def per_request(measurement: Measurement) -> float:
    return measurement.cpu / max(1, measurement.responses) * 1e6


def report_streams(bench: Bench, lengths: Lengths) -> None:
    runs = bench.streams("paced")
    direct = bench.direct_load("native-paced", STREAMS).run_against(bench.model, lengths.paced).p50
    measurements = measure_rounds(runs, lengths.paced, lengths.rounds)
    wanted = STREAMS * bench.rate
    table(runs, measurements, f"CPU per event, µs: {STREAMS} streams × {bench.rate} events/s", per_event, 1.8)
    table(runs, measurements, "added p50 per event, µs", lambda one: max(0.0, one.p50 - direct), 2)
    table(runs, measurements, "p99 per event, µs", lambda one: one.p99, 0)
    slow = [run.name for run, each in zip(runs, measurements, strict=True) if _rate(each) < 0.95 * wanted]
    if slow:
        print(f"  Below {wanted} events/s, so latencies are not meaningful (see --rate): {', '.join(slow)}")
    runs = bench.streams("saturated")
    measurements = measure_rounds(runs, lengths.saturated, lengths.rounds)
    table(runs, measurements, "CPU per event, µs: 16 streams at full speed", per_event, 0)


def _rate(measurements: list[Measurement]) -> float:
    return statistics.median(one.events / one.seconds for one in measurements)


def report_requests(bench: Bench, lengths: Lengths) -> None:
    pairs = [(CHAT, CHAT), (MESSAGES, CHAT), (RESPONSES, CHAT), (MESSAGES, MESSAGES), (CHAT, MESSAGES)]
    few = pairs[:3]
    for size, chosen in ((40_000, pairs), (400_000, few)):
        runs = bench.requests(size, chosen)
        measurements = measure_rounds(runs, lengths.request, lengths.rounds)
        goal = f"target: {LITELLM * 1000 / 12:.0f}, a twelfth of LiteLLM's" if size == 40_000 else "no target"
        table(
            runs,
            measurements,
            f"CPU per request of {size // 1000} KB, 20 tools, 41 messages, µs; {goal}",
            per_request,
            0,
        )


def report_idle(bench: Bench, lengths: Lengths) -> None:
    """Report memory per idle stream. Must run first: memory freed by other parts would hide what streams use."""
    bench.load("native-idle", MESSAGES, 50).run_against(bench.gateway, 0.3)
    runs = bench.idle(lengths.idle)
    measurements = measure_rounds(runs, 0.5, 1)
    unit = f"memory per idle stream, KiB: {lengths.idle} streams; target: 32"
    table(runs, measurements, unit, lambda one: one.memory / lengths.idle / 1024, 0)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one short round, under forty seconds")
    options.add_argument("--rate", type=int, default=100, help="events per second in each of the paced streams")
    options.add_argument("--only", choices=["idle", "streams", "requests"], help="run only this part")
    chosen = options.parse_args()
    if sys.platform != "linux" or len(CORES) < 2:
        print("bench.gateway skipped: it needs Linux and two cores")
        return 0
    lengths = QUICK if chosen.quick else FULL
    parts = {"idle": report_idle, "streams": report_streams, "requests": report_requests}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        bench = Bench(Path(name), stack, lengths, chosen.rate)
        if bench.nginx is None:
            print("no ratios, because nginx is not installed: apt-get install nginx-light")
        for part, report in parts.items():
            if chosen.only in (None, part):
                report(bench, lengths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
