"""Tiny limits: above and just below them, every dialect returns the same reply for all cuts of its text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from tests.support.budget import examples
from tests.support.harness import tool

NAMES = [dialect.name for dialect in il.dialects() if dialect.shape] + ["detect"]
TOOLS = [tool("get_weather", {"city": "string", "days": "integer"}), tool("ls", ["path"])]
SCRAPS = [
    *('{"name": "get_weather", "arguments": ', '{"city": "Paris"}', '"arguments": {"city": "', '"id": "a1B2c3D4e"'),
    *("{", "}", "[", "]", '"', ",", ":", "{}", "null", "ls", "get_weather", "city", " ", "\n", "x" * 20, "Hello. "),
]
SIZES = st.integers(5, 40)
LIMITS = st.builds(il.Limits, header=SIZES, held=SIZES, args=SIZES, over=st.sampled_from(["flush", "error"]))


def _texts(name: str) -> st.SearchStrategy[str]:
    """Texts of the model, slices of them, and random sequences of its markers."""
    dialect = get_dialect(name)
    grammar = dialect.grammar
    openers = (*grammar.inner_markers, *grammar.first_openers(ToolSet(TOOLS))) if grammar else ()
    sample = dialect.sample or get_dialect("hermes").sample
    places = st.integers(0, len(sample))
    slices = st.tuples(places, places).map(lambda places: sample[min(places) : max(places)])
    soup = st.sampled_from(sorted({*dialect.markers, *openers, *SCRAPS}))
    return st.just(sample) | st.lists(slices | soup | soup, max_size=12).map("".join)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("name", NAMES)
def test_reply_does_not_depend_on_cuts(name: str) -> None:
    @settings(max_examples=examples(40))
    @given(_texts(name), LIMITS, st.sampled_from([None, TOOLS]), st.lists(st.integers(0, 400), max_size=5))
    def check(text: str, limits: il.Limits, tools: list[dict[str, object]] | None, cuts: list[int]) -> None:
        def parse_pieces(pieces: list[str]) -> il.Reply:
            parser = il.Parser(name, tools, options=il.Options(limits=limits))
            return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())

        uncut = parse_pieces([text])
        assert parse_pieces(list(text)) == uncut
        places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
        assert parse_pieces([text[start:end] for start, end in pairwise(places)]) == uncut

    check()


@pytest.mark.parametrize("args", ['{"path": "a long way down"}', '"a long way down"'])
def test_arguments_are_buffered_for_id_up_to_the_limit(args: str) -> None:
    text = f'[TOOL_CALLS][{{"name": "ls", "arguments": {args}, "id": "a1B2c3D4e"}}]'
    parser = il.Parser("mistral_v3", options=il.Options(limits=il.Limits(header=20, args=10, held=10)))
    reply = il.fold(parser.feed(text) + parser.close())
    assert (reply.calls[0].arguments, reply.calls[0].complete) == (args[:10], False)
    assert reply.text == text.split(args[:10])[1]  # nothing is lost
    assert [finding.kind for finding in reply.findings] == ["over-limit", "bad-arguments", "section-not-closed"]
