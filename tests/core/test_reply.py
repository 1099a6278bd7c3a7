"""fold: adjacent deltas become one part, and an open call at the end is incomplete."""

from __future__ import annotations

import msgspec

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply import Call, Reasoning, Text


def test_adjacent_deltas_become_one_part() -> None:
    reply = il.fold(
        [
            ev.Begin("id", "model", 1),
            ev.ReasoningDelta("a"),
            ev.ReasoningDelta("b"),
            ev.TextDelta("c"),
            ev.TextDelta(""),
            ev.TextDelta("d"),
            ev.CallStart(0, "x", "f"),
            ev.ArgsDelta(0, '{"a"'),
            ev.ArgsDelta(0, ":1}"),
            ev.CallEnd(0),
            ev.TextDelta("e"),
            ev.RefusalDelta("no"),
            ev.Usage(1, 2),
            ev.Finding("k", "m"),
            ev.Stop("tool_calls"),
        ]
    )
    assert reply.parts == [Reasoning("ab"), Text("cd"), Call("x", "f", '{"a":1}'), Text("e")]
    assert (reply.text, reply.reasoning, reply.calls) == ("cde", "ab", [Call("x", "f", '{"a":1}')])
    assert (reply.refusal, reply.stop_reason, reply.usage) == ("no", "tool_calls", ev.Usage(1, 2))
    assert reply.findings == [ev.Finding("k", "m")]


def test_empty_text_creates_no_part() -> None:
    assert il.fold([ev.TextDelta(""), ev.ReasoningDelta("")]).parts == []


def test_open_call_at_the_end_is_incomplete() -> None:
    reply = il.fold([ev.CallStart(0, None, "f"), ev.ArgsDelta(0, "{"), ev.Failure("gone")])
    assert reply.parts == [Call("", "f", "{", complete=False)]
    assert reply.failure == ev.Failure("gone")
    assert reply.stop_reason is None


def test_reply_json_round_trip() -> None:
    reply = il.fold([ev.TextDelta("a"), ev.CallStart(0, "x", "f"), ev.CallEnd(0, complete=False), ev.Stop("length")])
    text = msgspec.json.encode(reply)
    assert b'"kind":"call"' in text
    assert msgspec.json.decode(text, type=il.Reply) == reply
