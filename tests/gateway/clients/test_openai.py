"""The official OpenAI SDK runs whole tool loops through the gateway, in every way it has to ask."""

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
"""More than needed: a loop ends by itself."""


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
    return _of(completion.choices)


def chat_stream(client: OpenAI, model: str, messages: Any) -> ChatCompletionMessage:
    """As people write it by hand, from the documentation."""
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
        message = _of(stream.get_final_completion().choices)
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
    return _of(completion.choices)


def _of(choices: Iterable[Any]) -> ChatCompletionMessage:
    [choice] = choices
    message: ChatCompletionMessage = choice.message
    assert choice.finish_reason == ("tool_calls" if message.tool_calls else "stop")
    return message


CHATS: list[Chat] = [chat_whole, chat_stream, chat_helper, chat_strict_helper, chat_parse]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ask", CHATS)
def test_chat(talk: GatewaySession, dialect: str, ask: Chat) -> None:
    notebook, messages, said = Notebook(), chat_prompt(), ""
    with OpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
        for _ in range(TURNS):
            message = ask(client, f"demo/{dialect}", messages)
            said = message.content or ""
            if not message.tool_calls:
                break
            messages += chat_turn(message, notebook)
    check_tool_loop(talk, notebook, said, dialect, keeps_thinking=True)


def test_chat_async(talk: GatewaySession) -> None:
    async def run(notebook: Notebook) -> str:
        messages = chat_prompt()
        async with AsyncOpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
            for _ in range(TURNS):
                asked = client.chat.completions.stream(model="demo/kimi_k2", messages=messages, tools=chat_tools())
                async with asked as stream:
                    message = _of((await stream.get_final_completion()).choices)
                if not message.tool_calls:
                    return message.content or ""
                messages += chat_turn(message, notebook)
        raise AssertionError("it does not come to an end")

    notebook = Notebook()
    said = asyncio.run(run(notebook))
    check_tool_loop(talk, notebook, said, "kimi_k2", keeps_thinking=True)


def chat_prompt() -> Any:
    return [{"role": "system", "content": "You take notes."}, {"role": "user", "content": PROMPT}]


def chat_turn(message: ChatCompletionMessage, notebook: Notebook) -> list[Any]:
    """The model's message goes back as it came, and the results behind it."""
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


def test_a_schema_for_the_answer(talk: GatewaySession) -> None:
    with OpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
        asked: Any = [{"role": "user", "content": "How warm is it in Paris?"}]
        completion = client.chat.completions.parse(model="demo/hermes", messages=asked, response_format=Weather)
        response = client.responses.parse(model="demo/hermes", input=asked, text_format=Weather)
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


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ask", RESPONSES)
def test_responses(talk: GatewaySession, dialect: str, ask: Respond) -> None:
    notebook, said = Notebook(), ""
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    with OpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
        for _ in range(TURNS):
            response = ask(client, f"demo/{dialect}", items)
            assert response.status == "completed"
            assert response.usage is not None
            said = response.output_text
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            items += [_given_back(item) for item in response.output]
            items += [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": notebook.run(call.name, call.arguments),
                }
                for call in calls
            ]
    check_tool_loop(talk, notebook, said, dialect, keeps_thinking=True)


def _given_back(item: Any) -> Any:
    given = item.model_dump(exclude_none=True)
    given.pop("parsed_arguments", None)
    return given
