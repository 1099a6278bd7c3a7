"""The vLLM plugin in the three newest releases of vLLM, over the fixtures. `make engines` installs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.environments import ROOT, NotInstalled
from engines.judge import Judge
from engines.releases import RELEASES
from engines.vllm_comparison import OURS, compare, dialect_names, open_judge
from tests.support.harness import tool

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=RELEASES["vllm"])
def vllm(request: pytest.FixtureRequest) -> Iterator[Judge]:
    try:
        judge = open_judge(request.param)
    except NotInstalled as error:
        pytest.skip(str(error))
    with judge:
        yield judge


@pytest.mark.parametrize("dialect", dialect_names())
def test_streamed_replies_are_the_whole_reply(vllm: Judge, dialect: str) -> None:
    for outcome in compare(vllm, dialect, OURS):
        assert outcome.whole == outcome.expected, outcome
        assert outcome.agrees, outcome


CHAT_TOOL = tool("ls", ["path"])
RESPONSES_TOOL = {"type": "function", **CHAT_TOOL["function"]}
NAMED = {"chat": {"type": "function", "function": {"name": "ls"}}, "responses": {"type": "function", "name": "ls"}}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("choice", ["auto", "required", "named"])
@pytest.mark.parametrize("dialect", ["kimi_k2", "qwen3_coder", "hermes"])
def test_vllm_takes_the_constraint_of_a_required_call(vllm: Judge, dialect: str, choice: str, api: str) -> None:
    tools = [CHAT_TOOL if api == "chat" else RESPONSES_TOOL]
    tool_choice = NAMED[api] if choice == "named" else choice
    answer = vllm.ask(do="constrain", dialect=dialect, tools=tools, tool_choice=tool_choice, api=api)
    assert answer["skip_special_tokens"] is False
    assert (answer["tag"] is not None) is (choice != "auto")
    assert (answer["grammar"] is not None) is (choice != "auto")


def test_plugin_can_be_a_file(vllm: Judge) -> None:
    path = str(ROOT / "src" / "interlingua" / "integrations" / "vllm_plugin.py")
    assert vllm.ask(do="import_file", path=path) == ["InterlinguaToolParser", "InterlinguaReasoningParser"]
