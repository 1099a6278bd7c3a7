"""Calls in the format of each dialect, and texts that quote them, for the tests of quoted calls."""

from __future__ import annotations

from collections.abc import Iterator

import interlingua as il
from interlingua.core.reply import Call, Reply
from tests.support.cuts import random_pieces, two_piece_cuts
from tests.support.harness import USER_DIALECTS, tool

TOOLS = [tool("get_weather", {"city": "string", "days": "integer"}), tool("ls", ["path"])]
NATIVE = [*(dialect for dialect in il.dialects() if dialect.shape), *USER_DIALECTS.values()]
IDS = {"kimi_k2": "functions.get_weather:0"}
"""Ids in the format of a dialect whose header is the id."""


def write_call(dialect: il.Dialect, name: str = "get_weather", arguments: str = '{"city": "Paris"}') -> str:
    """Return a call as the model writes it."""
    return il.render(Reply(parts=[Call(IDS.get(dialect.name, "a1b2c3d4e"), name, arguments)]), dialect).strip("\n")


def cut_texts(text: str, cuts: int = 6) -> Iterator[list[str]]:
    """Yield the text whole, in characters, in random pieces and in some of its two-piece cuts."""
    yield [text]
    yield list(text)
    for seed in range(cuts):
        yield random_pieces(text, seed)
    yield from two_piece_cuts(text, cuts)


def parse_pieces(
    dialect: il.Dialect | str, pieces: list[str], tools: list[dict[str, object]] | None = TOOLS
) -> il.Reply:
    parser = il.Parser(dialect, tools=tools)
    return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())
