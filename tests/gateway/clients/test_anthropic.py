"""Tests of the official Anthropic SDK: complete tool loops through the gateway, manual and with its tool runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from anthropic.types import Message

from tests.support.client_loops import DIALECTS, KEY, PROMPT, SCHEMAS, STEPS, GatewaySession, Notebook, check_tool_loop

TURNS = len(STEPS) + 3
TOOLS: Any = [{"name": name, "description": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
OPTIONS: Any = {"max_tokens": 2000, "tools": TOOLS, "system": "You take notes."}

Ask = Callable[[Anthropic, str, Any], Message]


def whole(client: Anthropic, model: str, messages: Any) -> Message:
    message: Message = client.messages.create(model=model, messages=messages, **OPTIONS)
    return message


def with_thinking(client: Anthropic, model: str, messages: Any) -> Message:
    message: Message = client.messages.create(
        model=model, messages=messages, thinking={"type": "enabled", "budget_tokens": 1024}, **OPTIONS
    )
    return message


def streamed(client: Anthropic, model: str, messages: Any) -> Message:
    with client.messages.stream(model=model, messages=messages, **OPTIONS) as stream:
        ended = [event.content_block for event in stream if event.type == "content_block_stop"]
        message = stream.get_final_message()
    assert [block.model_dump() for block in ended] == [block.model_dump() for block in message.content]
    return message


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ask", [whole, with_thinking, streamed])
def test_messages_tool_loop(talk: GatewaySession, dialect: str, ask: Ask) -> None:
    notebook, text = Notebook(), ""
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    with Anthropic(base_url=talk.base, api_key=KEY, max_retries=0) as client:
        for _ in range(TURNS):
            message = ask(client, f"demo/{dialect}", messages)
            text = text_of(message)
            if message.stop_reason != "tool_use":
                break
            messages += turn(message, notebook)
    check_tool_loop(talk, notebook, text, dialect, keeps_thinking=True)


def test_messages_tool_loop_async(talk: GatewaySession) -> None:
    async def run(notebook: Notebook) -> str:
        messages: list[Any] = [{"role": "user", "content": PROMPT}]
        async with AsyncAnthropic(base_url=talk.base, api_key=KEY, max_retries=0) as client:
            for _ in range(TURNS):
                async with client.messages.stream(model="demo/kimi_k2", messages=messages, **OPTIONS) as stream:
                    message = await stream.get_final_message()
                if message.stop_reason != "tool_use":
                    return text_of(message)
                messages += turn(message, notebook)
        raise AssertionError("the tool loop does not end")

    notebook = Notebook()
    text = asyncio.run(run(notebook))
    check_tool_loop(talk, notebook, text, "kimi_k2", keeps_thinking=True)


def turn(message: Message, notebook: Notebook) -> list[Any]:
    """Return the model's message unchanged, followed by the tool results."""
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": notebook.run(block.name, block.input)}
        for block in message.content
        if block.type == "tool_use"
    ]
    return [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]


def text_of(message: Any) -> str:
    assert message.stop_reason in ("tool_use", "end_turn")
    assert message.usage.input_tokens > 0
    return "".join(block.text for block in message.content if block.type == "text")


# ── tool runner ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("threads", [False, True])
def test_tool_runner_of_sdk(talk: GatewaySession, dialect: str, streams: bool, threads: bool) -> None:
    """By default the runner requests server-side threads. With `thread: False` it sends all messages each time."""
    notebook = Notebook()
    tools = [beta_tool(tool) for tool in (notebook.note, notebook.add, notebook.clock)]
    options: Any = {"model": f"demo/{dialect}", "max_tokens": 2000, "tools": tools, "stream": streams}
    options |= {} if threads else {"thread": False}
    with Anthropic(base_url=talk.base, api_key=KEY, max_retries=0) as client:
        runner = client.beta.messages.tool_runner(messages=[{"role": "user", "content": PROMPT}], **options)
        message: Any = runner.until_done()
    check_tool_loop(talk, notebook, text_of(message), dialect, keeps_thinking=True)
    assert [exchange.body["thread"] for exchange in talk.exchanges(400)] == ([{"type": "create"}] if threads else [])
