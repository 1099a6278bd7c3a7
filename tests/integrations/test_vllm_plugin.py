"""The vLLM plugin with stand-ins for vLLM's interface."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from interlingua.errors import UnknownDialect
from tests.integrations.stand_ins import (
    CharTokenizer,
    MessageDelta,
    Record,
    import_plugin,
    stream_through_vllm,
    vllm_modules,
)
from tests.support.harness import tool

KIMI = "moonshotai/Kimi-K2.5"
CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>"
    '{"path": "."}<|tool_call_end|><|tool_calls_section_end|>'
)
TOOLS = [tool("ls", ["path"])]


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv("INTERLINGUA_DIALECT", raising=False)
    return import_plugin(monkeypatch, "vllm_plugin", vllm_modules())


def make_request(tools: list[dict[str, Any]] | None = TOOLS, **fields: Any) -> Record:
    defaults: dict[str, Any] = {
        "model": "served-name",
        "messages": [],
        "tools": tools,
        "tool_choice": "auto" if tools else "none",
        "parallel_tool_calls": True,
        "structured_outputs": None,
        "response_format": None,
        "skip_special_tokens": True,
    }
    return Record(**{**defaults, **fields})


def make_parsers(plugin: ModuleType, model: str = KIMI) -> tuple[Any, Any]:
    """Return the tool parser and the reasoning parser of a reply, created as vLLM does."""
    tokenizer = CharTokenizer(model)
    reasoning_parser = plugin.InterlinguaReasoningParser(tokenizer, model_config=Record(model=model))
    return plugin.InterlinguaToolParser(tokenizer, None), reasoning_parser


def collect(deltas: list[MessageDelta]) -> tuple[str, str, list[list[str]]]:
    calls: list[list[str]] = []
    for delta in deltas:
        for call in delta.tool_calls:
            assert call.function is not None
            if call.function.name is not None:
                assert call.id
                calls.append([call.function.name, ""])
            calls[call.index][1] += call.function.arguments or ""
    return "".join(d.reasoning or "" for d in deltas), "".join(d.content or "" for d in deltas), calls


PAIR_ROWS = [
    ("call after thinking", "", f"<think>Look.</think>I will.{CALL}", ("Look.", "I will.", [["ls", '{"path": "."}']])),
    ("call inside thinking", "", f"<think>Look.{CALL}", ("Look.", "", [["ls", '{"path": "."}']])),
    ("thinking opened by the prompt", "<think>", f"Look.</think>{CALL}", ("Look.", "", [["ls", '{"path": "."}']])),
    ("text alone", "", "Hello.", ("", "Hello.", [])),
    ("end held back until the last moment", "", "a <|tool_calls", ("", "a <|tool_calls", [])),
    ("nothing", "", "", ("", "", [])),
]


@pytest.mark.parametrize(("name", "prompt", "text", "expected"), PAIR_ROWS, ids=[row[0] for row in PAIR_ROWS])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_pair_streams_thinking_text_and_calls(
    plugin: ModuleType, name: str, prompt: str, text: str, expected: Any, size: int
) -> None:
    tool_parser, reasoning_parser = make_parsers(plugin)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    prompt_tokens = CharTokenizer().encode(f"user: hi {prompt}")
    deltas = stream_through_vllm(tool_parser, reasoning_parser, prompt_tokens, pieces, make_request())
    assert collect(deltas) == expected, name


@pytest.mark.parametrize(("name", "prompt", "text", "expected"), PAIR_ROWS, ids=[row[0] for row in PAIR_ROWS])
def test_pair_reads_a_complete_reply(plugin: ModuleType, name: str, prompt: str, text: str, expected: Any) -> None:
    tool_parser, reasoning_parser = make_parsers(plugin)
    reasoning_parser.is_reasoning_end(CharTokenizer().encode(f"user: hi {prompt}"))
    reasoning, content = reasoning_parser.extract_reasoning(text, make_request())
    found = tool_parser.extract_tool_calls(content or "", make_request())
    calls = [[call.function.name, call.function.arguments] for call in found.tool_calls]
    assert (reasoning or "", found.content or "", calls) == expected, name


def test_tool_parser_alone_returns_thinking_as_text(plugin: ModuleType) -> None:
    parser = plugin.InterlinguaToolParser(CharTokenizer(KIMI), None)
    found = parser.extract_tool_calls(f"<think>Look.</think>I will.{CALL}", make_request())
    assert (found.content, found.tools_called) == ("Look.\n\nI will.", True)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_reasoning_parser_alone_leaves_the_markup_of_calls(plugin: ModuleType, size: int) -> None:
    text = f"<think>Look.</think>I will.{CALL}"
    parser = plugin.InterlinguaReasoningParser(CharTokenizer(KIMI), model_config=None)
    assert parser.extract_reasoning(text, make_request()) == ("Look.", f"I will.{CALL}")
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert collect(stream_through_vllm(None, parser, [], pieces, make_request())) == ("Look.", f"I will.{CALL}", [])


def test_request_without_tools_has_no_calls(plugin: ModuleType) -> None:
    parser = plugin.InterlinguaToolParser(CharTokenizer(KIMI), None)
    assert parser.extract_tool_calls(CALL, make_request(tools=None)).tool_calls == []


def test_foreign_tokenizer_is_no_partner(plugin: ModuleType) -> None:
    reasoning_parser = plugin.InterlinguaReasoningParser(CharTokenizer(KIMI))
    plugin.InterlinguaToolParser(CharTokenizer(KIMI), None)
    assert not reasoning_parser.passes_all_text


REASONING_END_ROWS = [
    ("<think>a</think>", True),
    ("<think>a", False),
    ("<think>a</think>b", True),
    ("<think>a</think>b<think>", False),
    ("no marker", False),
]


@pytest.mark.parametrize(("text", "expected"), REASONING_END_ROWS)
def test_scheduler_learns_where_thinking_ends(plugin: ModuleType, text: str, expected: bool) -> None:
    parser = plugin.InterlinguaReasoningParser(CharTokenizer(KIMI))
    tokens = CharTokenizer().encode(text)
    assert parser.is_reasoning_end(tokens) is expected
    assert parser.is_reasoning_end_streaming(tokens, tokens[-1:]) is text.endswith("</think>")


CONTENT_ROWS = [("<think>a", ""), ("<think>a</think>b", "b"), ("b", "")]


@pytest.mark.parametrize(("text", "expected"), CONTENT_ROWS)
def test_content_tokens_follow_the_thinking(plugin: ModuleType, text: str, expected: str) -> None:
    parser = plugin.InterlinguaReasoningParser(CharTokenizer(KIMI))
    assert parser.extract_content_ids(CharTokenizer().encode(text)) == CharTokenizer().encode(expected)


COUNT_ROWS = [("<think>abc", 3), ("<think>abc</think>d", 3), ("d", 0), ("", 0)]


@pytest.mark.parametrize(("text", "expected"), COUNT_ROWS)
def test_reasoning_tokens_are_counted(plugin: ModuleType, text: str, expected: int) -> None:
    parser = plugin.InterlinguaReasoningParser(CharTokenizer(KIMI))
    assert parser.count_reasoning_tokens(CharTokenizer().encode(text)) == expected


def test_dialect_without_thinking_is_never_inside_it(plugin: ModuleType) -> None:
    parser = plugin.InterlinguaReasoningParser(CharTokenizer("meta-llama/Llama-3.1-8B-Instruct"))
    assert parser.is_reasoning_end([1, 2])
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == (None, None)


CONSTRAINT_ROWS = [
    ("kimi_k2", "required", "structural_tag"),
    ("kimi_k2", {"type": "function", "function": {"name": "ls"}}, "structural_tag"),
    ("standard", "required", "json"),
    ("standard", {"type": "function", "function": {"name": "ls"}}, "json"),
    ("kimi_k2", "auto", None),
    ("kimi_k2", "none", None),
]


@pytest.mark.parametrize(("dialect", "choice", "expected"), CONSTRAINT_ROWS)
def test_required_call_is_constrained(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, dialect: str, choice: Any, expected: str | None
) -> None:
    monkeypatch.setenv("INTERLINGUA_DIALECT", dialect)
    request = make_request(tool_choice=choice, response_format=Record(type="json_object"))
    plugin.InterlinguaToolParser(CharTokenizer(), None).adjust_request(request)
    assert request.skip_special_tokens is False
    constraint = vars(request.structured_outputs) if request.structured_outputs else {}
    assert list(constraint) == ([expected] if expected else [])
    assert (request.response_format is None) is (expected is not None)
    if expected == "structural_tag":
        assert json.loads(constraint["structural_tag"])["type"] == "structural_tag"


def test_dialect_of_the_environment_wins(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLINGUA_DIALECT", "hermes")
    parser = plugin.InterlinguaToolParser(CharTokenizer(KIMI), None)
    text = '<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'
    assert parser.extract_tool_calls(text, make_request()).tools_called
    monkeypatch.setenv("INTERLINGUA_DIALECT", "herms")
    with pytest.raises(UnknownDialect, match="herms"):
        parser.extract_tool_calls(text, make_request())


def test_dialect_of_an_unknown_model_is_detected(plugin: ModuleType) -> None:
    parser = plugin.InterlinguaToolParser(CharTokenizer("/models/checkpoint-7"), None)
    assert parser.extract_tool_calls(CALL, make_request()).tools_called
