"""Timeline of a reply: each message of the upstream, the steps of its translation, and the frames for the client.

The steps are the trace events of the translation, the same that `translate --explain` prints and `--trace` writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from interlingua import events as ev
from interlingua import trace
from interlingua.captures.capture_replay import TimedEvent
from interlingua.inspection.provenance import ProvenanceTracker, SourceRange
from interlingua.inspection.trace_description import describe_trace_event

__all__ = ["TimelineFrame", "TimelineMessage", "TimelineStep", "build_timeline"]

_FRAME_END = re.compile(r"(?<=\n\n)|(?<=\r\n\r\n)")


class TimelineStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the translation of a message."""

    event: trace.TraceEvent
    words: str
    """The step as `translate --explain` describes it."""
    sources: list[SourceRange]
    """Parts of the upstream's messages that it came from."""


class TimelineFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One frame for the client."""

    data: str = ""
    """The bytes; "" if they are those of the message."""
    steps: list[int] = []
    """Indexes of the steps of this message that the frame carries; all of them if it is empty."""


class TimelineMessage(msgspec.Struct, omit_defaults=True):
    """One message of the upstream, and what became of it."""

    number: int
    at: float
    """Seconds since the start of the exchange."""
    data: str = ""
    """The message as it was received; "" at the end of the stream."""
    offset: int = 0
    """Position of its first byte in what the upstream sent."""
    is_end: bool = False
    """True for the end of a stream that the upstream has not marked."""
    is_whole: bool = False
    """True for a whole reply in JSON."""
    steps: list[TimelineStep] = []
    frames: list[TimelineFrame] = []
    is_unchanged: bool = False
    """True if the client gets the message as it was received, perhaps after other frames."""


def build_timeline(events: Iterable[TimedEvent], wire: str) -> Iterator[TimelineMessage]:
    """Yield the messages of a reply. `wire`: the upstream's."""
    provenance = ProvenanceTracker(wire)
    message: TimelineMessage | None = None
    offset = 0
    held: list[trace.HeldBack] = []
    for timed in events:
        event = timed.event
        match event:
            case trace.MessageReceived():
                message = TimelineMessage(event.message, timed.at, event.data, offset, is_whole=event.whole, steps=[])
                offset += len(event.data.encode("utf-8", "replace"))
                held = []
                provenance.begin_message(event.message, event.data, whole=event.whole)
            case trace.InputEnded():
                message = TimelineMessage(event.message, timed.at, offset=offset, is_end=True, steps=[])
                held = []
                provenance.begin_message(event.message, "")
            case trace.FramesSent():
                if message is not None:
                    provenance.end_message(held)
                    message.is_unchanged = event.unchanged
                    message.frames = _frames(event, message)
                    yield message
                message = None
            case _:
                if message is not None:
                    message.steps.append(TimelineStep(event, describe_trace_event(event), provenance.sources(event)))
                if isinstance(event, trace.HeldBack):
                    held.append(event)


def _frames(event: trace.FramesSent, message: TimelineMessage) -> list[TimelineFrame]:
    if not event.data:
        return []
    if event.data == message.data:
        return [TimelineFrame()]
    is_one_frame = event.whole or event.data.find("\n\n") == len(event.data) - 2
    pieces = [event.data] if is_one_frame else [piece for piece in _FRAME_END.split(event.data) if piece]
    if len(pieces) == 1:
        return [TimelineFrame(pieces[0])]
    return [TimelineFrame(piece, _carried_steps(piece, message.steps)) for piece in pieces]


def _carried_steps(frame: str, steps: list[TimelineStep]) -> list[int]:
    """Return the indexes of the steps whose text, name or reason is a string in the frame."""
    carried = []
    for index, step in enumerate(steps):
        text = _carried_text(step.event)
        if text and (msgspec.json.encode(text).decode() in frame):
            carried.append(index)
    return carried


def _carried_text(event: trace.TraceEvent) -> str | None:
    match event:
        case trace.Passed():
            return event.event.text
        case trace.EventSent(event=ev.TextDelta(text) | ev.ReasoningDelta(text) | ev.RefusalDelta(text)):
            return text
        case trace.EventSent(event=ev.ArgsDelta() as delta):
            return delta.text
        case trace.EventSent(event=ev.CallStart() as start):
            return start.name
        case trace.EventSent(event=ev.Failure() as failure):
            return failure.message
        case _:
            return None
