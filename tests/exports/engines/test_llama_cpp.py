"""llama.cpp as the judge of exported GBNF: it accepts what `render` writes, and no cut or mutated text."""

from __future__ import annotations

import json
import random

import pytest

import interlingua as il
from engines.judge import Judge
from interlingua.errors import NotExpressible
from interlingua.exports.exporter import export
from interlingua.exports.matcher import Matcher
from interlingua.exports.reply_grammar import describe_reply
from interlingua.parsing.dialect import Dialect
from tests.support.budget import examples
from tests.support.export_cases import CHOICES, DIALECTS, HOSTILE_TOOLS, TOOLS, call_id
from tests.support.grammar_judges import check_agreement_on_tool

pytestmark = pytest.mark.slow

ARGUMENTS = {"city": "São Paulo", "unit": "c", "days": 3, "tags": ["a", "b"], "where": {"lat": 1.5}}


def texts(dialect: Dialect) -> list[str]:
    """Return a reply with two calls, and wrong variants of it."""
    calls = [
        il.Call(call_id(dialect, "get_weather", 0), "get_weather", json.dumps(ARGUMENTS, ensure_ascii=False)),
        il.Call(call_id(dialect, "now", 1), "now", "{}"),
    ]
    right = il.render(il.Reply(parts=[*calls]), dialect)
    chance = random.Random(0)
    cuts = [right[: chance.randrange(1, len(right))] for _ in range(3)]
    positions = [chance.randrange(len(right)) for _ in range(5)]
    return [right, *cuts, right.replace("now", "nwo"), *(right[:at] + right[at + 1 :] for at in positions)]


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_llama_cpp_accepts_what_our_matcher_accepts(dialect: Dialect, choice: str, llama_cpp: Judge) -> None:
    try:
        llama_cpp.compile(export("gbnf", dialect, TOOLS, CHOICES[choice]).content)
    except NotExpressible as error:
        pytest.skip(str(error))
    matcher = Matcher(describe_reply(dialect, TOOLS, CHOICES[choice]).grammar)
    judged = texts(dialect)
    assert llama_cpp.accepts(judged) == [matcher.accepts(text) for text in judged]
    assert matcher.accepts(judged[0])


@pytest.mark.parametrize("name", HOSTILE_TOOLS)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_hostile_tools(dialect: Dialect, name: str, llama_cpp: Judge) -> None:
    check_agreement_on_tool(llama_cpp, "gbnf", dialect, HOSTILE_TOOLS[name], examples(5, 2))
