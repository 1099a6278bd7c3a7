"""What a gateway must survive, on real sockets: an upstream that tells no usage, row 32 of the table of faults.

Clients of all APIs get an estimate where they want one, and it is told that it is one. What an upstream has counted is
never touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.support import upstream_server as up
from tests.support.gateway_stage import APIS, CHAT, MESSAGES, RESPONSES, GatewayStage, call, stage, stream_response

SAID = "It is a long story, and nobody has heard all of it. " * 20
TOKENS = 260
"""Of what is said."""
STREAM = up.ROLE + up.delta(SAID[:300]) + up.delta(SAID[300:500]) + up.delta(SAID[500:]) + up.delta(finish="stop")
COUNTED = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":%b}\n\n' % (
    b'{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}'
)
ASKED: dict[str, Any] = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def on() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def body(api: str, usage: Any = None) -> dict[str, Any]:
    """A whole reply of an upstream."""
    head: dict[str, Any]
    beside = {} if usage is None else {"usage": usage}
    if api == MESSAGES:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        return {**head, "content": [{"type": "text", "text": SAID}], "stop_reason": "end_turn", **beside}
    if api == RESPONSES:
        part = {"type": "output_text", "text": SAID, "annotations": []}
        item = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [part]}
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
        return {**head, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **beside}
    choice = {"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **beside}


def told(data: dict[str, Any] | None) -> tuple[int, int]:
    """Input and output."""
    assert data is not None
    names = ("prompt_tokens", "completion_tokens") if "prompt_tokens" in data else ("input_tokens", "output_tokens")
    return data[names[0]], data[names[1]]


def last_usage(stream: bytes) -> dict[str, Any] | None:
    found = None
    for line in stream.decode().splitlines():
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            found = event.get("usage") or event.get("response", {}).get("usage") or found
    return found


def is_estimate(usage: dict[str, Any] | None) -> bool:
    given, out = told(usage)
    return 20 < given < 120 and TOKENS * 0.8 < out < TOKENS * 1.2


# ── an upstream that tells none ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("api", APIS)
def test_32_a_stream_without_usage_gets_an_estimate(on: GatewayStage, api: str) -> None:
    heard = on.send(
        on.add_scripts(f"32-{api}", stream_response(STREAM + up.DONE)), api, **(ASKED if api == CHAT else {})
    )
    assert (heard.text, heard.ended) == (SAID, True)
    assert is_estimate(last_usage(heard.body))
    assert (heard.estimated, heard.log["findings"]) == (True, {})
    assert heard.log["tokens"]["estimated"] is True
    assert is_estimate({"input_tokens": heard.log["tokens"]["input"], "output_tokens": heard.log["tokens"]["output"]})


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("source", APIS)
def test_32_a_whole_reply_without_usage_gets_an_estimate(on: GatewayStage, api: str, source: str) -> None:
    name = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses"}[source]
    reply = up.send_response("200 OK", json.dumps(body(source)).encode())
    heard = on.send(on.add_scripts(f"{name}-32-{api}", reply), api, stream=False)
    assert heard.text == SAID
    assert is_estimate(json.loads(heard.body)["usage"])
    assert heard.headers["x-interlingua-findings"].endswith("usage-estimated")


def test_32_the_sdks_are_content(on: GatewayStage) -> None:
    model = on.add_scripts("32-sdk", stream_response(STREAM + up.DONE))
    claude = anthropic.Anthropic(base_url=on.gateway.base, api_key="any")
    with claude.messages.stream(model=model, max_tokens=99, messages=[{"role": "user", "content": "Go"}]) as stream:
        message = stream.get_final_message()
    assert TOKENS * 0.8 < message.usage.output_tokens < TOKENS * 1.2
    assert 0 < message.usage.input_tokens < 60
    client = openai.OpenAI(base_url=f"{on.gateway.base}/v1", api_key="any")
    with client.responses.stream(model=model, input="Go") as events:
        usage = events.until_done().get_final_response().usage
    assert usage is not None
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens > TOKENS * 0.8
    chunks = list(
        client.chat.completions.create(
            model=model,
            stream=True,
            messages=[{"role": "user", "content": "Go"}],
            stream_options={"include_usage": True},
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == chunks[-1].usage.prompt_tokens + chunks[-1].usage.completion_tokens


def test_32_who_does_not_ask_is_not_told(on: GatewayStage) -> None:
    heard = on.send(on.add_scripts("32-quiet", stream_response(STREAM + up.DONE)), CHAT)
    assert last_usage(heard.body) is None
    assert (heard.estimated, heard.log["findings"], heard.log["tokens"]) == (False, {}, {})


def test_32_arguments_count_too(on: GatewayStage) -> None:
    args = json.dumps({"path": SAID})
    stream = up.ROLE + call(args[:500], name="read") + call(args[500:]) + up.delta(finish="tool_calls") + up.DONE
    heard = on.send(on.add_scripts("32-args", stream_response(stream)), MESSAGES)
    assert TOKENS * 0.8 < heard.output_tokens < TOKENS * 1.2


def test_32_a_whole_reply_told_as_a_stream(on: GatewayStage) -> None:
    heard = on.send(on.add_scripts("32-told", up.send_response("200 OK", json.dumps(body(CHAT)).encode())), RESPONSES)
    assert is_estimate(last_usage(heard.body))
    assert (heard.estimated, heard.log["findings"]) == (True, {"whole-reply": 1})


def test_32_a_stream_told_as_a_whole_reply(on: GatewayStage) -> None:
    heard = on.send(on.add_scripts("32-folded", stream_response(STREAM + up.DONE)), MESSAGES, stream=False)
    assert is_estimate(json.loads(heard.body)["usage"])
    assert (heard.estimated, heard.log["findings"]) == (True, {"streamed-reply": 1})


def test_32_messages_of_messages(on: GatewayStage) -> None:
    """Their start and their end have a usage that clients insist on."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**body(MESSAGES), "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}},
        {"type": "message_stop"},
    ]
    stream = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    heard = on.send(on.add_scripts("messages-32-same", stream_response(stream)), MESSAGES)
    assert (heard.text, heard.ended) == (SAID, True)
    assert is_estimate(last_usage(heard.body))


def test_32_responses_of_responses(on: GatewayStage) -> None:
    whole = body(RESPONSES)
    item, part = whole["output"][0], whole["output"][0]["content"][0]
    at = {"output_index": 0, "item_id": "m_1"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", **at, "item": {**item, "content": [], "status": "in_progress"}},
        {"type": "response.content_part.added", **at, "content_index": 0, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "content_index": 0, "delta": SAID},
        {"type": "response.output_text.done", **at, "content_index": 0, "text": SAID},
        {"type": "response.content_part.done", **at, "content_index": 0, "part": part},
        {"type": "response.output_item.done", **at, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    stream = b"".join(
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': n})}\n\n".encode()
        for n, event in enumerate(events)
    )
    heard = on.send(on.add_scripts("responses-32-same", stream_response(stream)), RESPONSES)
    assert (heard.text, heard.ended) == (SAID, True)
    assert is_estimate(last_usage(heard.body))
    assert heard.body.count(b"response.output_item.done") == 2, "once in its line, once in its data"


# ── an upstream that tells one ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("api", APIS)
def test_32_what_was_counted_is_not_touched(on: GatewayStage, api: str) -> None:
    heard = on.send(on.add_scripts(f"32-counted-{api}", stream_response(STREAM + COUNTED + up.DONE)), api)
    assert told(last_usage(heard.body)) == (7, 5)
    assert (heard.estimated, heard.log["findings"]) == (False, {})
    assert heard.log["tokens"] == {"input": 7, "output": 5, "cached": 0, "reasoning": 0}


def test_32_a_failure_has_no_usage(on: GatewayStage) -> None:
    heard = on.send(
        on.add_scripts("32-cut", stream_response(up.ROLE + up.delta("Hel") + call('{"path": "a', name="read"))),
        MESSAGES,
    )
    assert heard.error
    assert not heard.estimated
