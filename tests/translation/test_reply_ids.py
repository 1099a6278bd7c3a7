"""Ids of replies: the caller's, unique for each reply, where the upstream's may repeat or are missing."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

import interlingua as il

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
WIRES = (CHAT, MESSAGES, RESPONSES)
OWN_ID = "0f" * 16
PREFIXES = {CHAT: "chatcmpl-", MESSAGES: "msg_", RESPONSES: "resp_"}

Json = dict[str, Any]


def chat_reply(id: str | None = "chatcmpl-123") -> Json:
    """Return a reply of a server that draws its ids from a thousand numbers, or sends none."""
    message = {"role": "assistant", "content": "Hello"}
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return body if id is None else {"id": id, **body}


def message(id: str) -> Json:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_sequence": None,
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def response(id: str) -> Json:
    part = {"type": "output_text", "text": "Hello", "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {"id": id, "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [item]}


SOURCES = {CHAT: chat_reply(), MESSAGES: message("msg_1"), RESPONSES: response("resp_1")}


def streamed_ids(stream: bytes) -> set[str]:
    """Return the ids of a reply in all events of its stream."""
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    owners = [event.get("message") or event.get("response") or event for event in events]
    return {owner["id"] for owner in owners if "id" in owner}


@pytest.mark.parametrize(("source", "target"), list(permutations(WIRES, 2)))
def test_reply_of_another_wire_has_the_callers_id(source: str, target: str) -> None:
    options = il.Options(reply_id=OWN_ID)
    whole = il.translate_reply(SOURCES[source], source, target, options=options)
    streamed = il.Translator(source, target, options=options).stream(SOURCES[source])
    assert {whole["id"]} == streamed_ids(streamed) == {PREFIXES[target] + OWN_ID}


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_reply_without_an_id_has_the_callers_id(target: str) -> None:
    whole = il.translate_reply(chat_reply(None), CHAT, target, options=il.Options(reply_id=OWN_ID))
    assert whole["id"] == PREFIXES[target] + OWN_ID


def test_items_of_two_responses_with_one_upstream_id_have_different_ids() -> None:
    replies = [il.translate_reply(chat_reply(), CHAT, RESPONSES, options=il.Options(reply_id=id)) for id in ("a", "b")]
    first, second = ([item["id"] for item in reply["output"]] for reply in replies)
    assert not set(first) & set(second)


@pytest.mark.parametrize("wire", WIRES)
def test_same_wire_keeps_a_random_id(wire: str) -> None:
    body = SOURCES[wire] | {"id": PREFIXES[wire] + "01XFDUDYJgAACzvnptvVoYEL"}
    assert il.translate_reply(body, wire, wire, options=il.Options(reply_id=OWN_ID)) == body


def test_messages_client_gets_no_repeated_id_of_a_messages_upstream() -> None:
    options = il.Options(reply_id=OWN_ID)
    assert il.translate_reply(message("msg_1"), MESSAGES, MESSAGES, options=options)["id"] == f"msg_{OWN_ID}"
    start = {"type": "message_start", "message": message("msg_1") | {"content": [], "stop_reason": None}}
    frame = f"event: message_start\ndata: {json.dumps(start)}\n\n".encode()
    assert streamed_ids(il.Translator(MESSAGES, MESSAGES, options=options).feed(frame)) == {f"msg_{OWN_ID}"}


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
def test_same_wire_keeps_the_id_that_the_upstream_knows(wire: str) -> None:
    body = SOURCES[wire]
    assert il.translate_reply(body, wire, wire, options=il.Options(reply_id=OWN_ID)) == body


def test_upstreams_own_id_is_known() -> None:
    translator = il.Translator(CHAT, MESSAGES, options=il.Options(reply_id=OWN_ID))
    translator.reply(chat_reply())
    assert translator.tally.upstream_id == "chatcmpl-123"


def test_without_reply_id_the_upstreams_id_is_used() -> None:
    assert il.translate_reply(chat_reply(), CHAT, MESSAGES)["id"] == "msg_chatcmpl-123"
