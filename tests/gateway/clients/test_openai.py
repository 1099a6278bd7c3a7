"""Tests of the official OpenAI SDK: complete tool loops through the gateway, with every method of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import Response
from pydantic import BaseModel

from tests.support.client_loops import (
    DIALECTS,
    KEY,
    PROMPT,
    SCHEMAS,
    STEPS,
    GatewaySession,
    Json,
    Notebook,
    check_tool_loop,
)

TURNS = len(STEPS) + 3
"""Upper limit: a tool loop needs fewer turns."""


def chat_tools(strict: bool = False) -> Any:
    flag = {"strict": True} if strict else {}
    return [
        {"type": "function", "function": {"name": name, "description": name, "parameters": schema, **flag}}
        for name, schema in SCHEMAS.items()
    ]


def response_tools() -> Any:
    return [
        {"type": "function", "name": name, "description": name, "parameters": schema, "strict": True}
        for name, schema in SCHEMAS.items()
    ]


# ── Chat Completions ──────────────────────────────────────────────────────────────────────────────────────────────

Chat = Callable[[OpenAI, str, Any], ChatCompletionMessage]


def chat_whole(client: OpenAI, model: str, messages: Any) -> ChatCompletionMessage:
    completion = client.chat.completions.create(model=model, messages=messages, tools=chat_tools())
    assert completion.usage is not None
    assert completion.usage.completion_tokens > 0
    return _only_message(completion.choices)


def chat_stream(client: OpenAI, model: str, messages: Any) -> ChatCompletionMessage:
    """Accumulate the stream manually, as shown in the documentation."""
    calls: dict[int, Json] = {}
    text, thinking, finish, usage = "", "", None, None
    for chunk in client.chat.completions.create(
        model=model, messages=messages, tools=chat_tools(), stream=True, stream_options={"include_usage": True}
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            text += choice.delta.content or ""
            thinking += getattr(choice.delta, "reasoning_content", None) or ""
            for delta in choice.delta.tool_calls or ():
                assert delta.function is not None
                if delta.index not in calls:
                    calls[delta.index] = {
                        "id": delta.id,
                        "type": "function",
                        "function": {"name": delta.function.name, "arguments": ""},
                    }
                calls[delta.index]["function"]["arguments"] += delta.function.arguments or ""
    assert finish == ("tool_calls" if calls else "stop")
    assert usage is not None
    return ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": text or None,
            "tool_calls": list(calls.values()) or None,
            "reasoning_content": thinking,
        }
    )


def chat_helper(client: OpenAI, model: str, messages: Any, strict: bool = False) -> ChatCompletionMessage:
    with client.chat.completions.stream(model=model, messages=messages, tools=chat_tools(strict)) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        message = _only_message(stream.get_final_completion().choices)
    assert [(event.name, event.arguments) for event in done] == [
        (call.function.name, call.function.arguments) for call in message.tool_calls or () if call.type == "function"
    ]
    return message


def chat_strict_helper(client: OpenAI, model: str, messages: Any) -> ChatCompletionMessage:
    return chat_helper(client, model, messages, strict=True)


class note(BaseModel):  # noqa: N801 - this is the tool's name
    title: str
    text: str
    tags: list[str]


class add(BaseModel):  # noqa: N801
    a: int
    b: float


class clock(BaseModel):  # noqa: N801
    pass


def chat_parse(client: OpenAI, model: str, messages: Any) -> ChatCompletionMessage:
    tools = [openai.pydantic_function_tool(tool) for tool in (note, add, clock)]
    completion = client.chat.completions.parse(model=model, messages=messages, tools=tools)
    for call in completion.choices[0].message.tool_calls or ():
        assert isinstance(call.function.parsed_arguments, note | add | clock)
    return _only_message(completion.choices)


def _only_message(choices: Iterable[Any]) -> ChatCompletionMessage:
    [choice] = choices
    message: ChatCompletionMessage = choice.message
    assert choice.finish_reason == ("tool_calls" if message.tool_calls else "stop")
    return message


CHATS: list[Chat] = [chat_whole, chat_stream, chat_helper, chat_strict_helper, chat_parse]


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ask", CHATS)
def test_chat_tool_loop(talk: GatewaySession, dialect: str, ask: Chat) -> None:
    notebook, messages, text = Notebook(), chat_prompt(), ""
    with OpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
        for _ in range(TURNS):
            message = ask(client, f"demo/{dialect}", messages)
            text = message.content or ""
            if not message.tool_calls:
                break
            messages += chat_turn(message, notebook)
    check_tool_loop(talk, notebook, text, dialect, keeps_thinking=True)


def test_chat_tool_loop_async(talk: GatewaySession) -> None:
    async def run(notebook: Notebook) -> str:
        messages = chat_prompt()
        async with AsyncOpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
            for _ in range(TURNS):
                request = client.chat.completions.stream(model="demo/kimi_k2", messages=messages, tools=chat_tools())
                async with request as stream:
                    message = _only_message((await stream.get_final_completion()).choices)
                if not message.tool_calls:
                    return message.content or ""
                messages += chat_turn(message, notebook)
        raise AssertionError("the tool loop does not end")

    notebook = Notebook()
    text = asyncio.run(run(notebook))
    check_tool_loop(talk, notebook, text, "kimi_k2", keeps_thinking=True)


def chat_prompt() -> Any:
    return [{"role": "system", "content": "You take notes."}, {"role": "user", "content": PROMPT}]


def chat_turn(message: ChatCompletionMessage, notebook: Notebook) -> list[Any]:
    """Return the model's message unchanged, followed by the tool results."""
    calls = [call for call in message.tool_calls or () if call.type == "function"]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": notebook.run(call.function.name, call.function.arguments)}
        for call in calls
    ]
    kept = message.model_dump(include={"role", "content", "tool_calls", "reasoning_content"}, exclude_none=True)
    for call in kept["tool_calls"]:
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    return [kept, *results]


class Weather(BaseModel):
    city: str
    degrees: int


def test_structured_output(talk: GatewaySession) -> None:
    with OpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
        question: Any = [{"role": "user", "content": "How warm is it in Paris?"}]
        completion = client.chat.completions.parse(model="demo/hermes", messages=question, response_format=Weather)
        response = client.responses.parse(model="demo/hermes", input=question, text_format=Weather)
    assert completion.choices[0].message.parsed == response.output_parsed
    assert isinstance(response.output_parsed, Weather)


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────

Respond = Callable[[OpenAI, str, Any], Response]
INCLUDE: Any = ["reasoning.encrypted_content"]


def response_whole(client: OpenAI, model: str, items: Any) -> Response:
    return client.responses.create(model=model, input=items, tools=response_tools(), store=False, include=INCLUDE)


def response_stream(client: OpenAI, model: str, items: Any) -> Response:
    last = None
    for event in client.responses.create(
        model=model, input=items, tools=response_tools(), store=False, include=INCLUDE, stream=True
    ):
        last = event
    assert last is not None
    assert last.type == "response.completed"
    return last.response


def response_helper(client: OpenAI, model: str, items: Any) -> Response:
    with client.responses.stream(
        model=model, input=items, tools=response_tools(), store=False, include=INCLUDE
    ) as stream:
        done = [event.arguments for event in stream if event.type == "response.function_call_arguments.done"]
        response = stream.get_final_response()
    assert done == [item.arguments for item in response.output if item.type == "function_call"]
    return response


def response_parse(client: OpenAI, model: str, items: Any) -> Response:
    tools = [openai.pydantic_function_tool(tool) for tool in (note, add, clock)]
    flat: Any = [{"type": "function", **tool["function"]} for tool in tools]
    response = client.responses.parse(model=model, input=items, tools=flat, store=False, include=INCLUDE)
    for item in response.output:
        assert item.type != "function_call" or item.parsed_arguments is not None
    return response


RESPONSES: list[Respond] = [response_whole, response_stream, response_helper, response_parse]


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ask", RESPONSES)
def test_responses_tool_loop(talk: GatewaySession, dialect: str, ask: Respond) -> None:
    notebook, text = Notebook(), ""
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    with OpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
        for _ in range(TURNS):
            response = ask(client, f"demo/{dialect}", items)
            assert response.status == "completed"
            assert response.usage is not None
            text = response.output_text
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            items += [_input_item(item) for item in response.output]
            items += [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": notebook.run(call.name, call.arguments),
                }
                for call in calls
            ]
    check_tool_loop(talk, notebook, text, dialect, keeps_thinking=True)


def _input_item(item: Any) -> Any:
    fields = item.model_dump(exclude_none=True)
    fields.pop("parsed_arguments", None)
    return fields
