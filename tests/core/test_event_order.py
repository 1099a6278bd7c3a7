"""Legal and illegal orders of events."""

from __future__ import annotations

import pytest

from interlingua import events as ev
from interlingua.errors import UsageError
from interlingua.events import EventOrder

BEGIN, TEXT, STOP, FAIL = ev.Begin(), ev.TextDelta("x"), ev.Stop("stop"), ev.Failure("x")
CALL: list[ev.Event] = [ev.CallStart(0, "a", "f"), ev.ArgsDelta(0, "{}"), ev.CallEnd(0)]
SECOND: list[ev.Event] = [ev.CallStart(1, "b", "f"), ev.CallEnd(1)]
ANYWHERE: list[ev.Event] = [ev.Usage(), ev.Finding("k", "m")]

RIGHT: list[list[ev.Event]] = [
    [],
    [STOP],
    [BEGIN, TEXT, ev.ReasoningDelta("y"), ev.RefusalDelta("z"), *CALL, TEXT, *SECOND, STOP, *ANYWHERE],
    [*ANYWHERE, CALL[0], *ANYWHERE, CALL[1], FAIL, *ANYWHERE],
    [FAIL],
]
WRONG: dict[str, list[ev.Event]] = {
    "begin twice": [BEGIN, BEGIN],
    "begin after text": [TEXT, BEGIN],
    "text inside a call": [CALL[0], TEXT],
    "a call inside a call": [CALL[0], SECOND[0]],
    "arguments outside a call": [CALL[1]],
    "an end outside a call": [CALL[2]],
    "arguments of another call": [CALL[0], ev.ArgsDelta(1, "{}")],
    "a gap in the numbers": [SECOND[0]],
    "stop inside a call": [CALL[0], STOP],
    "text after the stop": [STOP, TEXT],
    "two stops": [STOP, STOP],
    "a failure after the stop": [STOP, FAIL],
    "anything after a failure": [FAIL, TEXT],
}


@pytest.mark.parametrize("events", RIGHT, ids=str)
def test_legal_order(events: list[ev.Event]) -> None:
    order = EventOrder()
    for event in events:
        order.check(event)


@pytest.mark.parametrize("events", WRONG.values(), ids=WRONG)
def test_illegal_order_raises(events: list[ev.Event]) -> None:
    order = EventOrder()
    for event in events[:-1]:
        order.check(event)
    with pytest.raises(UsageError):
        order.check(events[-1])
