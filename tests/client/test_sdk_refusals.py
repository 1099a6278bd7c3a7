"""Official SDKs against model servers that refuse a request: it is changed and sent again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from interlingua import client
from interlingua.client import Exchange
from interlingua.core.reply import Call, Reply
from interlingua.dialects.native_text import render
from tests.client.test_sdks import CLIENTS, MODEL, completion_response, create, request_body
from tests.support import scripted_engine
from tests.support import upstream_server as up
from tests.support.upstream_server import UpstreamServer

NO_TOOL_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
NATIVE = render(Reply(parts=[Call("", "add", '{"a": 2, "b": 3}')]), dialect="kimi_k2")
PIXEL = "data:image/png;base64,iVBORw0KGgo="
ADD_REQUEST: list[Any] = [{"role": "user", "content": "Add 2 and 3."}]
IMAGE_REQUEST: list[Any] = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}]


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    yield server
    server.stop()


def refusal(message: str, status: str = "400 Bad Request") -> up.Step:
    return up.send_response(status, json.dumps({"error": {"message": message, "type": "BadRequestError"}}).encode())


def received(server: UpstreamServer, count: int) -> list[dict[str, Any]]:
    bodies = [request.body for request in server.wait_for_requests(MODEL, count)]
    assert len(bodies) == count
    return bodies


def ask(sdk_client: Any, wire: str, messages: list[Any] = ADD_REQUEST, **fields: Any) -> il.Accumulator:
    acc = il.Accumulator(wire)
    reply = create(sdk_client, wire)(**{**request_body(wire, messages), **fields})
    for chunk in reply if fields.get("stream") else [reply]:
        acc.add(chunk)
    return acc


async def ask_async(sdk_client: Any, wire: str, **fields: Any) -> il.Accumulator:
    acc = il.Accumulator(wire)
    reply = await create(sdk_client, wire)(**{**request_body(wire, ADD_REQUEST), **fields})
    if fields.get("stream"):
        async for chunk in reply:
            acc.add(chunk)
    else:
        acc.add(reply)
    return acc


# ── servers without a tool parser ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
def test_engine_without_tool_parser(wire: str, sdk: str, in_loop: bool, stream: bool) -> None:
    async def go(url: str) -> list[il.Accumulator]:
        sdk_client = getattr(client, f"async_{sdk}" if in_loop else sdk)(base_url=url, api_key="any", max_retries=0)
        fields: dict[str, Any] = {"model": scripted_engine.MODEL, "stream": stream}
        return [
            await ask_async(sdk_client, wire, **fields) if in_loop else ask(sdk_client, wire, **fields)
            for _ in range(2)
        ]

    with scripted_engine.run_engine("parser-missing") as url:
        for acc in asyncio.run(go(url)):
            assert [call.name for call in acc.calls] == ["add"]
            assert acc.finished


def test_calls_of_an_unknown_model_are_detected(server: UpstreamServer) -> None:
    for step in (refusal(NO_TOOL_PARSER), completion_response(NATIVE)):
        server.add("my-finetune", step)
    sdk_client = client.openai(base_url=server.url, api_key="any", max_retries=0)
    calls = ask(sdk_client, "openai-chat", model="my-finetune").calls
    assert [call.arguments for call in calls] == ['{"a": 2, "b": 3}']


@pytest.mark.parametrize("status", ["400 Bad Request", "200 OK"])
def test_refusal_is_remembered_and_reported_once(
    status: str, server: UpstreamServer, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (refusal(NO_TOOL_PARSER, status), completion_response(NATIVE), completion_response(NATIVE)):
        server.add(MODEL, step)
    exchanges: list[Exchange] = []
    sdk_client = client.openai(base_url=server.url, api_key="any", max_retries=0, on_exchange=exchanges.append)
    with caplog.at_level(logging.WARNING, logger="interlingua.client"):
        for _ in range(2):
            assert [call.arguments for call in ask(sdk_client, "openai-chat").calls] == ['{"a": 2, "b": 3}']
    first, *corrected = received(server, 3)
    assert "tool_choice" not in first
    for body in corrected:
        assert (body["tool_choice"], body["skip_special_tokens"]) == ("none", False)
        assert body["tools"] == first["tools"]
    (line,) = caplog.messages
    assert "no tool parser" in line
    assert MODEL in line
    kinds = [{finding.kind for finding in exchange.findings} for exchange in exchanges]
    assert ["refusal-corrected" in found for found in kinds] == [True, False]
    assert all("no-tool-parser" in found for found in kinds)
    assert [exchange.failure for exchange in exchanges] == ["", ""]


def test_each_client_learns_for_itself(server: UpstreamServer) -> None:
    for step in (refusal(NO_TOOL_PARSER), completion_response("Hi"), completion_response("Hi")):
        server.add(MODEL, step)
    for _ in range(2):
        ask(client.openai(base_url=server.url, api_key="any", max_retries=0), "openai-chat")
    assert [body.get("tool_choice") for body in received(server, 3)] == [None, "none", None]


# ── other refusals ────────────────────────────────────────────────────────────────────────────────────────────────────

CORRECTIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "max_tokens is too large: 32000. This model's maximum context length is 40960 tokens and your request has 15000"
        " input tokens",
        {"max_tokens": 32000},
        {"max_tokens": 25960},
    ),
    (
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        {"max_tokens": 9000},
        {"max_tokens": 8192},
    ),
    ('"llama3.1:8b" does not support thinking', {"reasoning_effort": "high"}, {"reasoning_effort": None}),
    (
        'tool_choice="required" requires --tool-call-parser to be set',
        {"tool_choice": "required"},
        {"tool_choice": "none"},
    ),
]


@pytest.mark.parametrize(("message", "fields", "corrected"), CORRECTIONS)
def test_request_is_sent_without_what_is_refused(
    message: str, fields: dict[str, Any], corrected: dict[str, Any], server: UpstreamServer
) -> None:
    server.add(MODEL, refusal(message))
    server.add(MODEL, completion_response("Hello"))
    sdk_client = client.openai(base_url=server.url, api_key="any", max_retries=0)
    assert ask(sdk_client, "openai-chat", **fields).text == "Hello"
    first, second = received(server, 2)
    assert {name: first.get(name) for name in fields} == fields
    assert {name: second.get(name) for name in corrected} == corrected


def test_image_is_omitted_for_a_model_without_vision(server: UpstreamServer) -> None:
    server.add(MODEL, refusal(NO_TOOL_PARSER))
    server.add(MODEL, refusal("At most 0 image(s) may be provided in one prompt."))
    server.add(MODEL, completion_response("Hello"))
    sdk_client = client.openai(base_url=server.url, api_key="any", max_retries=0)
    assert ask(sdk_client, "openai-chat", IMAGE_REQUEST).text == "Hello"
    *refused, last = (json.dumps(body) for body in received(server, 3))
    assert all(PIXEL in body for body in refused)
    assert PIXEL not in last
    assert "takes no images" in last


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (NO_TOOL_PARSER, {"tools": []}),
        ("This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.", {}),
        ("no such parameter", {}),
    ],
    ids=["nothing to change", "prompt too long", "another error"],
)
def test_error_that_no_change_avoids_is_raised_at_once(
    message: str, fields: dict[str, Any], server: UpstreamServer
) -> None:
    server.add(MODEL, refusal(message))
    exchanges: list[Exchange] = []
    sdk_client = client.openai(base_url=server.url, api_key="any", max_retries=0, on_exchange=exchanges.append)
    with pytest.raises(Exception, match=message[:20]):
        ask(sdk_client, "openai-chat", **fields)
    received(server, 1)
    assert [message in exchange.failure for exchange in exchanges] == [True]


def test_second_refusal_of_the_same_kind_is_raised(server: UpstreamServer) -> None:
    server.add(MODEL, refusal(NO_TOOL_PARSER))
    server.add(MODEL, refusal(NO_TOOL_PARSER))
    sdk_client = client.openai(base_url=server.url, api_key="any", max_retries=0)
    with pytest.raises(Exception, match="enable-auto-tool-choice"):
        ask(sdk_client, "openai-chat")
    received(server, 2)
