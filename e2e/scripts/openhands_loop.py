"""A streaming tool loop of the OpenHands SDK: `KEY=… python openhands_loop.py API BASE MODEL PROMPT`."""

import os
import sys

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.terminal import TerminalTool


def chat(base: str, key: str, model: str) -> LLM:
    return LLM(model=f"openai/{model}", base_url=f"{base}/v1", api_key=key, api_mode="chat", stream=True)


def messages(base: str, key: str, model: str) -> LLM:
    return LLM(model=f"anthropic/{model}", base_url=base, api_key=key, api_mode="chat", stream=True)


def responses(base: str, key: str, model: str) -> LLM:
    return LLM(model=f"openai/{model}", base_url=f"{base}/v1", api_key=key, api_mode="responses", stream=True)


APIS = {"openai-chat": chat, "anthropic-messages": messages, "openai-responses": responses}


def main(api: str, base: str, model: str, prompt: str) -> None:
    terminal = Tool(name=TerminalTool.name, params={"terminal_type": "subprocess"})
    agent = Agent(llm=APIS[api](base, os.environ["KEY"], model), tools=[terminal])
    conversation = Conversation(agent, workspace=os.getcwd(), token_callbacks=[lambda _: None])
    conversation.send_message(prompt)
    conversation.run()


main(*sys.argv[1:])
