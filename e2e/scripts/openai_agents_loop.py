"""A streaming tool loop of OpenAI's Agents SDK: `KEY=… python openai_agents_loop.py API BASE MODEL PROMPT`."""

import asyncio
import os
import subprocess
import sys

from agents import Agent, Model, Runner, function_tool, set_tracing_disabled
from agents import OpenAIChatCompletionsModel as ChatModel
from agents import OpenAIResponsesModel as ResponsesModel
from openai import AsyncOpenAI

APIS = {"openai-chat": ChatModel, "openai-responses": ResponsesModel}


def create_model(api: str, base: str, key: str, model: str) -> Model:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{base}/v1", api_key=key)
    model_class = APIS[api]
    return model_class(model, client)


@function_tool
def bash(command: str) -> str:
    """Run a shell command."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


async def main(api: str, base: str, model: str, prompt: str) -> None:
    agent = Agent("shell", model=create_model(api, base, os.environ["KEY"], model), tools=[bash])
    result = Runner.run_streamed(agent, prompt)
    async for _ in result.stream_events():
        pass
    print(result.final_output)


asyncio.run(main(*sys.argv[1:]))
