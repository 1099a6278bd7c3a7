"""Keywords of JSON Schema in every dialect: a grammar enforces them, or a note says that it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from interlingua.common.schema.validation import validation_errors
from interlingua.core.reply import Call, Reply
from interlingua.errors import NotExpressible, RenderError
from interlingua.exports.exporter import export
from interlingua.exports.matcher import Matcher
from interlingua.exports.reply_grammar import describe_reply
from interlingua.parsing.dialect import Dialect
from tests.support.export_cases import DIALECTS, call_id, closed, function
from tests.support.harness import find_dialect

PAIR = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}
SCHEMAS: dict[str, tuple[Any, list[Any]]] = {
    "pattern": ({"type": "string", "pattern": "^a+$"}, ["b", "aa"]),
    "length of strings": ({"type": "string", "minLength": 3, "maxLength": 4}, ["b", "aaa", "aaaaa"]),
    "limits of an integer": ({"type": "integer", "minimum": 3, "maximum": 20}, [2, 5, 21, -5]),
    "no negative integer": ({"type": "integer", "minimum": 0}, [-1, 0, 5]),
    "limits of a number": ({"type": "number", "minimum": 0.5, "maximum": 2}, [0.25, 1.5, 3]),
    "no negative number": ({"type": "number", "minimum": 0}, [-0.5, 1.5]),
    "exclusive limits": ({"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 2}, [0.5, 1.5, 2]),
    "number of items": ({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}, [[], ["a"]]),
    "limits of items": ({"type": "array", "items": {"type": "integer", "minimum": 1}}, [[0], [1], []]),
    "a tuple": ({**PAIR, "items": False}, [[0], [1, "a"], [], ["a"], [1, "a", 2]]),
    "a tuple of exactly two": ({**PAIR, "items": False, "minItems": 2}, [[0], [1, "a"], []]),
    "a tuple of at most one": ({**PAIR, "maxItems": 1}, [[0], [1, "a"], [], ["a"]]),
    "an enum of several types": ({"enum": ["a", 1, None, True]}, ["a", 1, None, True, "b", 2, False, "null"]),
    "const": ({"const": {"a": [1, "b"]}}, [{"a": [1, "b"]}, {"a": [1]}]),
    "not": ({"type": "string", "not": {"const": "x"}}, ["x", "y"]),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, [1, True, None, "a"]),
    "allOf": ({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}]}, [4, 7, 2]),
    "$ref": ({"$ref": "#/$defs/pair"}, [{"n": 1}, {"n": "a"}, {}]),
    "additionalProperties": (closed({"a": {"type": "string"}}, "a"), [{"a": "x"}, {"a": "x", "c": 1}, {}]),
    "a declared key beside others": (
        {"properties": {"a": {"type": "string"}}, "additionalProperties": True},
        [{"a": "x"}, {"a": "x", "c": 1}, {"a": 1}],
    ),
    "a string or an object": ({"type": ["string", "object"]}, ["a", {"b": 1}, {}, "{}", "[1]"]),
    "a string or strings": (
        {"type": ["string", "array"], "items": {"type": "string"}},
        ["a", ["b"], [], "[1]"],
    ),
    "a string or a closed object": (
        {"anyOf": [{"type": "string"}, closed({"a": {"type": "integer"}}, "a")]},
        ["a", {"a": 1}, {}, "{}"],
    ),
    "items that are strings or objects": (
        {"type": "array", "items": {"anyOf": [{"type": "string"}, closed({"a": {"type": "integer"}}, "a")]}},
        [["a", {"a": 1}], [{}], ["{}"]],
    ),
    "a string or a limited integer": ({"type": ["string", "integer"], "minimum": 0}, ["a", 5, -5, "-5"]),
    "a short string or an integer": ({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]}, ["abcd", 1]),
}
DEFINITIONS = {"pair": closed({"n": {"type": "integer"}}, "n")}
by_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def parameters(schema: Any) -> dict[str, Any]:
    return {**closed({"x": schema}, "x"), "$defs": DEFINITIONS}


def silent_differences(dialect: Dialect, schema: Any, values: list[Any]) -> Iterator[str]:
    """Yield the values on which schema and grammar differ, if the grammar has no note."""
    tool = function("f", parameters(schema))
    try:
        matcher = Matcher(describe_reply(dialect, [tool], "required").grammar)
        if export("gbnf", dialect, [tool], "required").notes:
            return
    except NotExpressible:
        return
    for value in values:
        call = Call(call_id(dialect, "f", 0), "f", json.dumps({"x": value}))
        try:
            written = il.render(Reply(parts=[call]), dialect)
        except RenderError:
            continue
        fits = not validation_errors({"x": value}, parameters(schema), "f")
        if not matcher.accepts(written):
            if fits:
                yield f"{value!r} fits, and is not accepted"
            continue
        [read] = il.parse(written, dialect, tools=[tool]).calls
        if not read.complete or validation_errors(json.loads(read.arguments), parameters(schema), "f"):
            yield f"{value!r} is accepted, and read as {read.arguments}"


@pytest.mark.one_row_in(9)
@by_dialect
def test_what_is_not_enforced_is_noted(dialect: Dialect) -> None:
    differences = {name: list(silent_differences(dialect, *row)) for name, row in SCHEMAS.items()}
    assert {name: found for name, found in differences.items() if found} == {}


NOTES = [
    ("hermes", "no negative integer", ()),
    ("hermes", "limits of an integer", ("the limits of numbers are not enforced",)),
    ("functiongemma", "length of strings", ("the length of strings is not enforced",)),
    ("indented_lines", "length of strings", ("the length of strings is not enforced",)),
    (
        "qwen3_coder",
        "a string or a closed object",
        ("a string that looks like a value of another allowed type is read as one, whatever its limits",),
    ),
    (
        "qwen3_coder",
        "a declared key beside others",
        ("where undeclared keys are possible, a declared key may have any of their values",),
    ),
    ("qwen3_coder", "a string or an object", ()),
    ("deepseek_v32", "a string or a closed object", ()),  # an attribute distinguishes strings
]


@pytest.mark.parametrize(("dialect", "schema", "notes"), NOTES)
def test_notes(dialect: str, schema: str, notes: tuple[str, ...]) -> None:
    tool = function("f", parameters(SCHEMAS[schema][0]))
    assert export("gbnf", find_dialect(dialect), [tool], "required").notes == notes


FREE_PARAMS: dict[str, tuple[Any, bool]] = {
    "no schema": (None, True),
    "no properties": ({"type": "object"}, True),
    "additionalProperties": ({"properties": {"a": {}}, "additionalProperties": True}, True),
    "additionalProperties of one type": ({"additionalProperties": {"type": "null"}}, True),
    "a union with an open object": ({"anyOf": [closed({}), {"type": "object"}]}, True),
    "properties alone": ({"properties": {"a": {"type": "null"}}}, False),
    "a closed object": (closed({}), False),
}


@pytest.mark.parametrize(("schema", "has_free_params"), FREE_PARAMS.values(), ids=FREE_PARAMS)
def test_a_note_names_tools_whose_params_are_free(schema: Any, has_free_params: bool) -> None:
    for dialect in ("hermes", "glm47"):
        notes = export("structural-tag", dialect, [function("f", schema)], "required").notes
        assert (notes == ("f: params that the schema does not declare are possible",)) is has_free_params
