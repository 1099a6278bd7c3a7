"""Cache of tool lists: equal lists share one object, requests stay equal."""

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
from interlingua.gateway.settings.schema import RequestLimits


def body(tools: Any) -> dict[str, Any]:
    return decode_body(json.dumps({"model": "m", "tools": tools}).encode(), RequestLimits())


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def test_equal_tool_lists_share_one_object() -> None:
    cache = ToolListCache()
    first, second = (cache.share_tools(body([tool("a"), tool("b")])) for _ in range(2))
    assert first == second == body([tool("a"), tool("b")])
    assert first["tools"] is second["tools"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([tool("a")], [tool("b")]),
        ([tool("a", limit=1)], [tool("a", limit=1.0)]),
        ([tool("a", limit=1)], [tool("a", limit=True)]),
        ([{"name": "a", "x": 1}], [{"x": 1, "name": "a"}]),
    ],
)
def test_different_tool_lists_are_not_shared(first: list[Any], second: list[Any]) -> None:
    cache = ToolListCache()
    cache.share_tools(body(first))
    assert json.dumps(cache.share_tools(body(second))) == json.dumps(body(second))


@pytest.mark.parametrize(
    "tools", [None, [], {}, "x", [{"name": "\ud800"}], [tool("a", x="y" * MAX_CACHED_TOOL_LIST_BYTES)]], ids=str
)
def test_uncacheable_tools_are_returned_unchanged(tools: Any) -> None:
    cache = ToolListCache()
    request = {"model": "m", "tools": tools}
    assert cache.share_tools(request)["tools"] is tools
    assert not cache._lists


def test_least_recently_used_lists_are_evicted() -> None:
    cache = ToolListCache()
    for n in range(MAX_CACHED_TOOL_LISTS + 3):
        cache.share_tools(body([tool("often")]))
        cache.share_tools(body([tool(f"t{n}")]))
    assert len(cache._lists) == MAX_CACHED_TOOL_LISTS
    kept = [json.loads(text)[0]["name"] for text in cache._lists]
    assert "often" in kept
    assert "t0" not in kept
