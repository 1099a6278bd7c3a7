"""Tests of pydantic-ai: complete tool loops through the gateway, with each model class that accepts a base URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.support.client_loops import DIALECTS, KEY, PROMPT, GatewaySession, Notebook, check_tool_loop


@asynccontextmanager
async def chat(base: str, model: str) -> AsyncIterator[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with AsyncOpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0) as client:
        yield OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def responses(base: str, model: str, **options: Any) -> AsyncIterator[Any]:
    """Responses model with the default profile: unknown models get their thinking back as text in tags."""
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with AsyncOpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0) as client:
        yield OpenAIResponsesModel(model, provider=OpenAIProvider(openai_client=client), **options)


def sealed_responses(base: str, model: str) -> AbstractAsyncContextManager[Any]:
    """Responses model with a profile that sends encrypted reasoning back unchanged."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return responses(base, model, profile=OpenAIModelProfile(openai_supports_encrypted_reasoning_content=True))


@asynccontextmanager
async def messages(base: str, model: str) -> AsyncIterator[Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    async with AsyncAnthropic(base_url=base, api_key=KEY, max_retries=0) as client:
        yield AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


async def run(agent: Any) -> str:
    return str((await agent.run(PROMPT)).output)


async def stream(agent: Any) -> str:
    """Stream each step, as user interfaces do."""
    from pydantic_ai import Agent

    async with agent.iter(PROMPT) as steps:
        async for step in steps:
            if Agent.is_model_request_node(step):
                events: Any
                async with step.stream(steps.ctx) as events:
                    async for _ in events:
                        pass
    return str(steps.result.output)


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("run_agent", [run, stream])
@pytest.mark.parametrize(
    ("model", "keeps_thinking"),
    [(chat, True), (responses, False), (sealed_responses, True), (messages, True)],
)
def test_pydantic_ai(
    talk: GatewaySession,
    dialect: str,
    run_agent: Callable[[Any], Any],
    model: Callable[[str, str], AbstractAsyncContextManager[Any]],
    keeps_thinking: bool,
) -> None:
    from pydantic_ai import Agent

    async def loop(notebook: Notebook) -> str:
        tools: list[Any] = [notebook.note, notebook.add, notebook.clock]
        async with model(talk.base, f"demo/{dialect}") as client_model:
            text: str = await run_agent(Agent(client_model, instructions="You take notes.", tools=tools))
            return text

    notebook = Notebook()
    text = asyncio.run(loop(notebook))
    check_tool_loop(talk, notebook, text, dialect, keeps_thinking)
