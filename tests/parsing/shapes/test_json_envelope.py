"""json_envelope: streaming, limits, and round trips."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from tests.support.budget import examples
from tests.support.harness import tool

DIALECTS = [dialect for dialect in il.dialects() if isinstance(dialect.shape, JsonEnvelope)]
by_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)

# ── streaming ────────────────────────────────────────────────────────────────────────────────────────────────────────


def steps(dialect: str, *pieces: str, **options: Any) -> list[list[str]]:
    """Return the output for each piece: the name of a call, pieces of its arguments, its end."""
    parser = il.Parser(dialect, **options)
    return [[_describe(event) for event in parser.feed(piece)] for piece in pieces]


def _describe(event: ev.Event) -> str:
    match event:
        case ev.CallStart():
            return event.name
        case ev.ArgsDelta() | ev.TextDelta():
            return event.text
        case ev.CallEnd():
            return "end"
        case _:
            return type(event).__name__


def test_name_is_emitted_when_known_and_arguments_are_streamed() -> None:
    pieces = ['<tool_call>\n{"na', 'me": "ls"', ', "arguments": ', '{"a": "b', 'c"', "}", "}\n</tool_call>"]
    assert steps("hermes", *pieces) == [[], ["ls"], [], ['{"a": "b'], ['c"'], ["}", "end"], []]


def test_arguments_before_the_name_are_buffered() -> None:
    pieces = ['<tool_call>{"arguments": {"a"', ": 1}", ', "name": ', '"ls"', "}"]
    assert steps("hermes", *pieces) == [[], [], [], ["ls", '{"a": 1}', "end"], []]


def test_bare_call_is_emitted_when_its_arguments_begin() -> None:
    pieces = ['{"name": "ls"', ', "parameters"', ": ", '{"a', '": 1}', "}"]
    assert steps("llama3_json", *pieces, tools=[tool("ls")]) == [[], [], [], ["ls", '{"a'], ['": 1}', "end"], []]


def test_json_text_is_emitted_before_its_end() -> None:
    pieces = ['{"ans', 'wer"', ': "x', "y"]
    assert steps("llama3_json", *pieces, tools=[tool("ls")]) == [[], [], ['{"answer":', ' "x'], ["y"]]


def test_call_without_its_marker_is_emitted_at_its_end() -> None:
    pieces = ['{"name": "ls", "arguments"', ': {"a": 1}', "}"]
    assert steps("hermes", *pieces, tools=[tool("ls")]) == [[], [], ["ls", '{"a": 1}', "end", "Finding"]]


def test_only_short_arguments_are_buffered_until_the_id() -> None:
    limits = il.Options(limits=il.Limits(header=60))
    pieces = ['[TOOL_CALLS][{"name": "ls", "arguments": {"a": 1}', ', "id": "', 'abcdefgh0"', "}]"]
    assert steps("mistral_v3", *pieces, options=limits) == [[], [], ["ls", '{"a": 1}', "end"], []]
    pieces = ['[TOOL_CALLS][{"name": "ls", "arguments": {"a": "', "x" * 53, "y", '"}', ', "id": "abcdefgh0"}]']
    head = '{"a": "' + "x" * 53
    assert steps("mistral_v3", *pieces, options=limits) == [[], [], ["ls", head, "y"], ['"}', "end"], ["Finding"]]


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LATE = '<tool_call>{"a": "%s", "name": "ls", "arguments": {}}</tool_call>Done.'


@pytest.mark.parametrize(
    ("text", "limits", "parts", "findings"),
    [
        (LATE % ("x" * 9), {"header": 12}, [], ["over-limit", "broken-header"]),
        (LATE % ("x" * 30), {"header": 20}, [], ["over-limit", "broken-header"]),
        (LATE % ("x" * 9), {"header": 40}, [Call("", "ls", "{}"), Text("Done.")], ["after-arguments"]),
        (
            '<tool_call>{"arguments": {"a": 1}, "name": "ls"}</tool_call>',
            {"held": 5},
            [],
            ["over-limit", "broken-header"],
        ),
        (
            '<tool_call>{"name": "ls", "arguments": {"a": "xyz"}}</tool_call>',
            {"args": 9},
            [Call("", "ls", '{"a": "xy', complete=False), Text('z"}}</tool_call>')],
            ["over-limit", "bad-arguments"],
        ),
        (
            '<tool_call>[{"a": "xxxxxxxxxxxxxxxx"}, {"name": "ls", "arguments": {}}]</tool_call>',
            {"header": 12},
            [],
            ["over-limit", "over-limit", "broken-header"],
        ),
    ],
)
def test_limits(text: str, limits: dict[str, int], parts: list[Any], findings: list[str]) -> None:
    options = il.Options(limits=msgspec.structs.replace(il.Limits(), **limits))
    replies = []
    for pieces in ([text], list(text)):
        parser = il.Parser("hermes", options=options)
        replies.append(il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close()))
    whole, streamed = replies
    assert whole == streamed
    assert [_anonymous(part) for part in whole.parts] == (parts or [Text(text)])
    assert [finding.kind for finding in whole.findings] == findings


def _anonymous(part: Any) -> Any:
    return Call("", part.name, part.arguments, part.complete) if isinstance(part, Call) else part


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

strings = st.lists(
    st.sampled_from([*(marker for dialect in DIALECTS for marker in dialect.markers), '"', "\\", "{", "}", "]", "\n"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    max_size=5,
).map("".join)
arguments = st.dictionaries(strings, strings | st.integers() | st.lists(strings, max_size=2), max_size=3)
named = st.tuples(strings.filter(str.strip), arguments, st.sampled_from([None, 2]))


@settings(max_examples=examples(60))
@given(st.sampled_from(DIALECTS), st.lists(named, min_size=1, max_size=3), st.booleans())
def test_round_trip(dialect: Dialect, drawn: list[Any], after_thinking: bool) -> None:
    calls = [Call("", name, json.dumps(args, indent=indent)) for name, args, indent in drawn]
    thinking: list[Part] = [Reasoning("Hm.")] if after_thinking and dialect.thinking else []
    written = il.render(Reply(parts=[*thinking, *calls]), dialect)
    offer = [tool(name) for name, _, _ in drawn]
    for tools in (None, offer):
        whole = il.parse(written, dialect, tools=tools)
        assert [_anonymous(part) for part in whole.parts] == [*thinking, *calls]
        assert not whole.findings


@by_dialect
def test_text_and_calls_are_separated(dialect: Dialect) -> None:
    parts: list[Part] = [Text("Let me look."), Call("", "ls", "{}"), Text("Done.")]
    whole = il.parse(il.render(Reply(parts=parts), dialect), dialect, tools=[tool("ls")])
    read = [_anonymous(part) for part in whole.parts]
    assert [part if isinstance(part, Call) else Text(part.text.strip()) for part in read] == parts


@by_dialect
def test_incomplete_call_is_written_without_its_end(dialect: Dialect) -> None:
    parts: list[Part] = [Call("", "ls", "{}"), Call("", "ls", '{"a": "b', complete=False)]
    whole = il.parse(il.render(Reply(parts=parts), dialect), dialect)
    assert [_anonymous(part) for part in whole.parts] == parts
    assert whole.stop_reason == "length"


@by_dialect
@pytest.mark.parametrize(
    "call", [Call("", " ", "{}"), Call("", "ls", "{"), Call("", "ls", "null"), Call("", "ls", "{} x")]
)
def test_call_that_would_be_parsed_differently_is_refused(dialect: Dialect, call: Call) -> None:
    with pytest.raises(RenderError):
        il.render(Reply(parts=[call]), dialect)


@pytest.mark.parametrize("call", ["{}", '{"name": $name}', '{"name": $name, "args": $args, "x": $x}', "$name $args $"])
def test_invalid_call_template_is_refused(call: str) -> None:
    with pytest.raises(UsageError):
        JsonEnvelope(open=("<x>",), call=call)


# ── native text in a structured name ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<tool_call>ls</tool_call>", "ls"),
        ('<tool_call>{"name": "ls", "arguments": {}}', "ls"),
        ('{"name": 3}', '{"name": 3}'),
        ("<tool_call>", "<tool_call>"),
    ],
)
def test_extract_name(text: str, name: str) -> None:
    grammar = get_dialect("hermes").grammar
    assert grammar is not None
    assert grammar.extract_name(text, ToolSet()) == name
