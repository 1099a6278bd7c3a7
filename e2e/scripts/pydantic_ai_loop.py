"""A streaming tool loop of pydantic-ai: `KEY=… python pydantic_ai_loop.py API BASE MODEL PROMPT`."""

import asyncio
import os
import subprocess
import sys

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def chat(base: str, key: str, model: str) -> Model:
    return OpenAIChatModel(model, provider=OpenAIProvider(base_url=f"{base}/v1", api_key=key))


def messages(base: str, key: str, model: str) -> Model:
    return AnthropicModel(model, provider=AnthropicProvider(base_url=base, api_key=key))


def responses(base: str, key: str, model: str) -> Model:
    profile = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=True)
    provider = OpenAIProvider(base_url=f"{base}/v1", api_key=key)
    return OpenAIResponsesModel(model, provider=provider, profile=profile)


APIS = {"openai-chat": chat, "anthropic-messages": messages, "openai-responses": responses}


def bash(command: str) -> str:
    """Run a shell command."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


async def main(api: str, base: str, model: str, prompt: str) -> None:
    agent = Agent(APIS[api](base, os.environ["KEY"], model), tools=[bash])
    async with agent.iter(prompt) as steps:
        async for step in steps:
            if Agent.is_model_request_node(step):
                async with step.stream(steps.ctx) as events:
                    async for _ in events:
                        pass
    print(steps.result.output)


asyncio.run(main(*sys.argv[1:]))
