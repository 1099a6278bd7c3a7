"""The official SDKs, with our transport, run tool loops against a server that writes calls as Kimi does."""

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
WANTED = [Call("", "add", '{"a": 2, "b": 3}'), Call("", "add", '{"a": 40, "b": 2}')]
NATIVE = render(Reply(parts=[Text("I add."), *WANTED]), dialect="kimi_k2")
TOKENS = [NATIVE[at : at + 5] for at in range(0, len(NATIVE), 5)]


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


BOX = ToolBox(add)


@pytest.fixture
def server() -> Iterator[UpstreamServer]:
    """It calls two tools, all in text and with `stop`, and then says what it was told."""
    server = UpstreamServer()
    server.add(MODEL, up.chat_stream(*TOKENS, finish="stop"))
    server.add(MODEL, up.chat_stream("Five ", "and forty-two."))
    yield server
    server.stop()


def whole(text: str) -> up.Step:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return up.send_response("200 OK", json.dumps(body).encode())


@pytest.fixture
def whole_server() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    server.add(MODEL, whole(NATIVE))
    server.add(MODEL, whole("Five and forty-two."))
    yield server
    server.stop()


def asked(wire: str, messages: list[Any]) -> dict[str, Any]:
    said = {"input": messages} if wire == "openai-responses" else {"messages": messages}
    more = {"max_tokens": 100} if wire == "anthropic-messages" else {}
    return {"model": MODEL, "tools": BOX.offer(wire), **said, **more}


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
def test_a_tool_loop_streaming(wire: str, sdk: str, server: UpstreamServer) -> None:
    told: list[Exchange] = []
    with getattr(client, sdk)(base_url=server.url, api_key="sk-test", on_exchange=told.append) as made:
        messages: list[Any] = [{"role": "user", "content": "Add."}]
        for _ in range(2):
            acc = il.Accumulator(wire)
            for chunk in create(made, wire)(**asked(wire, messages), stream=True):
                acc.add(chunk)
            assert acc.finished
            messages += BOX.messages(wire, acc.reply(), BOX.run_sync(acc.calls))
    check(acc.text, server)
    assert [(one.dialect, one.failure) for one in told] == [("kimi_k2", "")] * 2
    assert "stop-reason" in [finding.kind for finding in told[0].findings]


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
def test_a_tool_loop_streaming_in_a_loop(wire: str, sdk: str, server: UpstreamServer) -> None:
    async def go() -> str:
        async with getattr(client, f"async_{sdk}")(base_url=server.url, api_key="sk-test") as made:
            messages: list[Any] = [{"role": "user", "content": "Add."}]
            for _ in range(2):
                acc = il.Accumulator(wire)
                async for chunk in await create(made, wire)(**asked(wire, messages), stream=True):
                    acc.add(chunk)
                messages += BOX.messages(wire, acc.reply(), await BOX.run(acc.calls))
            return acc.text

    check(asyncio.run(go()), server)


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
@pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
def test_a_tool_loop_with_whole_replies(wire: str, sdk: str, in_loop: bool, whole_server: UpstreamServer) -> None:
    async def go() -> str:
        name = f"async_{sdk}" if in_loop else sdk
        made = getattr(client, name)(base_url=whole_server.url, api_key="sk-test")
        messages: list[Any] = [{"role": "user", "content": "Add."}]
        for _ in range(2):
            body = create(made, wire)(**asked(wire, messages))
            acc = il.Accumulator(wire)
            acc.add(await body if in_loop else body)
            assert acc.finished
            messages += BOX.messages(wire, acc.reply(), await BOX.run(acc.calls))
        return acc.text

    check(asyncio.run(go()), whole_server)


def test_the_helpers_of_the_sdk_work_too(server: UpstreamServer) -> None:
    made = client.anthropic(base_url=server.url, api_key="sk-test")
    offered: Any = asked("anthropic-messages", [{"role": "user", "content": "Add."}])
    with made.messages.stream(**offered) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == "tool_use"
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"a": 2, "b": 3},
        {"a": 40, "b": 2},
    ]


@pytest.mark.parametrize(("wire", "sdk"), CLIENTS)
def test_errors_are_the_sdks_own(wire: str, sdk: str, server: UpstreamServer) -> None:
    body = json.dumps({"error": {"message": "no credits", "type": "insufficient_quota", "code": 402}}).encode()
    server.add("poor", up.send_response("402 Payment Required", body))
    made = getattr(client, sdk)(base_url=server.url, api_key="sk-test", max_retries=0)
    with pytest.raises(Exception, match="no credits") as raised:
        create(made, wire)(**{**asked(wire, [{"role": "user", "content": "hi"}]), "model": "poor"})
    assert type(raised.value).__name__ == "APIStatusError"
    assert raised.value.status_code == 402  # type: ignore[attr-defined]


def test_a_reply_that_is_cut_is_an_error(server: UpstreamServer) -> None:
    told: list[Exchange] = []
    server.add("cut", up.chat_stream(*TOKENS[: len(TOKENS) // 2 + 4], finish=None, done=False))
    made = client.openai(base_url=server.url, api_key="sk-test", dialect="kimi_k2", on_exchange=told.append)
    question: Any = {**asked("openai-chat", [{"role": "user", "content": "hi"}]), "model": "cut", "stream": True}
    with pytest.raises(openai.APIError, match="the upstream ended inside"):
        for _ in made.chat.completions.create(**question):
            pass
    assert "the upstream ended inside" in told[0].failure


def test_what_is_no_reply_passes(server: UpstreamServer) -> None:
    server.add("None", up.send_response("200 OK", b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'))
    made = client.openai(base_url=server.url, api_key="sk-test")
    assert [model.id for model in made.models.list()] == ["m"]


def test_an_upstream_of_another_wire(server: UpstreamServer) -> None:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    server.add("claude", up.send_response("200 OK", json.dumps(message).encode()))
    made = client.openai(base_url=server.url, api_key="sk-test", upstream_api="anthropic-messages")
    reply = made.chat.completions.create(model="claude", messages=[{"role": "user", "content": "hi"}])
    assert reply.choices[0].message.content == "Hi"
    (question,) = server.wait_for_requests("claude")
    assert (question.path, question.headers["x-api-key"]) == ("/v1/messages", "sk-test")
    assert "anthropic-version" in question.headers


def test_langchain_takes_the_http_client(server: UpstreamServer) -> None:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    key = SecretStr("sk-test")
    model = ChatOpenAI(
        model=MODEL, base_url=server.url, api_key=key, http_client=client.http_client(server.url), streaming=True
    )
    said = model.bind_tools(BOX.offer("openai-chat")).invoke("Add.")
    assert [call["args"] for call in said.tool_calls] == [{"a": 2, "b": 3}, {"a": 40, "b": 2}]


def test_pydantic_ai_takes_the_client(server: UpstreamServer) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def go() -> str:
        made = client.async_openai(base_url=server.url, api_key="sk-test")
        agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=made)), tools=[add])
        return (await agent.run("Add.")).output

    check(asyncio.run(go()), server)
