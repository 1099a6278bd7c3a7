"""The SGLang plugin in the newest release of SGLang, over the fixtures. `make engines` installs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from engines.environments import NotInstalled
from engines.judge import Judge
from engines.releases import RELEASES, release_path
from engines.vllm_comparison import dialect_names, offered_tools
from tests.support.harness import find_dialect, load_cases, tool

pytestmark = pytest.mark.slow

VERSION = RELEASES["sglang"][0]


@pytest.fixture(scope="module")
def sglang() -> Iterator[Judge]:
    try:
        release = release_path("sglang", VERSION)
        judge = Judge("vllm", "sglang_parsers.py")
    except NotInstalled as error:
        pytest.skip(str(error))
    with judge:
        answer = judge.ask(do="load", release=str(release))
        assert answer == {"version": VERSION, "registered": True}
        yield judge


@pytest.mark.parametrize("dialect", dialect_names())
def test_streamed_replies_are_the_whole_reply(sglang: Judge, dialect: str) -> None:
    for case in load_cases(dialect):
        tools = offered_tools(case)
        if not tools:
            continue  # SGLang does not call a detector without tools
        replies = sglang.ask(do="read", dialect=dialect, text=case.full_text, tools=tools)
        reply = il.parse(case.full_text, find_dialect(dialect), tools, options=il.Options(reasoning="as_content"))
        expected = {"content": reply.text, "calls": [[call.name, call.arguments] for call in reply.calls]}
        for way, found in replies.items():
            assert found == expected, (str(case), way, case.full_text)


CHOICES: list[Any] = ["auto", "required", {"type": "function", "function": {"name": "ls"}}]


@pytest.mark.parametrize("choice", CHOICES, ids=["auto", "required", "named"])
def test_required_call_is_constrained(sglang: Judge, choice: Any) -> None:
    answer = sglang.ask(do="constrain", dialect="kimi_k2", tools=[tool("ls", ["path"])], tool_choice=choice)
    assert answer == {"owns_format": True, "kind": None if choice == "auto" else "structural_tag"}
