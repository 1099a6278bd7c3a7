"""Tools that are the same are kept once, and nobody can tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.gateway.http.request_body import (
    MAX_CACHED_TOOL_LIST_BYTES,
    MAX_CACHED_TOOL_LISTS,
    ToolListCache,
    decode_body,
)


def body(tools: Any) -> dict[str, Any]:
    return decode_body(json.dumps({"model": "m", "tools": tools}).encode())


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def test_the_same_tools_are_one_object() -> None:
    shared = ToolListCache()
    first, second = (shared.share_tools(body([tool("a"), tool("b")])) for _ in range(2))
    assert first == second == body([tool("a"), tool("b")])
    assert first["tools"] is second["tools"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([tool("a")], [tool("b")]),
        ([tool("a", limit=1)], [tool("a", limit=1.0)]),
        ([tool("a", limit=1)], [tool("a", limit=True)]),
        ([{"name": "a", "x": 1}], [{"x": 1, "name": "a"}]),
    ],
)
def test_what_differs_stays_apart(one: list[Any], other: list[Any]) -> None:
    shared = ToolListCache()
    shared.share_tools(body(one))
    assert json.dumps(shared.share_tools(body(other))) == json.dumps(body(other))


@pytest.mark.parametrize(
    "tools", [None, [], {}, "x", [{"name": "\ud800"}], [tool("a", x="y" * MAX_CACHED_TOOL_LIST_BYTES)]], ids=str
)
def test_what_cannot_be_kept_stays_as_it_is(tools: Any) -> None:
    shared = ToolListCache()
    given = {"model": "m", "tools": tools}
    assert shared.share_tools(given)["tools"] is tools
    assert not shared._lists


def test_only_the_last_ones_are_kept() -> None:
    shared = ToolListCache()
    for n in range(MAX_CACHED_TOOL_LISTS + 3):
        shared.share_tools(body([tool("often")]))
        shared.share_tools(body([tool(f"t{n}")]))
    assert len(shared._lists) == MAX_CACHED_TOOL_LISTS
    kept = [json.loads(text)[0]["name"] for text in shared._lists]
    assert "often" in kept
    assert "t0" not in kept
