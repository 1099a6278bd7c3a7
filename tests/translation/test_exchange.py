"""An Exchange: the request for an upstream, and replies in every combination of what is asked for and what is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import BadRequest, UpstreamError
from interlingua.translation.exchange import Exchange, ReplyReceiver, UpstreamTarget
from interlingua.upstreams import get_profile
from interlingua.upstreams.profile import UNKNOWN_PROFILE
from tests.support.chat_scenarios import SECTION_OF_PARIS, text_stream
from tests.support.cuts import single_units
from tests.support.sdk import read_strict

MODEL = "kimi-k2"
STREAM = text_stream([SECTION_OF_PARIS])
WHOLE = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": SECTION_OF_PARIS}, "finish_reason": "stop"}
        ],
    }
).encode()
SSE_TYPE, JSON_TYPE = "text/event-stream; charset=utf-8", "application/json"


def exchange(*, stream: bool, model: str | None = None, **target: Any) -> Exchange:
    request = {
        "model": "my-model",
        "stream": stream,
        "messages": [{"role": "user", "content": "weather in Paris?"}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
    }
    upstream = UpstreamTarget(
        api="openai-chat", profile=get_profile("vllm"), name="local", model=model, dialect="kimi_k2", **target
    )
    return Exchange("openai-chat", request, upstream, il.Options(served_as="my-model"))


def receive_all(receiver: ReplyReceiver, pieces: list[bytes]) -> bytes:
    return b"".join([*map(receiver.feed, pieces), receiver.close()])


def call_names(output: bytes, *, stream: bool) -> list[str]:
    if stream:
        return [name for choice in read_strict(output).choices.values() for _, name, _ in choice.calls]
    return [call["function"]["name"] for call in json.loads(output)["choices"][0]["message"]["tool_calls"]]


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_request_gets_the_model_of_the_upstream_and_the_extra_fields() -> None:
    body = json.loads(exchange(stream=True, model="kimi", extra={"top_k": 20}).body)
    assert (body["model"], body["top_k"]) == ("kimi", 20)


def test_request_keeps_its_model_without_one_of_the_upstream() -> None:
    assert json.loads(exchange(stream=True).body)["model"] == "my-model"


def test_broken_history_is_refused_if_strict() -> None:
    body = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "1"}]}
    target = UpstreamTarget(api="openai-chat", profile=get_profile("vllm"), name="local")
    assert Exchange("openai-chat", body, target, il.Options()).findings
    with pytest.raises(BadRequest):
        Exchange("openai-chat", body, target, il.Options(), strict=True)


def test_identity_of_an_upstream_is_its_profile_or_its_own_name() -> None:
    known, unknown = get_profile("anthropic"), UNKNOWN_PROFILE
    assert UpstreamTarget(api="openai-chat", profile=known, name="openai").identity == "anthropic"
    assert UpstreamTarget(api="openai-chat", profile=unknown, name="openai").identity == "@openai"


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wants_stream", [True, False], ids=["wants-stream", "wants-whole"])
@pytest.mark.parametrize(
    ("data", "content_type", "is_stream"),
    [
        (STREAM, SSE_TYPE, True),
        (STREAM, "", True),
        (STREAM, "text/plain", True),
        (b"\xef\xbb\xbf" + STREAM, "", True),
        (b": ping\n\n" + STREAM, JSON_TYPE, True),
        (WHOLE, JSON_TYPE, False),
        (b" \n\n" + WHOLE, "", False),
        (b"\xef\xbb\xbf" + WHOLE, JSON_TYPE, False),
    ],
)
def test_reply_is_converted_to_what_the_client_wants_however_it_is_cut(
    data: bytes, content_type: str, is_stream: bool, wants_stream: bool
) -> None:
    for pieces in ([data], list(single_units(data))):
        receiver = exchange(stream=wants_stream).receive(content_type)
        output = receive_all(receiver, pieces)
        assert call_names(output, stream=wants_stream) == ["get_weather"]
        assert not receiver.failed_early
        conversions = [finding.kind for finding in receiver.findings]
        converted = "streamed-reply" if is_stream else "whole-reply"
        assert conversions == ([] if wants_stream is is_stream else [converted])


def test_stream_is_translated_as_it_arrives() -> None:
    receiver = exchange(stream=True).receive(SSE_TYPE)
    assert b"Hello" in receiver.feed(text_stream(["Hello"]).split(b"data: [DONE]")[0])


@pytest.mark.parametrize("wants_stream", [True, False], ids=["wants-stream", "wants-whole"])
@pytest.mark.parametrize("content_type", ["", "text/html", JSON_TYPE])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the upstream's response is empty"),
        (b" \n", "the upstream's response is empty"),
        (b"<html>login</html>", "is not a valid reply: '<html>login</html>'"),
        (b"[1, 2]", "is not a valid reply: '[1, 2]'"),
        (b"Internal Server Error", "is not a valid reply: 'Internal Server Error'"),
        (b'{"choices": [', "is not a valid reply: '{\"choices\": ['"),
    ],
)
def test_response_that_is_no_reply_fails_early_and_is_quoted(
    data: bytes, message: str, content_type: str, wants_stream: bool
) -> None:
    receiver = exchange(stream=wants_stream).receive(content_type)
    receive_all(receiver, [data] if data else [])
    failure = receiver.translator.tally.failure
    assert receiver.failed_early
    assert failure is not None
    assert message in failure.message


def test_failure_behind_content_is_early_only_for_a_whole_reply() -> None:
    data = text_stream(["Hello"], finish=None, done=False) + b'data: {"error": {"message": "overloaded"}}\n\n'
    streamed, whole = exchange(stream=True).receive(SSE_TYPE), exchange(stream=False).receive(SSE_TYPE)
    assert b"Hello" in receive_all(streamed, [data])
    receive_all(whole, [data])
    assert (streamed.failed_early, whole.failed_early) == (False, True)


def test_buffered_reply_is_limited_and_a_stream_is_not() -> None:
    whole = exchange(stream=False).receive(JSON_TYPE, max_body_bytes=100)
    with pytest.raises(UpstreamError, match="larger than 100 bytes"):
        receive_all(whole, single_units(WHOLE))
    streamed = exchange(stream=True).receive(SSE_TYPE, max_body_bytes=100)
    assert call_names(receive_all(streamed, [STREAM]), stream=True) == ["get_weather"]


def test_each_attempt_gets_a_receiver_of_its_own() -> None:
    sent_twice = exchange(stream=True)
    first = receive_all(sent_twice.receive(SSE_TYPE), [STREAM])
    assert receive_all(sent_twice.receive(SSE_TYPE), [STREAM]) == first


# ── tool choice ───────────────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
ARRAY, ARGUMENTS = '[{"name": "get_weather", "parameters": {"city": "Paris"}}]', '{"city": "Paris"}'
CHOICES: list[tuple[str, Any, str, bool]] = [
    ("openai-chat", "required", ARRAY, True),
    ("openai-chat", {"type": "function", "function": {"name": "get_weather"}}, ARGUMENTS, True),
    (
        "openai-chat",
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [CHAT_TOOL]}},
        ARGUMENTS,
        True,
    ),
    ("openai-chat", "auto", ARGUMENTS, False),
    ("openai-chat", "none", ARRAY, False),
    ("anthropic-messages", {"type": "any"}, ARRAY, True),
    ("anthropic-messages", {"type": "tool", "name": "get_weather"}, ARGUMENTS, True),
    ("anthropic-messages", {"type": "auto"}, ARGUMENTS, False),
    ("anthropic-messages", {"type": "none"}, ARRAY, False),
    ("openai-responses", "required", ARRAY, True),
    ("openai-responses", {"type": "function", "name": "get_weather"}, ARGUMENTS, True),
    (
        "openai-responses",
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]},
        ARGUMENTS,
        True,
    ),
    ("openai-responses", "auto", ARGUMENTS, False),
    ("openai-responses", "none", ARRAY, False),
]


def request_with_choice(wire: str, choice: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "m", "tool_choice": choice, "max_tokens": 100}
    messages = [{"role": "user", "content": "weather in Paris?"}]
    if wire == "openai-chat":
        response_format = {"type": "json_object"}
        return body | {"messages": messages, "tools": [CHAT_TOOL], "response_format": response_format}
    if wire == "anthropic-messages":
        return body | {"messages": messages, "tools": [{"name": "get_weather", "input_schema": SCHEMA}]}
    del body["max_tokens"]
    return body | {"input": messages, "tools": [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]}


@pytest.mark.parametrize("dialect", ["kimi_k2", "standard", "hermes", "gemma4"])
@pytest.mark.parametrize("upstream", ["vllm", "unknown"])
@pytest.mark.parametrize(("wire", "choice", "text", "is_call"), CHOICES)
def test_json_is_a_call_if_the_request_requires_one(
    wire: str, choice: Any, text: str, is_call: bool, upstream: str, dialect: str
) -> None:
    profile = get_profile(upstream) if upstream != "unknown" else UNKNOWN_PROFILE
    target = UpstreamTarget(api="openai-chat", profile=profile, name="local", dialect=dialect)
    pieces = [text[n : n + 3] for n in range(0, len(text), 3)]
    stream = text_stream(pieces)
    receiver = Exchange(wire, request_with_choice(wire, choice), target, il.Options()).receive(SSE_TYPE)
    body = json.loads(receive_all(receiver, [stream]))
    accumulator = il.Accumulator(wire)
    accumulator.add(body)
    calls = [(call.name, json.loads(call.arguments)) for call in accumulator.reply().calls]
    assert calls == ([("get_weather", {"city": "Paris"})] if is_call else [])
    assert accumulator.reply().stop_reason == ("tool_calls" if is_call else "stop")
    if not is_call:
        assert accumulator.reply().text.strip()


def test_structured_calls_under_required_choice_are_forwarded_unchanged() -> None:
    body = request_with_choice("openai-chat", "required") | {"stream": True}
    target = UpstreamTarget(api="openai-chat", profile=UNKNOWN_PROFILE, name="local", dialect="standard")
    function = {"name": "get_weather", "arguments": ARGUMENTS}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": "So."},
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {**function, "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS}}]},
    ]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    head: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode() for choice in choices]
    receiver = Exchange("openai-chat", body, target, il.Options()).receive(SSE_TYPE)
    assert receive_all(receiver, [*chunks, b"data: [DONE]\n\n"]) == b"".join(chunks) + b"data: [DONE]\n\n"
