"""Official SDKs with our transport: tool loops against a server that writes calls as text in Kimi's dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

import interlingua as il
from interlingua import client
from interlingua.client import Exchange, ToolBox
from interlingua.core.reply import Call, Reply, Text
from interlingua.dialects.native_text import render
from tests.support import upstream_server as up
from tests.support.upstream_server import UpstreamServer

MODEL = "moonshotai/kimi-k2.5"
EXPECTED_CALLS = [Call("", "add", '{"a": 2, "b": 3}'), Call("", "add", '{"a": 40, "b": 2}')]
NATIVE = render(Reply(parts=[Text("I add."), *EXPECTED_CALLS]), dialect="kimi_k2")
TOKENS = [NATIVE[at : at + 5] for at in range(0, len(NATIVE), 5)]


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


BOX = ToolBox(add)


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    """Upstream that first calls two tools as text with finish reason `stop`, and then answers."""
    server = UpstreamServer()
    server.add(MODEL, up.chat_stream(*TOKENS, finish="stop"))
    server.add(MODEL, up.chat_stream("Five ", "and forty-two."))
    yield server
    server.stop()


def completion_response(text: str) -> up.Step:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return up.send_response("200 OK", json.dumps(body).encode())


@pytest.fixture
def whole_server() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    server.add(MODEL, completion_response(NATIVE))
    server.add(MODEL, completion_response("Five and forty-two."))
    yield server
    server.stop()


def request_body(wire: str, messages: list[Any]) -> dict[str, Any]:
    conversation = {"input": messages} if wire == "openai-responses" else {"messages": messages}
    max_tokens = {"max_tokens": 100} if wire == "anthropic-messages" else {}
    return {"model": MODEL, "tools": BOX.offer(wire), **conversation, **max_tokens}


def create(sdk: Any, wire: str) -> Any:
    if wire == "openai-chat":
        return sdk.chat.completions.create
    return sdk.responses.create if wire == "openai-responses" else sdk.messages.create


CLIENTS = [("openai-chat", "openai"), ("openai-responses", "openai"), ("anthropic-messages", "anthropic")]


def check(text: str, server: UpstreamServer) -> None:
    assert text == "Five and forty-two."
    second = server.wait_for_requests(MODEL, 2)[1]
    assert second.path == "/v1/chat/completions"
    assert second.headers["authorization"] == "Bearer sk-test"
    assert "x-api-key" not in second.headers
    results = [message["content"] for message in second.body["messages"] if message["role"] == "tool"]
    assert results == ["5", "42"]


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
def test_tool_loop_with_streaming(wire: str, sdk: str, server: UpstreamServer) -> None:
    exchanges: list[Exchange] = []
    with getattr(client, sdk)(base_url=server.url, api_key="sk-test", on_exchange=exchanges.append) as sdk_client:
        messages: list[Any] = [{"role": "user", "content": "Add."}]
        for _ in range(2):
            acc = il.Accumulator(wire)
            for chunk in create(sdk_client, wire)(**request_body(wire, messages), stream=True):
                acc.add(chunk)
            assert acc.finished
            messages += BOX.messages(wire, acc.reply(), BOX.run_sync(acc.calls))
    check(acc.text, server)
    assert [(exchange.dialect, exchange.failure) for exchange in exchanges] == [("kimi_k2", "")] * 2
    assert "stop-reason" in [finding.kind for finding in exchanges[0].findings]


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
def test_tool_loop_with_async_streaming(wire: str, sdk: str, server: UpstreamServer) -> None:
    async def go() -> str:
        async with getattr(client, f"async_{sdk}")(base_url=server.url, api_key="sk-test") as sdk_client:
            messages: list[Any] = [{"role": "user", "content": "Add."}]
            for _ in range(2):
                acc = il.Accumulator(wire)
                async for chunk in await create(sdk_client, wire)(**request_body(wire, messages), stream=True):
                    acc.add(chunk)
                messages += BOX.messages(wire, acc.reply(), await BOX.run(acc.calls))
            return acc.text

    check(asyncio.run(go()), server)


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_tool_loop_with_whole_replies(wire: str, sdk: str, in_loop: bool, whole_server: UpstreamServer) -> None:
    async def go() -> str:
        name = f"async_{sdk}" if in_loop else sdk
        sdk_client = getattr(client, name)(base_url=whole_server.url, api_key="sk-test")
        messages: list[Any] = [{"role": "user", "content": "Add."}]
        for _ in range(2):
            body = create(sdk_client, wire)(**request_body(wire, messages))
            acc = il.Accumulator(wire)
            acc.add(await body if in_loop else body)
            assert acc.finished
            messages += BOX.messages(wire, acc.reply(), await BOX.run(acc.calls))
        return acc.text

    check(asyncio.run(go()), whole_server)


def test_stream_helper_of_the_sdk(server: UpstreamServer) -> None:
    sdk_client = client.anthropic(base_url=server.url, api_key="sk-test")
    offered: Any = request_body("anthropic-messages", [{"role": "user", "content": "Add."}])
    with sdk_client.messages.stream(**offered) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == "tool_use"
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"a": 2, "b": 3},
        {"a": 40, "b": 2},
    ]


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
def test_upstream_error_raises_sdk_status_error(wire: str, sdk: str, server: UpstreamServer) -> None:
    body = json.dumps({"error": {"message": "no credits", "type": "insufficient_quota", "code": 402}}).encode()
    server.add("poor", up.send_response("402 Payment Required", body))
    sdk_client = getattr(client, sdk)(base_url=server.url, api_key="sk-test", max_retries=0)
    with pytest.raises(Exception, match="no credits") as raised:
        create(sdk_client, wire)(**{**request_body(wire, [{"role": "user", "content": "hi"}]), "model": "poor"})
    assert type(raised.value).__name__ == "APIStatusError"
    assert raised.value.status_code == 402  # type: ignore[attr-defined]


def test_truncated_reply_raises_api_error(server: UpstreamServer) -> None:
    exchanges: list[Exchange] = []
    server.add("cut", up.chat_stream(*TOKENS[: len(TOKENS) // 2 + 4], finish=None, done=False))
    sdk_client = client.openai(base_url=server.url, api_key="sk-test", dialect="kimi_k2", on_exchange=exchanges.append)
    request: Any = {**request_body("openai-chat", [{"role": "user", "content": "hi"}]), "model": "cut", "stream": True}
    with pytest.raises(openai.APIError, match="the upstream ended inside"):
        for _ in sdk_client.chat.completions.create(**request):
            pass
    assert "the upstream ended inside" in exchanges[0].failure


def test_model_list_is_passed_through(server: UpstreamServer) -> None:
    server.add("None", up.send_response("200 OK", b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'))
    sdk_client = client.openai(base_url=server.url, api_key="sk-test")
    assert [model.id for model in sdk_client.models.list()] == ["m"]


def test_upstream_on_another_wire(server: UpstreamServer) -> None:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    server.add("claude", up.send_response("200 OK", json.dumps(message).encode()))
    sdk_client = client.openai(base_url=server.url, api_key="sk-test", upstream_api="anthropic-messages")
    reply = sdk_client.chat.completions.create(model="claude", messages=[{"role": "user", "content": "hi"}])
    assert reply.choices[0].message.content == "Hi"
    (request,) = server.wait_for_requests("claude")
    assert (request.path, request.headers["x-api-key"]) == ("/v1/messages", "sk-test")
    assert "anthropic-version" in request.headers


def test_langchain_with_our_http_client(server: UpstreamServer) -> None:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    key = SecretStr("sk-test")
    model = ChatOpenAI(
        model=MODEL, base_url=server.url, api_key=key, http_client=client.http_client(server.url), streaming=True
    )
    message = model.bind_tools(BOX.offer("openai-chat")).invoke("Add.")
    assert [call["args"] for call in message.tool_calls] == [{"a": 2, "b": 3}, {"a": 40, "b": 2}]


def test_pydantic_ai_with_our_sdk_client(server: UpstreamServer) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def go() -> str:
        sdk_client = client.async_openai(base_url=server.url, api_key="sk-test")
        agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=sdk_client)), tools=[add])
        return (await agent.run("Add.")).output

    check(asyncio.run(go()), server)
