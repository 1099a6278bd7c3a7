"""Neutral events: the ordered units of one reply.

Readers and the parser create events, the guard puts them in order, and emitters write them to a wire. Events are
frozen: an event that was emitted is never taken back or changed. The legal order is a state table, checked by
`EventOrder`:

    state    event                           next
    ───────  ──────────────────────────────  ───────
    fresh    Begin                           open
    open     text, reasoning, seal, refusal  open
    open     CallStart                       in call
    in call  ArgsDelta, of that call         in call
    in call  CallEnd, of that call           open
    open     Stop                            stopped
    any but stopped and failed: Failure      failed

Usage and Finding may come in any state. A reply may start without Begin.

In JSON, the field `event` has the name of the type, except for findings, which are also written on their own.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.errors import UsageError

__all__ = [
    "TRUNCATION_REASONS",
    "ArgsDelta",
    "Begin",
    "CallEnd",
    "CallStart",
    "Event",
    "EventOrder",
    "Failure",
    "Finding",
    "ReasoningDelta",
    "RefusalDelta",
    "ReplyEvent",
    "ReplyState",
    "Seal",
    "Stop",
    "StopReason",
    "TextDelta",
    "Usage",
]

StopReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
TRUNCATION_REASONS: tuple[StopReason, ...] = ("length", "content_filter")
"""Stop reasons that can cut a reply at any place, also inside the arguments of a call."""


class _TaggedEvent(msgspec.Struct, frozen=True, tag=True, tag_field="event"):
    pass


class Begin(_TaggedEvent, frozen=True):
    """The upstream has started to reply. Fields that it did not send are None."""

    id: str | None = None
    model: str | None = None
    created: int | None = None


class TextDelta(_TaggedEvent, frozen=True):
    text: str


class ReasoningDelta(_TaggedEvent, frozen=True):
    text: str


class Seal(_TaggedEvent, frozen=True):
    """Data that the upstream sends with the preceding reasoning and expects back in the next request: a signature, or
    the reasoning itself, encrypted. `wire` is the upstream's wire, and `data` holds the fields as that wire has them.
    `upstream` is the upstream's name, if the client returned the data with one."""

    wire: str
    data: dict[str, Any]
    upstream: str = ""


class RefusalDelta(_TaggedEvent, frozen=True):
    text: str


class CallStart(_TaggedEvent, frozen=True):
    """Start of a call, sent when its name is known. `id` is the model's own id, or None if it sent none; the guard
    replaces None.

    `extra` holds fields of the call beyond the standard ones, as the upstream sent them.
    """

    index: int
    id: str | None
    name: str
    extra: dict[str, Any] | None = None


class ArgsDelta(_TaggedEvent, frozen=True, omit_defaults=True):
    """The next characters of a call's arguments, as JSON text.

    `runaway` is for the guard: the arguments go on with more whitespace than `Limits.blanks` allows, and are cut here.
    """

    index: int
    text: str
    runaway: bool = False


class CallEnd(_TaggedEvent, frozen=True):
    """End of a call. `complete` is true if the model closed the call, and false if the reply was cut inside it."""

    index: int
    complete: bool = True


class Usage(_TaggedEvent, frozen=True):
    """Tokens counted by the upstream so far; a later event replaces an earlier one.

    `input` includes `cached` and `cache_written`, `output` includes `reasoning`. `native` is the upstream's own object.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    native: dict[str, Any] = msgspec.field(default_factory=dict)
    cache_written: int = 0
    estimated: bool = False
    """True if the upstream reported no usage and the values are an estimate."""


class Stop(_TaggedEvent, frozen=True):
    """Regular end of a reply. A `reason` of None means that the upstream sent none; the guard replaces None.

    `sequence` is the stop sequence that ended the reply. `native` is the upstream's own value, if it is more specific
    than `reason`.
    """

    reason: StopReason | None
    sequence: str | None = None
    native: str | None = None


class Failure(_TaggedEvent, frozen=True):
    """End of a reply by an error. No event may follow, and an open call stays open."""

    message: str
    type: str = "api_error"
    code: str | int | None = None
    native: dict[str, Any] | None = None


class Finding(msgspec.Struct, frozen=True):
    """An irregularity in a reply or request, its place, and the correction that was made."""

    kind: str
    message: str
    place: str = ""


ReplyEvent: TypeAlias = (
    Begin | TextDelta | ReasoningDelta | RefusalDelta | Seal | CallStart | ArgsDelta | CallEnd | Usage | Stop | Failure
)
"""An event of the reply itself, for clients."""
Event: TypeAlias = ReplyEvent | Finding


class ReplyState(Enum):
    FRESH = "fresh"
    OPEN = "open"
    IN_CALL = "in call"
    STOPPED = "stopped"
    FAILED = "failed"


TRANSITIONS: dict[tuple[ReplyState, type], ReplyState] = {
    (ReplyState.FRESH, Begin): ReplyState.OPEN,
    (ReplyState.IN_CALL, ArgsDelta): ReplyState.IN_CALL,
    (ReplyState.IN_CALL, CallEnd): ReplyState.OPEN,
    (ReplyState.IN_CALL, Failure): ReplyState.FAILED,
}
for _state in (ReplyState.FRESH, ReplyState.OPEN):
    for _event_type in (TextDelta, ReasoningDelta, RefusalDelta, Seal):
        TRANSITIONS[_state, _event_type] = ReplyState.OPEN
    TRANSITIONS[_state, CallStart] = ReplyState.IN_CALL
    TRANSITIONS[_state, Stop] = ReplyState.STOPPED
    TRANSITIONS[_state, Failure] = ReplyState.FAILED
for _state in ReplyState:
    TRANSITIONS[_state, Usage] = TRANSITIONS[_state, Finding] = _state


class EventOrder:
    """State machine that checks the order of a reply's events and raises UsageError at the first violation."""

    def __init__(self) -> None:
        self.state = ReplyState.FRESH
        self.calls = 0

    def check(self, event: Event) -> None:
        next_state = TRANSITIONS.get((self.state, type(event)))
        if next_state is None:
            raise UsageError(f"{type(event).__name__} is not allowed here: the reply is {self.state.value}")
        if isinstance(event, CallStart):
            self._check_index(event.index, self.calls)
            self.calls += 1
        elif isinstance(event, ArgsDelta | CallEnd):
            self._check_index(event.index, self.calls - 1)
        self.state = next_state

    def _check_index(self, index: int, expected: int) -> None:
        if index != expected:
            raise UsageError(f"event for call {index} is not allowed here: expected call {expected}")
