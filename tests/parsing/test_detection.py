"""detect: the sample of every dialect is detected, for every split of the text; text without a call stays text."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.options import Limits
from interlingua.core.reply import fold
from tests.support.growth import check_growth, cpu_seconds
from tests.support.harness import tool

TOOLS = [tool("get_weather", {"city": "string", "days": "integer", "unit": "string"}), tool("ls", ["path"])]
NATIVE = [dialect for dialect in il.dialects() if dialect.shape]
NOT_DETECTED = {
    "functionary_v32": "its `>>>` also occurs in prose, so it is not distinctive",
}


def streamed(text: str, tools: list[dict[str, Any]] | None) -> il.Reply:
    parser = il.Parser("detect", tools=tools)
    return il.fold([event for char in text for event in parser.feed(char)] + parser.close())


def summarize(reply: il.Reply) -> dict[str, Any]:
    return {
        "calls": [(call.name, call.arguments, call.complete) for call in reply.calls],
        "text": reply.text,
        "reasoning": reply.reasoning,
        "stop": reply.stop_reason,
    }


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", NATIVE, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["tools", "tools unknown"])
def test_every_sample_is_detected(dialect: il.Dialect, tools: list[dict[str, Any]] | None) -> None:
    whole = il.parse(dialect.sample, "detect", tools=tools)
    assert streamed(dialect.sample, tools) == whole
    if dialect.name not in NOT_DETECTED:
        assert summarize(whole) == summarize(il.parse(dialect.sample, dialect, tools=tools))
        assert [finding.kind for finding in whole.findings].count("detected") == 1


@pytest.mark.parametrize(
    "text",
    [
        "Models write <tool_call> and <|tool_calls_section_begin|> and [TOOL_CALLS] before calls.",
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        "{not json} and [1, 2]",
        "<tool_call>",
        "<tool_call>get_wea",
        '{"name": "x"}\n<|channel|>',
    ],
)
def test_text_without_a_call_is_unchanged(text: str) -> None:
    reply = il.parse(text, "detect", tools=TOOLS)
    assert (reply.text, reply.calls) == (text, [])
    assert streamed(text, TOOLS) == reply


def test_marker_in_prose_does_not_hide_a_later_call() -> None:
    text = 'I could write <tool_call> here. <tool_call>\n{"name": "ls", "arguments": {"path": "."}}\n</tool_call>'
    reply = il.parse(text, "detect", tools=TOOLS)
    assert reply.text == "I could write <tool_call> here. "
    assert [call.arguments for call in reply.calls] == ['{"path": "."}']


@pytest.mark.parametrize("tools", [TOOLS, None], ids=["tools", "tools unknown"])
def test_header_shared_by_two_dialects_does_not_decide(tools: list[dict[str, Any]] | None) -> None:
    call = '<atem:invoke name="ls">\n<atem:parameter name="path">.</atem:parameter>\n</atem:invoke>'
    bodies = {
        f"<atem:function_calls>\n{call}\n</atem:function_calls><|eot|>": "muse",
        '{"path": "."}<|call|>': "harmony",
    }
    for body, dialect in bodies.items():
        text = f"<|start|>assistant to=ls<|message|>{body}"
        reply = il.parse(text, "detect", tools=tools)
        assert ([call.arguments for call in reply.calls], reply.text) == (['{"path": "."}'], "")
        assert repr(dialect) in reply.findings[0].message
        assert streamed(text, tools) == reply


def test_call_inside_thinking_is_detected() -> None:
    text = "<think>I look.<tool_call>ls<arg_key>path</arg_key><arg_value>.</arg_value></tool_call>Good.</think>Done."
    reply = il.parse(text, "detect", tools=TOOLS)
    assert (reply.reasoning, reply.text) == ("I look.Good.", "Done.")
    assert [call.name for call in reply.calls] == ["ls"]


def test_candidate_is_abandoned_at_the_header_limit() -> None:
    text = '<tool_call>{"thoughts": "' + "x" * 5000 + '", "name": "ls", "arguments": {}}</tool_call>'
    reply = il.parse(text, "detect", tools=TOOLS)
    assert (reply.text, reply.calls) == (text, [])
    assert Limits().header < 5000


openers = sorted({opener for dialect in NATIVE if dialect.grammar for opener in dialect.grammar.openers})
scraps = [
    "ls",
    '{"name": "ls", "arguments": {"path": "."}}',
    "[ls(path='.')]",
    "{",
    "[",
    '"',
    "\n",
    " ",
    "</think>",
    "<think>",
]


@given(st.lists(st.sampled_from([*openers, *scraps]), max_size=8).map("".join), st.booleans())
def test_random_fragments_stream_like_whole_text(text: str, known: bool) -> None:
    tools = TOOLS if known else None
    assert streamed(text, tools) == il.parse(text, "detect", tools=tools)


def test_calls_that_the_prefill_completes_are_not_read_again() -> None:
    prefill = '<minimax:tool_call>\n<invoke name="ls">\n<parameter name="path">.</parameter>\n</invoke>\n</minimax:tool'
    replies = []
    for pieces in (["}<"], ["}", "<"]):
        parser = il.Parser("detect", TOOLS, prefill)
        replies.append(fold([event for piece in pieces for event in parser.feed(piece)] + parser.close()))
    assert [(reply.text, reply.calls) for reply in replies] == [("}<", [])] * 2


# ── cost ──────────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = ["{}", "{} ", "Write {} to begin. ", '{}\n{{"name": ', '{}{{"name": "ls", ', "{}ls", "{}\n<", "`{}` "]


def hostile_units() -> list[Any]:
    """Return texts around the openers of all dialects: a quick run has those of the opener that most dialects share."""
    quick = "<tool_call>"
    openers = {dialect.grammar.openers[0] for dialect in NATIVE if dialect.grammar and dialect.grammar.openers}
    return [
        pytest.param(unit.format(opener), opener, marks=() if opener == quick else pytest.mark.slow)
        for opener in sorted({quick, *openers})
        for unit in HOSTILE
    ]


@pytest.mark.parametrize(("unit", "opener"), hostile_units())
def test_cost_of_detection_is_a_small_multiple_of_that_of_a_known_dialect(unit: str, opener: str) -> None:
    text = unit * (8_000 // len(unit))
    known = [dialect.name for dialect in NATIVE if dialect.grammar and opener in dialect.grammar.openers]

    def parse(name: str) -> None:
        il.parse(text, name, tools=TOOLS)

    costliest = max(known, key=partial(cpu_seconds, parse))
    # In a code block, a call is read once more, to decide whether it is quoted.
    check_growth(parse, costliest, "detect", limit=40 if "`" in opener else 15)


@pytest.mark.parametrize("unit", ["Write <tool_call> to begin. ", 'Action:\n```json\n{"name": '])
def test_text_over_the_limit_of_detection_is_unchanged(unit: str) -> None:
    text = unit * 400
    reply = il.parse(text, "detect", tools=TOOLS)
    assert (reply.text, reply.calls) == (text, [])
    assert "over-limit" in {finding.kind for finding in reply.findings}
    assert streamed(text, TOOLS) == reply


def test_examples_in_code_do_not_use_up_the_limit_of_the_text_after_them() -> None:
    examples = '```json\n{"name": "ls", "arguments": {"path": "."}}\n```\nAnother example:\n' * 100
    reply = il.parse(
        f'{examples}<tool_call>{{"name": "ls", "arguments": {{"path": "."}}}}</tool_call>', "detect", TOOLS
    )
    assert [call.name for call in reply.calls] == ["ls"]


@pytest.mark.parametrize("unit", ["Write <tool_call> to begin. ", '```json\n{"name": "x", "b": 1}\n```\n'])
def test_cost_grows_with_the_text_and_the_tools_but_not_with_their_product(unit: str) -> None:
    def parse(size: int) -> None:
        tools = [tool(f"tool_{n}", ["path"]) for n in range(size)]
        il.parse(unit * (8 * size // len(unit)), "detect", tools=tools)

    check_growth(parse, 250, 1000, limit=10)
