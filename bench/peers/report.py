"""Markdown page with the results of `python -m bench.peers`: the tables, and each target with the measured value."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from bench.loopback import CORES
from bench.peers import install
from bench.peers.features import feature_table

__all__ = ["Environment", "Pace", "PacedStreams", "Results", "Row", "replace_features", "report"]

PAGE = """\
# Cost and features compared with other gateways

Written by `python -m bench.peers --write`, which installs the peers under `.peers/` and starts all of them in front of
one upstream; they take turns on one core. Only ratios can be compared between machines.

| | |
|---|---|
| when | {when} |
| machine | {machine} |
| load of the machine | {load_before:.1f} before the run; {load_after:.1f} at its end, with the run itself |
| versions | {versions} |
| streams | {paces}; events of 206 bytes, half text, half arguments of a call |
| requests | sessions of agents, 20 tools, 1 to 81 messages, of this size on average; a reply of one word |
| rounds | {rounds}, interleaved; medians are shown, with minimum and maximum if they differ by more than 15 % |

In the tables, “ours” is Interlingua. “Messages → chat” is a client of Anthropic Messages and an upstream with OpenAI
Chat Completions. “Kimi's text” is a model that writes its calls as text; no other gateway here parses it in front of an
upstream with HTTP (see Features). Rows with ⇉ forward the same API and convert nothing.

## Streams

{streams}

The latency is added by the server: half of the events are faster. The reads are those of the clients: fewer than 100
means that some events arrived together, which costs less. A server that did not hold the pace has its events per
second instead of a latency.

## Requests, memory and full speed

{requests}

Idle: {idle} streams that have sent one event. Full speed: {saturated}, repeated.

## Targets

{targets}

{summary}

A target is undecided if our gateway did not hold the pace or grouped more events than the peer, or if the peer did not
hold it although its core was not busy.

## Features

{features}
"""
FEATURES_HEADING = "## Features\n\n"

BUSY = 1000
"""Latency of nginx in microseconds above which the machine is busy, so that no latency is meaningful."""
FEWER_READS = 0.9
"""Two rows are compared if ours has at least this part of the other's reads per event."""


@dataclass(frozen=True)
class Pace:
    """Streams, and events per second in each."""

    streams: int
    rate: int

    @property
    def events(self) -> int:
        """Events per second in all streams."""
        return self.streams * self.rate

    def __str__(self) -> str:
        return f"{self.streams} streams × {self.rate} events/s"


@dataclass(frozen=True)
class PacedStreams:
    """Measured values of one server at one pace, one per round."""

    cpu: list[float]
    """CPU time in microseconds per event."""
    p50: list[float]
    """Added latency per event in microseconds."""
    reads: list[float]
    """Reads of a client per event."""
    rate: float
    """Events per second."""
    held: bool
    """True if the server held the pace, so that its latency is meaningful."""
    at_limit: bool
    """True if the server used its whole core."""


@dataclass(frozen=True)
class Row:
    """Measured values of one server, one per round."""

    name: str
    forwards: bool = False
    failure: str = ""
    """Reason why there are no values."""
    paces: Mapping[int, PacedStreams] = field(default_factory=dict)
    """By events per second."""
    idle: float | None = None
    """KiB per idle stream, for the first row of each server."""
    small: list[float] = field(default_factory=list)
    """CPU time in milliseconds per request of 40 KB."""
    large: list[float] = field(default_factory=list)
    """CPU time in milliseconds per request of 400 KB."""
    fast: list[float] = field(default_factory=list)
    """Events per second at full speed."""

    @property
    def title(self) -> str:
        return f"{self.name} ⇉" if self.forwards else self.name


@dataclass(frozen=True)
class Results:
    rows: list[Row]
    tried: Mapping[str, Mapping[str, str]]
    """Outcome of each feature that was tried, by its title and by server."""


@dataclass(frozen=True)
class Environment:
    """Load of the benchmark and of the machine."""

    load_before: float
    load_after: float
    paces: Sequence[Pace]
    saturated: str
    idle: int
    rounds: int


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


def report(results: Results, environment: Environment) -> str:
    found = list(_targets({row.name: row for row in results.rows}))
    return PAGE.format(
        when=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=_machine(),
        load_before=environment.load_before,
        load_after=environment.load_after,
        versions=_versions(),
        paces=" and ".join(map(str, environment.paces)),
        rounds=environment.rounds,
        streams=_stream_table(results.rows, [pace.events for pace in environment.paces]),
        requests=_request_table(results.rows),
        idle=environment.idle,
        saturated=environment.saturated,
        targets="\n".join(["| | target | measured | |", "|---|---|---|---|", *(target.table_row for target in found)]),
        summary=_summary(found),
        features=feature_table(results.tried),
    )


def replace_features(page: str, features: str) -> str:
    """Return the page with another table of features."""
    before, heading, _ = page.partition(FEATURES_HEADING)
    return f"{before}{heading}{features}\n"


def _summary(found: list[Target]) -> str:
    missed = sum(target.met is False for target in found)
    undecided = sum(target.met is None for target in found)
    if not missed and not undecided:
        return "All targets are met."
    return f"Missed: {missed} of {len(found)}; undecided: {undecided}."


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _stream_table(rows: list[Row], paces: list[int]) -> str:
    columns = [
        column
        for events in paces
        for column in (f"{events:,} events/s: CPU per event, µs", "× nginx", "added p50, µs", "reads per 100 events")
    ]
    base = rows[0].paces

    def cells(row: Row) -> list[str]:
        return [cell for events in paces for cell in _pace_cells(row.paces[events], base.get(events))]

    return _table(columns, rows, cells)


def _pace_cells(streams: PacedStreams, base: PacedStreams | None) -> list[str]:
    ratio = f"{statistics.median(streams.cpu) / statistics.median(base.cpu):.2f}" if base else ""
    limit = ", its limit" if streams.at_limit else ""
    p50 = f"{statistics.median(streams.p50):.0f}" if streams.held else f"({streams.rate:.0f} events/s{limit})"
    return [_spread(streams.cpu, ".0f"), ratio, p50, f"{100 * statistics.median(streams.reads):.0f}"]


def _request_table(rows: list[Row]) -> str:
    columns = [
        *("CPU per request of 40 KB, ms", "of 400 KB, ms"),
        *("KiB per idle stream", "full speed, events/s"),
    ]

    def cells(row: Row) -> list[str]:
        return [
            _spread(row.small, ".2f"),
            _spread(row.large, ".2f"),
            "" if row.idle is None else f"{row.idle:.0f}",
            f"{statistics.median(row.fast):,.0f}",
        ]

    return _table(columns, rows, cells)


def _table(columns: list[str], rows: list[Row], cells: Callable[[Row], list[str]]) -> str:
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        if row.failure:
            shown = [f"failed: {row.failure.replace('|', '/')}"] + [""] * (len(columns) - 1)
        else:
            shown = cells(row)
        lines.append(f"| {' | '.join([row.title, *shown])} |")
    return "\n".join(lines)


def _spread(values: list[float], form: str) -> str:
    """Format the median, with minimum and maximum if they differ by more than 15 %."""
    middle = format(statistics.median(values), form)
    if max(values) <= 1.15 * min(values):
        return middle
    return f"{middle} ({format(min(values), form)}–{format(max(values), form)})"


# ── targets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _targets(rows: dict[str, Row]) -> Iterator[Target]:
    nginx, lite, router = rows["nginx"], rows["LiteLLM, Messages → chat"], rows["claude-code-router, Messages → chat"]
    ours, kimi = rows["ours, Messages → chat"], rows["ours, Messages → Kimi's text"]
    chat, lite_chat = rows["ours, chat → chat"], rows["LiteLLM, chat → chat"]

    for events, times in ((200, 8), (1000, 12)):
        yield _cheaper_event("chat → chat, against LiteLLM", chat, lite_chat, events, times)
        yield _cheaper_event("Messages → chat, against LiteLLM", ours, lite, events, times)
    yield _cheaper_event("Messages → chat, against claude-code-router", ours, router, 200, 4)
    yield _close_to_nginx("Messages → Kimi's text", kimi, nginx, 200, 1.8)
    yield _close_to_nginx("Messages → chat", ours, nginx, 200, 1.8)
    yield _latency("Messages → Kimi's text", kimi, nginx, 200, 1.5)
    for what, mine, theirs in (("chat → chat", chat, lite_chat), ("Messages → chat", ours, lite)):
        for size, my_values, their_values in (("40", mine.small, theirs.small), ("400", mine.large, theirs.large)):
            title = f"CPU per request of {size} KB, {what}, against LiteLLM"
            yield _failure(title, "≥ 25 × less", mine, theirs) or _cheaper(title, my_values, their_values, 25)
    title, wanted = "memory per idle stream", "≤ 24 KiB"
    idle = kimi.idle or 0.0
    yield _failure(title, wanted, kimi) or Target(title, wanted, f"{idle:.3g} KiB", idle <= 24)


def _cheaper_event(what: str, mine: Row, theirs: Row, events: int, times: float) -> Target:
    title, wanted = f"CPU per event, {what}, {events:,} events/s", f"≥ {times:g} × less"
    if failed := _failure(title, wanted, mine, theirs):
        return failed
    one, other = mine.paces[events], theirs.paces[events]
    if reason := _not_comparable(one, other):
        return Target(title, wanted, f"{_ratio(other.cpu, one.cpu):.3g} ×: {reason}", None)
    found = _cheaper(title, one.cpu, other.cpu, times)
    if other.held:
        return found
    limit = f"{found.measured} (the peer at its limit, {other.rate:.0f} events/s)"
    return Target(title, wanted, limit, found.met)


def _close_to_nginx(what: str, mine: Row, nginx: Row, events: int, limit: float) -> Target:
    title, wanted = f"CPU per event, {what}, against nginx, {events:,} events/s", f"≤ {limit:g} ×"
    if failed := _failure(title, wanted, mine, nginx):
        return failed
    one, other = mine.paces[events], nginx.paces[events]
    ratio = _ratio(one.cpu, other.cpu)
    if reason := _not_comparable(one, other):
        return Target(title, wanted, f"{ratio:.3g} ×: {reason}", None)
    return Target(title, wanted, f"{ratio:.3g} ×", ratio <= limit)


def _latency(what: str, mine: Row, nginx: Row, events: int, limit: float) -> Target:
    title, wanted = f"added p50 per event, {what}, against nginx, {events:,} events/s", f"≤ {limit:g} ×"
    if failed := _failure(title, wanted, mine, nginx):
        return failed
    one, other = mine.paces[events], nginx.paces[events]
    if statistics.median(other.p50) > BUSY or not one.held:
        return Target(title, wanted, "the machine was busy", None)
    ratio = _ratio(one.p50, other.p50)
    return Target(title, wanted, f"{ratio:.3g} ×", ratio <= limit)


def _not_comparable(mine: PacedStreams, theirs: PacedStreams) -> str:
    """Return why the CPU times of our row and of another cannot be compared; "" if they can.

    A peer at its limit groups events, which costs less per event: the true ratio is then higher.
    """
    if not mine.held:
        return "ours did not hold the pace"
    if not theirs.held and not theirs.at_limit:
        return "the peer did not hold the pace"
    if statistics.median(mine.reads) < FEWER_READS * statistics.median(theirs.reads):
        return "ours grouped more events"
    return ""


def _failure(title: str, wanted: str, *rows: Row) -> Target | None:
    failed = [row.name for row in rows if row.failure]
    return Target(title, wanted, f"{failed[0]} failed", None) if failed else None


def _cheaper(what: str, mine: list[float], theirs: list[float], times: float) -> Target:
    ratio = _ratio(theirs, mine)
    return Target(what, f"≥ {times:g} × less", f"{ratio:.3g} ×", ratio >= times)


def _ratio(one: list[float], other: list[float]) -> float:
    """Return the median of the ratios per round. The load of the machine differs from round to round."""
    return statistics.median(mine / max(theirs, 1e-9) for mine, theirs in zip(one, other, strict=True))


# ── machine and versions ────────────────────────────────────────────────────────────────────────────────────────────


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return f"{len(CORES)} cores, {model}, Linux {platform.release().partition('-')[0]}"


def _versions() -> str:
    return "; ".join(
        [
            f"Interlingua {version('interlingua')} on Python {platform.python_version()}",
            f"LiteLLM {install.LITELLM}",
            f"claude-code-router {install.CCR}",
            f"agentic-api {install.AGENTIC_API}",
            f"sglang-router {install.SGLANG_ROUTER}",
            f"smg {install.SMG}, its successor",
        ]
    )
