"""A streaming tool loop of LangChain: `KEY=… python langchain_loop.py API BASE MODEL PROMPT`."""

import os
import subprocess
import sys

from langchain.agents import create_agent
from langchain.chat_models import BaseChatModel
from langchain.tools import tool
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI


def chat(base: str, key: str, model: str) -> BaseChatModel:
    return ChatOpenAI(model=model, base_url=f"{base}/v1", api_key=key, use_responses_api=False)


def messages(base: str, key: str, model: str) -> BaseChatModel:
    return ChatAnthropic(model=model, base_url=base, api_key=key)


def responses(base: str, key: str, model: str) -> BaseChatModel:
    return ChatOpenAI(model=model, base_url=f"{base}/v1", api_key=key, use_responses_api=True)


APIS = {"openai-chat": chat, "anthropic-messages": messages, "openai-responses": responses}


@tool
def bash(command: str) -> str:
    """Run a shell command."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def main(api: str, base: str, model: str, prompt: str) -> None:
    agent = create_agent(APIS[api](base, os.environ["KEY"], model), [bash])
    for piece, _ in agent.stream({"messages": [("user", prompt)]}, stream_mode="messages"):
        print(piece.text, end="", flush=True)


main(*sys.argv[1:])
