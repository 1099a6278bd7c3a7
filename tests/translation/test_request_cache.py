"""The cache of earlier requests: equal tool lists of a client share one object, and its memory is bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.translation.request_cache import (
    MAX_ALL_TOOL_LISTS_BYTES,
    MAX_TOOL_LIST_BYTES,
    MAX_TOOL_LISTS,
    Cut,
    RequestCache,
    TranslatedConversation,
    _find_whole,
)
from interlingua.translation.turn_translation import NO_CONVERSATION


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def encode(tools: Any) -> bytes:
    return json.dumps(tools).encode()


def test_equal_tool_lists_share_one_object() -> None:
    cache = RequestCache()
    first, second = (cache.share_tools("me", encode([tool("a"), tool("b")])) for _ in range(2))
    assert first is second
    assert first == [tool("a"), tool("b")]
    assert cache.share_tools("you", encode([tool("a"), tool("b")])) is not first, "another client"


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
    cache = RequestCache()
    cache.share_tools("me", encode(first))
    assert json.dumps(cache.share_tools("me", encode(second))) == json.dumps(second)


@pytest.mark.parametrize("tools", [None, [], {}, "x", [tool("a", x="y" * MAX_TOOL_LIST_BYTES)]], ids=str)
def test_tools_that_are_not_kept(tools: Any) -> None:
    cache = RequestCache()
    assert cache.share_tools("me", encode(tools)) == tools
    assert not cache._tool_lists


@pytest.mark.parametrize(("count", "size"), [(MAX_TOOL_LISTS, 1), (MAX_ALL_TOOL_LISTS_BYTES // 200_000, 199_900)])
def test_least_recently_used_lists_are_evicted(count: int, size: int) -> None:
    cache = RequestCache()
    often, *others = [encode([tool(f"t{n:03}", x="y" * size)]) for n in range(count + 3)]
    for encoded in others:
        cache.share_tools("me", often)
        cache.share_tools("me", encoded)
    kept = [cache.find_tools("me", encoded) is not None for encoded in (often, *others)]
    assert kept == [True, *3 * [False], *(count - 1) * [True]]


def test_tools_of_many_clients_are_kept() -> None:
    cache = RequestCache()
    lists = [cache.share_tools(f"client {n}", encode([tool("a")])) for n in range(100)]
    assert all(cache.share_tools(f"client {n}", encode([tool("a")])) is known for n, known in enumerate(lists))


class CountingBytes(bytes):
    """JSON of a conversation that counts with how many others it is compared from its beginning."""

    comparisons = 0

    def startswith(self, *args: Any) -> bool:
        self.comparisons += 1
        return super().startswith(*args)


def test_conversations_with_the_same_instructions_are_not_compared_from_their_beginning() -> None:
    instructions = b"x" * 10_000
    conversations = [
        TranslatedConversation(instructions + b"%06d" % number, (), [], (Cut(0, 0, 0, NO_CONVERSATION),), None)
        for number in range(100)
    ]
    source = CountingBytes(instructions + b"000070 and more")
    match = _find_whole(conversations, source)
    assert match is not None
    assert match.conversation is conversations[70]
    assert source.comparisons == 1
