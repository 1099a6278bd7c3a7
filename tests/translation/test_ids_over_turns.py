"""Call ids are unique over a whole conversation, even if the upstream reuses ids in each reply."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import interlingua as il
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams.profile import UNKNOWN_PROFILE
from tests.support.chat_scenarios import kimi_call

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"

Json = dict[str, Any]
POLICIES = ("any", "functions", "nine")
TOOL = {"name": "ls", "input_schema": {"type": "object"}}
TOOLS: dict[str, list[Json]] = {
    CHAT: [{"type": "function", "function": {"name": "ls"}}],
    MESSAGES: [TOOL],
    RESPONSES: [{"type": "function", "name": "ls", "parameters": {"type": "object"}}],
}


def turn(wire: str, reply: Json) -> tuple[list[str], list[Json]]:
    """Return the call ids of a reply, and the messages that a client appends for its next request."""
    if wire == CHAT:
        message = reply["choices"][0]["message"]
        ids = [call["id"] for call in message["tool_calls"]]
        return ids, [message, *({"role": "tool", "tool_call_id": id, "content": "done"} for id in ids)]
    if wire == MESSAGES:
        ids = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "done"} for id in ids]
        return ids, [{"role": "assistant", "content": reply["content"]}, {"role": "user", "content": results}]
    ids = [item["call_id"] for item in reply["output"] if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": id, "output": "done"} for id in ids]
    return ids, [*reply["output"], *results]


def reply_with_tool_calls(ids: list[str]) -> Json:
    calls = [{"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for id in ids]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def reply_with_native_calls(count: int) -> Json:
    """Return a reply of a Kimi model that restarts its numbering in each reply."""
    text = "".join(kimi_call(f"functions.ls:{n}", "{}") for n in range(count))
    return {"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}


REPLIES = {
    "one of the same id": reply_with_tool_calls(["call_0"]),
    "two of the same ids": reply_with_tool_calls(["call_0", "call_1"]),
    "Kimi's ids": reply_with_tool_calls(["functions.ls:0", "functions.ls:1"]),
    "nine letters": reply_with_tool_calls(["abcdefgh1"]),
    "nine letters, twice": reply_with_tool_calls(["abcdefgh1", "abcdefgh2"]),
    "native, one": reply_with_native_calls(1),
    "native, two": reply_with_native_calls(2),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("ids", POLICIES)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES, RESPONSES])
def test_call_ids_are_unique_over_all_turns(wire: str, ids: Any, reply: str) -> None:
    key = "input" if wire == RESPONSES else "messages"
    body: Json = {"model": "m", key: [{"role": "user", "content": "go"}], "tools": TOOLS[wire]}
    body |= {"max_tokens": 99} if wire == MESSAGES else {}
    profile = replace(UNKNOWN_PROFILE, name="test", ids=ids)
    seen: list[str] = []
    for _ in range(4):
        prepared = prepare_request(body, wire, CHAT, upstream=profile)
        options = il.Options(taken_ids=prepared.taken_ids)
        translated = il.translate_reply(REPLIES[reply], CHAT, wire, "kimi_k2", tools=prepared.tools, options=options)
        new_ids, new_messages = turn(wire, translated)
        seen += new_ids
        body = {**body, key: [*body[key], *new_messages]}
    assert len(seen) >= 4
    assert len(set(seen)) == len(seen), seen
