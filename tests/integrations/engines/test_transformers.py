"""The transformers plugin with real tokenizers and `model.generate`. `make engines` installs transformers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from engines.environments import NotInstalled
from engines.judge import Judge
from engines.vllm_comparison import dialect_names, offered_tools
from tests.support.harness import find_dialect, load_cases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def transformers() -> Iterator[Judge]:
    try:
        judge = Judge("xgrammar", "transformers_responses.py")
    except NotInstalled as error:
        pytest.skip(str(error))
    with judge:
        yield judge


@pytest.mark.parametrize("dialect", dialect_names())
def test_streamed_replies_are_the_whole_reply(transformers: Judge, dialect: str) -> None:
    for case in load_cases(dialect)[:2]:
        tools = offered_tools(case)
        replies = transformers.ask(
            do="read", dialect=dialect, text=case.full_text, tools=tools, prompt=f"user: hi\n{case.prefill}"
        )
        expected = _summary(_message(il.parse(case.full_text, find_dialect(dialect), tools, case.prefill)))
        assert _summary(replies["text"]) == expected, case
        assert _summary(replies["tokens"]) == expected, case
        assert [_summary(message) for message in replies["batch"]] == [expected] * 2, case
        assert _summary(replies["streamed"]) == expected, case
        for number, key in enumerate(("thinking", "content")):
            assert "".join(delta.get(key, "") for delta in replies["deltas"]) == expected[number], case


def _message(reply: il.Reply) -> dict[str, Any]:
    return {
        "thinking": reply.reasoning,
        "content": reply.text,
        "tool_calls": [{"function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls],
    }


def _summary(message: dict[str, Any]) -> Any:
    calls = [
        (call["function"]["name"], _arguments(call["function"]["arguments"])) for call in message.get("tool_calls", ())
    ]
    return message.get("thinking", ""), message["content"], calls


def _arguments(value: Any) -> Any:
    try:
        return il.Call("", "", value).parse() if isinstance(value, str) else value
    except il.CallError:
        return value
