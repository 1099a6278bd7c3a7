"""The guard: order of events, call ids, stop reasons, limits and delivery. Rows are input and output events."""

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


def test_valid_events_pass_unchanged() -> None:
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


def test_interleaved_calls_are_serialized_and_the_first_is_streamed() -> None:
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
def test_every_interleaving_gives_the_same_calls(turns: list[int]) -> None:
    scripts: dict[int, list[ev.Event]] = {
        n: [start(n), ev.ArgsDelta(n, f'{{"n":{n}}}'), ev.CallEnd(n)] for n in range(3)
    }
    scripts[3] = [ev.TextDelta("text")]
    out = guard([scripts[turn].pop(0) for turn in turns] + [ev.Stop("stop")])
    reply = il.fold(out)
    assert reply.text == "text"
    assert {c.id: c.arguments for c in reply.calls} == {f"id{n}": f'{{"n":{n}}}' for n in range(3)}
    assert reply.stop_reason == "tool_calls"


def test_calls_are_numbered_in_order_of_their_starts() -> None:
    out = guard([*call(7), *call(-1)])
    assert [event.index for event in out if isinstance(event, ev.CallStart | ev.ArgsDelta | ev.CallEnd)] == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]


def test_arguments_without_a_call_are_dropped_with_one_finding() -> None:
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
def test_call_id_is_unique_in_the_conversation(taken: list[str], native: str, expected: str) -> None:
    out = guard([start(0, native)], taken_ids=taken)
    assert [event.id for event in out if isinstance(event, ev.CallStart)] == [expected]
    assert kinds(out) == (["id-renamed"] if native != expected else [])


def test_missing_ids_are_generated_and_unique_per_reply_and_call() -> None:
    def generate_ids(seed: str) -> list[str | None]:
        out = guard([ev.CallStart(0, None, "a"), ev.CallEnd(0), ev.CallStart(1, "", "a")], seed=seed)
        return [event.id for event in out if isinstance(event, ev.CallStart)]

    ids = generate_ids("one") + generate_ids("two")
    assert len(set(ids)) == 4
    assert generate_ids("one") == ids[:2], "ids are deterministic"
    assert all(id and id.startswith("call_") and len(id) == 29 for id in ids)


@pytest.mark.parametrize(
    ("offered", "name", "expected", "findings"),
    [
        (["ls"], "ls", "ls", []),
        (["ls"], "functions.ls", "ls", ["renamed"]),
        (["functions.ls", "ls"], "functions.ls", "functions.ls", []),
        (["rm"], "ls", "ls", ["unknown-tool"]),
        (None, "functions.ls", "functions.ls", []),
    ],
)
def test_call_names(offered: list[str] | None, name: str, expected: str, findings: list[str]) -> None:
    offer = ToolSet(None if offered is None else [Tool(name) for name in offered])
    out = guard([start(0, name=name)], offer)
    assert [event.name for event in out if isinstance(event, ev.CallStart)] == [expected]
    assert kinds(out) == findings


def test_calls_become_text_if_no_tool_was_offered() -> None:
    out = guard([ev.TextDelta("a "), *call(0, '{"x":1}'), *call(1), ev.Stop("tool_calls")], ToolSet([]))
    reply = il.fold(out)
    assert reply.parts == [Text('a ls{"x":1}ls{}')]
    assert reply.stop_reason == "stop"


# ── end of the reply ─────────────────────────────────────────────────────────────────────────────────────────────────

OPEN: list[ev.Event] = [start(0), ev.ArgsDelta(0, '{"a')]
STOPS: dict[str, tuple[list[ev.Event], ev.StopReason | None, ev.StopReason]] = {
    "text": ([], "stop", "stop"),
    "text, no reason from upstream": ([], None, "stop"),
    "text, truncated": ([], "length", "length"),
    "no calls, upstream sends tool_calls": ([], "tool_calls", "stop"),
    "calls": (call(0), "tool_calls", "tool_calls"),
    "calls, upstream sends stop": (call(0), "stop", "tool_calls"),
    "calls, no reason from upstream": (call(0), None, "tool_calls"),
    "calls, then truncated": (call(0), "length", "length"),
    "calls, filtered": (call(0), "content_filter", "content_filter"),
    "inside a call": (OPEN, "length", "length"),
    "inside a call, upstream sends stop": (OPEN, "stop", "length"),
    "inside a call, upstream sends tool_calls": (OPEN, "tool_calls", "length"),
    "inside the second call": ([*call(0), start(1)], "tool_calls", "length"),
}


@pytest.mark.parametrize(("events", "reported", "corrected"), STOPS.values(), ids=STOPS)
def test_stop_reasons(events: list[ev.Event], reported: ev.StopReason | None, corrected: ev.StopReason) -> None:
    reply = il.fold(guard([*events, ev.Stop(reported)]))
    assert reply.stop_reason == corrected
    has_finding = reported is not None and reported != corrected
    assert ("stop-reason" in [finding.kind for finding in reply.findings]) == has_finding


def test_truncated_call_and_queued_calls_are_incomplete() -> None:
    reply = il.fold(guard([start(0), start(1), ev.ArgsDelta(1, "["), ev.ArgsDelta(0, "{"), ev.Stop("length")]))
    assert reply.calls == [Call("id0", "ls", "{", complete=False), Call("id1", "ls", "[", complete=False)]
    assert [finding.kind for finding in reply.findings] == ["cut-short", "cut-short"]


def test_end_without_stop_reason_inside_a_call_is_a_failure() -> None:
    out = guard([*OPEN, ev.Stop(None), ev.TextDelta("late")])
    assert out[:2] == OPEN
    assert isinstance(out[2], ev.Failure)
    assert "'ls'" in out[2].message


def test_only_usage_follows_a_stop() -> None:
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


def test_queued_events_lost_by_a_failure_are_reported() -> None:
    out = guard([*OPEN, ev.TextDelta("later"), ev.Failure("gone")])
    assert kinds(out) == ["lost"]
    assert out[-1] == ev.Failure("gone")


def test_ten_thousand_equal_ids_are_made_unique_in_linear_time() -> None:
    events: list[ev.Event] = [event for n in range(10_000) for event in call(n, id="functions.ls:0")]
    ids = {event.id for event in guard(events, limits=il.Limits(calls=10_000)) if isinstance(event, ev.CallStart)}
    assert len(ids) == 10_000


def test_every_event_type_has_handlers_for_both_states() -> None:
    assert set(guard_module._OPEN_HANDLERS) == set(guard_module._STOPPED_HANDLERS) == set(get_args(ev.Event))


# ── delivery, reasoning, limits ─────────────────────────────────────────────────────────────────────────────────────


def test_whole_delivery_emits_only_complete_valid_calls() -> None:
    events = [*call(0, '{"a":'), *call(1, '{"b":1}'), *call(2, "[]"), start(3), ev.ArgsDelta(3, "{"), ev.Stop("length")]
    out = guard(events, delivery="whole")
    reply = il.fold(out)
    assert reply.calls == [Call("id1", "ls", '{"b":1}')]
    assert kinds(out) == ["call-withheld", "call-withheld", "cut-short", "call-withheld"]
    assert reply.stop_reason == "length"


def test_whole_delivery_buffers_a_call_until_its_end() -> None:
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
def test_reasoning_policies(policy: Any, expected: list[ev.Event]) -> None:
    out = guard([ev.ReasoningDelta("a"), ev.TextDelta("b"), ev.Stop("stop")], reasoning=policy)
    assert [event for event in out if isinstance(event, ev.TextDelta | ev.ReasoningDelta)] == expected
    assert kinds(out) == (["reasoning-dropped"] if policy == "drop" else [])


def test_arguments_over_the_limit_end_the_call() -> None:
    events: list[ev.Event] = [start(0), ev.ArgsDelta(0, "123456"), ev.ArgsDelta(0, "7"), ev.CallEnd(0), *call(1)]
    out = guard(events, limits=il.Limits(args=5))
    assert [(c.arguments, c.complete) for c in il.fold(out).calls] == [("12345", False), ("{}", True)]
    assert kinds(out) == ["over-limit"]
    failed = guard(events, limits=il.Limits(args=5, over="error"))
    assert [type(event) for event in failed[:3]] == [ev.CallStart, ev.ArgsDelta, ev.Failure]


def test_queued_call_over_the_limit_is_truncated_but_not_the_open_call() -> None:
    events: list[ev.Event] = [start(0), start(1), ev.ArgsDelta(1, "123456"), ev.ArgsDelta(1, "7"), ev.CallEnd(1)]
    out = guard([*events, ev.ArgsDelta(0, "{}"), ev.CallEnd(0), ev.Stop("tool_calls")], limits=il.Limits(held=5))
    reply = il.fold(out)
    assert [(c.arguments, c.complete) for c in reply.calls] == [("{}", True), ("", False)]
    assert kinds(out) == ["over-limit", "stop-reason"]
    assert reply.stop_reason == "length", "an incomplete call makes it length"


def test_truncated_queued_call_does_not_affect_others() -> None:
    big: list[ev.Event] = [start(0), ev.ArgsDelta(0, "{"), start(1), ev.ArgsDelta(1, "1234567"), ev.TextDelta("text")]
    rest: list[ev.Event] = [*call(2, "[]"), ev.CallEnd(1), ev.ArgsDelta(0, "}"), ev.CallEnd(0)]
    reply = il.fold(guard([*big, *rest, ev.Stop("stop")], limits=il.Limits(held=20)))
    assert [(c.arguments, c.complete) for c in reply.calls] == [("{}", True), ("1234567", True), ("[]", True)]
    reply = il.fold(guard([*big, *rest, ev.Stop("stop")], limits=il.Limits(held=6)))
    assert [(c.arguments, c.complete) for c in reply.calls] == [("{}", True), ("", False), ("[]", True)]
    assert reply.text == "text"


def test_queued_text_over_the_limit_ends_the_open_call() -> None:
    events: list[ev.Event] = [start(0), ev.TextDelta("123456"), ev.ArgsDelta(0, "{}"), ev.CallEnd(0), ev.Stop("stop")]
    reply = il.fold(guard(events, limits=il.Limits(held=5)))
    assert reply.text == "123456"
    assert [(c.arguments, c.complete) for c in reply.calls] == [("", False)]
    assert isinstance(guard(events, limits=il.Limits(held=5, over="error"))[1], ev.Finding)
