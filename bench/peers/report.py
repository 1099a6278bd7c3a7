"""Markdown page with the results of `python -m bench.peers`: the table, and each target with the measured value."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.loopback import CORES
from bench.peers import install

__all__ = ["Loads", "Row", "report"]

PAGE = """\
# Cost compared with other gateways

Written by `python -m bench.peers --write`, which installs the peers under `.peers/` and starts all of them in front of
one upstream; they take turns on one core. nginx only forwards bytes. Only ratios can be compared between machines.

| | |
|---|---|
| when | {when} |
| machine | {machine} |
| versions | {versions} |
| paced | {paced}, 206 bytes each; half text, half arguments of a call |
| requests | 20 tools, 41 messages, a reply of one word |
| rounds | {rounds}, interleaved; medians are shown |

{table}

Saturated: {saturated}, repeated at full speed. Idle: {idle} streams that have sent one event. “Kimi's text” is a model
that writes its calls as text, which only our gateway parses.

In the table, “ours” is Interlingua.

## Targets

{targets}

{summary}
"""


COLUMNS = (
    "CPU per event, µs",
    "× nginx",
    "added p50, µs",
    "KiB per idle stream",
    "CPU per request of 40 KB, ms",
    "of 400 KB, ms",
    "saturated, events/s",
)


@dataclass(frozen=True)
class Loads:
    """Load of the benchmark, as text for the page."""

    paced: str
    saturated: str
    idle: int
    rounds: int


@dataclass(frozen=True)
class Row:
    """Measured values of one server, one per round."""

    name: str
    event: list[float]
    """CPU time in microseconds per event of the paced streams."""
    p50: list[float]
    """Added latency per event in microseconds."""
    kept: bool
    """True if the server kept the pace, so that its latency is meaningful."""
    idle: float | None
    """KiB per idle stream, for the first row of each server."""
    small: list[float]
    """CPU time in milliseconds per request of 40 KB."""
    large: list[float]
    """CPU time in milliseconds per request of 400 KB."""
    fast: list[float]
    """Events per second, saturated."""


BUSY = 1000
"""Latency of nginx in microseconds above which the machine is busy, so that no latency is meaningful."""


@dataclass(frozen=True)
class Target:
    what: str
    wanted: str
    measured: str
    met: bool | None
    """None if this run cannot decide."""

    @property
    def table_row(self) -> str:
        verdict = {True: "met", False: "**missed**", None: "undecided"}[self.met]
        return f"| {self.what} | {self.wanted} | {self.measured} | {verdict} |"


def report(rows: list[Row], loads: Loads) -> str:
    found = list(_targets({row.name: row for row in rows}))
    missed = [target for target in found if target.met is False]
    return PAGE.format(
        when=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=_machine(),
        versions=_versions(),
        paced=loads.paced,
        saturated=loads.saturated,
        rounds=loads.rounds,
        table=_table(rows),
        idle=loads.idle,
        targets="\n".join(["| | target | measured | |", "|---|---|---|---|", *(target.table_row for target in found)]),
        summary=f"Missed: {len(missed)} of {len(found)}." if missed else "All targets are met.",
    )


def _table(rows: list[Row]) -> str:
    base = statistics.median(rows[0].event)
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in rows:
        event = statistics.median(row.event)
        p50 = f"{statistics.median(row.p50):.0f}" if row.kept else "(too slow for the pace)"
        cells = [
            row.name,
            _spread(row.event, ".0f"),
            f"{event / base:.2f}",
            p50,
            "" if row.idle is None else f"{row.idle:.0f}",
            _spread(row.small, ".2f"),
            _spread(row.large, ".2f"),
            f"{statistics.median(row.fast):,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: list[float], form: str) -> str:
    """Format the median, with minimum and maximum if they differ by more than 15 %."""
    middle = format(statistics.median(values), form)
    if max(values) <= 1.15 * min(values):
        return middle
    return f"{middle} ({format(min(values), form)}–{format(max(values), form)})"


def _targets(rows: dict[str, Row]) -> Iterator[Target]:
    nginx, lite, router = rows["nginx"], rows["LiteLLM, Messages → chat"], rows["claude-code-router, Messages → chat"]
    ours, kimi = rows["ours, Messages → chat"], rows["ours, Messages → Kimi's text"]
    chat, lite_chat = rows["ours, chat → chat"], rows["LiteLLM, chat → chat"]

    def at_most(what: str, mine: list[float], theirs: list[float], limit: float) -> Target:
        ratio = _ratio(mine, theirs)
        return Target(what, f"≤ {limit:g} ×", f"{ratio:.3g} ×", ratio <= limit)

    def cheaper_by(what: str, mine: list[float], theirs: list[float], limit: float) -> Target:
        ratio = _ratio(theirs, mine)
        return Target(what, f"≥ {limit:g} × less", f"{ratio:.3g} ×", ratio >= limit)

    yield at_most("CPU per event, Kimi's text → Messages, against nginx", kimi.event, nginx.event, 1.8)
    yield at_most("CPU per event, chat → Messages, against nginx", ours.event, nginx.event, 1.8)
    yield cheaper_by("CPU per event, chat → chat, against LiteLLM", chat.event, lite_chat.event, 12)
    yield cheaper_by("CPU per event, chat → Messages, against LiteLLM", ours.event, lite.event, 12)
    yield cheaper_by("CPU per event, chat → Messages, against claude-code-router", ours.event, router.event, 2.5)
    p50 = at_most("added p50 per event, Kimi's text → Messages, against nginx", kimi.p50, nginx.p50, 2)
    busy = statistics.median(nginx.p50) > BUSY or not kimi.kept
    yield Target(p50.what, p50.wanted, "the machine was busy", None) if busy else p50
    idle = kimi.idle or 0.0
    yield Target("memory per idle stream", "≤ 32 KiB", f"{idle:.3g} KiB", idle <= 32)
    yield cheaper_by("CPU per request of 40 KB, chat → chat, against LiteLLM", chat.small, lite_chat.small, 12)
    yield cheaper_by("CPU per request of 40 KB, Messages → chat, against LiteLLM", ours.small, lite.small, 12)
    yield cheaper_by("CPU per request of 400 KB, chat → chat, against LiteLLM", chat.large, lite_chat.large, 12)
    yield cheaper_by("CPU per request of 400 KB, Messages → chat, against LiteLLM", ours.large, lite.large, 12)


def _ratio(one: list[float], other: list[float]) -> float:
    """Return the median of the ratios per round. The load of the machine differs from round to round."""
    return statistics.median(mine / max(theirs, 1e-9) for mine, theirs in zip(one, other, strict=True))


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return f"{len(CORES)} cores, {model}, Linux {platform.release().partition('-')[0]}, load {os.getloadavg()[2]:.1f}"


def _versions() -> str:
    ours = f"Interlingua {version('interlingua')} on Python {platform.python_version()}"
    return f"{ours}; LiteLLM {install.LITELLM}; claude-code-router {install.CCR}"
