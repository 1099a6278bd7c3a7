"""Tests of LangChain: complete tool loops through the gateway, with its agent and manually with `bind_tools`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.client_loops import DIALECTS, KEY, PROMPT, STEPS, GatewaySession, Notebook, check_tool_loop


def chat(base: str, model: str) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=model, base_url=f"{base}/v1", api_key=SecretStr(KEY), max_retries=0)


def responses(base: str, model: str) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=model,
        base_url=f"{base}/v1",
        api_key=SecretStr(KEY),
        max_retries=0,
        use_responses_api=True,
        store=False,
        include=["reasoning.encrypted_content"],
        output_version="responses/v1",
    )


def messages(base: str, model: str) -> Any:
    from langchain_anthropic import ChatAnthropic

    key = SecretStr(KEY)
    return ChatAnthropic(model_name=model, base_url=base, api_key=key, max_retries=0, timeout=30, stop=None)


def by_agent(model: Any, tools: list[Any], prompt: Any) -> str:
    from langchain.agents import create_agent

    agent: Any = create_agent(model, tools, system_prompt="You take notes.")
    return str(agent.invoke({"messages": [prompt]})["messages"][-1].text)


def by_hand(model: Any, tools: list[Any], prompt: Any) -> str:
    bound = model.bind_tools(tools)
    messages_so_far = [prompt]
    for _ in range(len(STEPS) + 3):
        reply = None
        for chunk in bound.stream(messages_so_far):
            reply = chunk if reply is None else reply + chunk
        assert reply is not None
        assert not reply.invalid_tool_calls
        messages_so_far.append(reply)
        if not reply.tool_calls:
            break
        messages_so_far += [{tool.name: tool for tool in tools}[call["name"]].invoke(call) for call in reply.tool_calls]
    return str(messages_so_far[-1].text)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("run_loop", [by_agent, by_hand])
@pytest.mark.parametrize(("model", "keeps_thinking"), [(chat, False), (responses, True), (messages, True)])
def test_langchain(
    talk: GatewaySession,
    dialect: str,
    run_loop: Callable[[Any, list[Any], Any], str],
    model: Callable[[str, str], Any],
    keeps_thinking: bool,
) -> None:
    from langchain.messages import HumanMessage
    from langchain.tools import tool

    notebook = Notebook()
    tools = [tool(function) for function in (notebook.note, notebook.add, notebook.clock)]
    text = run_loop(model(talk.base, f"demo/{dialect}"), tools, HumanMessage(PROMPT))
    check_tool_loop(talk, notebook, text, dialect, keeps_thinking)
