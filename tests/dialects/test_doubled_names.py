"""Names that the model writes twice, as in `get_weather.get_weather`: in every dialect that can write them."""

from __future__ import annotations

import pytest

import interlingua as il
from tests.support.harness import random_cut_variants, tool

NAMES = [dialect.name for dialect in il.list_dialects() if dialect.grammar is not None]
DOUBLED = "get_weather.get_weather"


@pytest.mark.parametrize("name", NAMES)
def test_doubled_name_is_the_offered_tool(name: str) -> None:
    texts = []
    for id in (f"functions.{DOUBLED}:0", "abcdefgh1", ""):
        try:
            call = il.Call(id=id, name=DOUBLED, arguments='{"city": "Paris"}')
            texts.append(il.render(il.Reply(parts=[call]), name))
        except il.InterlinguaError:
            continue
    if not texts:
        pytest.skip("the dialect has no such names")
    text = texts[0]
    for _, pieces in [("whole", [text]), ("per character", list(text)), *random_cut_variants(text, 5)]:
        parser = il.Parser(name, [tool("get_weather", ["city"])])
        reply = il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
        assert [(call.name, call.arguments) for call in reply.calls] == [("get_weather", '{"city": "Paris"}')]
