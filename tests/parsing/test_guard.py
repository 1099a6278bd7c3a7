"""The guard: order, ids, stop reasons, limits, delivery. Rows are the events that come in and those that go out."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply import Call, Text
from interlingua.core.tools import Tool, ToolSet
from interlingua.events import EventOrder
from interlingua.parsing import guard as guard_module
from interlingua.parsing.guard import Guard


def start(index: int, id: str | None = None, name: str = "ls") -> ev.CallStart:
    return ev.CallStart(index, id or f"id{index}", name)


def call(index: int, args: str = "{}", id: str | None = None) -> list[ev.Event]:
    return [start(index, id), ev.ArgsDelta(index, args), ev.CallEnd(index)]


def guard(events: list[ev.Event], offer: ToolSet | None = None, **options: Any) -> list[ev.Event]:
    out = Guard(offer or ToolSet(), **options).process(events)
    order = EventOrder()
    for event in out:
        order.check(event)
    return out


def kinds(events: list[ev.Event]) -> list[str]:
    return [event.kind for event in events if isinstance(event, ev.Finding)]


def test_what_is_right_passes_as_it_is() -> None:
    events: list[ev.Event] = [
        ev.Begin("x"),
        ev.TextDelta("a"),
        *call(0),
        *call(1),
        ev.Usage(1, 2),
        ev.Stop("tool_calls"),
    ]
    assert guard(events) == events


# ── one call at a time ──────────────────────────────────────────────────────────────────────────────────────────────


def test_interleaved_calls_go_out_one_after_another_and_the_first_streams() -> None:
    guarded = Guard(ToolSet())
    assert guarded.process([start(0), start(1), ev.ArgsDelta(0, "{"), ev.ArgsDelta(1, "[")]) == [
        start(0),
        ev.ArgsDelta(0, "{"),
    ]
    assert guarded.process([ev.TextDelta("t"), ev.ArgsDelta(1, "]"), ev.ArgsDelta(0, "}")]) == [ev.ArgsDelta(0, "}")]
    assert guarded.process([ev.CallEnd(0)]) == [
        ev.CallEnd(0),
        start(1),
        ev.ArgsDelta(1, "["),
        ev.ArgsDelta(1, "]"),
    ]
    assert guarded.process([ev.CallEnd(1)]) == [ev.CallEnd(1), ev.TextDelta("t")]


@given(st.permutations([0, 0, 0, 1, 1, 1, 2, 2, 2, 3]))
def test_any_interleaving_gives_the_same_calls(turns: list[int]) -> None:
    scripts: dict[int, list[ev.Event]] = {
        n: [start(n), ev.ArgsDelta(n, f'{{"n":{n}}}'), ev.CallEnd(n)] for n in range(3)
    }
    scripts[3] = [ev.TextDelta("text")]
    out = guard([scripts[turn].pop(0) for turn in turns] + [ev.Stop("stop")])
    reply = il.fold(out)
    assert reply.text == "text"
    assert {c.id: c.arguments for c in reply.calls} == {f"id{n}": f'{{"n":{n}}}' for n in range(3)}
    assert reply.stop_reason == "tool_calls"


def test_calls_are_numbered_by_their_starts() -> None:
    out = guard([*call(7), *call(-1)])
    assert [event.index for event in out if isinstance(event, ev.CallStart | ev.ArgsDelta | ev.CallEnd)] == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]


def test_arguments_without_a_call_are_dropped_once_told() -> None:
    assert kinds(guard([ev.ArgsDelta(0, "{"), ev.ArgsDelta(0, "}"), ev.CallEnd(0)])) == ["no-such-call"]


# ── ids and names ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("taken", "native", "expected"),
    [
        ([], "functions.ls:0", "functions.ls:0"),
        (["functions.ls:0"], "functions.ls:0", "functions.ls:1"),
        (["functions.ls:0", "functions.ls:1"], "functions.ls:0", "functions.ls:2"),
        (["x:" + "9" * 5000], "x:" + "9" * 5000, "x:" + "9" * 5000 + "_2"),
        (["call_x"], "call_x", "call_x_2"),
        (["call_x", "call_x_2"], "call_x", "call_x_3"),
    ],
)
def test_an_id_is_unique_against_the_conversation(taken: list[str], native: str, expected: str) -> None:
    out = guard([start(0, native)], taken_ids=taken)
    assert [event.id for event in out if isinstance(event, ev.CallStart)] == [expected]
    assert kinds(out) == (["id-renamed"] if native != expected else [])


def test_ids_that_are_missing_are_made_and_differ_by_reply_and_call() -> None:
    def made(seed: str) -> list[str | None]:
        out = guard([ev.CallStart(0, None, "a"), ev.CallEnd(0), ev.CallStart(1, "", "a")], seed=seed)
        return [event.id for event in out if isinstance(event, ev.CallStart)]

    ids = made("one") + made("two")
    assert len(set(ids)) == 4
    assert made("one") == ids[:2], "no chance in it"
    assert all(id and id.startswith("call_") and len(id) == 29 for id in ids)


@pytest.mark.parametrize(
    ("offered", "name", "expected", "found"),
    [
        (["ls"], "ls", "ls", []),
        (["ls"], "functions.ls", "ls", ["renamed"]),
        (["functions.ls", "ls"], "functions.ls", "functions.ls", []),
        (["rm"], "ls", "ls", ["unknown-tool"]),
        (None, "functions.ls", "functions.ls", []),
    ],
)
def test_names(offered: list[str] | None, name: str, expected: str, found: list[str]) -> None:
    offer = ToolSet(None if offered is None else [Tool(name) for name in offered])
    out = guard([start(0, name=name)], offer)
    assert [event.name for event in out if isinstance(event, ev.CallStart)] == [expected]
    assert kinds(out) == found


def test_no_tool_was_offered() -> None:
    out = guard([ev.TextDelta("a "), *call(0, '{"x":1}'), *call(1), ev.Stop("tool_calls")], ToolSet([]))
    reply = il.fold(out)
    assert reply.parts == [Text('a ls{"x":1}ls{}')]
    assert reply.stop_reason == "stop"


# ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────────

OPEN: list[ev.Event] = [start(0), ev.ArgsDelta(0, '{"a')]
STOPS: dict[str, tuple[list[ev.Event], ev.StopReason | None, ev.StopReason]] = {
    "text": ([], "stop", "stop"),
    "text, nobody said why": ([], None, "stop"),
    "text, cut": ([], "length", "length"),
    "no calls after all": ([], "tool_calls", "stop"),
    "calls": (call(0), "tool_calls", "tool_calls"),
    "calls, upstream says stop": (call(0), "stop", "tool_calls"),
    "calls, nobody said why": (call(0), None, "tool_calls"),
    "calls, then cut": (call(0), "length", "length"),
    "calls, filtered": (call(0), "content_filter", "content_filter"),
    "inside a call": (OPEN, "length", "length"),
    "inside a call, upstream says stop": (OPEN, "stop", "length"),
    "inside a call, upstream says tool_calls": (OPEN, "tool_calls", "length"),
    "inside the second call": ([*call(0), start(1)], "tool_calls", "length"),
}


@pytest.mark.parametrize(("events", "said", "right"), STOPS.values(), ids=STOPS)
def test_stop_reasons(events: list[ev.Event], said: ev.StopReason | None, right: ev.StopReason) -> None:
    reply = il.fold(guard([*events, ev.Stop(said)]))
    assert reply.stop_reason == right
    corrected = said is not None and said != right
    assert ("stop-reason" in [finding.kind for finding in reply.findings]) == corrected


def test_a_call_that_the_end_has_cut_is_incomplete_and_so_are_those_behind_it() -> None:
    reply = il.fold(guard([start(0), start(1), ev.ArgsDelta(1, "["), ev.ArgsDelta(0, "{"), ev.Stop("length")]))
    assert reply.calls == [Call("id0", "ls", "{", complete=False), Call("id1", "ls", "[", complete=False)]
    assert [finding.kind for finding in reply.findings] == ["cut-short", "cut-short"]


def test_an_end_that_nobody_announced_inside_a_call_is_a_failure() -> None:
    out = guard([*OPEN, ev.Stop(None), ev.TextDelta("late")])
    assert out[:2] == OPEN
    assert isinstance(out[2], ev.Failure)
    assert "'ls'" in out[2].message


def test_nothing_but_usage_follows_a_stop() -> None:
    late: list[ev.Event] = [
        ev.TextDelta("x"),
        *call(0),
        ev.Stop("length"),
        ev.Failure("x"),
        ev.TextDelta(""),
        ev.Usage(1),
    ]
    out = guard([ev.Stop("stop"), *late])
    assert [event for event in out if not isinstance(event, ev.Finding)] == [ev.Stop("stop"), ev.Usage(1)]
    assert kinds(out) == ["after-stop"] * 4


def test_what_waits_when_the_reply_fails_is_told() -> None:
    out = guard([*OPEN, ev.TextDelta("later"), ev.Failure("gone")])
    assert kinds(out) == ["lost"]
    assert out[-1] == ev.Failure("gone")


def test_ten_thousand_calls_with_one_id_are_told_apart_in_linear_time() -> None:
    events: list[ev.Event] = [event for n in range(10_000) for event in call(n, id="functions.ls:0")]
    ids = {event.id for event in guard(events) if isinstance(event, ev.CallStart)}
    assert len(ids) == 10_000


def test_every_event_has_a_handler_open_and_stopped() -> None:
    assert set(guard_module._OPEN_HANDLERS) == set(guard_module._STOPPED_HANDLERS) == set(get_args(ev.Event))


# ── delivery, reasoning, limits ─────────────────────────────────────────────────────────────────────────────────────


def test_whole_delivery_lets_only_complete_valid_calls_out() -> None:
    events = [*call(0, '{"a":'), *call(1, '{"b":1}'), *call(2, "[]"), start(3), ev.ArgsDelta(3, "{"), ev.Stop("length")]
    out = guard(events, delivery="whole")
    reply = il.fold(out)
    assert reply.calls == [Call("id1", "ls", '{"b":1}')]
    assert kinds(out) == ["call-withheld", "call-withheld", "cut-short", "call-withheld"]
    assert reply.stop_reason == "length"


def test_whole_delivery_waits_for_the_end_of_a_call() -> None:
    guarded = Guard(ToolSet(), delivery="whole")
    assert guarded.process([start(0), ev.ArgsDelta(0, "{"), ev.ArgsDelta(0, "}")]) == []
    assert guarded.process([ev.CallEnd(0)]) == [start(0), ev.ArgsDelta(0, "{}"), ev.CallEnd(0)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("keep", [ev.ReasoningDelta("a"), ev.TextDelta("b")]),
        ("as_content", [ev.TextDelta("a"), ev.TextDelta("\n\nb")]),
        ("drop", [ev.TextDelta("b")]),
    ],
)
def test_reasoning(policy: Any, expected: list[ev.Event]) -> None:
    out = guard([ev.ReasoningDelta("a"), ev.TextDelta("b"), ev.Stop("stop")], reasoning=policy)
    assert [event for event in out if isinstance(event, ev.TextDelta | ev.ReasoningDelta)] == expected
    assert kinds(out) == (["reasoning-dropped"] if policy == "drop" else [])


def test_too_long_arguments_end_the_call() -> None:
    events: list[ev.Event] = [start(0), ev.ArgsDelta(0, "123456"), ev.ArgsDelta(0, "7"), ev.CallEnd(0), *call(1)]
    out = guard(events, limits=il.Limits(args=5))
    assert [(c.arguments, c.complete) for c in il.fold(out).calls] == [("12345", False), ("{}", True)]
    assert kinds(out) == ["over-limit"]
    failed = guard(events, limits=il.Limits(args=5, over="error"))
    assert [type(event) for event in failed[:3]] == [ev.CallStart, ev.ArgsDelta, ev.Failure]


def test_too_much_behind_an_open_call_is_cut_and_the_open_call_is_not_harmed() -> None:
    events: list[ev.Event] = [start(0), start(1), ev.ArgsDelta(1, "123456"), ev.ArgsDelta(1, "7"), ev.CallEnd(1)]
    out = guard([*events, ev.ArgsDelta(0, "{}"), ev.CallEnd(0), ev.Stop("tool_calls")], limits=il.Limits(held=5))
    reply = il.fold(out)
    assert [(c.arguments, c.complete) for c in reply.calls] == [("{}", True), ("", False)]
    assert kinds(out) == ["over-limit", "stop-reason"]
    assert reply.stop_reason == "length", "an incomplete call does not hide"


def test_one_call_that_is_cut_while_it_waits_harms_no_other() -> None:
    big: list[ev.Event] = [start(0), ev.ArgsDelta(0, "{"), start(1), ev.ArgsDelta(1, "1234567"), ev.TextDelta("text")]
    rest: list[ev.Event] = [*call(2, "[]"), ev.CallEnd(1), ev.ArgsDelta(0, "}"), ev.CallEnd(0)]
    reply = il.fold(guard([*big, *rest, ev.Stop("stop")], limits=il.Limits(held=20)))
    assert [(c.arguments, c.complete) for c in reply.calls] == [("{}", True), ("1234567", True), ("[]", True)]
    reply = il.fold(guard([*big, *rest, ev.Stop("stop")], limits=il.Limits(held=6)))
    assert [(c.arguments, c.complete) for c in reply.calls] == [("{}", True), ("", False), ("[]", True)]
    assert reply.text == "text"


def test_too_much_text_behind_an_open_call_ends_that_call() -> None:
    events: list[ev.Event] = [start(0), ev.TextDelta("123456"), ev.ArgsDelta(0, "{}"), ev.CallEnd(0), ev.Stop("stop")]
    reply = il.fold(guard(events, limits=il.Limits(held=5)))
    assert reply.text == "123456"
    assert [(c.arguments, c.complete) for c in reply.calls] == [("", False)]
    assert isinstance(guard(events, limits=il.Limits(held=5, over="error"))[1], ev.Finding)
