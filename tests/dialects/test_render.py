"""Round trip in every dialect: parse(render(x)) == x."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.errors import RenderError
from tests.support.budget import examples
from tests.support.harness import USER_DIALECTS, tool

NATIVE = [*(dialect for dialect in il.dialects() if dialect.shape), *USER_DIALECTS.values()]
PARAMS = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "l": "array", "o": "object"}
TOOLS = [tool("save", PARAMS), tool("mcp__files-v2__list", ["s"]), tool("now", [])]

UNTYPED = {"minimax_m3": "leaves of a tree have no type where the schema has none, and an empty one may be a string"}

scraps = st.sampled_from(
    ["<", ">", "</", "|", "[", "]", "{", "}", "\\", '"', "'", "\n", " ", "&", "=", ",", ":", "0", "null", "é", "🚀"]
)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@cache  # hypothesis checks a new strategy at each use
def texts(dialect: il.Dialect) -> st.SearchStrategy[str]:
    inner = dialect.grammar.inner_markers if dialect.grammar else ()
    marks = st.sampled_from([*dialect.markers, *inner])
    return st.lists(words | scraps | marks, max_size=5).map("".join)


@cache
def values(dialect: il.Dialect) -> dict[str, st.SearchStrategy[Any]]:
    leaves = (
        st.booleans() | st.integers() | (st.sampled_from(["x", "y z"]) if dialect.name in UNTYPED else texts(dialect))
    )
    trees = st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from("kvw"), inner, min_size=1)
        ),
        max_leaves=4,
    )
    return {
        "s": texts(dialect),
        "i": st.integers(),
        "n": st.floats(allow_nan=False, allow_infinity=False),
        "b": st.booleans(),
        "l": st.lists(trees, max_size=3),
        "o": st.dictionaries(st.sampled_from("kvw"), trees, max_size=2),
    }


@cache
def prose(dialect: il.Dialect) -> st.SearchStrategy[str]:
    return texts(dialect).map(lambda text: text.strip()).filter(bool)


@cache
def call_lists(dialect: il.Dialect) -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
    save = st.fixed_dictionaries({}, optional=values(dialect)).map(lambda args: ("save", args))
    listing = st.fixed_dictionaries({"s": texts(dialect)}).map(lambda args: ("mcp__files-v2__list", args))
    return st.lists(save | listing | st.just(("now", {})), max_size=3)


@st.composite
def replies(draw: st.DrawFn, dialect: il.Dialect) -> Reply:
    calls = draw(call_lists(dialect))
    parts: list[Part] = []
    thinks = bool(dialect.thinking)
    if thinks and draw(st.booleans()):
        parts.append(Reasoning(draw(prose(dialect))))
    if draw(st.booleans()):
        parts.append(Text(draw(prose(dialect))))
    parts += [
        Call(f"functions.{name}:{n}", name, json.dumps(args, ensure_ascii=False))
        for n, (name, args) in enumerate(calls)
    ]
    return Reply(parts=parts)


def comparable(reply: Reply) -> dict[str, Any]:
    return {
        "calls": [(call.name, json.loads(call.arguments), call.complete) for call in reply.calls],
        "text": reply.text,
        "reasoning": reply.reasoning,
    }


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", NATIVE, ids=lambda dialect: dialect.name)
@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_render_parse_round_trip(dialect: il.Dialect, data: st.DataObject) -> None:
    reply = data.draw(replies(dialect))
    try:
        written = il.render(reply, dialect)
    except RenderError:
        reject()  # not renderable; the samples define what must be renderable
    parsed = il.parse(written, dialect, tools=TOOLS)
    assert comparable(parsed) == comparable(reply), written
    parser = il.Parser(dialect, tools=TOOLS)
    assert il.fold([event for char in written for event in parser.feed(char)] + parser.close()) == parsed
