"""What `python -m bench.peers` has measured, as a page: the table, and each target with what was found."""

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
# Beside other gateways

Written by `python -m bench.peers --write`, which installs the peers under `.peers/` and starts all in front of one
upstream; they take turns on one core. nginx passes through and understands nothing. Only ratios carry over from machine
to machine.

| | |
|---|---|
| when | {when} |
| machine | {machine} |
| versions | {versions} |
| paced | {paced}, 206 bytes each; half text, half arguments of a call |
| requests | 20 tools, 41 messages, a reply of one word |
| rounds | {rounds}, interleaved; medians are shown |

{table}

Saturated: {saturated} again and again, as fast as they go. Idle: {idle} streams that have said one word. “Kimi's text”
is a model whose calls come as text, which ours reads and no other here does.

## Against the targets

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
    """What was asked of each."""

    paced: str
    saturated: str
    idle: int
    rounds: int


@dataclass(frozen=True)
class Row:
    """What one has cost, in each round."""

    name: str
    event: list[float]
    """Microseconds of processor time per event of the paced streams."""
    p50: list[float]
    """Microseconds that it has added to the way of an event."""
    kept: bool
    """Whether it could follow the pace, so that its latency says something."""
    idle: float | None
    """KiB per idle stream, for the first row of each server."""
    small: list[float]
    """Milliseconds of processor time per request of 40 KB."""
    large: list[float]
    """The same with 400 KB."""
    fast: list[float]
    """Events per second, saturated."""


BUSY = 1000
"""Microseconds that nginx adds where the machine has other work: then latencies say nothing of anybody."""


@dataclass(frozen=True)
class Target:
    what: str
    wanted: str
    measured: str
    met: bool | None
    """None if this run cannot tell."""

    @property
    def told(self) -> str:
        verdict = {True: "met", False: "**missed**", None: "cannot be told"}[self.met]
        return f"| {self.what} | {self.wanted} | {self.measured} | {verdict} |"


def report(rows: list[Row], loads: Loads) -> str:
    found = list(_targets({row.name: row for row in rows}))
    missed = [one for one in found if one.met is False]
    return PAGE.format(
        when=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=_machine(),
        versions=_versions(),
        paced=loads.paced,
        saturated=loads.saturated,
        rounds=loads.rounds,
        table=_table(rows),
        idle=loads.idle,
        targets="\n".join(["| | target | measured | |", "|---|---|---|---|", *(one.told for one in found)]),
        summary=f"Missed: {len(missed)} of {len(found)}." if missed else "None is missed.",
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
    """The median, and least and most where they lie apart."""
    middle = format(statistics.median(values), form)
    if max(values) <= 1.15 * min(values):
        return middle
    return f"{middle} ({format(min(values), form)}–{format(max(values), form)})"


def _targets(rows: dict[str, Row]) -> Iterator[Target]:
    nginx, lite, router = rows["nginx"], rows["LiteLLM, Messages → chat"], rows["claude-code-router, Messages → chat"]
    ours, kimi = rows["ours, Messages → chat"], rows["ours, Messages → Kimi's text"]
    chat, lite_chat = rows["ours, chat → chat"], rows["LiteLLM, chat → chat"]

    def most(what: str, mine: list[float], theirs: list[float], limit: float) -> Target:
        ratio = _ratio(mine, theirs)
        return Target(what, f"≤ {limit:g} ×", f"{ratio:.3g} ×", ratio <= limit)

    def less(what: str, mine: list[float], theirs: list[float], limit: float) -> Target:
        ratio = _ratio(theirs, mine)
        return Target(what, f"≥ {limit:g} × less", f"{ratio:.3g} ×", ratio >= limit)

    yield most("CPU per event, Kimi's text → Messages, against nginx", kimi.event, nginx.event, 1.8)
    yield most("CPU per event, chat → Messages, against nginx", ours.event, nginx.event, 1.8)
    yield less("CPU per event, chat → chat, against LiteLLM", chat.event, lite_chat.event, 12)
    yield less("CPU per event, chat → Messages, against LiteLLM", ours.event, lite.event, 12)
    yield less("CPU per event, chat → Messages, against claude-code-router", ours.event, router.event, 2.5)
    p50 = most("added p50 per event, Kimi's text → Messages, against nginx", kimi.p50, nginx.p50, 2)
    busy = statistics.median(nginx.p50) > BUSY or not kimi.kept
    yield Target(p50.what, p50.wanted, "the machine was busy", None) if busy else p50
    idle = kimi.idle or 0.0
    yield Target("memory per idle stream", "≤ 32 KiB", f"{idle:.3g} KiB", idle <= 32)
    yield less("CPU per request of 40 KB, chat → chat, against LiteLLM", chat.small, lite_chat.small, 12)
    yield less("CPU per request of 40 KB, Messages → chat, against LiteLLM", ours.small, lite.small, 12)
    yield less("CPU per request of 400 KB, chat → chat, against LiteLLM", chat.large, lite_chat.large, 12)
    yield less("CPU per request of 400 KB, Messages → chat, against LiteLLM", ours.large, lite.large, 12)


def _ratio(one: list[float], other: list[float]) -> float:
    """The median of what the rounds say, each within itself: the machine is not the same from round to round."""
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
