"""Upstreams that report no usage (row 32 of the fault table, real sockets).

Clients of all APIs get an estimate if they request usage, and a finding reports that it is an estimate. Usage that an
upstream reports is never changed.
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

LONG_TEXT = "It is a long story, and nobody has heard all of it. " * 20
TOKENS = 260
"""Number of tokens in LONG_TEXT."""
STREAM = (
    up.ROLE
    + up.delta(LONG_TEXT[:300])
    + up.delta(LONG_TEXT[300:500])
    + up.delta(LONG_TEXT[500:])
    + up.delta(finish="stop")
)
COUNTED = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":%b}\n\n' % (
    b'{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}'
)
REQUEST_USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def body(api: str, usage: Any = None) -> dict[str, Any]:
    """Return a complete reply of an upstream."""
    head: dict[str, Any]
    usage_field = {} if usage is None else {"usage": usage}
    if api == MESSAGES:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        return {**head, "content": [{"type": "text", "text": LONG_TEXT}], "stop_reason": "end_turn", **usage_field}
    if api == RESPONSES:
        part = {"type": "output_text", "text": LONG_TEXT, "annotations": []}
        item = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [part]}
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
        return {
            **head,
            "output": [item],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **usage_field,
        }
    choice = {"index": 0, "message": {"role": "assistant", "content": LONG_TEXT}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **usage_field}


def token_counts(data: dict[str, Any] | None) -> tuple[int, int]:
    """Return input and output tokens."""
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
    input_tokens, output_tokens = token_counts(usage)
    return 20 < input_tokens < 120 and TOKENS * 0.8 < output_tokens < TOKENS * 1.2


# ── upstream without usage ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("api", APIS)
def test_32_stream_without_usage_gets_an_estimate(env: GatewayStage, api: str) -> None:
    view = env.send(
        env.add_scripts(f"32-{api}", stream_response(STREAM + up.DONE)), api, **(REQUEST_USAGE if api == CHAT else {})
    )
    assert (view.text, view.ended) == (LONG_TEXT, True)
    assert is_estimate(last_usage(view.body))
    assert (view.estimated, view.log["findings"]) == (True, {})
    assert view.log["tokens"]["estimated"] is True
    assert is_estimate({"input_tokens": view.log["tokens"]["input"], "output_tokens": view.log["tokens"]["output"]})


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("source", APIS)
def test_32_complete_reply_without_usage_gets_an_estimate(env: GatewayStage, api: str, source: str) -> None:
    name = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses"}[source]
    reply = up.send_response("200 OK", json.dumps(body(source)).encode())
    view = env.send(env.add_scripts(f"{name}-32-{api}", reply), api, stream=False)
    assert view.text == LONG_TEXT
    assert is_estimate(json.loads(view.body)["usage"])
    assert view.headers["x-interlingua-findings"].endswith("usage-estimated")


def test_32_official_sdks_accept_the_estimate(env: GatewayStage) -> None:
    model = env.add_scripts("32-sdk", stream_response(STREAM + up.DONE))
    claude = anthropic.Anthropic(base_url=env.gateway.base, api_key="any")
    with claude.messages.stream(model=model, max_tokens=99, messages=[{"role": "user", "content": "Go"}]) as stream:
        message = stream.get_final_message()
    assert TOKENS * 0.8 < message.usage.output_tokens < TOKENS * 1.2
    assert 0 < message.usage.input_tokens < 60
    client = openai.OpenAI(base_url=f"{env.gateway.base}/v1", api_key="any")
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


def test_32_no_estimate_if_usage_is_not_requested(env: GatewayStage) -> None:
    view = env.send(env.add_scripts("32-quiet", stream_response(STREAM + up.DONE)), CHAT)
    assert last_usage(view.body) is None
    assert (view.estimated, view.log["findings"], view.log["tokens"]) == (False, {}, {})


def test_32_estimate_includes_call_arguments(env: GatewayStage) -> None:
    args = json.dumps({"path": LONG_TEXT})
    stream = up.ROLE + call(args[:500], name="read") + call(args[500:]) + up.delta(finish="tool_calls") + up.DONE
    view = env.send(env.add_scripts("32-args", stream_response(stream)), MESSAGES)
    assert TOKENS * 0.8 < view.output_tokens < TOKENS * 1.2


def test_32_estimate_for_complete_reply_converted_to_a_stream(env: GatewayStage) -> None:
    view = env.send(env.add_scripts("32-told", up.send_response("200 OK", json.dumps(body(CHAT)).encode())), RESPONSES)
    assert is_estimate(last_usage(view.body))
    assert (view.estimated, view.log["findings"]) == (True, {"whole-reply": 1})


def test_32_estimate_for_stream_assembled_into_a_reply(env: GatewayStage) -> None:
    view = env.send(env.add_scripts("32-folded", stream_response(STREAM + up.DONE)), MESSAGES, stream=False)
    assert is_estimate(json.loads(view.body)["usage"])
    assert (view.estimated, view.log["findings"]) == (True, {"streamed-reply": 1})


def test_32_estimate_from_messages_upstream_to_messages_client(env: GatewayStage) -> None:
    """Clients require usage in the first and the last event of a Messages stream."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**body(MESSAGES), "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": LONG_TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}},
        {"type": "message_stop"},
    ]
    stream = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    view = env.send(env.add_scripts("messages-32-same", stream_response(stream)), MESSAGES)
    assert (view.text, view.ended) == (LONG_TEXT, True)
    assert is_estimate(last_usage(view.body))


def test_32_estimate_from_responses_upstream_to_responses_client(env: GatewayStage) -> None:
    whole = body(RESPONSES)
    item, part = whole["output"][0], whole["output"][0]["content"][0]
    at = {"output_index": 0, "item_id": "m_1"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", **at, "item": {**item, "content": [], "status": "in_progress"}},
        {"type": "response.content_part.added", **at, "content_index": 0, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "content_index": 0, "delta": LONG_TEXT},
        {"type": "response.output_text.done", **at, "content_index": 0, "text": LONG_TEXT},
        {"type": "response.content_part.done", **at, "content_index": 0, "part": part},
        {"type": "response.output_item.done", **at, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    stream = b"".join(
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': n})}\n\n".encode()
        for n, event in enumerate(events)
    )
    view = env.send(env.add_scripts("responses-32-same", stream_response(stream)), RESPONSES)
    assert (view.text, view.ended) == (LONG_TEXT, True)
    assert is_estimate(last_usage(view.body))
    assert view.body.count(b"response.output_item.done") == 2, "once in the event line, once in the data"


# ── upstream with usage ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("api", APIS)
def test_32_reported_usage_is_forwarded_unchanged(env: GatewayStage, api: str) -> None:
    view = env.send(env.add_scripts(f"32-counted-{api}", stream_response(STREAM + COUNTED + up.DONE)), api)
    assert token_counts(last_usage(view.body)) == (7, 5)
    assert (view.estimated, view.log["findings"]) == (False, {})
    assert view.log["tokens"] == {"input": 7, "output": 5, "cached": 0, "reasoning": 0, "cache_written": 0}


def test_32_failed_reply_has_no_estimate(env: GatewayStage) -> None:
    view = env.send(
        env.add_scripts("32-cut", stream_response(up.ROLE + up.delta("Hel") + call('{"path": "a', name="read"))),
        MESSAGES,
    )
    assert view.error
    assert not view.estimated
