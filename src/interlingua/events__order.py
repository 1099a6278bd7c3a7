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

__all__ = ["Order", "State"]


class State(Enum):
    FRESH = "fresh"
    OPEN = "open"
    IN_CALL = "in call"
    STOPPED = "stopped"
    FAILED = "failed"


TABLE: dict[tuple[State, type], State] = {
    (State.FRESH, ev.Begin): State.OPEN,
    (State.IN_CALL, ev.ArgsDelta): State.IN_CALL,
    (State.IN_CALL, ev.CallEnd): State.OPEN,
    (State.IN_CALL, ev.Failure): State.FAILED,
}
for _state in (State.FRESH, State.OPEN):
    for _kind in (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.Seal):
        TABLE[_state, _kind] = State.OPEN
    TABLE[_state, ev.CallStart] = State.IN_CALL
    TABLE[_state, ev.Stop] = State.STOPPED
    TABLE[_state, ev.Failure] = State.FAILED
for _state in State:
    TABLE[_state, ev.Usage] = TABLE[_state, ev.Finding] = _state


class Order:
    """Follows a reply's events and raises at the first that is out of order."""

    def __init__(self) -> None:
        self.state = State.FRESH
        self.calls = 0

    def check(self, event: ev.Event) -> None:
        after = TABLE.get((self.state, type(event)))
        if after is None:
            raise UsageError(f"{type(event).__name__} cannot follow here: the reply is {self.state.value}")
        if isinstance(event, ev.CallStart):
            self._expect(event.index, self.calls)
            self.calls += 1
        elif isinstance(event, ev.ArgsDelta | ev.CallEnd):
            self._expect(event.index, self.calls - 1)
        self.state = after

    def _expect(self, index: int, expected: int) -> None:
        if index != expected:
            raise UsageError(f"call {index} cannot speak here: call {expected} was expected")
