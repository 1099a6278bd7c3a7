"""Dialects as JSON: the schema describes them, and the examples are what `parse` reads."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua.common.schema.validation import validation_errors
from interlingua.exports.formats.dialect_json import dialect_schema, write_dialect
from tests.support.harness import USER_DIALECTS

DIALECTS = [*il.dialects(), *USER_DIALECTS.values()]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_schema_describes_dialect(dialect: il.Dialect) -> None:
    written = json.loads(json.dumps(write_dialect(dialect)))
    assert validation_errors(written, dialect_schema(), "dialect") == []


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_examples_are_read_as_described(dialect: il.Dialect) -> None:
    written = write_dialect(dialect)
    assert "text" in [example["name"] for example in written["examples"]]
    for example in written["examples"]:
        reply = il.parse(example["text"], dialect, tools=written["tools"])
        calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.calls]
        assert (calls, reply.text, reply.reasoning) == tuple(
            example["reply"][key] for key in ("calls", "text", "reasoning")
        )
        assert ("call" in example["name"]) <= bool(calls or not dialect.shape), example["name"]


def test_a_missing_field_does_not_fit_the_schema() -> None:
    written = write_dialect(il.dialects()[0])
    del written["dialect"]["noise"]
    assert validation_errors(written, dialect_schema(), "dialect") != []
