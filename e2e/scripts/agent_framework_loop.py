"""A streaming tool loop of Microsoft's Agent Framework: `KEY=… python SCRIPT API BASE MODEL PROMPT`."""

import asyncio
import os
import subprocess
import sys

from agent_framework import Agent
from agent_framework.anthropic import AnthropicClient
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

APIS = {
    "openai-responses": lambda base, **options: OpenAIChatClient(base_url=f"{base}/v1", **options),
    "openai-chat": lambda base, **options: OpenAIChatCompletionClient(base_url=f"{base}/v1", **options),
    "anthropic-messages": lambda base, **options: AnthropicClient(base_url=base, **options),
}


def bash(command: str) -> str:
    """Run a shell command."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


async def main(api: str, base: str, model: str, prompt: str) -> None:
    make_client = APIS[api]
    agent = Agent(make_client(base, model=model, api_key=os.environ["KEY"]), tools=[bash])
    session = agent.create_session()
    async for update in agent.run(prompt, stream=True, session=session):
        print(update.text, end="")
    # The session continues: with Responses by the id of the last response, which the server has stored.
    print((await agent.run("What did you do? Do not use any tools.", session=session)).text)


asyncio.run(main(*sys.argv[1:]))
