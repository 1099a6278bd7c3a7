"""Benchmark of the gateway against nginx, which forwards the same streams without parsing them.

    python -m bench.gateway            about thirteen minutes
    python -m bench.gateway --quick    about three minutes, less exact

Both servers run in turn, on the same core and in front of the same upstream. The upstream and the clients are small C
programs on another core, whose CPU time is not counted. The name of a row has the wire of the clients, and that of the
upstream. Only ratios can be compared between machines. The output shows medians of several rounds, with the spread
where it is wide. nginx comes from the system (`apt-get install nginx-light`); without it there are no ratios. Needs
Linux, two cores and a C compiler; all sockets are on loopback.

Streams are measured for every pair of wires, and for a model that writes its calls as text, at two paces. Many events
per second keep the processor's caches warm; a few find them cold. nginx forwards the stream of chat completions. On a
busy machine a server reads several events at once, which costs less per event: the output has the number of reads per
event, and where rows differ in it, or a server has not kept the pace, they are not judged.

Memory of idle streams is measured in gateways that have handled no other streams than those that are open. 10,000 open
streams need 20,100 open files (`ulimit -Hn`); with a lower limit there are fewer.

Requests are those of agents: each repeats the conversation of the one before and adds a call and its result, and no two
sessions are alike. What a gateway keeps of earlier requests helps there, so requests that share nothing with an earlier
one are measured, too.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bench.loopback import CORES, Load, Measurement, Process, compile_program, gateway, nginx, upstream
from bench.traffic import (
    PATHS,
    agent_request,
    agent_session,
    first_request,
    http_requests,
    native,
    on_wire,
    short,
    small_request,
    structured,
)
from bench.workers import WorkerLoad, report_workers
from interlingua.gateway.settings.descriptor_limit import descriptor_limit, raise_descriptor_limit

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"

WIRE_TITLES = {CHAT: "chat", MESSAGES: "Messages", RESPONSES: "Responses"}
NGINX = "nginx, forwarding only"
STREAMS = 100
HELD = 0.95
"""Part of the events that clients receive directly from the upstream, from which on a pace counts as held."""
SLOW_RATE = 4
"""Events per second in each stream, of the slower pace."""
MAX_READS_DIFFERENCE = 0.1
"""Rows are compared if their numbers of reads per event differ by at most this part."""
IDLE_SECONDS = 3.0
"""Time from when all streams are open until their memory is measured. A gateway returns free memory meanwhile."""
WARM_UP_STREAMS = 10
"""Streams before the memory of others is measured. They must be few, because their memory is used again."""
OPEN_INTERVAL_SECONDS = 5
"""Time between two events of a stream, of many that are open."""
OPEN_TIMEOUT_SECONDS = 300.0
DESCRIPTORS = 100
"""Descriptors that the gateway keeps for other purposes than streams."""
CONFIG = """\
upstreams:
{upstreams}
models:
{models}
"""
NO_CONVERSATIONS = "limits: {conversations: 0}\n"
LIMITS = "limits: {{streams: {0}, connections: {0}}}\n"


RequestKind: TypeAlias = Literal["small", "agent", "session", "first"]
"""small: one message and one tool. agent: the same request of an agent again and again. session: the requests of an
agent's session. first: requests of agents that share nothing with an earlier request."""


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
    slow: float
    saturated: float
    request: float
    idle: int
    open: int


FULL = Lengths(rounds=3, paced=2.5, slow=5.0, saturated=1.5, request=1.0, idle=1000, open=10_000)
QUICK = Lengths(rounds=1, paced=1.5, slow=2.0, saturated=0.6, request=0.4, idle=300, open=1000)


class Bench:
    """Upstream, servers under test, and the load for each of them."""

    def __init__(self, folder: Path, stack: ExitStack, lengths: Lengths, rate: int) -> None:
        self._folder = folder
        self._client = compile_program(folder, "client")
        self._file_count = 0
        self.rate = rate
        long, long_slow = int(rate * (lengths.paced + 3)), int(SLOW_RATE * (lengths.slow + 10))
        scripts = {
            "native-paced": (1_000_000 // rate, native(long)),
            "native-slow": (1_000_000 // SLOW_RATE, native(long_slow)),
            **{f"{wire}-paced": (1_000_000 // rate, on_wire(structured(long), wire)) for wire in PATHS},
            **{f"{wire}-slow": (1_000_000 // SLOW_RATE, on_wire(structured(long_slow), wire)) for wire in PATHS},
            "native-saturated": (0, native(5000)),
            f"{CHAT}-saturated": (0, structured(5000)),
            "native-idle": (3600_000_000, native(2)),
            "native-open": (OPEN_INTERVAL_SECONDS * 1_000_000, native(200)),
            **{f"short-{wire}": (0, short(wire)) for wire in PATHS},
        }
        files = [(name, interval, self._write_file(name, text)) for name, (interval, text) in scripts.items()]
        self.model = stack.enter_context(upstream(compile_program(folder, "upstream"), files))
        self._settings = self._config(list(scripts))
        self.gateway = stack.enter_context(gateway(folder, self._settings))
        self.nginx = stack.enter_context(nginx(folder, self.model)) if shutil.which("nginx") else None

    def _config(self, names: list[str]) -> str:
        upstreams, models = "", ""
        for name in names:
            api = next((wire for wire in PATHS if wire in name), CHAT)
            dialect = "kimi_k2" if name.startswith("native") else "standard"
            upstreams += f"  {name}: {{url: 'http://127.0.0.1:{self.model.port}/{name}/v1', api: {api}}}\n"
            models += f"  {name}: {{upstream: {name}, model: kimi-k2, dialect: {dialect}}}\n"
        return CONFIG.format(upstreams=upstreams, models=models)

    def _write_file(self, name: str, text: str | bytes) -> Path:
        path = self._folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def load(self, script: str, wire: str, clients: int, kind: RequestKind = "small", size: int = 0) -> Load:
        """Return clients that send the gateway requests of this kind and size on this wire."""
        return self._load(f"{script}.{wire}", PATHS[wire], _bodies(kind, wire, script, size), clients)

    def direct_load(self, script: str, clients: int, kind: RequestKind = "small", size: int = 0) -> Load:
        """Return clients that send requests to the upstream's own path, directly or through nginx."""
        path = f"/{script}/v1/chat/completions"
        return self._load(f"{script}.direct", path, _bodies(kind, CHAT, script, size), clients)

    def _load(self, name: str, path: str, bodies: list[dict[str, Any]], clients: int) -> Load:
        self._file_count += 1
        return Load(self._client, self._write_file(f"{name}.{self._file_count}", http_requests(path, *bodies)), clients)

    def streams(self, pace: str, sources: Iterable[str]) -> list[Run]:
        """Return the rows of streams from upstreams of these wires, and from a model that writes its calls as text."""
        clients = 16 if pace == "saturated" else STREAMS
        scripts = {WIRE_TITLES[source]: f"{source}-{pace}" for source in sources} | {"Kimi's text": f"native-{pace}"}
        runs = [
            Run(f"{WIRE_TITLES[wire]} → {source}", self.load(script, wire, clients), self.gateway)
            for (source, script), wire in product(scripts.items(), PATHS)
        ]
        return self.with_nginx(self.direct_load(f"native-{pace}", clients), runs)

    def requests(self, kind: RequestKind, size: int, pairs: list[tuple[str, str]]) -> list[Run]:
        runs = [
            Run(
                f"{WIRE_TITLES[source]} → {WIRE_TITLES[target]}",
                self.load(f"short-{target}", source, 4, kind, size),
                self.gateway,
            )
            for source, target in pairs
        ]
        return self.with_nginx(self.direct_load(f"short-{CHAT}", 4, kind, size), runs)

    def new_gateway(self, settings: str = "") -> AbstractContextManager[Process]:
        """Run another gateway, which has handled no requests yet. `settings`: settings beside the models."""
        folder = self._folder / "new"
        folder.mkdir(exist_ok=True)
        return gateway(folder, self._settings + settings)

    def with_nginx(self, load: Load, runs: list[Run]) -> list[Run]:
        return [Run(NGINX, load, self.nginx), *runs] if self.nginx else runs


def _bodies(kind: RequestKind, wire: str, model: str, size: int) -> list[dict[str, Any]]:
    match kind:
        case "small":
            return [small_request(wire, model)]
        case "agent":
            return [agent_request(wire, model, size)]
        case "session":
            return agent_session(wire, model, size)
        case "first":
            return [first_request(wire, model, size)]


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


@dataclass(frozen=True)
class Target:
    """Limit of the values of a table: a multiple of nginx's value, or a value."""

    limit: float
    is_ratio: bool = True

    def __str__(self) -> str:
        return f"at most {self.limit:g} × nginx" if self.is_ratio else f"at most {self.limit:g}"

    def verdict(self, value: float, base: float) -> str:
        if self.is_ratio and not base:
            return ""
        return "met" if value <= self.limit * (base if self.is_ratio else 1) else "MISSED"


def table(
    runs: list[Run],
    measurements: list[list[Measurement]],
    unit: str,
    value: Callable[[Measurement], float],
    target: Target | None = None,
    unjudged: Mapping[str, str] | None = None,
) -> None:
    """Print one row per run: the median, its spread, its ratio to nginx, and whether it meets the target.

    `unjudged`: the reasons why rows are not judged, by the names of their runs.
    """
    print(f"\n{unit}" + (f"; target: {target}" if target else ""))
    base = 0.0
    for run, each in zip(runs, measurements, strict=True):
        values = [value(one) for one in each]
        middle = statistics.median(values)
        is_nginx = "nginx" in run.name
        spread = f"({min(values):.1f} to {max(values):.1f})" if max(values) > 1.15 * min(values) else ""
        ratio = f"{middle / base:6.2f} ×" if base else ""
        verdict = ""
        if target is not None and not is_nginx:
            verdict = (unjudged or {}).get(run.name) or target.verdict(middle, base)
        base = base or (middle if is_nginx else 0.0)
        print(f"  {run.name:<40}{middle:9.1f}{ratio:>10}  {verdict:<8}{spread}".rstrip(), flush=True)


def per_event(measurement: Measurement) -> float:
    return measurement.cpu / max(1, measurement.events) * 1e6


def per_request(measurement: Measurement) -> float:
    return measurement.cpu / max(1, measurement.responses) * 1e6


def reads_per_event(measurement: Measurement) -> float:
    return measurement.reads / max(1, measurement.events)


def report_streams(bench: Bench, lengths: Lengths) -> None:
    report_pace(bench, "paced", bench.rate, lengths.paced, lengths.rounds, Target(1.5))
    report_pace(bench, "slow", SLOW_RATE, lengths.slow, lengths.rounds, Target(2))
    runs = bench.streams("saturated", [CHAT])
    measurements = measure_rounds(runs, lengths.saturated, lengths.rounds)
    title = "CPU per event, µs: 16 streams at full speed"
    table(runs, measurements, title, per_event, Target(7, is_ratio=False))


def report_pace(bench: Bench, pace: str, rate: int, seconds: float, rounds: int, cpu_target: Target) -> None:
    """Report the cost of streams at one pace."""
    direct = Run("directly from the upstream", bench.direct_load(f"native-{pace}", STREAMS), bench.model)
    runs = bench.streams(pace, PATHS)
    direct_measurements, *measurements = measure_rounds([direct, *runs], seconds, rounds)
    unjudged = unjudged_rows(runs, measurements, _rate(direct_measurements))
    direct_p50 = statistics.median(one.p50 for one in direct_measurements)
    title = f"{STREAMS} streams × {rate} events/s"
    table(runs, measurements, f"CPU per event, µs: {title}", per_event, cpu_target, unjudged)
    added = lambda one: max(0.0, one.p50 - direct_p50)  # noqa: E731
    table(runs, measurements, f"added p50 per event, µs: {title}", added, Target(1.5), unjudged)
    table(runs, measurements, f"p99 per event, µs: {title}", lambda one: one.p99)
    table(runs, measurements, f"reads of a client per 100 events: {title}", lambda one: 100 * reads_per_event(one))


def unjudged_rows(runs: list[Run], measurements: list[list[Measurement]], direct_rate: float) -> dict[str, str]:
    """Return the rows that cannot be compared with the first one, and why.

    Args:
        runs: The rows.
        measurements: Those of each row.
        direct_rate: Events per second that clients receive directly from the upstream. They are fewer than it sends
            later on, because the second event of each stream is late.
    """
    reasons = {}
    base = statistics.median(map(reads_per_event, measurements[0]))
    for run, each in zip(runs, measurements, strict=True):
        if _rate(each) < HELD * direct_rate:
            reasons[run.name] = f"not judged: {_rate(each):.0f} of {direct_rate:.0f} events/s "
        elif abs(statistics.median(map(reads_per_event, each)) / base - 1) > MAX_READS_DIFFERENCE:
            reasons[run.name] = "not judged: other reads per event "
    return reasons


def _rate(measurements: list[Measurement]) -> float:
    return statistics.median(one.events / one.seconds for one in measurements)


def report_requests(bench: Bench, lengths: Lengths) -> None:
    pairs = [(CHAT, CHAT), (MESSAGES, CHAT), (RESPONSES, CHAT), (MESSAGES, MESSAGES), (CHAT, MESSAGES)]
    runs = bench.requests("small", 0, pairs[:2])
    title = "CPU per request of 1 KB, µs"
    table(runs, measure_rounds(runs, lengths.request, lengths.rounds), title, per_request)
    for size, chosen, one_wire, across in ((40_000, pairs, 1000, 1500), (400_000, pairs[:3], 2000, 3000)):
        report_sessions(bench, lengths, size, chosen, (one_wire, across))
        runs = bench.requests("first", size, chosen)
        measurements = measure_rounds(runs, lengths.request, lengths.rounds)
        title = f"CPU per request of {size // 1000} KB, µs: nothing in common with an earlier request"
        table(runs, measurements, title, per_request)


def report_sessions(
    bench: Bench, lengths: Lengths, size: int, pairs: list[tuple[str, str]], limits: tuple[int, int]
) -> None:
    """Report the cost of the requests of agents. `limits`: the targets on one wire and across wires."""
    runs = bench.requests("session", size, pairs)
    measurements = measure_rounds(runs, lengths.request, lengths.rounds)
    kind = "sessions of agents, 20 tools, 1 to 81 messages"
    title = f"CPU per request of {size // 1000} KB on average, µs: {kind}"
    same_wire = {f"{WIRE_TITLES[source]} → {WIRE_TITLES[target]}" for source, target in pairs if source == target}
    for names, where, limit in (
        (same_wire, "on one wire", limits[0]),
        ({run.name for run in runs} - same_wire, "across wires", limits[1]),
    ):
        shown = [n for n, run in enumerate(runs) if run.name in names or run.server is bench.nginx]
        table(
            [runs[n] for n in shown],
            [measurements[n] for n in shown],
            f"{title}, {where}",
            per_request,
            Target(limit, is_ratio=False),
        )


def report_idle(bench: Bench, lengths: Lengths) -> None:
    """Report memory per idle stream: the growth from as many streams to twice as many.

    What the first streams need once for all, such as room for the requests that are handled at the same time, does not
    belong to a stream.
    """
    rows: dict[str, RequestKind] = {
        "Messages → Kimi's text": "small",
        "the same, after requests of 40 KB": "agent",
        "the same, each with tools of its own": "first",
    }
    runs: list[Run] = []
    measurements: list[list[Measurement]] = []

    def measure(name: str, load: Load, server: Process) -> None:
        runs.append(Run(name, load, server))
        with load.open(server):
            measurements.append([runs[-1].measure(IDLE_SECONDS)])

    if bench.nginx:
        measure(NGINX, bench.direct_load("native-idle", lengths.idle), bench.nginx)
    for name, kind in rows.items():
        # A gateway of its own, because the streams of a row would use freed memory of the row before. It keeps no
        # conversations for later requests: they have a limit of their own.
        with bench.new_gateway(NO_CONVERSATIONS) as process:
            measure(name, bench.load("native-idle", MESSAGES, lengths.idle, kind, 40_000), process)
    unit = f"memory per idle stream, KiB: {lengths.idle} streams beside as many others"
    table(runs, measurements, unit, lambda one: one.memory / lengths.idle / 1024, Target(24, is_ratio=False))


def report_open(bench: Bench, lengths: Lengths) -> None:
    """Report whether one worker can keep many streams open, each with an event every few seconds."""
    count = min(lengths.open, (descriptor_limit() - DESCRIPTORS) // 2)
    reduced = f", all that `ulimit -n` of {descriptor_limit()} allows" if count < lengths.open else ""
    with bench.new_gateway(LIMITS.format(count)) as process:
        bench.load("native-idle", MESSAGES, WARM_UP_STREAMS).run_against(process, 0.3)
        # The second event of a stream follows within two intervals.
        seconds = 2 * OPEN_INTERVAL_SECONDS + 2
        load = bench.load("native-open", MESSAGES, count)
        try:
            measurement = load.run_against(process, seconds, OPEN_TIMEOUT_SECONDS)
        except RuntimeError as error:
            print(f"\n{count:,} open streams in one worker{reduced}: FAILED: {error}")
            return
    verdict = "met" if measurement.streams == count else "MISSED"
    print(f"\n{count:,} open streams in one worker{reduced}, Messages → Kimi's text")
    print(f"  streams that received an event in the next {seconds} s   {measurement.streams:9,}  {verdict}")
    print(f"  seconds until all were open                       {measurement.opening:11.1f}")
    print(f"  memory per stream, KiB                            {measurement.memory / count / 1024:11.1f}")
    print(f"  events per second                                 {measurement.events / measurement.seconds:11.0f}")
    print(f"  CPU per event, µs                                 {per_event(measurement):11.1f}")
    print(f"  p50, p99 per event, ms       {measurement.p50 / 1e3:23.1f}{measurement.p99 / 1e3:9.1f}")


def report_two_workers(bench: Bench, lengths: Lengths) -> None:
    """Report what two workers serve compared with one."""
    loads = [
        WorkerLoad("chat → chat", "events", bench.load(f"{CHAT}-saturated", CHAT, 16), lambda one: one.events),
        WorkerLoad(
            "Messages → Kimi's text", "events", bench.load("native-saturated", MESSAGES, 16), lambda one: one.events
        ),
        WorkerLoad(
            "requests of 40 KB, Messages → chat",
            "responses",
            bench.load(f"short-{CHAT}", MESSAGES, 16, "session", 40_000),
            lambda one: one.responses,
        ),
    ]
    report_workers(
        lambda workers: bench.new_gateway(f"workers: {workers}\n"),
        bench.model,
        loads,
        lengths.saturated,
        lengths.rounds,
    )


def main() -> int:
    parts = {
        "idle": report_idle,
        "open": report_open,
        "streams": report_streams,
        "requests": report_requests,
        "workers": report_two_workers,
    }
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="one short round, about three minutes")
    options.add_argument("--rate", type=int, default=100, help="events per second in each of the paced streams")
    options.add_argument("--only", choices=list(parts), help="run only this part")
    chosen = options.parse_args()
    if sys.platform != "linux" or len(CORES) < 2:
        print("bench.gateway skipped: it needs Linux and two cores")
        return 0
    lengths = QUICK if chosen.quick else FULL
    raise_descriptor_limit()
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
