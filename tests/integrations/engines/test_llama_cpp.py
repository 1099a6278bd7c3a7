"""The chat handler in llama-cpp-python, with a tiny model. `make engines` installs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from engines.environments import NotInstalled
from engines.judge import Judge
from tests.support.harness import tool

pytestmark = pytest.mark.slow

TOOLS = [tool("ls", ["path"])]
ROWS = [
    ("hermes", "", '<think>Hm.</think>I will.<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'),
    ("hermes", "<think>", 'Hm.</think>I will.<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'),
    (
        "qwen3_coder",
        "",
        "<think>Hm.</think>I will.<tool_call>\n<function=ls>\n<parameter=path>\n.\n</parameter>\n"
        "</function>\n</tool_call>",
    ),
]


@pytest.fixture(scope="module")
def llama_cpp() -> Iterator[Judge]:
    try:
        judge = Judge("llama-cpp", "llama_cpp_chat.py")
    except NotInstalled as error:
        pytest.skip(str(error))
    with judge:
        yield judge


@pytest.mark.parametrize(("dialect", "prompt_end", "text"), ROWS)
def test_replies_have_calls(llama_cpp: Judge, dialect: str, prompt_end: str, text: str) -> None:
    replies = llama_cpp.ask(do="read", dialect=dialect, text=text, tools=TOOLS, prompt_end=prompt_end)
    for chunks in ([replies["whole"]], replies["chunks"]):
        accumulator = il.Accumulator("openai-chat")
        for chunk in chunks:
            accumulator.add(chunk)
        reply = accumulator.reply()
        assert (reply.reasoning, reply.text.strip(), reply.stop_reason) == ("Hm.", "I will.", "tool_calls")
        assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("ls", {"path": "."})]


ONE_OF_TWO = {"n": {"type": "string", "enum": ["a", "b"]}}
CHOICES: list[Any] = ["required", {"type": "function", "function": {"name": "pick"}}]


@pytest.mark.parametrize("choice", CHOICES, ids=["required", "named"])
@pytest.mark.parametrize("dialect", ["llama3_json", "granite_20b_fc", "phi4"])  # without thinking, which may be long
def test_required_call_is_constrained(llama_cpp: Judge, dialect: str, choice: Any) -> None:
    offered = tool("pick", ONE_OF_TWO)
    offered["function"]["parameters"] |= {"required": ["n"], "additionalProperties": False}
    reply = llama_cpp.ask(do="require", dialect=dialect, tools=[offered], tool_choice=choice)
    (choice_reply,) = reply["choices"]
    assert choice_reply["finish_reason"] == "tool_calls", reply
    assert json.loads(choice_reply["message"]["tool_calls"][0]["function"]["arguments"])["n"] in ("a", "b")
