"""Over a whole conversation no call has the id of another, however an upstream numbers those of each reply."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import interlingua as il
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES, UNKNOWN_PROFILE
from tests.support.chat_scenarios import kimi_call

Json = dict[str, Any]
POLICIES = ("any", "functions", "nine")
TOOL = {"name": "ls", "input_schema": {"type": "object"}}
TOOLS: dict[str, list[Json]] = {
    CHAT: [{"type": "function", "function": {"name": "ls"}}],
    MESSAGES: [TOOL],
    RESPONSES: [{"type": "function", "name": "ls", "parameters": {"type": "object"}}],
}


def turn(wire: str, reply: Json) -> tuple[list[str], list[Json]]:
    """The ids of a reply, and what a client says of it in its next request."""
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


def structured(ids: list[str]) -> Json:
    calls = [{"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for id in ids]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def native(count: int) -> Json:
    """As a Kimi model writes it that counts anew in each reply."""
    text = "".join(kimi_call(f"functions.ls:{n}", "{}") for n in range(count))
    return {"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}


REPLIES = {
    "one of the same id": structured(["call_0"]),
    "two of the same ids": structured(["call_0", "call_1"]),
    "Kimi's ids": structured(["functions.ls:0", "functions.ls:1"]),
    "nine letters": structured(["abcdefgh1"]),
    "nine letters, twice": structured(["abcdefgh1", "abcdefgh2"]),
    "native, one": native(1),
    "native, two": native(2),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("ids", POLICIES)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES, RESPONSES])
def test_ids_stay_unique(wire: str, ids: Any, reply: str) -> None:
    key = "input" if wire == RESPONSES else "messages"
    body: Json = {"model": "m", key: [{"role": "user", "content": "go"}], "tools": TOOLS[wire]}
    body |= {"max_tokens": 99} if wire == MESSAGES else {}
    profile = replace(UNKNOWN_PROFILE, name="test", ids=ids)
    seen: list[str] = []
    for _ in range(4):
        asked = prepare_request(body, wire, CHAT, upstream=profile)
        options = il.Options(taken_ids=asked.taken_ids)
        told = il.translate_reply(REPLIES[reply], CHAT, wire, "kimi_k2", tools=asked.tools, options=options)
        new, said = turn(wire, told)
        seen += new
        body = {**body, key: [*body[key], *said]}
    assert len(seen) >= 4
    assert len(set(seen)) == len(seen), seen
