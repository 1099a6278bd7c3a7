"""Value types of JSON Schemas, and the schemas that are written from them."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import NotExpressible
from interlingua.exports.schema_reader import MAX_SCHEMAS, read_value_type
from interlingua.exports.schema_writer import write_schema
from interlingua.exports.value_types import (
    ANY_VALUE,
    Array,
    Boolean,
    Constant,
    Member,
    Null,
    Number,
    Object,
    Reference,
    String,
    Union,
    ValueType,
)

TYPES: list[tuple[Any, ValueType]] = [
    ({}, ANY_VALUE),
    (True, ANY_VALUE),
    (None, ANY_VALUE),
    ({"description": "free"}, ANY_VALUE),
    ({"type": "string"}, String()),
    ({"type": "STRING"}, String()),
    ({"type": "str"}, String()),
    ({"type": "unknown"}, ANY_VALUE),
    ({"type": "string", "minLength": 2, "maxLength": 5}, String(2, 5)),
    ({"type": "string", "minLength": "2"}, String()),
    ({"type": "number"}, Number()),
    ({"type": "integer", "minimum": 1}, Number(is_integer=True, minimum=1)),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, Number(is_integer=True, minimum=1, maximum=9)),
    ({"type": ["string", "null"]}, Union((String(), Null()))),
    ({"type": "boolean", "nullable": True}, Union((Boolean(), Null()))),
    ({"enum": ["a", 1]}, Constant(("a", 1))),
    ({"type": "string", "enum": ["a", 1]}, Constant(("a",))),
    ({"const": None}, Constant((None,))),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, Union((String(), Null()))),
    ({"anyOf": [{"type": "string"}, {}]}, ANY_VALUE),
    ({"type": "string", "anyOf": [{"maxLength": 3}, {"minLength": 7}]}, Union((String(0, 3), String(7)))),
    ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, String(0, 3)),
    (
        {"allOf": [{"properties": {"b": {"type": "null"}}}, {"properties": {"a": {"type": "null"}}}]},
        Object((Member("b", Null(), False), Member("a", Null(), False)), None),
    ),
    (
        {"properties": {"a": {"minLength": 2}}, "allOf": [{"properties": {"a": {"type": "string", "maxLength": 3}}}]},
        Object((Member("a", String(2, 3), False),), None),
    ),
    ({"properties": {"a": {"allOf": [{"type": "null"}, False]}}}, Object((), None)),
    ({"items": {"type": "string"}}, Array((), String())),
    ({"type": "array", "prefixItems": [{"type": "null"}], "items": False}, Array((Null(),), None)),
    ({"type": "array", "items": [{"type": "null"}], "additionalItems": False}, Array((Null(),), None)),
    ({"type": "array", "minItems": 1, "maxItems": 2}, Array((), ANY_VALUE, 1, 2)),
    ({"type": "object"}, Object((), ANY_VALUE)),
    ({"properties": {}}, Object((), None)),
    ({"properties": {"a": {"type": "null"}}}, Object((Member("a", Null(), False),), None)),
    ({"properties": {"a": {"type": "null"}}, "required": ["a"]}, Object((Member("a", Null(), True),), None)),
    ({"properties": {"a": False}}, Object((), None)),
    ({"type": "object", "required": ["a"]}, Object((Member("a", ANY_VALUE, True),), ANY_VALUE)),
    ({"type": "object", "additionalProperties": {"type": "null"}}, Object((), Null())),
]


@pytest.mark.parametrize(("schema", "type_"), TYPES)
def test_read(schema: Any, type_: ValueType) -> None:
    notes: list[str] = []
    assert read_value_type(schema, "f", notes) == type_
    assert notes == []


@pytest.mark.parametrize("type_", [type_ for _, type_ in TYPES])
def test_a_written_schema_is_read_as_the_same_type(type_: ValueType) -> None:
    assert read_value_type(write_schema(type_), "f", []) == type_


NOTES: list[tuple[Any, str]] = [
    ({"type": "string", "pattern": "x"}, "f: 'pattern' is not enforced"),
    ({"properties": {"a": {"items": {"format": "uuid"}}}}, "f.a[]: 'format' is not enforced"),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "f: 'oneOf' is enforced as 'anyOf'"),
    ({"$ref": "#/$defs/none"}, "f: '#/$defs/none' does not exist in the schema: any value is allowed"),
    ({"type": "number", "exclusiveMinimum": 0}, "f: the limit of 'exclusiveMinimum' itself is allowed"),
    (
        {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
        "f: the limit of 'exclusiveMaximum' itself is allowed",
    ),
    ({"allOf": [{"maxLength": 3}, {"maxLength": 5}]}, "f: only one of several 'maxLength' is enforced"),
    (
        {"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
        "f: 'maximum' is not enforced: engines read limits as floating-point numbers",
    ),
    (
        {"type": "number", "minimum": -(10**400)},
        "f: 'minimum' is not enforced: engines read limits as floating-point numbers",
    ),
    ({"enum": ["a", "bbb"], "maxLength": 2}, "f: 'maxLength' is not enforced beside 'enum' and 'const'"),
    (
        {"properties": {"a": {}}, "additionalProperties": False, "allOf": [{"properties": {"b": {}}}]},
        "f: 'additionalProperties' applies to all parts of 'allOf' together",
    ),
]


@pytest.mark.parametrize(("schema", "note"), NOTES)
def test_notes(schema: Any, note: str) -> None:
    notes: list[str] = []
    read_value_type(schema, "f", notes)
    assert notes == [note]


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}},
}


def test_a_definition_may_contain_itself() -> None:
    type_ = read_value_type(TREE, "f", [])
    assert isinstance(type_, Reference)
    assert isinstance(type_.type, Object)
    assert write_schema(type_) == {
        "$ref": "#/$defs/d0",
        "$defs": {
            "d0": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/d0"}, {"type": "null"}]}},
                "required": [],
                "additionalProperties": False,
            }
        },
    }


IMPOSSIBLE: dict[str, Any] = {
    "a reference to itself": {"$ref": "#"},
    "a union with itself": {"anyOf": [{"$ref": "#"}, {"type": "null"}], "$defs": {"x": {"$ref": "#"}}},
    "a required member of its own type": {"properties": {"x": {"$ref": "#"}}, "required": ["x"]},
    "no value": {"properties": {"x": False}, "required": ["x"]},
    "limits that exclude all": {"type": "integer", "minimum": 5, "maximum": 3},
    "more items than allowed": {"type": "array", "minItems": 2, "maxItems": 1},
    "unions of unions": {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"allOf": [{"anyOf": [{"allOf": [{"$ref": "#/$defs/a"}, {"minLength": 1}]}]}, {"minLength": 2}]}
        },
    },
    "too many": {"properties": {str(n): {"type": "null"} for n in range(MAX_SCHEMAS)}},
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_schemas_that_no_grammar_can_express(name: str) -> None:
    with pytest.raises(NotExpressible, match=r"^f: ") as error:
        read_value_type(IMPOSSIBLE[name], "f", [])
    assert error.value.hint
