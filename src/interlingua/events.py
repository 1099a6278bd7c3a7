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
    "ReplyState",
    "Seal",
    "Stop",
    "StopReason",
    "TextDelta",
    "Usage",
]

StopReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
TRUNCATION_REASONS: tuple[StopReason, ...] = ("length", "content_filter")
"""The reasons for which a reply may stop anywhere, a call's arguments too."""


class Begin(msgspec.Struct, frozen=True):
    """The upstream has begun to answer. What it did not say is None."""

    id: str | None = None
    model: str | None = None
    created: int | None = None


class TextDelta(msgspec.Struct, frozen=True):
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    text: str


class Seal(msgspec.Struct, frozen=True):
    """What an upstream sends beside the thinking before it and wants back with it: a signature, or the thinking itself,
    encrypted. `wire` is the upstream's; `data` are the fields as that wire has them. `upstream` is its name, if it
    has come back from a client with one."""

    wire: str
    data: dict[str, Any]
    upstream: str = ""


class RefusalDelta(msgspec.Struct, frozen=True):
    text: str


class CallStart(msgspec.Struct, frozen=True):
    """A call's name is known. `id` is the model's own, or None where it gave none; the guard leaves no None.

    `extra` is what an upstream said about the call beyond the standard fields.
    """

    index: int
    id: str | None
    name: str
    extra: dict[str, Any] | None = None


class ArgsDelta(msgspec.Struct, frozen=True):
    """The next characters of a call's arguments, as JSON text."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True):
    """The call is over. It is complete if the model closed it, not if the reply was cut inside it."""

    index: int
    complete: bool = True


class Usage(msgspec.Struct, frozen=True):
    """Tokens counted by the upstream so far; a later one replaces an earlier one.

    `input` includes `cached` and `cache_written`, `output` includes `reasoning`. `native` is the upstream's own object.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    native: dict[str, Any] = msgspec.field(default_factory=dict)
    cache_written: int = 0
    estimated: bool = False
    """The upstream has not counted: it is our guess."""


class Stop(msgspec.Struct, frozen=True):
    """The reply has ended well. None means that nobody said why; the guard leaves no None.

    `sequence` is the stop sequence that was met. `native` is the upstream's own word, if `reason` says less.
    """

    reason: StopReason | None
    sequence: str | None = None
    native: str | None = None


class Failure(msgspec.Struct, frozen=True):
    """The reply has ended badly: nothing may follow, and what is open stays open."""

    message: str
    type: str = "api_error"
    code: str | int | None = None
    native: dict[str, Any] | None = None


class Finding(msgspec.Struct, frozen=True):
    """Something odd that was seen, where, and what was done about it."""

    kind: str
    message: str
    place: str = ""


Event: TypeAlias = (
    Begin
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | Seal
    | CallStart
    | ArgsDelta
    | CallEnd
    | Usage
    | Stop
    | Failure
    | Finding
)


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
    """Follows a reply's events and raises at the first that is out of order."""

    def __init__(self) -> None:
        self.state = ReplyState.FRESH
        self.calls = 0

    def check(self, event: Event) -> None:
        next_state = TRANSITIONS.get((self.state, type(event)))
        if next_state is None:
            raise UsageError(f"{type(event).__name__} cannot follow here: the reply is {self.state.value}")
        if isinstance(event, CallStart):
            self._check_index(event.index, self.calls)
            self.calls += 1
        elif isinstance(event, ArgsDelta | CallEnd):
            self._check_index(event.index, self.calls - 1)
        self.state = next_state

    def _check_index(self, index: int, expected: int) -> None:
        if index != expected:
            raise UsageError(f"call {index} cannot speak here: call {expected} was expected")
