"""Tests of the OpenAI Agents SDK: complete tool loops through the gateway. The SDK rejects duplicate ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.client_loops import DIALECTS, KEY, PROMPT, GatewaySession, Notebook, check_tool_loop


def chat(client: Any, model: str) -> Any:
    from agents import OpenAIChatCompletionsModel

    return OpenAIChatCompletionsModel(model, client)


def responses(client: Any, model: str) -> Any:
    from agents import OpenAIResponsesModel

    return OpenAIResponsesModel(model, client)


async def run(agent: Any) -> str:
    from agents import Runner

    return str((await Runner.run(agent, PROMPT)).final_output)


async def stream(agent: Any) -> str:
    from agents import Runner

    result = Runner.run_streamed(agent, PROMPT)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("run_agent", [run, stream])
@pytest.mark.parametrize(("model", "keeps_thinking"), [(chat, False), (responses, True)])
def test_openai_agents(
    talk: GatewaySession,
    dialect: str,
    run_agent: Callable[[Any], Any],
    model: Callable[[Any, str], Any],
    keeps_thinking: bool,
) -> None:
    from agents import Agent, ModelSettings, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    async def loop(notebook: Notebook) -> str:
        async with AsyncOpenAI(base_url=f"{talk.base}/v1", api_key=KEY, max_retries=0) as client:
            agent = Agent(
                "notes",
                instructions="You take notes.",
                model=model(client, f"demo/{dialect}"),
                model_settings=ModelSettings(store=False, response_include=["reasoning.encrypted_content"]),
                tools=[function_tool(tool) for tool in (notebook.note, notebook.add, notebook.clock)],
            )
            text: str = await run_agent(agent)
            return text

    notebook = Notebook()
    text = asyncio.run(loop(notebook))
    check_tool_loop(talk, notebook, text, dialect, keeps_thinking)
