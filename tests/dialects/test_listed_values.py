"""Values that the schema lists, in every dialect with tagged params: whitespace around them is dropped."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua.core.reply import Call, Reply
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams

TAGGED = [dialect for dialect in il.dialects() if isinstance(dialect.shape, TaggedParams)]
MODE = {"enum": ["r", "w"]}
TOOL = il.Tool("open", {"type": "object", "properties": {"mode": MODE, "note": {"type": "string"}}})


def parsed_arguments(dialect: il.Dialect, arguments: dict[str, str]) -> object:
    written = il.render(Reply(parts=[Call("functions.open:0", "open", json.dumps(arguments))]), dialect)
    whole = il.parse(written, dialect, tools=[TOOL])
    parser = il.Parser(dialect, tools=[TOOL])
    streamed = il.fold([event for char in written for event in parser.feed(char)] + parser.close())
    assert streamed == whole
    return json.loads(whole.calls[0].arguments)


def test_there_are_tagged_dialects() -> None:
    assert len(TAGGED) > 10


@pytest.mark.parametrize("dialect", TAGGED, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("value", ["w", "\t\tw\r", " w \n"])
def test_whitespace_around_a_listed_value_is_dropped(value: str, dialect: il.Dialect) -> None:
    assert parsed_arguments(dialect, {"mode": value, "note": "w"}) == {"mode": "w", "note": "w"}


@pytest.mark.parametrize("dialect", TAGGED, ids=lambda dialect: dialect.name)
def test_whitespace_of_other_values_is_kept(dialect: il.Dialect) -> None:
    arguments = {"mode": " other ", "note": " w "}
    assert parsed_arguments(dialect, arguments) == arguments
