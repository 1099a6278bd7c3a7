"""Unit tests for the reader and the emitter of the chat wire: events, exactness of chunks, and frames."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from interlingua import events as ev
from interlingua.core.options import Limits
from interlingua.wires.openai_chat.chunk_reader import ChatReader
from interlingua.wires.openai_chat.emitter import ChatEmitter
from interlingua.wires.openai_chat.tool_call_assembler import ToolCallAssembler
from tests.support.chat_scenarios import USAGE, call_delta, call_start, choice, chunk, without_keys
from tests.support.sdk import Json, frames

BEGIN = ev.Begin("gen-1", "m", 1763198400)
BEGUN = chunk(choice({"role": "assistant", "content": ""}), model="m")


def rows(table: dict[str, tuple[Any, ...]]) -> Any:
    return [pytest.param(*values, id=name) for name, values in table.items()]


def plain(events: list[ev.Event]) -> list[Any]:
    """Replace each finding by its kind, so that tests do not depend on messages."""
    return [event.kind if isinstance(event, ev.Finding) else event for event in events]


# ── reader ────────────────────────────────────────────────────────────────────────────────────────────────────────

FIRST: dict[str, tuple[Json, list[Any], bool]] = {
    "role": (choice({"role": "assistant", "content": ""}), [BEGIN], True),
    "text": (choice({"role": "assistant", "content": "a"}), [BEGIN, ev.TextDelta("a")], True),
    "no role": (choice({"content": "a"}), [BEGIN, ev.TextDelta("a")], True),
    "all in one": (
        choice({"role": "assistant", "content": "a", "reasoning": "b"}, "stop"),
        [BEGIN, ev.ReasoningDelta("b"), ev.TextDelta("a"), ev.Stop("stop")],
        True,
    ),
}


@pytest.mark.parametrize(("raw_choice", "events", "exact"), rows(FIRST))
def test_read_first_chunk(raw_choice: Json, events: list[Any], exact: bool) -> None:
    read = ChatReader().read(chunk(raw_choice, model="m"))
    assert [(result.index, plain(result.events)) for result in read.choices] == [(0, events)]
    assert read.exact == exact


DELTAS: dict[str, tuple[Any, list[Any], bool]] = {
    "nothing": ({}, [], True),
    "null": (None, [], False),
    "not an object": ("a", [], False),
    "text": ({"content": "a"}, [ev.TextDelta("a")], True),
    "no text": ({"content": None}, [], True),
    "content that is not a string": ({"content": 5}, ["bad-chunk"], False),
    "parts": ({"content": [{"text": "a"}, "?", {"thinking": "b"}]}, [ev.ReasoningDelta("b"), ev.TextDelta("a")], False),
    "repeated role": ({"role": "assistant", "content": "a"}, [ev.TextDelta("a")], False),
    "no role": ({"role": None, "content": "a"}, [ev.TextDelta("a")], True),
    "refusal": ({"refusal": "a"}, [ev.RefusalDelta("a")], True),
    "reasoning": ({"reasoning": "a"}, [ev.ReasoningDelta("a")], True),
    "reasoning_content": ({"reasoning_content": "a", "reasoning": None}, [ev.ReasoningDelta("a")], True),
    "reasoning twice": ({"reasoning_content": "a", "reasoning": "a"}, [ev.ReasoningDelta("a")], True),
    "reasoning_content empty": ({"reasoning_content": "", "reasoning": "a"}, [ev.ReasoningDelta("a")], True),
    "reasoning_details": (
        {"reasoning_details": [{"text": "a"}, {"summary": "b"}, {"data": "c"}, "d"]},
        [ev.ReasoningDelta("ab"), ev.Seal("openai-chat", {"reasoning_details": [{"data": "c"}]})],
        True,
    ),
    "several signatures": (
        {"reasoning": "abc", "reasoning_details": [{"text": "ab", "signature": "S"}, {"data": "D"}, {"text": "c"}]},
        [
            ev.ReasoningDelta("ab"),
            ev.Seal("openai-chat", {"reasoning_details": [{"signature": "S"}]}),
            ev.Seal("openai-chat", {"reasoning_details": [{"data": "D"}]}),
            ev.ReasoningDelta("c"),
        ],
        True,
    ),
    "a signature for another text": (
        {"reasoning": "abc", "reasoning_details": [{"text": "a", "signature": "S"}]},
        [ev.ReasoningDelta("abc"), ev.Seal("openai-chat", {"reasoning_details": [{"signature": "S"}]})],
        True,
    ),
    "unknown": ({"audio": {"x": 1}}, [], True),
    "no calls": ({"tool_calls": None, "function_call": None}, [], True),
    "empty calls": ({"tool_calls": []}, [], True),
    "calls that are not a list": ({"tool_calls": "x"}, ["bad-chunk"], False),
    "both kinds of calls": (
        {"tool_calls": [call_start("f", "{}")], "function_call": {"name": "f", "arguments": "{}"}},
        ["function-call", ev.CallStart(0, "call_1", "f"), ev.ArgsDelta(0, "{}"), ev.CallEnd(0)],
        False,
    ),
}


@pytest.mark.parametrize(("delta", "events", "exact"), rows(DELTAS))
def test_read_delta(delta: Any, events: list[Any], exact: bool) -> None:
    reader = ChatReader()
    reader.read(BEGUN)
    read = reader.read(chunk(choice(delta), model="m"))
    assert [plain(result.events) for result in read.choices] == [events]
    assert read.exact == exact


FINISHES: dict[str, tuple[Any, list[Any], bool]] = {
    "none": (None, [], True),
    "empty": ("", [], False),
    "stop": ("stop", [ev.Stop("stop")], True),
    "length": ("length", [ev.Stop("length")], True),
    "tool_calls": ("tool_calls", [ev.Stop("tool_calls")], True),
    "content_filter": ("content_filter", [ev.Stop("content_filter")], True),
    "function_call": ("function_call", ["unknown-finish-reason", ev.Stop("tool_calls")], False),
    "max_tokens": ("MAX_TOKENS", ["unknown-finish-reason", ev.Stop("length")], False),
    "unknown": ("eot", ["unknown-finish-reason", ev.Stop("stop")], False),
    "not a string": (["stop"], ["unknown-finish-reason", ev.Stop("stop")], False),
}


@pytest.mark.parametrize(("finish", "events", "exact"), rows(FINISHES))
def test_read_finish_reason(finish: Any, events: list[Any], exact: bool) -> None:
    reader = ChatReader()
    reader.read(BEGUN)
    read = reader.read(chunk(choice({}, finish), model="m"))
    assert [plain(result.events) for result in read.choices] == [events]
    assert read.exact == exact


USAGE_EVENT = ev.Usage(11, 5, native=USAGE)
DETAILED = {
    "prompt_tokens": 9,
    "completion_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 7},
    "completion_tokens_details": {"reasoning_tokens": 6},
    "cost": 0.1,
}
BOOM = {"message": "boom", "type": "server_error", "code": 500}

CHUNKS: dict[str, tuple[Json, list[Any], bool]] = {
    "usage alone": (chunk(usage=USAGE), [USAGE_EVENT], True),
    "usage in detail": (chunk(usage=DETAILED), [ev.Usage(9, 8, 7, 6, DETAILED)], True),
    "usage of DeepSeek": (
        chunk(usage={"prompt_cache_hit_tokens": 3}),
        [ev.Usage(cached=3, native={"prompt_cache_hit_tokens": 3})],
        True,
    ),
    "usage null": (chunk(choice({}), usage=None), [], True),
    "usage that is not an object": (chunk(choice({}), usage=5), [], True),
    "usage in the choice": (chunk(choice({}, usage=USAGE)), [USAGE_EVENT], False),
    "usage without choices": (without_keys(chunk(usage=USAGE), "choices"), [USAGE_EVENT], False),
    "no object": (without_keys(chunk(choice({})), "object"), [], False),
    "another object type without content": (chunk(object="", prompt_filter_results=[]), [], True),
    "choices null": ({**chunk(), "choices": None}, [], False),
    "a choice without an index": (chunk(without_keys(choice({}), "index")), [], False),
    "a choice that is not an object": (chunk(7, choice({})), ["bad-chunk"], False),
    "choices that are not a list": ({**chunk(), "choices": "x"}, ["bad-chunk"], False),
    "error": ({"error": BOOM}, [ev.Failure("boom", "server_error", 500, BOOM)], True),
    "error with choices": (
        chunk(choice({}, "error"), error={"message": "boom"}),
        [ev.Failure("boom", native={"message": "boom"})],
        True,
    ),
    "error as text": ({"error": "boom"}, [ev.Failure("boom", native={"message": "boom"})], False),
    "error without a message": ({"error": {"x": 1}}, [ev.Failure("the upstream failed", native={"x": 1})], False),
    "error null": ({**chunk(choice({})), "error": None}, [], True),
}


@pytest.mark.parametrize(("raw_chunk", "common", "exact"), rows(CHUNKS))
def test_read_chunk(raw_chunk: Json, common: list[Any], exact: bool) -> None:
    reader = ChatReader()
    reader.read(BEGUN)
    read = reader.read(raw_chunk)
    assert plain(read.common) == common
    assert read.exact == exact


def test_error_in_choice_fails_only_that_choice() -> None:
    read = ChatReader().read(chunk(choice({}, error={"message": "boom"}), choice({}, "error", index=1), model="m"))
    assert [result.events[-1] for result in read.choices] == [
        ev.Failure("boom", native={"message": "boom"}),
        ev.Failure("the upstream stopped with an error", native={"message": "the upstream stopped with an error"}),
    ]
    assert not read.exact


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Entries = list[Any]
F, G = ev.CallStart(0, "call_1", "f"), ev.CallStart(1, "call_2", "g")


def args(text: str, index: int = 0) -> ev.ArgsDelta:
    return ev.ArgsDelta(index, text)


END, END_1 = ev.CallEnd(0), ev.CallEnd(1)

CALLS: dict[str, tuple[list[tuple[Entries, list[Any], bool]], list[Any]]] = {
    "well-formed": (
        [
            ([call_start("f")], [F], True),
            ([call_delta("{")], [args("{")], True),
            ([call_delta("}")], [args("}"), END], True),
            ([call_start("g", "{}", 1, "call_2")], [G, args("{}", 1), END_1], True),
        ],
        [],
    ),
    "no arguments": ([([call_start("f")], [F], True)], [args("{}"), END]),
    "null": ([([call_start("f", None)], [F], False)], [args("{}"), END]),
    "null as text": ([([call_start("f", "nu")], [F], False), ([call_delta("ll")], [], False)], [args("{}"), END]),
    "not JSON": (
        [([call_start("f", "Par")], [F], False), ([call_delta("is")], [], False)],
        [args("Paris"), "bad-arguments", END],
    ),
    "an array": ([([call_start("f", "[1]")], [F, args("[1]"), "bad-arguments", END], True)], []),
    "an object": ([([call_start("f", {"a": 1})], [F, "arguments-as-value", args('{"a":1}'), END], False)], []),
    "truncated": ([([call_start("f", '{"a')], [F, args('{"a')], True)], []),
    "white space around": (
        [
            ([call_start("f", " \n")], [F], False),
            ([call_delta(' {"a":')], [args('{"a":')], False),
            ([call_delta("1} ")], [args("1}"), END], False),
        ],
        [],
    ),
    "white space after": ([([call_start("f", "{}")], [F, args("{}"), END], True), ([call_delta(" ")], [], False)], []),
    "more after": (
        [([call_start("f", "{}")], [F, args("{}"), END], True), ([call_delta("}")], ["after-arguments"], False)],
        [],
    ),
    "more after, in one": ([([call_start("f", '{}{"a":1}')], [F, args("{}"), "after-arguments", END], False)], []),
    "no type": ([([without_keys(call_start("f"), "type")], ["no-type", F], False)], [args("{}"), END]),
    "no id": (
        [([without_keys(call_start("f"), "id")], ["no-id", ev.CallStart(0, None, "f")], False)],
        [args("{}"), END],
    ),
    "late id": (
        [
            ([without_keys(call_start("f"), "id")], ["no-id", ev.CallStart(0, None, "f")], False),
            ([call_delta("{", id="call_1")], ["late-id", args("{")], False),
        ],
        [],
    ),
    "repeated id": (
        [
            ([call_start("f")], [F], True),
            ([call_delta("{", id="call_1")], ["repeated-id", args("{")], False),
            ([call_delta("}", id="call_1")], [args("}"), END], False),
        ],
        [],
    ),
    "another id with every entry": (
        [
            ([call_start("f")], [F], True),
            ([call_delta("{", id="x")], ["changed-id", args("{")], False),
            ([call_delta('"a": ', id="y")], [args('"a": ')], False),
        ],
        [],
    ),
    "null and empty fields": (
        [
            ([call_start("f")], [F], True),
            (
                [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{"}}],
                [args("{")],
                False,
            ),
            ([{"index": 0, "id": "", "type": "", "function": {"name": "", "arguments": "}"}}], [args("}"), END], False),
        ],
        [],
    ),
    "late name": (
        [
            ([call_start(None, "{")], [], False),
            (
                [{"index": 0, "type": "function", "function": {"name": "f", "arguments": "}"}}],
                [F, args("{"), args("}"), END],
                False,
            ),
        ],
        [],
    ),
    "id first, then the name": (
        [([{"index": 0, "id": "call_1"}], [], False), ([without_keys(call_start("f"), "id")], [F], False)],
        [args("{}"), END],
    ),
    "no name": ([([call_start(None, "{}")], [], False)], ["call-without-name", ev.TextDelta("{}")]),
    "a blank name": ([([call_start(" ", "{}")], [], False)], ["call-without-name", ev.TextDelta("{}")]),
    "another call of the same length on one index, without ids": (
        [
            (
                [call_start("f", '{"a": "one"}', id=None)],
                ["no-id", ev.CallStart(0, None, "f"), args('{"a": "one"}'), END],
                False,
            ),
            (
                [call_start("f", '{"a": "two"}', id=None)],
                ["shared-index", "no-id", ev.CallStart(1, None, "f"), args('{"a": "two"}', 1), ev.CallEnd(1)],
                False,
            ),
        ],
        [],
    ),
    "no function": ([([{"index": 0, "id": "x", "type": "custom"}], [], False)], ["call-without-name"]),
    "entry that is not an object": ([([None], ["bad-chunk"], False)], []),
    "index from 1": (
        [([call_start("f", index=1)], ["renumbered", F], False), ([call_delta("{", 1)], [args("{")], False)],
        [],
    ),
    "no index, by order": (
        [
            ([call_start("f", "{", None)], ["no-index", F, args("{")], False),
            ([call_delta("}", None)], [args("}"), END], False),
            ([call_start("g", "{}", None, "call_2")], ["no-index", G, args("{}", 1), END_1], False),
        ],
        [],
    ),
    "no index, by id": (
        [
            (
                [call_start("f", "{", None), call_start("g", "{", None, "call_2")],
                ["no-index", F, args("{"), "no-index", G, args("{", 1)],
                False,
            ),
            ([call_delta("}", None, id="call_1")], ["repeated-id", args("}"), END], False),
        ],
        [],
    ),
    "index in the arguments only": (
        [
            ([call_start("f", "", None)], ["no-index", F], False),
            ([call_delta('{"a":')], [args('{"a":')], True),
            ([call_delta("1}")], [args("1}"), END], True),
        ],
        [],
    ),
    "index in the arguments only, from 1": (
        [
            ([call_start("f", "", None)], ["no-index", F], False),
            ([call_delta("{}", 1)], [args("{}"), END], False),
            ([call_start("g", "", None, "call_2")], ["no-index", G], False),
            ([call_delta("{", 2)], [args("{", 1)], False),
            ([call_delta("}", 2)], [args("}", 1), END_1], False),
        ],
        [],
    ),
    "index in the arguments only, two calls first": (
        [
            ([call_start("f", "", None), call_start("g", "", None, "call_2")], ["no-index", F, "no-index", G], False),
            ([call_delta("{", 0)], [args("{")], True),
            ([call_delta("{", 1)], [args("{", 1)], True),
            ([call_delta("}", 0)], [args("}"), END], True),
            ([call_delta("}", 1)], [args("}", 1), END_1], True),
        ],
        [],
    ),
    "index in the arguments only, two calls first, from 1": (
        [
            ([call_start("f", "", None), call_start("g", "", None, "call_2")], ["no-index", F, "no-index", G], False),
            ([call_delta('{"a":', 1)], [], False),
            ([call_delta("1}", 1)], [], False),
            ([call_delta("{}", 2)], [args('{"a":'), args("1}"), END, args("{}", 1), END_1], False),
        ],
        [],
    ),
    "index in the arguments only, the second call first": (
        [
            ([call_start("f", "", None), call_start("g", "", None, "call_2")], ["no-index", F, "no-index", G], False),
            ([call_delta('{"b": 2}', 1)], [], False),
            ([call_delta('{"a": 1}', 0)], [args('{"b": 2}', 1), END_1, args('{"a": 1}'), END], True),
        ],
        [],
    ),
    "index in the arguments only, of one of two calls": (
        [
            ([call_start("f", "", None), call_start("g", "", None, "call_2")], ["no-index", F, "no-index", G], False),
            ([call_delta('{"b": 2}', 1)], [], False),
        ],
        ["no-such-call"],
    ),
    "index in the arguments only, found by the id": (
        [
            ([call_start("f", "", None), call_start("g", "", None, "call_2")], ["no-index", F, "no-index", G], False),
            ([call_delta("{}", 1, id="call_2")], ["repeated-id", args("{}", 1), END_1], False),
            ([call_delta("{", 0)], [args("{")], True),
        ],
        [],
    ),
    "index in the arguments only, of a complete call": (
        [
            ([call_start("f", "{}", None)], ["no-index", F, args("{}"), END], False),
            ([call_delta("{}")], ["after-arguments"], False),
        ],
        [],
    ),
    "index 0 in the arguments of every call": (
        [
            ([call_start("f", "", None)], ["no-index", F], False),
            ([call_delta("{}")], [args("{}"), END], True),
            ([call_start("g", "", None, "call_2")], ["no-index", G], False),
            ([call_delta('{"b":')], [args('{"b":', 1)], False),
            ([call_delta("2}")], [args("2}", 1), END_1], False),
        ],
        [],
    ),
    "no index in the start, the id and the name again": (
        [
            ([call_start("f", "", None)], ["no-index", F], False),
            ([call_start("f", "{}")], ["repeated-id", "repeated-name", args("{}"), END], False),
        ],
        [],
    ),
    "one index, found by the id": (
        [
            ([call_start("f", "")], [F], True),
            ([call_start("g", "", id="call_2")], ["shared-index", G], False),
            ([call_delta("{", id="call_1")], ["repeated-id", args("{")], False),
            ([call_delta("{", id="call_2")], ["repeated-id", args("{", 1)], False),
            ([call_delta("}", id="call_1")], [args("}"), END], False),
            ([call_delta("}", id="call_2")], [args("}", 1), END_1], False),
        ],
        [],
    ),
    "one index, no ids, another name": (
        [
            ([call_start("f", "", id=None)], ["no-id", ev.CallStart(0, None, "f")], False),
            (
                [call_start("g", '{"b": 2}', id=None)],
                ["shared-index", "no-id", ev.CallStart(1, None, "g"), args('{"b": 2}', 1), END_1],
                False,
            ),
        ],
        [args("{}"), END],
    ),
    "index that is a string": (
        [
            ([call_start("f", "", "0")], ["renumbered", F], False),
            ([call_delta("{}", "0")], [args("{}"), END], False),
            ([call_start("g", "{", "1", "call_2")], ["renumbered", G, args("{", 1)], False),
            ([call_delta("}", "1")], [args("}", 1), END_1], False),
        ],
        [],
    ),
    "late id, on the index": (
        [
            ([call_start("f", "{", id=None)], ["no-id", ev.CallStart(0, None, "f"), args("{")], False),
            ([call_delta("", id="call_1")], ["late-id"], False),
            ([call_delta("}", None, id="call_1")], ["no-index", args("}"), END], False),
        ],
        [],
    ),
    "late id, no index": (
        [
            ([call_start("f", "{", None, None)], ["no-index", "no-id", ev.CallStart(0, None, "f"), args("{")], False),
            ([call_delta("}", None, id="call_1")], ["late-id", args("}"), END], False),
        ],
        [],
    ),
    "no index and no id, repeated name": (
        [
            ([call_start("f", "{", None, None)], ["no-index", "no-id", ev.CallStart(0, None, "f"), args("{")], False),
            ([call_start("f", "}", None, None)], ["repeated-name", args("}"), END], False),
            (
                [call_start("f", "{}", None, None)],
                ["no-index", "no-id", ev.CallStart(1, None, "f"), args("{}", 1), END_1],
                False,
            ),
        ],
        [],
    ),
    "no index and no id, two in one chunk": (
        [
            (
                [call_start("f", "", None, None), call_start("f", "", None, None)],
                ["no-index", "no-id", ev.CallStart(0, None, "f"), "no-index", "no-id", ev.CallStart(1, None, "f")],
                False,
            )
        ],
        [args("{}"), END, args("{}", 1), END_1],
    ),
    "one index, another id": (
        [
            ([call_start("f", "{}")], [F, args("{}"), END], True),
            ([call_start("g", "{}", id="call_2")], ["shared-index", G, args("{}", 1), END_1], False),
        ],
        [],
    ),
    "one index, another id, the name later": (
        [
            ([call_start("f", "{}")], [F, args("{}"), END], True),
            ([{"index": 0, "id": "call_2", "type": "function"}], ["shared-index"], False),
            ([{"index": 0, "function": {"name": "g", "arguments": "{}"}}], ["no-type", G, args("{}", 1), END_1], False),
        ],
        [],
    ),
    "one index, no ids": (
        [
            ([call_start("f", "{}", id=None)], ["no-id", ev.CallStart(0, None, "f"), args("{}"), END], False),
            (
                [call_start("f", "{}", id=None)],
                ["shared-index", "no-id", ev.CallStart(1, None, "f"), args("{}", 1), END_1],
                False,
            ),
        ],
        [],
    ),
    "arguments resent at the end": (
        [
            ([call_start("f", '{"a":')], [F, args('{"a":')], True),
            ([call_delta("1}")], [args("1}"), END], True),
            ([call_start("f", '{"a":1}')], ["repeated-id", "repeated-name", "after-arguments"], False),
        ],
        [],
    ),
    "arguments resent at the end, without an id": (
        [
            ([call_start("f", '{"a":1}')], [F, args('{"a":1}'), END], True),
            ([call_start("f", '{"a":1}', id=None)], ["repeated-name", "after-arguments"], False),
            (
                [call_start("f", '{"a":2}', id="")],
                ["shared-index", "no-id", ev.CallStart(1, None, "f"), args('{"a":2}', 1), END_1],
                False,
            ),
        ],
        [],
    ),
    "arguments resent in each delta": (
        [
            ([call_start("f", '{"a')], [F, args('{"a')], True),
            ([call_delta('{"a": {')], ["resent-arguments", args('": {')], False),
            ([call_delta('{"a": {"a": {')], [args('"a": {')], False),
            ([call_delta('{"a": {"a": {}}}')], [args("}}}"), END], False),
        ],
        [],
    ),
    "arguments that contain their own prefix": (
        [
            ([call_start("f", '{"a":')], [F, args('{"a":')], True),
            ([call_delta('{"a":1}}')], [args('{"a":1}}'), END], True),
        ],
        [],
    ),
    "extra fields": (
        [([call_start("f", "{", x=1)], [ev.CallStart(0, "call_1", "f", {"x": 1}), args("{")], True)],
        [],
    ),
}


@pytest.mark.parametrize(("chunks", "at_finish"), rows(CALLS))
def test_read_calls(chunks: list[tuple[Entries, list[Any], bool]], at_finish: list[Any]) -> None:
    reader = ChatReader()
    reader.read(BEGUN)
    for entries, events, exact in chunks:
        read = reader.read(chunk(choice({"tool_calls": entries}), model="m"))
        assert (plain(read.choices[0].events), read.exact) == (events, exact), entries
    read = reader.read(chunk(choice({}, "stop"), model="m"))
    assert plain(read.choices[0].events) == [*at_finish, ev.Stop("stop")]
    assert read.exact == (not at_finish)


@pytest.mark.parametrize("first_index", [0, 1])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_arguments_with_an_index_find_their_call_without_one_in_every_order(count: int, first_index: int) -> None:
    """Each call is a start without an index and two pieces of arguments with one; all orders of these are tried."""
    for order in sorted(set(itertools.permutations(list(range(count)) * 3))):
        entries = [
            call_start(f"f{call}", "", None, f"id{call}")
            if position == order.index(call)
            else call_delta(
                f"{call}}}" if call in order[order.index(call) + 1 : position] else '{"n":', call + first_index
            )
            for position, call in enumerate(order)
        ]
        starts = [entry["id"] for entry in entries if "id" in entry]
        if starts != sorted(starts):
            continue  # the upstream counts the calls in the order of their starts
        reader = ChatReader()
        chunks = [chunk(choice({"tool_calls": [entry]}), model="m") for entry in entries]
        arguments = dict.fromkeys(range(count), "")
        for event in (event for body in chunks for event in reader.read(body).choices[0].events):
            if isinstance(event, ev.ArgsDelta):
                arguments[event.index] += event.text
        assert arguments == {call: f'{{"n":{call}}}' for call in range(count)}, order


def test_index_may_be_counted_per_kind_of_tool() -> None:
    reader = ChatReader()
    reader.read(BEGUN)
    custom = {"index": 0, "id": "call_2", "type": "custom", "custom": {"name": "g", "input": "a"}}
    entries = [call_start("f", "{"), custom, call_delta("}"), {"index": 0, "custom": {"input": "b"}}]
    events = [
        event
        for entry in entries
        for event in reader.read(chunk(choice({"tool_calls": [entry]}), model="m")).choices[0].events
    ]
    assert plain(events) == [
        *(F, args("{"), "renumbered", ev.CallStart(1, "call_2", "g", {"custom": {}})),
        *(args('{"input":"', 1), args("a", 1), args("}"), END, args("b", 1)),
    ]


def test_input_of_custom_tools_finds_its_call_by_order() -> None:
    reader = ChatReader()
    reader.read(BEGUN)
    starts = [{"id": f"id{n}", "type": "custom", "custom": {"name": f"f{n}", "input": ""}} for n in range(2)]
    inputs = [{"index": 1, "custom": {"input": "def"}}, {"index": 0, "custom": {"input": "abc"}}]
    chunks = [chunk(choice({"tool_calls": [entry]}), model="m") for entry in [*starts, *inputs]]
    chunks.append(chunk(choice({}, "tool_calls"), model="m"))
    texts = {0: "", 1: ""}
    for event in (event for body in chunks for event in reader.read(body).choices[0].events):
        if isinstance(event, ev.ArgsDelta):
            texts[event.index] += event.text
    assert texts == {0: '{"input":"abc"}', 1: '{"input":"def"}'}


@pytest.mark.parametrize(
    "entry",
    [
        lambda n: {"index": n},
        lambda n: {"id": f"id{n}", "function": {"arguments": "{"}},
        lambda n: call_start("f", "", None, f"id{n}"),
        lambda n: call_start("f", "", None, f"id{n}") if n < 4000 else call_delta("{}", 7999 - n),
        lambda n: call_start("f", "", None, f"id{n}") if n < 4000 else call_delta("{}", None),
    ],
    ids=["indexes", "ids", "starts", "starts, then arguments in reverse order", "starts, then arguments"],
)
def test_matching_of_many_entries_is_linear(entry: Any) -> None:
    assembler = ToolCallAssembler(Limits())
    started = time.process_time()
    assembler.read([entry(n) for n in range(8000)])
    assembler.finish()
    assert time.process_time() - started < 2.0, "a scan of all calls for each entry takes longer"


def test_close_flushes_truncated_calls() -> None:
    reader = ChatReader()
    reader.read(
        chunk(choice({"role": "assistant", "tool_calls": [call_start("f", '"a')]}), choice({}, index=1), model="m")
    )
    assert reader.close(finished=False) == [(0, [args('"a')]), (1, [])]
    assert reader.close(finished=True) == [(0, []), (1, [])], "nothing is buffered after that"


@pytest.mark.parametrize(
    ("over", "events"),
    [
        ("flush", ["over-limit", ev.TextDelta("12345678")]),
        ("error", [ev.Failure("a call without a name is longer than 7 characters")]),
    ],
)
def test_call_without_name_is_buffered_up_to_limit(over: Any, events: list[Any]) -> None:
    reader = ChatReader(Limits(held=7, over=over))
    reader.read(chunk(choice({"role": "assistant", "tool_calls": [call_start(None, "1234")]}), model="m"))
    read = reader.read(chunk(choice({"tool_calls": [call_delta("5678")]}), model="m"))
    assert plain(read.choices[0].events) == events


# ── emitter ───────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = {"id": "chatcmpl-interlingua", "object": "chat.completion.chunk", "created": 0, "model": ""}
ROLE = {"role": "assistant", "content": ""}

EMITTED: dict[str, tuple[list[ev.Event], list[Json]]] = {
    "nothing yet": ([], [choice(ROLE)]),
    "text": ([ev.TextDelta("a")], [choice({**ROLE, "content": "a"})]),
    "thinking": (
        [ev.ReasoningDelta("a"), ev.TextDelta("b")],
        [choice({**ROLE, "reasoning_content": "a"}), choice({"content": "b"})],
    ),
    "refusal": ([ev.RefusalDelta("a")], [choice({**ROLE, "refusal": "a"})]),
    "a call": (
        [F, args("{}"), END, ev.Stop("tool_calls")],
        [
            choice({**ROLE, "tool_calls": [call_start("f")]}),
            choice({"tool_calls": [call_delta("{}")]}),
            choice({}, "tool_calls"),
        ],
    ),
    "extra fields": (
        [ev.CallStart(0, "call_1", "f", {"x": 1, "function": {"y": 2}})],
        [
            choice(
                {
                    **ROLE,
                    "tool_calls": [{**call_start("f"), "x": 1, "function": {"name": "f", "arguments": "", "y": 2}}],
                }
            )
        ],
    ),
    "no stop reason": ([ev.Stop(None)], [choice(ROLE, "stop")]),
}


@pytest.mark.parametrize(("events", "choices"), rows(EMITTED))
def test_emit(events: list[ev.Event], choices: list[Json]) -> None:
    assert frames(ChatEmitter().emit([(0, events)])) == [{**HEAD, "choices": [entry]} for entry in choices]


def test_emitter_repeats_envelope() -> None:
    emitter = ChatEmitter()
    (first,) = frames(emitter.emit([(0, [ev.Begin("x", "m", 5), ev.TextDelta("a")])]))
    assert first == {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "choices": [choice({**ROLE, "content": "a"})],
    }
    (second,) = frames(emitter.emit([(1, [ev.TextDelta("b")])]))
    assert second == {**first, "choices": [choice({**ROLE, "content": "b"}, index=1)]}


def test_forward_sends_missing_role_before_first_chunk() -> None:
    emitter = ChatEmitter()
    raw_chunk = {**BEGUN, "choices": [choice({"content": "a"}), choice({"role": "assistant"}, index=1)]}
    forwarded = emitter.forward(raw_chunk, b"raw")
    assert forwarded is not None
    assert forwarded.endswith(b"raw")
    assert frames(forwarded.removesuffix(b"raw")) == [
        {**BEGUN, "choices": [choice({"role": "assistant", "content": ""})]}
    ]
    assert emitter.forward(raw_chunk, b"raw") == b"raw"


def test_emit_after_forward_sends_no_second_role() -> None:
    emitter = ChatEmitter()
    assert emitter.forward(BEGUN, b"raw") == b"raw"
    assert frames(emitter.emit([(0, [ev.Stop("stop")])])) == [{**BEGUN, "choices": [choice({}, "stop")]}]


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        (USAGE_EVENT, USAGE),
        (
            ev.Usage(9, 8, 7, 6, cache_written=1),
            {
                "prompt_tokens": 9,
                "completion_tokens": 8,
                "total_tokens": 17,
                "prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
        ),
    ],
    ids=["native", "from another wire"],
)
def test_usage_is_in_last_frame(usage: ev.Usage, written: Json) -> None:
    events: list[ev.Event] = [ev.TextDelta("a"), ev.Stop("stop")]
    emitted = frames(ChatEmitter().emit([(0, events)], [usage]))
    assert [frame.get("usage") for frame in emitted] == [None, written]
    assert frames(ChatEmitter().emit([], [usage])) == [{**HEAD, "choices": [], "usage": written}]


def test_finish_and_fail() -> None:
    assert ChatEmitter().finish() == b"data: [DONE]\n\n"
    assert frames(ChatEmitter().fail(ev.Failure("boom"))) == [
        {"error": {"message": "boom", "type": "api_error", "code": None}}
    ]
    assert frames(ChatEmitter().fail(ev.Failure("boom", native=BOOM))) == [{"error": BOOM}]
