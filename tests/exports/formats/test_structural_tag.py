"""Structural tags: what is written for a grammar, and that a reader of tags accepts the same texts."""

from __future__ import annotations

from typing import Any

import pytest

import interlingua as il
from interlingua.core.reply import Call, Reply
from interlingua.errors import BadInput, NotExpressible
from interlingua.exports.exporter import export
from interlingua.exports.formats.structural_tag import write_structural_tag
from interlingua.exports.formats.structural_tag_reader import read_structural_tag
from interlingua.exports.grammar import (
    Chars,
    Grammar,
    Json,
    Literal,
    Node,
    Repeat,
    Rule,
    Text,
    choice,
    optional,
    sequence,
)
from interlingua.exports.matcher import Matcher
from interlingua.exports.value_types import Boolean
from interlingua.parsing.dialect import Dialect
from tests.support.export_cases import DIALECTS, TOOLS, call_id, closed, function

A, B = Literal("a"), Literal("b")
DIGIT = Chars((("0", "9"),))
a: dict[str, Any] = {"type": "const_string", "value": "a"}
b: dict[str, Any] = {"type": "const_string", "value": "b"}

FORMATS: list[tuple[Node, dict[str, Any]]] = [
    (A, a),
    (Text(("<x>",)), {"type": "any_text", "excludes": ["<x>"]}),
    (Json(Boolean()), {"type": "json_schema", "json_schema": {"type": "boolean"}}),
    (sequence(A, Repeat(B)), {"type": "sequence", "elements": [a, {"type": "star", "content": b}]}),
    (choice(A, B), {"type": "or", "elements": [a, b]}),
    (optional(A), {"type": "optional", "content": a}),
    (Repeat(A, 1), {"type": "plus", "content": a}),
    (Repeat(A, 2, 3), {"type": "repeat", "min": 2, "max": 3, "content": a}),
    (Repeat(A, 2), {"type": "repeat", "min": 2, "max": -1, "content": a}),
    (Repeat(A, 1, 1, ","), a),
    (
        Repeat(A, 1, None, ","),
        {
            "type": "tags_with_separator",
            "tags": [{"type": "tag", "begin": "", "content": a, "end": ""}],
            "separator": ",",
            "at_least_one": True,
        },
    ),
    (Repeat(DIGIT, 1, 6), {"type": "grammar", "grammar": "root ::= [0-9]{1,6}\n"}),
    (
        sequence(A, choice(sequence(Rule("r"), B), A)),
        {
            "type": "sequence",
            "elements": [a, {"type": "grammar", "grammar": 'root ::= r-0 "b" | "a"\nr-0 ::= "[" r-0? "]"\n'}],
        },
    ),
    (
        choice(sequence(A, Text(("x",)), Rule("r"))),
        {
            "type": "sequence",
            "elements": [
                a,
                {"type": "any_text", "excludes": ["x"]},
                {"type": "grammar", "grammar": 'root ::= r-0\nr-0 ::= "[" r-0? "]"\n'},
            ],
        },
    ),
    (
        Repeat(sequence(Text(('"',)), DIGIT)),
        {
            "type": "grammar",
            "grammar": "root ::= (text-0 [0-9])*\n"
            'text-0 ::= TagDispatch(loop_after_dispatch=false, excludes=("\\""))\n',
        },
    ),
]
RULES = {"r": sequence(Literal("["), optional(Rule("r")), Literal("]"))}


@pytest.mark.parametrize(("node", "format_"), FORMATS)
def test_written_formats(node: Node, format_: dict[str, Any]) -> None:
    tag = write_structural_tag(Grammar(node, RULES), [])
    assert tag == {"type": "structural_tag", "format": format_}
    read_structural_tag(tag)


def test_tag_of_a_call() -> None:
    weather = function("get_weather", closed({"city": {"type": "string"}}, "city"))
    exported = export("structural-tag", "hermes", [weather], "required", parallel=False, thinking=False)
    assert exported.content == {
        "type": "structural_tag",
        "format": {
            "type": "sequence",
            "elements": [
                {"type": "const_string", "value": '<tool_call>\n{"name": "get_weather", "arguments": '},
                {
                    "type": "json_schema",
                    "json_schema": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                        "additionalProperties": False,
                    },
                },
                {"type": "const_string", "value": "}\n</tool_call>"},
            ],
        },
    }
    assert exported.notes == ()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_read_tag_accepts_what_render_writes(dialect: Dialect) -> None:
    calls = [
        Call(call_id(dialect, "get_weather", 0), "get_weather", '{"city": "Zürich", "unit": "c", "tags": ["a", "b"]}'),
        Call(call_id(dialect, "now", 1), "now", "{}"),
    ]
    written = il.render(Reply(parts=[*calls]), dialect)
    matcher = Matcher(read_structural_tag(export("structural-tag", dialect, TOOLS, "required").content))
    assert matcher.accepts(written)
    assert not matcher.accepts(written.replace("get_weather", "get_wether"))


def tag(begin: str, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


TEXT = {"type": "any_text"}
READ: list[tuple[dict[str, Any], list[str], list[str]]] = [
    (tag("<a>", TEXT, "</a>"), ["<a></a>", "<a>x</a>"], ["<a>", "<a>x</a></a>"]),
    (tag("<a>", a, ["</a>", "."]), ["<a>a</a>", "<a>a."], ["<a>a"]),
    (
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [tag("<a>", a, "</a>")], "excludes": ["!"]},
        ["", "x", "x<a>a</a>y<a>a</a>"],
        ["<a>b</a>", "x!", "<a"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [tag("<a>", a, "</a>")], "at_least_one": True},
        ["<a>a</a>", "<a>a</a>y"],
        ["", "x", "x<a>a</a>"],
    ),
    (
        {"type": "tags_with_separator", "tags": [tag("<a>", a, "</a>")], "separator": ";", "stop_after_first": True},
        ["", "<a>a</a>"],
        ["<a>a</a>;<a>a</a>"],
    ),
    ({"type": "repeat", "min": 1, "max": 2, "content": a}, ["a", "aa"], ["", "aaa"]),
]


@pytest.mark.parametrize(("format_", "accepted", "rejected"), READ)
def test_formats_that_only_others_write(format_: dict[str, Any], accepted: list[str], rejected: list[str]) -> None:
    matcher = Matcher(read_structural_tag({"type": "structural_tag", "format": format_}))
    assert [text for text in (*accepted, *rejected) if matcher.accepts(text)] == accepted


@pytest.mark.parametrize(
    "value", [None, {}, {"type": "structural_tag"}, {"type": "structural_tag", "format": {"type": "token", "token": 1}}]
)
def test_not_a_structural_tag(value: Any) -> None:
    with pytest.raises(BadInput) as error:
        read_structural_tag(value)
    assert error.value.hint


@pytest.mark.parametrize(
    "grammar", ['root ::= "a', "root ::= (b", "root ::= b", "a ::= b", "root = a", 'root ::= "a" )']
)
def test_not_a_grammar(grammar: str) -> None:
    with pytest.raises(BadInput):
        read_structural_tag({"type": "structural_tag", "format": {"type": "grammar", "grammar": grammar}})


@pytest.mark.parametrize("value", [0.1, 2**53 + 1])
def test_numbers_that_engines_would_round_are_written_as_text(value: float) -> None:
    tool = function("f", closed({"x": {"enum": [value, "a"]}}, "x"))
    tag = export("structural-tag", "hermes", [tool], "required", thinking=False).content
    [_, arguments, _] = tag["format"]["elements"]
    assert arguments["type"] == "grammar"
    assert f'("{value}" | ' in arguments["grammar"]


def test_half_of_a_surrogate_pair_is_not_expressible() -> None:
    tool = function("f", closed({"x": {"enum": ["\ud800"]}}))
    with pytest.raises(NotExpressible, match="half of a surrogate pair"):
        export("structural-tag", "glm47", [tool], "required")
