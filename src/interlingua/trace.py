"""Trace events: what a `Translator` received, read, held back and sent, message by message, and why.

A `Translator` with an `observer` reports them in order. Each event has the number of the message that it belongs to, so
that the bytes of the upstream, the neutral events and the bytes for the client can be shown side by side:

    MessageReceived                                   once per message; `InputEnded` if the stream ends without a mark
    DialectChosen, MarkerSeen, Released, EventSent,   in the order in which they happen
    FindingReported, Passed
    HeldBack                                          for each text that waits after the message
    FramesSent                                        once per message, also if the client gets nothing for it

`encode_trace_event` writes an event as one line of JSON, `decode_trace` reads such lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Literal, TypeAlias

import msgspec

from interlingua import events as ev

__all__ = [
    "HOLD_REASONS",
    "MARKER_ROLES",
    "Channel",
    "DialectChosen",
    "EventSent",
    "FindingReported",
    "FramesSent",
    "HeldBack",
    "HoldReason",
    "InputEnded",
    "MarkerRole",
    "MarkerSeen",
    "MessageReceived",
    "Passed",
    "Released",
    "TraceEvent",
    "TraceObserver",
    "decode_trace",
    "encode_trace_event",
]


class Channel(Enum):
    """The field of the upstream's reply that a piece of text came from."""

    TEXT = "content"
    REASONING = "reasoning"


MarkerRole: TypeAlias = Literal["opener", "closer", "inner", "thinking-start", "thinking-end", "text", "noise"]
MARKER_ROLES: dict[MarkerRole, str] = {
    "opener": "begins a call, or a section of calls",
    "closer": "ends a call, or a section of calls",
    "inner": "stands inside a call: a separator, a quote, or the tag of a param",
    "thinking-start": "begins thinking",
    "thinking-end": "ends thinking",
    "text": "stands around the text of a reply",
    "noise": "is not part of a reply",
}
"""The role of a marker in the dialect. A closer outside a call is a closer, too; a finding reports that it is stray."""

HoldReason: TypeAlias = Literal[
    "whitespace", "marker", "call", "tentative", "name", "param", "value", "value-end", "not-offered", "whole", "queue"
]
HOLD_REASONS: dict[HoldReason, str] = {
    "whitespace": "whitespace may belong to a marker",
    "marker": "may become a marker",
    "call": "may become a call",
    "tentative": "may become a call, which is sent when it is complete",
    "name": "arguments of a call whose name is not known yet",
    "param": "a param is sent with its value",
    "value": "a value is sent when its end is known",
    "value-end": "may end a value, or be quoted in it",
    "not-offered": "no call of an offered tool: sent as text at its end",
    "whole": "a call is delivered whole",
    "queue": "queued behind an open call",
}
"""The reasons for which text is held back."""


class _TraceEvent(msgspec.Struct, frozen=True, tag=True, tag_field="kind"):
    message: int
    """The number of the message that the event belongs to, counted from 1. Comments are counted, too; the end of the
    stream has a number of its own."""


class MessageReceived(_TraceEvent, frozen=True):
    """The upstream sent a message: a server-sent event, a comment, or a whole reply."""

    data: str
    """The bytes of the message. Bytes that are not UTF-8 are U+FFFD. Empty if the message exceeds `Limits.event`."""
    whole: bool = False
    """True if the message is a whole reply in JSON."""


class InputEnded(_TraceEvent, frozen=True):
    """The upstream's stream ended, or was cut off, before the upstream had marked its end."""


class DialectChosen(_TraceEvent, frozen=True):
    """The dialect of the reply is known, and its text is read in this dialect from here on."""

    dialect: str
    """The name of the dialect."""


class _ChoiceEvent(_TraceEvent, frozen=True):
    choice: int
    """The index of the choice in the reply."""


class MarkerSeen(_ChoiceEvent, frozen=True):
    """The parser read a marker as structure. Markers inside JSON strings are data and are not reported.

    If the text around the marker turns out to be plain text, a `Released` with this text follows.
    """

    channel: Channel
    """The field of the reply that the marker stood in: `content` or `reasoning`."""
    marker: str
    """The marker, without whitespace around it."""
    role: MarkerRole
    """The role of the marker in the dialect."""


class HeldBack(_ChoiceEvent, frozen=True):
    """Text waits at the end of the message: the client has not received it yet.

    The event is repeated after every message, as long as the text waits. The opening marker of a call is not part of
    the text.
    """

    channel: Channel | None
    """The field of the reply that the text stood in; null for structured calls and for what is queued."""
    text: str
    """The text, or its last characters if it is long."""
    reason: HoldReason
    """The reason why it waits."""


class Released(_ChoiceEvent, frozen=True):
    """Text that was held back, or had been read as structure, is plain text after all and is sent as text.

    Special tokens in it are dropped.
    """

    channel: Channel
    """The field of the reply that the text stood in."""
    text: str
    """The text, as it was received."""
    reason: HoldReason
    """`marker` or `whitespace` for text that might have been a marker, `call` for text that might have been a call."""


class Passed(_ChoiceEvent, frozen=True):
    """The fast path forwarded the message without parsing its text: the text cannot begin a marker."""

    channel: Channel
    """The field of the reply that the text stood in."""
    event: ev.TextDelta | ev.ReasoningDelta
    """The neutral event that the ordinary path would have sent."""


class EventSent(_TraceEvent, frozen=True):
    """A neutral event for the client, as the parser and the guard passed it on."""

    choice: int | None
    """The index of the choice in the reply; null for events of the whole reply."""
    event: ev.ReplyEvent
    """The neutral event."""


class FindingReported(_TraceEvent, frozen=True):
    """Something irregular was found, and handled as the finding says."""

    choice: int | None
    """The index of the choice in the reply; null for findings about the whole reply."""
    finding: ev.Finding
    """The finding."""


class FramesSent(_TraceEvent, frozen=True):
    """The bytes for the client."""

    data: str
    """The frames; empty if the client gets nothing for the message."""
    unchanged: bool = False
    """True if the frames end with the bytes of the message as they were received."""
    whole: bool = False
    """True if `data` is a whole reply in JSON."""


TraceEvent: TypeAlias = (
    MessageReceived
    | InputEnded
    | DialectChosen
    | MarkerSeen
    | Released
    | EventSent
    | FindingReported
    | Passed
    | HeldBack
    | FramesSent
)
TraceObserver: TypeAlias = Callable[[TraceEvent], None]
"""Receives each trace event as soon as it happens."""

_encode = msgspec.json.Encoder().encode
_decode_lines = msgspec.json.Decoder(TraceEvent).decode_lines


def encode_trace_event(event: TraceEvent) -> bytes:
    """Return the event as one line of JSON. Half of a surrogate pair, which JSON text cannot hold, is a `?` there."""
    try:
        return _encode(event) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(event), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def decode_trace(lines: bytes) -> list[TraceEvent]:
    """Return the events of a trace in JSON Lines."""
    return _decode_lines(lines)
