"""Tools that a search has found, for upstreams whose messages can declare tools: the prompt keeps its beginning."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from interlingua.core.options import Options
from interlingua.translation.incremental_translation import IncrementalTranslation
from interlingua.translation.request_cache import RequestCache
from interlingua.translation.request_translation import RequestContext, prepare_request
from interlingua.translation.undecoded_request import UndecodedRequest

Json = dict[str, Any]
CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
SCHEMA: Json = {"type": "object", "properties": {}}
SEARCH: Json = {"name": "ToolSearch", "input_schema": SCHEMA}
RAIN, SUN = ({"name": name, "input_schema": SCHEMA, "defer_loading": True} for name in ("rain", "sun"))
MODEL = "kimi-k3"


def search(n: int, *names: str) -> list[Json]:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{n}", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": references}]},
    ]


def messages_body(*turns: list[Json]) -> Json:
    conversation = [{"role": "user", "content": "hi"}, *(message for turn in turns for message in turn)]
    return {"model": MODEL, "max_tokens": 10, "tools": [SEARCH, RAIN, SUN], "messages": conversation}


def prepare(body: Json, source: str = MESSAGES, upstream: str = "moonshot") -> Json:
    return prepare_request(body, source, CHAT, upstream=upstream).body


def function(name: str) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA}}


def test_found_tools_are_declared_after_the_result() -> None:
    turns = [search(1, "rain"), search(2, "rain", "sun")]
    bodies = [prepare(messages_body(*turns[:n])) for n in range(3)]
    assert all(body["tools"] == [function("ToolSearch")] for body in bodies)
    roles = [message["role"] for message in bodies[2]["messages"]]
    assert roles == ["user", "assistant", "tool", "system", "assistant", "tool", "system"]
    declarations = [message for message in bodies[2]["messages"] if message["role"] == "system"]
    assert declarations == [{"role": "system", "tools": [function(name)]} for name in ("rain", "sun")]
    for before, after in pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"]


def test_reply_may_call_declared_tools() -> None:
    prepared = prepare_request(messages_body(search(1, "rain")), MESSAGES, CHAT, upstream="moonshot")
    assert [tool.name for tool in prepared.tools] == ["ToolSearch", "rain"]


def test_tool_search_of_responses() -> None:
    sun = {"type": "function", "name": "sun", "parameters": SCHEMA, "defer_loading": True}
    items = [
        {"role": "user", "content": "hi"},
        {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {"query": "sun"}},
        {"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [sun]},
    ]
    offered = {"type": "tool_search", "execution": "client", "parameters": SCHEMA}
    body = prepare({"model": MODEL, "input": items, "tools": [offered]}, RESPONSES)
    assert body["tools"] == [function("tool_search")]
    assert body["messages"][-1] == {"role": "system", "tools": [function("sun")]}


@pytest.mark.parametrize(("model", "upstream"), [("kimi-k2.6", "moonshot"), (MODEL, "vllm")])
def test_other_models_and_upstreams_get_them_as_ordinary_tools(model: str, upstream: str) -> None:
    body = prepare({**messages_body(search(1, "rain")), "model": model}, upstream=upstream)
    assert body["tools"] == [function("ToolSearch"), function("rain")]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]


def test_conversation_with_found_tools_is_translated_as_a_whole() -> None:
    context = RequestContext.create(MESSAGES, CHAT, "moonshot", Options(), False)
    for turns, is_resumed in ([], True), ([search(1, "rain")], False):
        request = UndecodedRequest.read(msgspec.json.encode(messages_body(*turns)), "messages")
        assert request is not None
        translation = IncrementalTranslation.plan(request, context, None, RequestCache(1 << 20, lambda *_: None), "")
        assert translation is not None
        assert (translation.run() is not None) is is_resumed
