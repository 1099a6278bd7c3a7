"""Waterfall of one exchange: its attempts, and what the reply consisted of, over time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Literal, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua import trace
from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    EndLine,
    ReceivedLine,
    SentLine,
    UpstreamRequestLine,
)
from interlingua.captures.capture_replay import TimedEvent

__all__ = ["Segment", "SegmentKind", "Waterfall", "build_waterfall"]

SegmentKind: TypeAlias = Literal[
    "prepare", "connect", "wait", "failed", "backoff", "thinking", "text", "call", "gap", "other"
]
"""prepare: the gateway reads and translates the request. connect: opening the connection. wait: until the first byte.
failed: an attempt without a reply. backoff: between two attempts. gap: no data for long. other: no content."""
MIN_GAP_SECONDS = 1.0
"""Shorter pauses are no gaps."""
_UNNAMED_CALL: tuple[SegmentKind, str] = ("call", "")
"""Call whose name has not arrived."""
_CONTENT_OF_MARKERS: dict[trace.MarkerRole, tuple[SegmentKind, str]] = {
    "thinking-start": ("thinking", ""),
    "thinking-end": ("other", ""),
    "opener": _UNNAMED_CALL,
}
"""Text that the model writes behind a marker. Its text may be held back for long."""
GAP_FACTOR = 10
"""Pauses that are shorter than this multiple of the usual time between two reads are no gaps, either."""


class Segment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time in which one thing happened. Times are seconds since the start of the exchange."""

    kind: SegmentKind
    start: float
    end: float
    label: str = ""
    """Name of the tool that is called, of the upstream, or the status of a failed attempt."""
    attempt: int = 0


class Waterfall(msgspec.Struct, frozen=True, kw_only=True):
    """Segments of one exchange in the order of their start."""

    seconds: float
    segments: list[Segment]


def build_waterfall(captured: CapturedExchange, events: Iterable[TimedEvent]) -> Waterfall:
    """Return the waterfall. `events`: the trace of the reply; none if it could not be translated."""
    end = captured.lines[-1].at if captured.lines else 0.0
    attempts = _attempts(captured)
    is_open = bool(captured.lines) and not captured.lines_of(EndLine)
    segments: list[Segment] = []
    position = 0.0
    for number, attempt in enumerate(attempts, 1):
        kind: SegmentKind = "prepare" if number == 1 else "backoff"
        segments.append(Segment(kind, position, attempt.start, attempt.upstream, number))
        is_last = number == len(attempts)
        if is_last and is_open and not attempt.reads:
            attempt.end = end
        segments += attempt.segments(number, has_reply=is_last and bool(attempt.reads or is_open))
        position = attempt.end
    if attempts and attempts[-1].reads:
        segments += _content_segments(attempts[-1], events, len(attempts))
    shown = [segment for segment in segments if segment.end > segment.start]
    return Waterfall(seconds=end, segments=shown)


class _Attempt(msgspec.Struct):
    """One attempt at an upstream."""

    start: float
    end: float
    upstream: str
    status: int = 0
    connect_seconds: float | None = None
    answered_at: float | None = None
    reads: list[float] = []

    def segments(self, number: int, *, has_reply: bool) -> list[Segment]:
        """Return the segments up to the first byte; all of them for an attempt without a reply."""
        connected = min(self.start + (self.connect_seconds or 0.0), self.end)
        connect = Segment("connect", self.start, connected, self.upstream, number)
        if has_reply and self.status < 400:
            first_byte = self.reads[0] if self.reads else self.end
            return [connect, Segment("wait", connected, first_byte, self.upstream, number)]
        label = f"{self.upstream}: {self.status or 'no response'}"
        return [connect, Segment("failed", connected, self.end, label, number)]


def _attempts(captured: CapturedExchange) -> list[_Attempt]:
    attempts: list[_Attempt] = []
    for line in captured.lines:
        match line:
            case UpstreamRequestLine():
                name = line.route.upstream if line.route else line.url
                attempts.append(_Attempt(line.at, line.at, name, reads=[]))
            case AnsweredLine() if attempts:
                attempts[-1].status, attempts[-1].connect_seconds = line.status, line.connect_seconds
                attempts[-1].answered_at = attempts[-1].end = line.at
            case ReceivedLine() if attempts:
                attempts[-1].reads.append(line.at)
                attempts[-1].end = line.at
            case SentLine() | EndLine() if attempts and not attempts[-1].reads:
                attempts[-1].end = line.at
            case _:
                pass
    return attempts


def _content_segments(attempt: _Attempt, events: Iterable[TimedEvent], number: int) -> list[Segment]:
    """Return what the reply consisted of, and the gaps in it."""
    changes = _content_changes(events)
    if not changes or changes[0][0] > attempt.reads[0]:  # the first message has no content
        changes.insert(0, (attempt.reads[0], "other", ""))
    segments: list[Segment] = []
    for index, (start, kind, label) in enumerate(changes):
        end = changes[index + 1][0] if index + 1 < len(changes) else attempt.reads[-1]
        segments += _split_by_gaps(Segment(kind, start, end, label, number), _gaps(attempt.reads))
    return segments


def _content_changes(events: Iterable[TimedEvent]) -> list[tuple[float, SegmentKind, str]]:
    """Return the time, kind and label of each content that differs from the one before."""
    changes: list[tuple[float, SegmentKind, str]] = []
    for timed in events:
        is_unnamed_call = bool(changes) and changes[-1][1:] == _UNNAMED_CALL
        if isinstance(timed.event, trace.Released) and is_unnamed_call:
            changes.pop()  # it was no call
        content = _content(timed.event)
        if content is None or (changes and changes[-1][1:] == content and content[0] != "call"):
            continue
        if content[0] == "call" and is_unnamed_call:
            changes[-1] = (changes[-1][0], *content)
        else:
            changes.append((timed.at, *content))
    return changes


def _content(event: trace.TraceEvent) -> tuple[SegmentKind, str] | None:
    """Return what the reply consists of from this event on; None if that does not change."""
    if isinstance(event, trace.MarkerSeen):
        return _CONTENT_OF_MARKERS.get(event.role)
    if not isinstance(event, trace.EventSent | trace.Passed):
        return None
    match event.event:
        case ev.TextDelta() | ev.RefusalDelta():
            return "text", ""
        case ev.ReasoningDelta():
            return "thinking", ""
        case ev.CallStart() as start:
            return "call", start.name
        case ev.CallEnd() | ev.Stop():
            return "other", ""
        case _:
            return None


def _gaps(reads: list[float]) -> list[tuple[float, float]]:
    """Return the pauses between two reads that are unusually long."""
    pauses = [(start, end) for start, end in pairwise(reads) if end - start >= MIN_GAP_SECONDS]
    if not pauses:
        return []
    usual = median(end - start for start, end in pairwise(reads))
    return [(start, end) for start, end in pauses if end - start >= GAP_FACTOR * usual or len(reads) < 4]


def _split_by_gaps(segment: Segment, gaps: list[tuple[float, float]]) -> list[Segment]:
    """Return the segment in parts, with the gaps inside it between them."""
    parts: list[Segment] = []
    position = segment.start
    for start, end in gaps:
        if start >= segment.end or end <= segment.start:
            continue
        begin, stop = max(start, segment.start), min(end, segment.end)
        parts.append(msgspec.structs.replace(segment, start=position, end=begin))
        parts.append(Segment("gap", begin, stop, "", segment.attempt))
        position = stop
    return [*parts, msgspec.structs.replace(segment, start=position)]
