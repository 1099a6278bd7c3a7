"""When it can be said: which event may follow which, as a table.

    state    event                           next
    ───────  ──────────────────────────────  ───────
    fresh    Begin                           open
    open     text, reasoning, seal, refusal  open
    open     CallStart                       in call
    in call  ArgsDelta, of that call         in call
    in call  CallEnd, of that call           open
    open     Stop                            stopped
    any but stopped and failed: Failure      failed

Begin may be left out. Usage and Finding may stand anywhere. One call is open at a time, and calls are numbered
0, 1, 2, … in the order of their starts. The guard promises this order; `fold` and the tests insist on it.
"""

from __future__ import annotations

from enum import Enum

from interlingua import events as ev
from interlingua.errors import UsageError

__all__ = ["EventOrder", "ReplyState"]


class ReplyState(Enum):
    FRESH = "fresh"
    OPEN = "open"
    IN_CALL = "in call"
    STOPPED = "stopped"
    FAILED = "failed"


TRANSITIONS: dict[tuple[ReplyState, type], ReplyState] = {
    (ReplyState.FRESH, ev.Begin): ReplyState.OPEN,
    (ReplyState.IN_CALL, ev.ArgsDelta): ReplyState.IN_CALL,
    (ReplyState.IN_CALL, ev.CallEnd): ReplyState.OPEN,
    (ReplyState.IN_CALL, ev.Failure): ReplyState.FAILED,
}
for _state in (ReplyState.FRESH, ReplyState.OPEN):
    for _event_type in (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.Seal):
        TRANSITIONS[_state, _event_type] = ReplyState.OPEN
    TRANSITIONS[_state, ev.CallStart] = ReplyState.IN_CALL
    TRANSITIONS[_state, ev.Stop] = ReplyState.STOPPED
    TRANSITIONS[_state, ev.Failure] = ReplyState.FAILED
for _state in ReplyState:
    TRANSITIONS[_state, ev.Usage] = TRANSITIONS[_state, ev.Finding] = _state


class EventOrder:
    """Follows a reply's events and raises at the first that is out of order."""

    def __init__(self) -> None:
        self.state = ReplyState.FRESH
        self.calls = 0

    def check(self, event: ev.Event) -> None:
        next_state = TRANSITIONS.get((self.state, type(event)))
        if next_state is None:
            raise UsageError(f"{type(event).__name__} cannot follow here: the reply is {self.state.value}")
        if isinstance(event, ev.CallStart):
            self._check_index(event.index, self.calls)
            self.calls += 1
        elif isinstance(event, ev.ArgsDelta | ev.CallEnd):
            self._check_index(event.index, self.calls - 1)
        self.state = next_state

    def _check_index(self, index: int, expected: int) -> None:
        if index != expected:
            raise UsageError(f"call {index} cannot speak here: call {expected} was expected")
