"""Translation of settings and tools between wires, and for each kind of upstream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlingua.core.options import Options
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams import get_profile, profile_for_model
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES, WIRES
from tests.support.request_tables import (
    IMAGE,
    MINIMAL_REQUESTS,
    PING_SCHEMA,
    TEXT,
    TOOL,
    TOOL_RESULT,
    WITH_TOOL,
    Json,
    assistant_history,
    check_translation,
    input_items,
    translate,
    user,
)

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
SETTINGS: list[tuple[str, Json, str, Json, str]] = [
    # length and sampling
    (CHAT, {"max_completion_tokens": 5}, MESSAGES, {"max_tokens": 5}, ""),
    (CHAT, {}, MESSAGES, {"max_tokens": 32000}, ""),
    (MESSAGES, {"max_tokens": 5}, CHAT, {"max_tokens": 5, "max_completion_tokens": None}, ""),
    (MESSAGES, {"max_tokens": 5}, RESPONSES, {"max_output_tokens": 5}, ""),
    (RESPONSES, {"max_output_tokens": 5}, CHAT, {"max_tokens": 5}, ""),
    (CHAT, {"temperature": 1.5}, MESSAGES, {"temperature": 1}, "sampling-changed"),
    (CHAT, {"temperature": 0.5, "top_p": 0.9, "n": 1}, MESSAGES, {"temperature": 0.5, "top_p": 0.9, "n": None}, ""),
    (CHAT, {"seed": 1, "logit_bias": {}}, MESSAGES, {"seed": None, "logit_bias": None}, "field-dropped"),
    (CHAT, {"seed": 1}, RESPONSES, {"seed": None}, "field-dropped"),
    (MESSAGES, {"top_k": 5}, CHAT, {"top_k": None}, "setting-dropped"),
    (CHAT, {"verbosity": "low"}, RESPONSES, {"text": {"verbosity": "low"}, "verbosity": None}, ""),
    (RESPONSES, {"text": {"verbosity": "low"}}, CHAT, {"verbosity": "low"}, ""),
    (CHAT, {"stop": "END"}, MESSAGES, {"stop_sequences": ["END"]}, ""),
    (MESSAGES, {"stop_sequences": ["A", "B"]}, CHAT, {"stop": ["A", "B"]}, ""),
    (CHAT, {"stop": ["A"]}, RESPONSES, {"stop": None}, "field-dropped"),
    # streaming
    (MESSAGES, {"stream": True}, CHAT, {"stream": True, "stream_options": {"include_usage": True}}, ""),
    (CHAT, {"stream": True, "stream_options": {"include_usage": True}}, MESSAGES, {"stream": True}, ""),
    (CHAT, {"stream": True}, RESPONSES, {"stream": True, "stream_options": None}, ""),
    # user and metadata
    (CHAT, {"user": "u"}, MESSAGES, {"metadata": {"user_id": "u"}}, ""),
    (MESSAGES, {"metadata": {"user_id": "u"}}, CHAT, {"user": "u", "metadata": None}, ""),
    (MESSAGES, {"metadata": {"user_id": '{"session_id": "s"}'}}, RESPONSES, {"prompt_cache_key": "s"}, ""),
    (CHAT, {"metadata": {"a": "b"}}, RESPONSES, {"metadata": {"a": "b"}}, ""),
    (CHAT, {"metadata": {"a": "b"}}, MESSAGES, {"metadata": None}, "field-dropped"),
    (CHAT, {"prompt_cache_key": "k"}, RESPONSES, {"prompt_cache_key": "k"}, ""),
    (CHAT, {"prompt_cache_key": "k"}, MESSAGES, {"prompt_cache_key": None}, "field-dropped"),
    (CHAT, {"service_tier": "flex"}, RESPONSES, {"service_tier": "flex"}, ""),
    (CHAT, {"service_tier": "flex"}, MESSAGES, {"service_tier": None}, "field-dropped"),
    (RESPONSES, {"prompt_cache_key": "k"}, CHAT, {"prompt_cache_key": None}, "setting-dropped"),
    (RESPONSES, {"service_tier": "flex"}, CHAT, {"service_tier": "flex"}, ""),
    (RESPONSES, {"safety_identifier": "u"}, CHAT, {"safety_identifier": "u"}, ""),
    (CHAT, {"safety_identifier": "u"}, RESPONSES, {"safety_identifier": "u"}, ""),
    (CHAT, {"safety_identifier": "u"}, MESSAGES, {"metadata": {"user_id": "u"}, "safety_identifier": None}, ""),
    (RESPONSES, {"safety_identifier": "u"}, MESSAGES, {"metadata": {"user_id": "u"}}, ""),
    (RESPONSES, {"prompt_cache_retention": "24h"}, CHAT, {"prompt_cache_retention": "24h"}, ""),
    (RESPONSES, {"prompt_cache_retention": "24h"}, MESSAGES, {"prompt_cache_retention": None}, "field-dropped"),
    (RESPONSES, {"truncation": "auto"}, CHAT, {"truncation": None}, "field-dropped"),
    (RESPONSES, {"max_tool_calls": 3}, CHAT, {"max_tool_calls": None}, "field-dropped"),
    (RESPONSES, {"context_management": []}, CHAT, {"context_management": None}, "field-dropped"),
    (
        RESPONSES,
        {"input": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "phase": "commentary"}]},
        CHAT,
        {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
        "",  # fields of messages are reported by `prepare_request`
    ),
    (CHAT, {}, RESPONSES, {"store": False, "include": ["reasoning.encrypted_content"]}, ""),
    (MESSAGES, {"context_management": {}}, CHAT, {"context_management": None}, "field-dropped"),
    # response format
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}},
        MESSAGES,
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "",
    ),
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}},
        RESPONSES,
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
        "",
    ),
    (
        MESSAGES,
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}},
        "",
    ),
    (CHAT, {"response_format": {"type": "json_object"}}, MESSAGES, {"output_config": None}, "format-dropped"),
    (RESPONSES, {"text": {"format": {"type": "json_object"}}}, CHAT, {"response_format": {"type": "json_object"}}, ""),
    (CHAT, {"response_format": {"type": "text"}}, RESPONSES, {"text": None}, ""),
    # thinking
    (CHAT, {"reasoning_effort": "high"}, RESPONSES, {"reasoning": {"effort": "high", "summary": "auto"}}, ""),
    (CHAT, {"reasoning_effort": "none"}, RESPONSES, {"reasoning": {"effort": "none"}}, ""),
    (
        CHAT,
        {"reasoning_effort": "low"},
        MESSAGES,
        {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        "thinking-wish",
    ),
    (CHAT, {"thinking": {"type": "disabled"}}, MESSAGES, {"thinking": {"type": "disabled"}}, ""),
    (CHAT, {"thinking": {"type": "enabled"}}, MESSAGES, {"thinking": {"type": "adaptive"}}, ""),
    (CHAT, {"reasoning": {"max_tokens": 2000}}, MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 2000}}, ""),
    (
        CHAT,
        {"reasoning": {"max_tokens": 9000}, "max_tokens": 4000},
        MESSAGES,
        {"thinking": {"type": "enabled", "budget_tokens": 3000}},
        "budget-lowered",
    ),
    (
        CHAT,
        {"reasoning_effort": "high", "max_tokens": 1000},
        MESSAGES,
        {"thinking": {"type": "disabled"}},
        "thinking-wish budget-lowered",
    ),
    (
        CHAT,
        {"reasoning_effort": "max"},
        MESSAGES,
        {"max_tokens": 32000, "thinking": {"type": "enabled", "budget_tokens": 24000}},
        "budget-lowered thinking-wish",
    ),
    (
        CHAT,
        {"reasoning": {"max_tokens": 500}},
        MESSAGES,
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "thinking-wish",
    ),
    (
        CHAT,
        {"reasoning": {"max_tokens": 2000}, "temperature": 0.5},
        MESSAGES,
        {"temperature": None},
        "field-dropped",
    ),
    (
        CHAT,
        {"enable_thinking": True, "thinking_budget": 2000},
        RESPONSES,
        {"reasoning": {"effort": "low", "summary": "auto"}},
        "thinking-wish",
    ),
    (CHAT, {"chat_template_kwargs": {"enable_thinking": False}}, RESPONSES, {"reasoning": {"effort": "none"}}, ""),
    (
        CHAT,
        {"chat_template_kwargs": {"thinking": False, "x": 1}},
        RESPONSES,
        {"reasoning": {"effort": "none"}},
        "field-dropped",
    ),
    (CHAT, {"think": "high"}, RESPONSES, {"reasoning": {"effort": "high", "summary": "auto"}}, ""),
    (CHAT, {"think": False}, RESPONSES, {"reasoning": {"effort": "none"}}, ""),
    (
        MESSAGES,
        {"max_tokens": 32000, "thinking": {"type": "enabled", "budget_tokens": 31999}},
        CHAT,
        {"reasoning_effort": "high"},
        "thinking-wish",
    ),
    (
        MESSAGES,
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        CHAT,
        {"reasoning_effort": "high"},
        "",
    ),
    (MESSAGES, {"thinking": {"type": "adaptive"}}, CHAT, {"reasoning_effort": None}, "thinking-wish"),
    (
        RESPONSES,
        {"reasoning": {"effort": "low", "summary": "auto"}},
        CHAT,
        {"reasoning_effort": "low"},
        "field-dropped",
    ),
    # tool choice
    *[
        (CHAT, WITH_TOOL[CHAT] | {"tool_choice": mode}, MESSAGES, {"tool_choice": {"type": kind}}, "")
        for mode, kind in (("auto", "auto"), ("required", "any"), ("any", "any"), ("none", "none"))
    ],
    (
        CHAT,
        WITH_TOOL[CHAT]
        | {"tool_choice": {"type": "function", "function": {"name": "ping"}}, "parallel_tool_calls": False},
        MESSAGES,
        {"tool_choice": {"type": "tool", "name": "ping", "disable_parallel_tool_use": True}},
        "",
    ),
    (
        CHAT,
        WITH_TOOL[CHAT] | {"parallel_tool_calls": False},
        MESSAGES,
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "parallel_tool_calls": None},
        "",
    ),
    (
        MESSAGES,
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "tool", "name": "ping", "disable_parallel_tool_use": True}},
        CHAT,
        {"tool_choice": {"type": "function", "function": {"name": "ping"}}, "parallel_tool_calls": False},
        "",
    ),
    (
        MESSAGES,
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "tool", "name": "ping"}},
        RESPONSES,
        {"tool_choice": {"type": "function", "name": "ping"}},
        "",
    ),
    (CHAT, {"tool_choice": "required", "parallel_tool_calls": True}, MESSAGES, {"tool_choice": None}, ""),
    (
        RESPONSES,
        {
            "tools": [TOOL[RESPONSES], {**TOOL[RESPONSES], "name": "pong"}],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "pong"}],
            },
        },
        CHAT,
        {"tool_choice": {"type": "function", "function": {"name": "pong"}}},
        "",
    ),
    (
        CHAT,
        WITH_TOOL[CHAT]
        | {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "ping"}}]},
            }
        },
        RESPONSES,
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "ping"}]}},
        "",
    ),
    (
        RESPONSES,
        {
            "tools": [TOOL[RESPONSES], {**TOOL[RESPONSES], "name": "pong"}],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "ping"}]},
        },
        MESSAGES,
        {"tool_choice": {"type": "auto"}, "tools": [TOOL[MESSAGES]]},
        "tools-narrowed",
    ),
    (
        RESPONSES,
        WITH_TOOL[RESPONSES] | {"tool_choice": {"type": "web_search"}},
        CHAT,
        {"tool_choice": None},
        "field-dropped",
    ),
    (
        RESPONSES,
        WITH_TOOL[RESPONSES]
        | {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp"}]}},
        CHAT,
        {"tool_choice": None},
        "field-dropped",
    ),
    (
        CHAT,
        {"functions": [{"name": "ping"}], "function_call": {"name": "ping"}},
        MESSAGES,
        {"tools": [TOOL[MESSAGES]], "tool_choice": {"type": "tool", "name": "ping"}},
        "",
    ),
    (CHAT, {"functions": [{"name": "ping"}], "function_call": "none"}, MESSAGES, {"tool_choice": {"type": "none"}}, ""),
]


@pytest.mark.parametrize(("source", "body", "target", "expected", "kinds"), SETTINGS)
def test_settings(source: str, body: Json, target: str, expected: Json, kinds: str) -> None:
    check_translation(source, body, target, expected, kinds)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PATCH = {
    "type": "custom",
    "name": "patch",
    "description": "Change files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
}
NESTED = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}
PATCH_DESCRIPTION = "Change files.\n\n`input` is text of this lark grammar:\nstart: x"
NAMESPACE = {
    "type": "namespace",
    "name": "mcp__a",
    "description": "About a.",
    "tools": [{"type": "function", "name": "look", "parameters": PING_SCHEMA, "strict": False}],
}
STRICT = {"type": "function", "function": {"name": "ping", "parameters": PING_SCHEMA, "strict": True}}
ONE_STRING = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
TOOLS: list[tuple[str, list[Json], str, list[Json] | None, str]] = [
    *[(source, [TOOL[source]], target, [TOOL[target]], "") for source in WIRES for target in WIRES if source != target],
    (CHAT, [{"type": "function", "function": {"name": "ping"}}], RESPONSES, [TOOL[RESPONSES]], ""),
    (CHAT, [{"type": "function", "function": {"name": "ping", "parameters": None}}], MESSAGES, [TOOL[MESSAGES]], ""),
    (MESSAGES, [{"type": "custom", "name": "ping", "input_schema": {}}], CHAT, [TOOL[CHAT]], ""),
    (
        RESPONSES,
        [PATCH],
        MESSAGES,
        [{"name": "patch", "description": PATCH_DESCRIPTION, "input_schema": ONE_STRING}],
        "custom-tool",
    ),
    (
        CHAT,
        [{"type": "custom", "custom": {**{key: PATCH[key] for key in ("name", "description")}, "format": NESTED}}],
        RESPONSES,
        [PATCH],
        "",
    ),
    (
        RESPONSES,
        [PATCH],
        CHAT,
        [
            {
                "type": "function",
                "function": {"name": "patch", "description": PATCH_DESCRIPTION, "parameters": ONE_STRING},
            }
        ],
        "custom-tool",
    ),
    (
        RESPONSES,
        [NAMESPACE],
        CHAT,
        [{"type": "function", "function": {"name": "mcp__a__look", "parameters": PING_SCHEMA}}],
        "namespace field-dropped",
    ),
    (MESSAGES, [{**TOOL[MESSAGES], "defer_loading": True}], CHAT, None, "deferred-tool"),
    (RESPONSES, [{**TOOL[RESPONSES], "defer_loading": True}], MESSAGES, None, "deferred-tool"),
    (MESSAGES, [{**TOOL[MESSAGES], "defer_loading": True}], RESPONSES, None, "deferred-tool"),
    (MESSAGES, [{"type": "web_search_20250305", "name": "web_search"}], CHAT, None, "hosted-tool"),
    (RESPONSES, [{"type": "web_search"}, TOOL[RESPONSES]], MESSAGES, [TOOL[MESSAGES]], "hosted-tool"),
    (MESSAGES, [{**TOOL[MESSAGES], "cache_control": {"type": "ephemeral"}}], CHAT, [TOOL[CHAT]], "field-dropped"),
    (MESSAGES, [{**TOOL[MESSAGES], "eager_input_streaming": True}], RESPONSES, [TOOL[RESPONSES]], "field-dropped"),
    (RESPONSES, [{**TOOL[RESPONSES], "strict": True}], CHAT, [STRICT], ""),
    (RESPONSES, [{**TOOL[RESPONSES], "strict": True}], MESSAGES, [{**TOOL[MESSAGES], "strict": True}], ""),
]


@pytest.mark.parametrize(("source", "tools", "target", "expected", "kinds"), TOOLS)
def test_tools(source: str, tools: list[Json], target: str, expected: list[Json] | None, kinds: str) -> None:
    check_translation(source, {"tools": tools}, target, {"tools": expected}, kinds)


def test_same_wire_tools_are_written_unchanged() -> None:
    """Even if the request is written anew because of another change."""
    tools = [TOOL[RESPONSES], NAMESPACE, PATCH, {"type": "web_search"}]
    first = WIRES[RESPONSES].read_request({"model": "m", "input": "hi", "tools": tools}, Options())
    written, _ = WIRES[RESPONSES].write_request(first, UNKNOWN_PROFILE)
    assert written["tools"] == tools


def test_deferred_tool_is_offered_after_search() -> None:
    search_result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "tool_reference", "tool_name": "ping"}],
    }
    body = {"tools": [{**TOOL[MESSAGES], "defer_loading": True}], **user(search_result)}
    translated = translate(MESSAGES, body, CHAT)
    assert [tool["function"]["name"] for tool in translated.body["tools"]] == ["ping"]
    assert [
        tool.name
        for tool in prepare_request({**MINIMAL_REQUESTS[MESSAGES], "model": "m", **body}, MESSAGES, CHAT).tools
    ] == ["ping"]
    assert translated.body["messages"][0]["content"] == "[the tool ping can be called from now on]"


# ── Claude ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OFF = {"thinking": {"type": "disabled"}}
CLEAR = {"type": "clear_thinking_20251015", "keep": "all"}
CLEAR_TOOLS = {"type": "clear_tool_uses_20250919"}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 10240}, "max_tokens": 20000}
ADAPTIVE = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}
FORCED = WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "any"}}
CLAUDES: list[tuple[str, str, Json, Json, str]] = [
    ("claude-opus-4-6", MESSAGES, BUDGET, BUDGET, ""),
    ("claude-opus-4-7", MESSAGES, BUDGET, ADAPTIVE, "thinking-wish"),
    ("claude-opus-4-8", CHAT, {"reasoning_effort": "medium"}, ADAPTIVE, ""),
    ("claude-sonnet-5", RESPONSES, {"reasoning": {"effort": "medium"}}, ADAPTIVE, ""),
    ("claude-sonnet-5", MESSAGES, {"output_config": {"effort": "low"}}, {"thinking": None}, ""),
    ("claude-opus-5", CHAT, {"reasoning_effort": "none"}, {"thinking": OFF["thinking"], "output_config": None}, ""),
    ("claude-opus-5", CHAT, {"reasoning_effort": "minimal"}, {"output_config": {"effort": "low"}}, "thinking-wish"),
    ("claude-opus-5", CHAT, {"temperature": 0.5, "top_k": 3}, {"temperature": None, "top_k": None}, "setting-dropped"),
    ("claude-fable-5", MESSAGES, OFF, {"thinking": None, "output_config": {"effort": "low"}}, "thinking-wish"),
    ("claude-fable-5", MESSAGES, FORCED, {"thinking": None, "tool_choice": {"type": "auto"}}, "choice-relaxed"),
    (
        "claude-haiku-4-5",
        CHAT,
        {"reasoning_effort": "ultra"},
        {"thinking": {"type": "enabled", "budget_tokens": 24576}},
        "thinking-wish",
    ),
    ("claude-haiku-4-5", MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 0}}, OFF, "thinking-wish"),
    (
        "claude-opus-4-6",
        MESSAGES,
        FORCED | ADAPTIVE | {"context_management": {"edits": [CLEAR, CLEAR_TOOLS, "x"]}},
        OFF | {"output_config": {"effort": "medium"}, "context_management": {"edits": [CLEAR_TOOLS, "x"]}},
        "thinking-stopped setting-dropped",
    ),
    (
        "claude-opus-5",
        MESSAGES,
        FORCED | {"output_config": {"effort": "max"}, "context_management": {"edits": [CLEAR]}},
        OFF | {"output_config": {"effort": "high"}, "context_management": None},
        "thinking-stopped thinking-wish setting-dropped",
    ),
    (
        "claude-opus-4-6",
        MESSAGES,
        ADAPTIVE | {"context_management": {"edits": [CLEAR]}},
        ADAPTIVE | {"context_management": {"edits": [CLEAR]}},
        "",
    ),
]


@pytest.mark.parametrize(("model", "source", "body", "expected", "kinds"), CLAUDES)
def test_claude_models_get_settings_they_accept(
    model: str, source: str, body: Json, expected: Json, kinds: str
) -> None:
    check_translation(
        source, {**body, "model": model}, MESSAGES, expected, kinds, profile_for_model(get_profile("anthropic"), model)
    )


EFFORTS: list[tuple[str, str, str]] = [
    ("openai gpt-5", "minimal", "minimal"),
    ("openai gpt-5-pro", "low", "high"),
    ("openai gpt-5.1", "max", "high"),
    ("openai gpt-5.1-codex-max", "max", "xhigh"),
    ("openai gpt-5.5", "minimal", "low"),
    ("openai", "max", "max"),
    ("openai", "ultra", "high"),
    ("mistral", "low", "high"),
    ("ollama", "xhigh", "max"),
    ("ollama", "minimal", "low"),
    ("ollama", "none", "none"),
    ("any", "ultra", "ultra"),
]


@pytest.mark.parametrize(("upstream", "requested", "expected"), EFFORTS)
def test_effort_is_mapped_to_one_the_upstream_accepts(upstream: str, requested: str, expected: str) -> None:
    name, _, model = upstream.partition(" ")
    profile = profile_for_model(get_profile(name), model)
    for source, body in (CHAT, {"reasoning_effort": requested}), (RESPONSES, {"reasoning": {"effort": requested}}):
        kinds = "" if requested == expected else "thinking-wish"
        check_translation(source, body, CHAT, {"reasoning_effort": expected}, kinds, profile)


@pytest.mark.parametrize(
    ("upstream", "budget", "effort"),
    [("mistral", 10240, "high"), ("openai gpt-5.1", 1024, "low"), ("openai gpt-5", 1024, "minimal")],
)
def test_budget_is_mapped_to_effort_the_upstream_accepts(upstream: str, budget: int, effort: str) -> None:
    name, _, model = upstream.partition(" ")
    body = {"max_tokens": 20000, "thinking": {"type": "enabled", "budget_tokens": budget}}
    check_translation(
        MESSAGES, body, CHAT, {"reasoning_effort": effort}, "thinking-wish", profile_for_model(get_profile(name), model)
    )


@pytest.mark.parametrize("offered", [[], [{**TOOL[RESPONSES], "defer_loading": True}]])
def test_tool_from_search_output_is_offered(offered: list[Json]) -> None:
    search_call = {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {"query": "ping"}}
    search_output = {"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [TOOL[RESPONSES]]}
    body = {"model": "m", "tools": offered, **input_items(search_call, search_output)}
    prepared = prepare_request(body, RESPONSES, CHAT)
    assert (prepared.body["tools"], [tool.name for tool in prepared.tools]) == ([TOOL[CHAT]], ["ping"])
    assert prepared.body["messages"][-1]["content"] == "[the tool ping can be called from now on]"
    same = prepare_request(body, RESPONSES, RESPONSES, upstream="openai")
    assert (same.body.get("tools", []), same.body["input"]) == (offered, body["input"])
    assert [tool.name for tool in same.tools] == ["ping"]


@pytest.mark.parametrize(
    ("source", "tool"),
    [
        (MESSAGES, {"type": "bash_20250124", "name": "bash"}),
        (RESPONSES, {"type": "tool_search"}),
    ],
)
def test_tool_type_of_one_wire_is_not_offered_on_another(source: str, tool: Json) -> None:
    findings = translate(source, {"tools": [tool]}, CHAT).findings
    assert [finding.message for finding in findings] == [f"{tool['type']} exists on {source} only: not offered"]


# ── upstreams ─────────────────────────────────────────────────────────────────────────────────────────────────────

THINKING_BUDGET = {"max_tokens": 20000, "thinking": {"type": "enabled", "budget_tokens": 10240}}
EFFORT_HIGH = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
STYLES: list[tuple[Any, Json, Json, str]] = [
    ("effort", THINKING_BUDGET, {"reasoning_effort": "medium"}, "thinking-wish"),
    ("effort", OFF, {"reasoning_effort": "none"}, ""),
    ("openrouter", THINKING_BUDGET, {"reasoning": {"max_tokens": 10240}}, ""),
    ("openrouter", EFFORT_HIGH, {"reasoning": {"effort": "high"}}, ""),
    (
        "openrouter",
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"reasoning": {"enabled": True, "exclude": True}},
        "",
    ),
    ("openrouter", OFF, {"reasoning": {"enabled": False}}, ""),
    ("type", THINKING_BUDGET, {"thinking": {"type": "enabled"}}, "thinking-wish"),
    ("type", OFF, {"thinking": {"type": "disabled"}}, ""),
    ("type-effort", THINKING_BUDGET, {"thinking": {"type": "enabled"}, "reasoning_effort": "medium"}, "thinking-wish"),
    (
        "type-effort",
        EFFORT_HIGH,
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        "",
    ),
    ("type-effort", OFF, {"thinking": {"type": "disabled"}, "reasoning_effort": None}, ""),
    ("adaptive", {"thinking": {"type": "adaptive"}}, {"thinking": {"type": "adaptive"}}, ""),
    ("adaptive", OFF, {"thinking": {"type": "disabled"}}, ""),
    ("budget", THINKING_BUDGET, {"thinking": {"type": "enabled", "budget_tokens": 10240}}, ""),
    (
        "budget",
        EFFORT_HIGH | {"max_tokens": 40000},
        {"thinking": {"type": "enabled", "budget_tokens": 24576}},
        "thinking-wish",
    ),
    ("enable", THINKING_BUDGET, {"enable_thinking": True, "thinking_budget": 10240}, ""),
    ("enable", OFF, {"enable_thinking": False, "thinking_budget": None}, ""),
    (
        "template",
        THINKING_BUDGET,
        {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
        "thinking-wish",
    ),
    ("template", OFF, {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}, ""),
    ("none", THINKING_BUDGET, {"reasoning_effort": None, "thinking": None}, "thinking-wish"),
]


@pytest.mark.parametrize(("style", "body", "expected", "kinds"), STYLES)
def test_thinking_styles(style: Any, body: Json, expected: Json, kinds: str) -> None:
    profile = Profile(thinking=style)
    check_translation(MESSAGES, body, CHAT, expected, kinds, profile)
    written = translate(MESSAGES, body, CHAT, profile).body
    second = translate(CHAT, {key: written[key] for key in expected if key in written}, CHAT, profile).body
    assert {key: second.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("effort", {"reasoning_effort": "none"}),
        ("openrouter", {"reasoning": {"enabled": False}}),
        ("type", {"thinking": {"type": "disabled"}}),
        ("type-effort", {"thinking": {"type": "disabled"}, "reasoning_effort": None}),
        ("budget", {"thinking": {"type": "disabled"}}),
        ("enable", {"enable_thinking": False, "thinking_budget": None}),
        ("template", {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}),
        ("none", {"reasoning_effort": None, "thinking": None}),
    ],
)
def test_effort_without_thinking_asks_for_no_thinking(style: Any, expected: Json) -> None:
    """Claude Code sends only an effort for titles, for WebFetch, and if its user has switched thinking off."""
    body = {"output_config": {"effort": "high"}}
    check_translation(MESSAGES, body, CHAT, expected, "thinking-wish", Profile(thinking=style))


def test_effort_without_thinking_asks_responses_for_no_reasoning() -> None:
    body = {"output_config": {"effort": "high"}}
    check_translation(MESSAGES, body, RESPONSES, {"reasoning": {"effort": "none"}}, "thinking-wish")


def test_effort_without_thinking_stays_on_its_own_wire() -> None:
    body = {"output_config": {"effort": "high"}}
    for profile in (None, get_profile("anthropic")):
        check_translation(
            MESSAGES, body, MESSAGES, {"output_config": {"effort": "high"}, "thinking": None}, "", profile
        )


def test_request_without_effort_and_thinking_leaves_thinking_to_the_upstream() -> None:
    check_translation(MESSAGES, {}, CHAT, {"reasoning_effort": None, "thinking": None}, "")


MARK = {"type": "ephemeral"}
PROFILES: list[tuple[Json, Json, Json, str]] = [
    ({"max_tokens": "max_completion_tokens"}, {}, {"max_tokens": None, "max_completion_tokens": 8000}, ""),
    ({"top_k": True}, {"top_k": 3}, {"top_k": 3}, ""),
    ({"user": False}, {"metadata": {"user_id": "u"}}, {"user": None}, "setting-dropped"),
    ({"usage_option": False}, {"stream": True}, {"stream": True, "stream_options": None}, ""),
    ({"cache_key": True}, {"metadata": {"user_id": '{"session_id":"s"}'}}, {"prompt_cache_key": "s"}, ""),
    (
        {"parallel": False},
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"parallel_tool_calls": None},
        "setting-dropped",
    ),
    (
        {"strict_tools": False},
        {"tools": [{**TOOL[MESSAGES], "strict": True}]},
        {"tools": [TOOL[CHAT]]},
        "setting-dropped",
    ),
    (
        {"system_role": "developer"},
        {"system": "A"},
        {"messages": [{"role": "developer", "content": "A"}, {"role": "user", "content": "hi"}]},
        "",
    ),
    (
        {"cache_marks": True},
        {"messages": [{"role": "user", "content": [{**TEXT[MESSAGES], "cache_control": MARK}]}]},
        {"messages": [{"role": "user", "content": [{**TEXT[CHAT], "cache_control": MARK}]}]},
        "",
    ),
    (
        {"cache_marks": True},
        {"messages": [{"role": "user", "content": [{**TOOL_RESULT, "cache_control": MARK}]}]},
        {
            "messages": [
                {
                    "role": "tool",
                    "tool_call_id": "t1",
                    "content": [{"type": "text", "text": "ok", "cache_control": MARK}],
                }
            ]
        },
        "",
    ),
    (
        {},
        {"messages": [{"role": "user", "content": [{**TEXT[MESSAGES], "cache_control": MARK}]}]},
        {"messages": [{"role": "user", "content": "see"}]},
        "cache-mark-dropped",
    ),
    (
        {"images_in_results": True},
        user({**TOOL_RESULT, "content": [IMAGE[MESSAGES]]}),
        {"messages": [{"role": "tool", "tool_call_id": "t1", "content": [IMAGE[CHAT]]}]},
        "",
    ),
    (
        {"replay": "reasoning"},
        {"messages": assistant_history({"type": "thinking", "thinking": "hm"})[1:]},
        {"messages": [{"role": "assistant", "content": "", "reasoning": "hm"}]},
        "",
    ),
    (
        {"replay": "reasoning_details"},
        {"messages": assistant_history({"type": "thinking", "thinking": "hm"})[1:]},
        {
            "messages": [
                {"role": "assistant", "content": "", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}
            ]
        },
        "",
    ),
    (
        {"replay": "none"},
        {"messages": assistant_history({"type": "thinking", "thinking": "hm"})[1:]},
        {"messages": []},
        "thinking-dropped",
    ),
]


@pytest.mark.parametrize(("profile", "body", "expected", "kinds"), PROFILES)
def test_chat_profiles(profile: Json, body: Json, expected: Json, kinds: str) -> None:
    check_translation(MESSAGES, body, CHAT, expected, kinds, msgspec.convert({"name": "x", **profile}, Profile))
