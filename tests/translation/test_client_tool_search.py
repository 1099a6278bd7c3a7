"""Search for tools that a client of the Responses API runs: a function to the model, items of its own to the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.faults.upstream.chat_chunks import DONE, ROLE, call, delta
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.translator import Translator

CHAT, RESPONSES = "openai-chat", "openai-responses"
Json = dict[str, Any]
SCHEMA: Json = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "number"}},
    "required": ["query"],
}
SEARCH: Json = {"type": "tool_search", "execution": "client", "description": "Search the tools.", "parameters": SCHEMA}
WEATHER: Json = {
    "type": "namespace",
    "name": "mcp__weather",
    "description": "Weather",
    "tools": [
        {
            "type": "function",
            "name": "forecast",
            "description": "Forecast",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
            "defer_loading": True,
        }
    ],
}
SEARCH_CALL: Json = {
    "type": "tool_search_call",
    "call_id": "call_s",
    "execution": "client",
    "status": "completed",
    "arguments": {"query": "weather"},
}
OUTPUT: Json = {
    "type": "tool_search_output",
    "call_id": "call_s",
    "execution": "client",
    "status": "completed",
    "tools": [WEATHER],
}
STREAM = ROLE + call('{"que', name="tool_search") + call('ry":"weather"}') + delta(finish="tool_calls") + DONE


def request(*items: Json, tools: list[Json] | None = None) -> Json:
    user = {"type": "message", "role": "user", "content": "Will it rain?"}
    return {"model": "m", "tools": [SEARCH] if tools is None else tools, "input": [user, *items]}


def test_search_is_a_function_to_the_model() -> None:
    prepared = prepare_request(request(), RESPONSES, CHAT)
    function = {"name": "tool_search", "description": "Search the tools.", "parameters": SCHEMA}
    assert prepared.body["tools"] == [{"type": "function", "function": function}]
    assert prepared.findings == []


def test_search_without_a_schema_has_one_for_the_model() -> None:
    prepared = prepare_request(request(tools=[{"type": "tool_search", "execution": "client"}]), RESPONSES, CHAT)
    assert prepared.body["tools"][0]["function"]["parameters"]["required"] == ["query"]


def test_past_search_is_a_call_and_its_result_and_what_it_found_is_offered() -> None:
    prepared = prepare_request(request(SEARCH_CALL, OUTPUT), RESPONSES, CHAT)
    search, result = prepared.body["messages"][1:]
    assert search["tool_calls"][0]["function"] == {"name": "tool_search", "arguments": '{"query":"weather"}'}
    text = "[the tool mcp__weather__forecast can be called from now on]"
    assert result == {"role": "tool", "tool_call_id": search["tool_calls"][0]["id"], "content": text}
    assert [tool["function"]["name"] for tool in prepared.body["tools"]] == ["tool_search", "mcp__weather__forecast"]


def test_search_that_found_nothing_says_so() -> None:
    prepared = prepare_request(request(SEARCH_CALL, {**OUTPUT, "tools": []}), RESPONSES, CHAT)
    assert prepared.body["messages"][-1]["content"] == "[no tool was found]"


def test_upstream_of_the_same_wire_gets_the_items_unchanged() -> None:
    body = request(SEARCH_CALL, OUTPUT)
    assert prepare_request(body, RESPONSES, RESPONSES, upstream="openai").body == body


def test_items_survive_a_change_of_another_item() -> None:
    unanswered = {"type": "function_call", "call_id": "call_x", "name": "run", "arguments": "{}"}
    body = request(SEARCH_CALL, OUTPUT, unanswered)
    items = prepare_request(body, RESPONSES, RESPONSES, upstream="openai").body["input"]
    kept = [{key: value for key, value in item.items() if key != "status"} for item in items[1:3]]
    assert kept == [{key: value for key, value in item.items() if key != "status"} for item in (SEARCH_CALL, OUTPUT)]


def events_of(data: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_call_of_the_search_is_an_item_of_its_own(size: int) -> None:
    translator = Translator(CHAT, RESPONSES, "standard", tools=[SEARCH])
    sent = b"".join(translator.feed(STREAM[at : at + size]) for at in range(0, len(STREAM), size)) + translator.close()
    events = events_of(sent)
    types = [event["type"].removeprefix("response.") for event in events]
    assert types == ["created", "in_progress", "output_item.added", "output_item.done", "completed"]
    added, done = events[2]["item"], events[3]["item"]
    assert (added["type"], added["arguments"], added["status"]) == ("tool_search_call", {}, "in_progress")
    assert done["id"].startswith("tsc_")
    assert {key: done[key] for key in SEARCH_CALL if key != "call_id"} == {
        key: value for key, value in SEARCH_CALL.items() if key != "call_id"
    }
    assert events[-1]["response"]["output"] == [done]


def test_whole_reply_has_the_same_item() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "tool_search", "arguments": '{"query":"weather"}'}}
        ],
    }
    body = {"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    (item,) = Translator(CHAT, RESPONSES, "standard", tools=[SEARCH]).reply(body)["output"]
    assert (item["type"], item["arguments"], item["execution"]) == ("tool_search_call", {"query": "weather"}, "client")
