"""Deferred tools for upstreams of the Messages API."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.translation.request_translation import prepare_request

MESSAGES = "anthropic-messages"
SCHEMA = {"type": "object", "properties": {}}
FOUND, HIDDEN = ({"name": name, "input_schema": SCHEMA, "defer_loading": True} for name in ("found", "hidden"))
SEARCH = {"name": "ToolSearch", "input_schema": SCHEMA}
CONVERSATION = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}]},
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "tool_reference", "tool_name": "found"}],
            }
        ],
    },
]
OTHERS = ["moonshot", "deepseek", "zai", "minimax", "vllm"]


def body(**fields: Any) -> dict[str, Any]:
    tools = [SEARCH, FOUND, HIDDEN]
    return {"model": "m", "max_tokens": 100, "tools": tools, "messages": CONVERSATION, **fields}


def without_deferral(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if name != "defer_loading"}


@pytest.mark.parametrize("upstream", OTHERS)
def test_found_tools_are_offered_and_others_are_not(upstream: str) -> None:
    prepared = prepare_request(body(), MESSAGES, MESSAGES, upstream=upstream)
    assert prepared.body["tools"] == [SEARCH, without_deferral(FOUND)]
    assert [tool.name for tool in prepared.tools] == ["ToolSearch", "found"]
    [result] = prepared.body["messages"][-1]["content"]
    text = "[the tool found can be called from now on]"
    assert result["content"] in (text, [{"type": "text", "text": text}])
    assert {"deferred-tool", "content-as-text"} <= {finding.kind for finding in prepared.findings}


@pytest.mark.parametrize("upstream", OTHERS)
def test_all_tools_are_offered_in_place_of_a_search_by_the_upstream(upstream: str) -> None:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    past_search = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": []},
        },
        {"type": "text", "text": "so"},
    ]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": past_search}, CONVERSATION[0]]
    request = body(tools=[search, FOUND, HIDDEN], messages=messages)
    prepared = prepare_request(request, MESSAGES, MESSAGES, upstream=upstream)
    assert prepared.body["tools"] == [without_deferral(FOUND), without_deferral(HIDDEN)]
    assert "tool_search" not in str(prepared.body["messages"])
    assert "so" in str(prepared.body["messages"])


@pytest.mark.parametrize("upstream", ["anthropic", "any"])
def test_request_is_unchanged_where_deferred_tools_are_supported_or_the_upstream_is_unknown(upstream: str) -> None:
    assert prepare_request(body(), MESSAGES, MESSAGES, upstream=upstream).body == body()
