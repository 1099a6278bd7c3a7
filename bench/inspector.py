"""Benchmark of the inspector: CPU time per event of the gateway without it and with it.

    python -m bench.inspector            about three minutes
    python -m bench.inspector --quick    about half a minute, less exact
    python -m bench.inspector --rounds 15    for a busy machine; nine minutes

Three gateways take turns in front of the same upstream: one without the inspector, a second one without it, and one
with it. The output shows the medians of the ratios of neighbouring measurements. The difference between the first two
gateways in a round is the noise of the machine; that of the median shrinks with the square root of the rounds. The
inspector's process, which keeps the exchanges, has a column of its own. Needs Linux, two cores and a C compiler; all
sockets are on loopback.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench.loopback import CORES, Load, Process, compile_program, gateway, upstream
from bench.traffic import PATHS, http_requests, native, small_request, structured

STREAMS = 50
EVENTS_PER_SECOND = 40
"""Events per second in each stream."""
MARGIN_SECONDS = 6.0
"""Time that a stream lasts longer than its measurement."""
MAX_READS_DIFFERENCE = 0.1
"""Rows are compared if their numbers of reads per event differ by at most this part."""
MAX_RATIO = 1.05
"""Target: CPU time per event with the inspector, compared with that without it."""
START_SECONDS = 30.0
"""Longest time until the process of the inspector has started."""
INSPECTOR_MODULE = b"interlingua.gateway.inspector.process_main"
ROWS = (
    ("chat → chat", "structured", "openai-chat"),
    ("Kimi's text → chat", "native", "openai-chat"),
    ("Kimi's text → Messages", "native", "anthropic-messages"),
)
CONFIG = """\
upstreams:
  structured: {{url: 'http://127.0.0.1:{port}/structured/v1'}}
  native: {{url: 'http://127.0.0.1:{port}/native/v1'}}
models:
  structured: {{upstream: structured, model: kimi-k2, dialect: standard}}
  native: {{upstream: native, model: kimi-k2, dialect: kimi_k2}}
"""


@dataclass(frozen=True)
class Cost:
    """Cost of the events of one measurement."""

    gateway: float
    """CPU time of the gateway per event, in microseconds."""
    inspector: float
    """CPU time of the inspector's process per event, in microseconds, with the start and the end of the streams."""
    reads: float
    """Reads of the clients per event. Several events in one read cost less."""


@dataclass(frozen=True)
class Gateway:
    """A gateway under test, and the process of its inspector."""

    server: Process
    inspector: Process | None = None

    def measure(self, load: Load, seconds: float) -> Cost:
        self.server.wait_until_idle()
        before = self.inspector.cpu() if self.inspector else 0.0
        measurement = load.run_against(self.server, seconds)
        self.server.wait_until_idle()
        after = self.inspector.cpu() if self.inspector else 0.0
        events = max(1, measurement.events)
        return Cost(1e6 * measurement.cpu / events, 1e6 * (after - before) / events, measurement.reads / events)


def start_gateway(stack: ExitStack, folder: Path, config: str, *, has_inspector: bool) -> Gateway:
    folder.mkdir()
    server = stack.enter_context(gateway(folder, config))
    if not has_inspector:
        return Gateway(server)
    inspector = find_inspector(server)
    os.sched_setaffinity(inspector, {CORES[0]})  # as the scheduler would do: the other core is busy
    return Gateway(replace(server, uncounted=frozenset([inspector])), Process(inspector, 0))


def find_inspector(server: Process) -> int:
    """Return the process id of the inspector, which starts when the gateway already listens."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        for pid in server.children():
            if INSPECTOR_MODULE in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        time.sleep(0.05)
    raise SystemExit("bench.inspector: the process of the inspector has not started")


def measure_row(gateways: list[Gateway], load: Load, seconds: float, rounds: int) -> list[list[Cost]]:
    """Return the costs of each gateway. They take turns, and the first one changes with each round."""
    costs: list[list[Cost]] = [[] for _ in gateways]
    for number in range(rounds):
        order = range(len(gateways)) if number % 2 == 0 else reversed(range(len(gateways)))
        for index in order:
            costs[index].append(gateways[index].measure(load, seconds))
    return costs


def print_row(name: str, off: list[Cost], control: list[Cost], on: list[Cost]) -> None:
    base = [(first.gateway + second.gateway) / 2 for first, second in zip(off, control, strict=True)]
    ratio = median(one.gateway / other for one, other in zip(on, base, strict=True))
    differences = [abs(first.gateway / second.gateway - 1) for first, second in zip(off, control, strict=True)]
    noise = median(differences) / math.sqrt(len(differences))
    print(
        f"  {name:<26}{median(base):8.1f}{median(one.gateway for one in on):8.1f}{100 * (ratio - 1):+8.1f} %"
        f"{100 * noise:8.1f} %  {judge(ratio, noise, off + control, on):<40}{median(one.inspector for one in on):6.1f}",
        flush=True,
    )


def judge(ratio: float, noise: float, off: list[Cost], on: list[Cost]) -> str:
    """Return whether the target is met, or why that cannot be said."""
    reads = median(one.reads for one in on) / median(one.reads for one in off)
    if abs(reads - 1) > MAX_READS_DIFFERENCE:
        return f"not judged: {100 * (reads - 1):+.0f} % reads per event"
    if noise > MAX_RATIO - 1:
        return "not judged: the machine is too busy"
    return "met" if ratio <= MAX_RATIO else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each gateway; default: 5")
    args = parser.parse_args()
    if sys.platform != "linux" or len(CORES) < 2:
        raise SystemExit("bench.inspector: needs Linux and two cores")
    seconds, rounds = (2.0, 2) if args.quick else (4.0, args.rounds)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        long = int(EVENTS_PER_SECOND * (seconds + MARGIN_SECONDS))
        scripts = []
        for script, text in (("structured", structured(long)), ("native", native(long))):
            (folder / script).write_text(text, encoding="utf-8")
            scripts.append((script, 1_000_000 // EVENTS_PER_SECOND, folder / script))
        model = stack.enter_context(upstream(compile_program(folder, "upstream"), scripts))
        client = compile_program(folder, "client")
        config = CONFIG.format(port=model.port)
        settings = {"off": config, "off-again": config, "on": config + "inspect: {enabled: true}\n"}
        gateways = [
            start_gateway(stack, folder / f"gateway-{name}", text, has_inspector=name == "on")
            for name, text in settings.items()
        ]
        print(f"CPU per event, µs: {STREAMS} streams × {EVENTS_PER_SECOND} events/s; target: at most 5 % more")
        print(f"  {'':<26}{'off':>8}{'on':>8}{'more':>10}{'noise':>10}  {'':<40}inspector’s process")
        for title, script, wire in ROWS:
            requests = folder / f"{script}.{wire}"
            requests.write_bytes(http_requests(PATHS[wire], small_request(wire, script)))
            off, control, on = measure_row(gateways, Load(client, requests, STREAMS), seconds, rounds)
            print_row(title, off, control, on)


if __name__ == "__main__":
    main()
