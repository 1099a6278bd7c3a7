"""Bound on the work of validating arguments against schemas whose references multiply."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import interlingua as il
from interlingua.common.schema.validation import validation_errors
from interlingua.common.schema.validation_cost import MAX_EVALUATIONS, count_evaluations
from interlingua.core.reply import Call
from interlingua.errors import BadInput

Json = dict[str, Any]


def doubling_schema(count: int, keyword: str = "anyOf") -> Json:
    """Return a schema in which each definition refers twice to the next one."""
    definitions: Json = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(count)
    }
    definitions[f"d{count}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def recursive_schema(reference: str = "#/$defs/node", **fields: str) -> Json:
    """Return the schema of a tree with two alternatives per level, so that the depth of the value multiplies them."""
    branches = [{"properties": {"a": {"$ref": reference}}, "required": [name]} for name in "bc"]
    return {"$ref": reference, "$defs": {"node": {**fields, "anyOf": branches}}}


def nested(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {"a": value}
    return value


HOSTILE: dict[str, tuple[Json, Json]] = {
    "anyOf": (doubling_schema(26), {"a": 1}),
    "oneOf": (doubling_schema(26, "oneOf"), {"a": "x"}),
    "allOf": (doubling_schema(40, "allOf"), {"a": "x"}),
    "recursive": (recursive_schema(), nested(40)),
    "anchor": (recursive_schema("#node", **{"$anchor": "node"}), nested(40)),
    "id": (recursive_schema("node.json", **{"$id": "node.json"}), nested(40)),
    "items": (
        {"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [{"items": {"$ref": "#/$defs/n"}, "minItems": 2}] * 2}}},
        json.loads("[" * 40 + "]" * 40),
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_multiplying_references_are_refused_at_once(case: str) -> None:
    schema, arguments = HOSTILE[case]
    began = time.perf_counter()
    with pytest.raises(BadInput, match="references multiply") as raised:
        validation_errors(arguments, schema, "read")
    assert time.perf_counter() - began < 2
    assert raised.value.hint


def test_parse_of_a_call_refuses_multiplying_references() -> None:
    call = Call(id="1", name="read", arguments='{"a": 1}', complete=True)
    with pytest.raises(il.InterlinguaError, match="the schema of the tool 'read' cannot be used"):
        call.parse({"name": "read", "parameters": doubling_schema(26)})


@pytest.mark.parametrize("count", range(1, 17))
def test_time_to_validate_is_bounded(count: int) -> None:
    began = time.perf_counter()
    assert validation_errors({"a": 1}, doubling_schema(count), "read")
    assert validation_errors({"a": "x"}, doubling_schema(count), "read") == []
    assert time.perf_counter() - began < 3


@pytest.mark.parametrize(
    ("schema", "value", "count"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "x"}, 0),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {}}}, {}, 1),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {}}}, {"a": 1}, 3),
        ({"$ref": "#"}, {}, 2),
        ({"items": {"$ref": "#/$defs/b"}, "$defs": {"b": {"anyOf": [{}, True]}}}, [1, 2], 9),
        ({"$ref": "#/nowhere"}, 1, 2),
    ],
)
def test_count_of_evaluations(schema: Json, value: Any, count: int) -> None:
    assert count_evaluations(schema, value) == count


def test_long_list_of_a_referenced_type_is_validated() -> None:
    edit = {"type": "object", "properties": {"path": {"type": "string"}, "line": {"type": "integer"}}}
    schema = {"properties": {"edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}}}, "$defs": {"edit": edit}}
    edits = [{"path": f"file{n}", "line": n} for n in range(6000)]
    assert 20_000 < count_evaluations(schema, {"edits": edits}) < MAX_EVALUATIONS
    assert validation_errors({"edits": edits}, schema, "edit") == []
    assert validation_errors({"edits": [*edits, {"path": 1}]}, schema, "edit") == [
        "the arguments do not match the schema"
    ]
    assert validation_errors({"edits": [*edits[:1000], {"path": 1}]}, schema, "edit") == [
        "`edits[1000].path` should be a string but is 1"
    ]
