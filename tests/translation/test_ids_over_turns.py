"""Call ids are unique over a whole conversation, even if the upstream reuses ids in each reply.

With the ids of replies (`Options.reply_id`) they are unique over all conversations: agents keep results in files that
are named by the call id, and several conversations of a session share them.
"""

from __future__ import annotations

from itertools import pairwise
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


@pytest.mark.one_row_in(5)
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


def converse(wire: str, reply: Json, reply_ids: list[str], profile: Any) -> tuple[list[str], list[Json]]:
    """Return the call ids that the client sees, and the bodies that the upstream gets, one for each turn."""
    key = "input" if wire == RESPONSES else "messages"
    body: Json = {"model": "m", key: [{"role": "user", "content": "go"}], "tools": TOOLS[wire]}
    body |= {"max_tokens": 99} if wire == MESSAGES else {}
    seen: list[str] = []
    sent: list[Json] = []
    for reply_id in reply_ids:
        prepared = prepare_request(body, wire, CHAT, upstream=profile)
        assert "id-renamed" not in {finding.kind for finding in prepared.findings}
        sent.append(prepared.body)
        options = il.Options(taken_ids=prepared.taken_ids, reply_id=reply_id)
        translated = il.translate_reply(reply, CHAT, wire, "kimi_k2", tools=prepared.tools, options=options)
        new_ids, new_messages = turn(wire, translated)
        seen += new_ids
        body = {**body, key: [*body[key], *new_messages]}
    return seen, sent


REPLIES_WITH_NUMBERED_IDS = [name for name in REPLIES if not name.startswith("nine letters")]


@pytest.mark.parametrize("reply", REPLIES_WITH_NUMBERED_IDS)
@pytest.mark.parametrize("ids", POLICIES)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES, RESPONSES])
def test_call_ids_are_unique_over_conversations(wire: str, ids: Any, reply: str) -> None:
    profile = replace(UNKNOWN_PROFILE, name="test", ids=ids)
    first, _ = converse(wire, REPLIES[reply], ["a1", "a2", "a3"], profile)
    second, _ = converse(wire, REPLIES[reply], ["b1", "b2", "b3"], profile)
    assert len({*first, *second}) == len(first) + len(second), (first, second)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("ids", POLICIES)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES, RESPONSES])
def test_upstream_gets_its_own_ids_and_a_stable_prefix(wire: str, ids: Any, reply: str) -> None:
    profile = replace(UNKNOWN_PROFILE, name="test", ids=ids)
    _, sent = converse(wire, REPLIES[reply], ["a1", "a2", "a3", "a4"], profile)
    _, sent_without = converse(wire, REPLIES[reply], [""] * 4, profile)
    for shorter, longer in pairwise(sent):
        assert longer["messages"][: len(shorter["messages"])] == shorter["messages"]
    assert sent == sent_without
    native_id = (REPLIES[reply]["choices"][0]["message"].get("tool_calls") or [{"id": "functions.ls:0"}])[0]["id"]
    if ids == "any":
        assert sent[1]["messages"][1]["tool_calls"][0]["id"] == sent[1]["messages"][2]["tool_call_id"] == native_id


RANDOM_IDS = (
    "call_a1b2c3d4e5f6g7h8i9j0k1l2",
    "chatcmpl-tool-0123456789abcdef0123456789abcdef",
    "toolu_01A09q90qw90lq917835lq9",
)


def test_random_ids_stay_as_they_are() -> None:
    for wire in (CHAT, MESSAGES, RESPONSES):
        for id in RANDOM_IDS:
            seen, _ = converse(wire, reply_with_tool_calls([id]), ["a1"], UNKNOWN_PROFILE)
            assert seen == [id]


def test_result_for_a_stored_conversation_has_the_native_id() -> None:
    """The upstream keeps the call itself, and the client sends only its result."""
    output = {"type": "function_call_output", "call_id": "functions.ls:0-il0123456789ab", "output": "done"}
    body = {"model": "m", "previous_response_id": "resp_1", "input": [output]}
    prepared = prepare_request(body, RESPONSES, RESPONSES)
    assert prepared.body["input"] == [output | {"call_id": "functions.ls:0"}]


def test_two_calls_with_one_id_in_a_reply() -> None:
    seen, sent = converse(MESSAGES, reply_with_tool_calls(["call_0", "call_0"]), ["a1", "a2"], UNKNOWN_PROFILE)
    assert len(set(seen)) == 4
    assert [call["id"] for call in sent[1]["messages"][1]["tool_calls"]] == ["call_0", "call_0_2"]


def test_id_that_already_has_a_suffix() -> None:
    """A model may copy an id that it has seen in a text."""
    id = "call_0-il0123456789ab"
    seen, sent = converse(MESSAGES, reply_with_tool_calls([id]), ["a1", "a2"], UNKNOWN_PROFILE)
    assert len(set(seen)) == 2
    assert sent[1]["messages"][1]["tool_calls"][0]["id"] == sent[1]["messages"][2]["tool_call_id"]
