"""What each thing in a request becomes on each other wire, row by row."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import interlingua as il
from interlingua import request_translation
from interlingua.errors import BadRequest, UnknownWire, UsageError
from interlingua.events import Finding, Seal
from interlingua.options import Options
from interlingua.profile import ANY, Profile
from interlingua.reply import Reasoning, Text
from interlingua.request import Message, Request
from interlingua.request_translation import prepare_request
from interlingua.seals import seal
from tests.request_forms import CHAT, MESSAGES, RESPONSES, WIRES

Json = dict[str, Any]
KEY = b"key"
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
SAID: dict[str, Json] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    MESSAGES: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8000},
    RESPONSES: {"input": "hi"},
}
PING = {"type": "object", "properties": {}}


class Written(msgspec.Struct):
    body: Json
    findings: list[Finding]


def translate(source: str, body: Json, target: str, upstream: Profile | None = None) -> Written:
    """What the two wires make of a request, with nothing between them."""
    request = WIRES[source].read_request({"model": "m", **SAID[source], **body}, Options(seal_key=KEY))
    return Written(*WIRES[target].write_request(request, upstream or ANY))


def check(
    source: str, body: Json, target: str, expected: Json, kinds: str = "", upstream: Profile | None = None
) -> None:
    """The fields that are expected, and no finding but those. None is a field that must not be there."""
    done = translate(source, body, target, upstream)
    assert {key: done.body.get(key) for key in expected} == expected
    found = {finding.kind for finding in done.findings} - {"no-max-tokens"}
    assert found == set(kinds.split()), done.findings


def users(*parts: Json) -> Json:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def said(*parts: Json) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": list(parts)}]}


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────

TOOL: dict[str, Json] = {
    CHAT: {"type": "function", "function": {"name": "ping", "parameters": PING}},
    MESSAGES: {"name": "ping", "input_schema": PING},
    RESPONSES: {"type": "function", "name": "ping", "parameters": PING, "strict": False},
}
ASK = {wire: {"tools": [tool]} for wire, tool in TOOL.items()}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
SETTINGS: list[tuple[str, Json, str, Json, str]] = [
    # how long, and how
    (CHAT, {"max_completion_tokens": 5}, MESSAGES, {"max_tokens": 5}, ""),
    (CHAT, {}, MESSAGES, {"max_tokens": 32000}, ""),
    (MESSAGES, {"max_tokens": 5}, CHAT, {"max_tokens": 5, "max_completion_tokens": None}, ""),
    (MESSAGES, {"max_tokens": 5}, RESPONSES, {"max_output_tokens": 5}, ""),
    (RESPONSES, {"max_output_tokens": 5}, CHAT, {"max_tokens": 5}, ""),
    (CHAT, {"temperature": 1.5}, MESSAGES, {"temperature": 1}, "sampling-changed"),
    (CHAT, {"temperature": 0.5, "top_p": 0.9, "n": 1}, MESSAGES, {"temperature": 0.5, "top_p": 0.9, "n": None}, ""),
    (CHAT, {"seed": 1, "logit_bias": {}}, MESSAGES, {"seed": None, "logit_bias": None}, "field-dropped"),
    (CHAT, {"seed": 1}, RESPONSES, {"seed": None}, "field-dropped"),
    (MESSAGES, {"top_k": 5}, CHAT, {"top_k": None}, "field-dropped"),
    (CHAT, {"verbosity": "low"}, RESPONSES, {"text": {"verbosity": "low"}, "verbosity": None}, ""),
    (RESPONSES, {"text": {"verbosity": "low"}}, CHAT, {"verbosity": "low"}, ""),
    (CHAT, {"stop": "END"}, MESSAGES, {"stop_sequences": ["END"]}, ""),
    (MESSAGES, {"stop_sequences": ["A", "B"]}, CHAT, {"stop": ["A", "B"]}, ""),
    (CHAT, {"stop": ["A"]}, RESPONSES, {"stop": None}, "field-dropped"),
    # how it comes
    (MESSAGES, {"stream": True}, CHAT, {"stream": True, "stream_options": {"include_usage": True}}, ""),
    (CHAT, {"stream": True, "stream_options": {"include_usage": True}}, MESSAGES, {"stream": True}, ""),
    (CHAT, {"stream": True}, RESPONSES, {"stream": True, "stream_options": None}, ""),
    # who asks
    (CHAT, {"user": "u"}, MESSAGES, {"metadata": {"user_id": "u"}}, ""),
    (MESSAGES, {"metadata": {"user_id": "u"}}, CHAT, {"user": "u", "metadata": None}, ""),
    (MESSAGES, {"metadata": {"user_id": '{"session_id": "s"}'}}, RESPONSES, {"prompt_cache_key": "s"}, ""),
    (CHAT, {"metadata": {"a": "b"}}, RESPONSES, {"metadata": {"a": "b"}}, ""),
    (CHAT, {"metadata": {"a": "b"}}, MESSAGES, {"metadata": None}, "field-dropped"),
    (CHAT, {"prompt_cache_key": "k"}, RESPONSES, {"prompt_cache_key": "k"}, ""),
    (CHAT, {"prompt_cache_key": "k"}, MESSAGES, {"prompt_cache_key": None}, "field-dropped"),
    (CHAT, {"service_tier": "flex"}, RESPONSES, {"service_tier": "flex"}, ""),
    (CHAT, {"service_tier": "flex"}, MESSAGES, {"service_tier": None}, "field-dropped"),
    (CHAT, {}, RESPONSES, {"store": False, "include": ["reasoning.encrypted_content"]}, ""),
    (MESSAGES, {"context_management": {}}, CHAT, {"context_management": None}, "field-dropped"),
    # the form of the reply
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
        {"thinking": {"type": "enabled", "budget_tokens": 3999}},
        "thinking-wish",
    ),
    (CHAT, {"reasoning_effort": "high", "max_tokens": 1000}, MESSAGES, {"thinking": None}, "thinking-wish"),
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
        {"thinking": {"type": "enabled", "budget_tokens": 31999}},
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
    # which tool
    *[
        (CHAT, ASK[CHAT] | {"tool_choice": mode}, MESSAGES, {"tool_choice": {"type": kind}}, "")
        for mode, kind in (("auto", "auto"), ("required", "any"), ("any", "any"), ("none", "none"))
    ],
    (
        CHAT,
        ASK[CHAT] | {"tool_choice": {"type": "function", "function": {"name": "ping"}}, "parallel_tool_calls": False},
        MESSAGES,
        {"tool_choice": {"type": "tool", "name": "ping", "disable_parallel_tool_use": True}},
        "",
    ),
    (
        CHAT,
        ASK[CHAT] | {"parallel_tool_calls": False},
        MESSAGES,
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "parallel_tool_calls": None},
        "",
    ),
    (
        MESSAGES,
        ASK[MESSAGES] | {"tool_choice": {"type": "tool", "name": "ping", "disable_parallel_tool_use": True}},
        CHAT,
        {"tool_choice": {"type": "function", "function": {"name": "ping"}}, "parallel_tool_calls": False},
        "",
    ),
    (
        MESSAGES,
        ASK[MESSAGES] | {"tool_choice": {"type": "tool", "name": "ping"}},
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
        ASK[CHAT]
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
    (RESPONSES, ASK[RESPONSES] | {"tool_choice": {"type": "web_search"}}, CHAT, {"tool_choice": None}, "field-dropped"),
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
    check(source, body, target, expected, kinds)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PATCH = {
    "type": "custom",
    "name": "patch",
    "description": "Change files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
}
PATCH_TOLD = "Change files.\n\n`input` is text of this lark grammar:\nstart: x"
SPACE = {
    "type": "namespace",
    "name": "mcp__a",
    "description": "About a.",
    "tools": [{"type": "function", "name": "look", "parameters": PING, "strict": False}],
}
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
        [{"name": "patch", "description": PATCH_TOLD, "input_schema": ONE_STRING}],
        "custom-tool",
    ),
    (
        CHAT,
        [{"type": "custom", "custom": {key: PATCH[key] for key in ("name", "description", "format")}}],
        RESPONSES,
        [PATCH],
        "",
    ),
    (
        RESPONSES,
        [SPACE],
        CHAT,
        [{"type": "function", "function": {"name": "mcp__a__look", "parameters": PING}}],
        "namespace",
    ),
    (MESSAGES, [{**TOOL[MESSAGES], "defer_loading": True}], CHAT, None, "deferred-tool"),
    (RESPONSES, [{**TOOL[RESPONSES], "defer_loading": True}], MESSAGES, None, "deferred-tool"),
    (MESSAGES, [{**TOOL[MESSAGES], "defer_loading": True}], RESPONSES, None, "deferred-tool"),
    (MESSAGES, [{"type": "web_search_20250305", "name": "web_search"}], CHAT, None, "hosted-tool"),
    (RESPONSES, [{"type": "web_search"}, TOOL[RESPONSES]], MESSAGES, [TOOL[MESSAGES]], "hosted-tool"),
    (MESSAGES, [{**TOOL[MESSAGES], "cache_control": {"type": "ephemeral"}}], CHAT, [TOOL[CHAT]], "field-dropped"),
    (MESSAGES, [{**TOOL[MESSAGES], "eager_input_streaming": True}], RESPONSES, [TOOL[RESPONSES]], "field-dropped"),
    (RESPONSES, [{**TOOL[RESPONSES], "strict": True}], CHAT, [TOOL[CHAT]], "field-dropped"),
]


@pytest.mark.parametrize(("source", "tools", "target", "expected", "kinds"), TOOLS)
def test_tools(source: str, tools: list[Json], target: str, expected: list[Json] | None, kinds: str) -> None:
    check(source, {"tools": tools}, target, {"tools": expected}, kinds)


def test_tools_of_the_same_wire_are_written_as_they_came() -> None:
    """Also where something else had to change."""
    tools = [TOOL[RESPONSES], SPACE, PATCH, {"type": "web_search"}]
    first = WIRES[RESPONSES].read_request({"model": "m", "input": "hi", "tools": tools}, Options())
    written, _ = WIRES[RESPONSES].write_request(first, ANY)
    assert written["tools"] == tools


def test_a_tool_that_was_found_is_shown() -> None:
    found = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "ping"}]}
    body = {"tools": [{**TOOL[MESSAGES], "defer_loading": True}], **users(found)}
    done = translate(MESSAGES, body, CHAT)
    assert [tool["function"]["name"] for tool in done.body["tools"]] == ["ping"]
    assert [tool.name for tool in prepare_request({**SAID[MESSAGES], "model": "m", **body}, MESSAGES, CHAT).tools] == [
        "ping"
    ]
    assert done.body["messages"][0]["content"] == "[the tool ping can be called from now on]"


def test_what_a_gateway_needs_of_a_request() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "ping", "input": {}}
    body = {
        "tools": [TOOL[MESSAGES], {**TOOL[MESSAGES], "name": "later", "defer_loading": True}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            *users(ANSWERED)["messages"],
        ],
    }
    done = prepare_request({**SAID[MESSAGES], "model": "m", **body}, MESSAGES, CHAT)
    assert ([tool.name for tool in done.tools], done.taken_ids) == (["ping"], ("t1",))


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

IMAGE: dict[str, Json] = {
    CHAT: {"type": "image_url", "image_url": {"url": PNG}},
    MESSAGES: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
    RESPONSES: {"type": "input_image", "image_url": PNG, "detail": "auto"},
}
FILE: dict[str, Json] = {
    CHAT: {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
    MESSAGES: {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        "title": "a.pdf",
    },
    RESPONSES: {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
}
LINK: dict[str, Json] = {
    CHAT: {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
    MESSAGES: {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
    RESPONSES: {"type": "input_image", "image_url": "https://a/b.png", "detail": "auto"},
}
TEXT: dict[str, Json] = {
    CHAT: {"type": "text", "text": "see"},
    MESSAGES: {"type": "text", "text": "see"},
    RESPONSES: {"type": "input_text", "text": "see"},
}
LATER = {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}
PARTS: list[tuple[str, Json, str, Json, str]] = [
    *[
        (source, kind[source], target, kind[target], "")
        for kind in (IMAGE, FILE, LINK, TEXT)
        for source in WIRES
        for target in WIRES
        if source != target
    ],
    (CHAT, {"type": "image_url", "image_url": PNG}, MESSAGES, IMAGE[MESSAGES], ""),
    (
        CHAT,
        {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,AA=="}},
        MESSAGES,
        {**IMAGE[MESSAGES], "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}},
        "",
    ),
    (
        CHAT,
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        RESPONSES,
        {**IMAGE[RESPONSES], "detail": "low"},
        "",
    ),
    (
        MESSAGES,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "long"}, "title": "T"},
        CHAT,
        {"type": "text", "text": "T\n\nlong"},
        "document-as-text",
    ),
    (
        CHAT,
        {"type": "file", "file": {"file_data": "data:text/plain;base64,bG9uZw=="}},
        MESSAGES,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "long"}},
        "",
    ),
    (MESSAGES, LATER, RESPONSES, {"type": "input_file", "file_url": "https://a/b.pdf"}, ""),
    (
        MESSAGES,
        LATER,
        CHAT,
        {"type": "text", "text": "[a document that cannot be shown here: https://a/b.pdf]"},
        "content-dropped",
    ),
    (
        MESSAGES,
        {"type": "document", "source": {"type": "file", "file_id": "f"}},
        CHAT,
        {"type": "text", "text": "[a document that cannot be shown here: f]"},
        "content-dropped",
    ),
    (CHAT, {"type": "file", "file": {"file_id": "f"}}, RESPONSES, {"type": "input_file", "file_id": "f"}, ""),
    (MESSAGES, {"type": "text", "text": "see", "citations": [{}]}, CHAT, TEXT[CHAT], "content-as-text"),
]


@pytest.mark.parametrize(("source", "part", "target", "expected", "kinds"), PARTS)
def test_parts(source: str, part: Json, target: str, expected: Json, kinds: str) -> None:
    body = (said if source == RESPONSES else users)(TEXT[source], part)
    done = translate(source, body, target)
    messages = done.body["input" if target == RESPONSES else "messages"]
    assert messages[0]["content"][1:] == [expected]
    assert {finding.kind for finding in done.findings} - {"no-max-tokens"} == set(kinds.split())


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_what_a_wire_cannot_carry_is_told(target: str) -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    done = translate(CHAT, users(TEXT[CHAT], audio), target)
    assert "content-dropped" in {finding.kind for finding in done.findings}
    assert len(done.body["input" if target == RESPONSES else "messages"][0]["content"]) == 1


CALLED = {"type": "tool_use", "id": "t1", "name": "ping", "input": {"a": 1}}
ANSWERED = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


def assistant(*blocks: Json) -> list[Json]:
    return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": list(blocks)}]


def chat_call(id: str = "t1", arguments: str = '{"a":1}') -> Json:
    return {"id": id, "type": "function", "function": {"name": "ping", "arguments": arguments}}


FAILED = {**ANSWERED, "is_error": True}
MESSAGE_ROWS: list[tuple[str, list[Json], list[Json], str]] = [
    (
        "results first, then the user's text",
        [{"role": "user", "content": [{"type": "text", "text": "go"}, ANSWERED]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "ok"}, {"role": "user", "content": "go"}],
        "",
    ),
    (
        "a call and its arguments",
        assistant({"type": "text", "text": "a"}, CALLED),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "tool_calls": [chat_call()]}],
        "",
    ),
    (
        "text behind a call stands before it",
        assistant(CALLED, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "tool_calls": [chat_call()]}],
        "reordered",
    ),
    (
        "a failure is told in words",
        [{"role": "user", "content": [FAILED]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "[tool error] ok"}],
        "error-as-text",
    ),
    (
        "a failure without words",
        [{"role": "user", "content": [{**FAILED, "content": []}]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "[tool error]"}],
        "error-as-text",
    ),
    (
        "an image moves out of its result",
        [{"role": "user", "content": [{**ANSWERED, "content": [IMAGE[MESSAGES]]}, {"type": "text", "text": "go"}]}],
        [
            {"role": "tool", "tool_call_id": "t1", "content": "[see the next message]"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "[image from tool call t1]"},
                    IMAGE[CHAT],
                    {"type": "text", "text": "go"},
                ],
            },
        ],
        "image-moved",
    ),
    (
        "several texts of a result",
        [{"role": "user", "content": [{**ANSWERED, "content": [TEXT[MESSAGES], TEXT[MESSAGES]]}]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "see\nsee"}],
        "",
    ),
    (
        "an encoded id is the upstream's own again",
        [{"role": "user", "content": [{**ANSWERED, "tool_use_id": "il-MZ2W4Y3UNFXW44ZOMJQXG2B2GA"}]}],
        [{"role": "tool", "tool_call_id": "functions.bash:0", "content": "ok"}],
        "",
    ),
    (
        "thinking that another upstream has signed",
        assistant({"type": "thinking", "thinking": "hm", "signature": "Eq"}, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "reasoning_content": "hm"}],
        "seal-dropped",
    ),
    (
        "thinking without a signature",
        assistant({"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "reasoning_content": "hm"}],
        "",
    ),
    (
        "thinking that nobody can read",
        assistant({"type": "redacted_thinking", "data": "xx"}, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}],
        "seal-dropped",
    ),
    (
        "a search that a server has made",
        assistant(
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "a"}
        ),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}],
        "content-dropped",
    ),
    (
        "a system message among the others, and a mark",
        [{"role": "user", "content": "hi"}, {"role": "system", "content": [{**TEXT[MESSAGES], "cache_control": {}}]}],
        [{"role": "user", "content": "hi"}, {"role": "system", "content": "see"}],
        "",
    ),
]


@pytest.mark.parametrize(("name", "messages", "expected", "kinds"), MESSAGE_ROWS)
def test_messages_of_anthropic_for_chat(name: str, messages: list[Json], expected: list[Json], kinds: str) -> None:
    check(MESSAGES, {"messages": messages}, CHAT, {"messages": expected}, kinds)
    again = translate(MESSAGES, {"messages": messages}, CHAT)
    back = translate(CHAT, {"messages": again.body["messages"]}, MESSAGES)
    twice = translate(MESSAGES, {"messages": back.body["messages"]}, CHAT)
    assert twice.body["messages"] == again.body["messages"], name


def items(*given: Json) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": "hi"}, *given]}


SHOT = {
    "type": "function_call_output",
    "call_id": "c1",
    "output": [{"type": "input_text", "text": "see"}, IMAGE[RESPONSES]],
}
ITEM_ROWS: list[tuple[str, Json, str, list[Json], str]] = [
    (
        "what the model said is one message",
        items(
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            {"type": "function_call", "call_id": "t1", "name": "ping", "arguments": '{"a":1}'},
            {"type": "function_call", "call_id": "t2", "name": "ping", "arguments": ""},
            {"type": "function_call_output", "call_id": "t1", "output": "ok"},
            {
                "type": "function_call_output",
                "call_id": "t2",
                "output": [{"type": "input_text", "text": "[tool error] no"}],
            },
        ),
        MESSAGES,
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "text", "text": "a"},
                    CALLED,
                    {**CALLED, "id": "t2", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {**ANSWERED, "content": [{"type": "text", "text": "ok"}]},
                    {**FAILED, "tool_use_id": "t2", "content": [{"type": "text", "text": "no"}]},
                ],
            },
        ],
        "",
    ),
    (
        "calls of a namespace",
        items({"type": "function_call", "call_id": "t1", "name": "look", "namespace": "mcp__a", "arguments": "{}"}),
        CHAT,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "mcp__a__look", "arguments": "{}"}}
                ],
            }
        ],
        "",
    ),
    (
        "calls that are text",
        items(
            {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "a\n"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        ),
        CHAT,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "patch", "arguments": '{"input":"a\\n"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
        "",
    ),
    (
        "images in results",
        items(SHOT),
        MESSAGES,
        [{"type": "tool_result", "tool_use_id": "c1", "content": [TEXT[MESSAGES], IMAGE[MESSAGES]]}],
        "",
    ),
    (
        "what only this wire has",
        items({"type": "web_search_call", "id": "w"}, {"role": "assistant", "content": "a"}),
        CHAT,
        [{"role": "assistant", "content": "a"}],
        "content-dropped",
    ),
    (
        "developers among the others",
        items({"role": "developer", "content": "d"}),
        CHAT,
        [{"role": "system", "content": "d"}],
        "",
    ),
]


@pytest.mark.parametrize(("name", "body", "target", "expected", "kinds"), ITEM_ROWS)
def test_items_of_responses(name: str, body: Json, target: str, expected: list[Json], kinds: str) -> None:
    done = translate(RESPONSES, body, target)
    written = done.body["messages"][1:] or done.body["messages"][0]["content"][:1]
    assert written == expected, name
    assert {finding.kind for finding in done.findings} - {"no-max-tokens"} == set(kinds.split())


SYSTEMS: dict[str, list[Json]] = {
    CHAT: [{"role": "system", "content": "A"}, {"role": "developer", "content": [{"type": "text", "text": "B"}]}],
    MESSAGES: [
        {"type": "text", "text": "x-anthropic-billing-header: v;"},
        {"type": "text", "text": "A"},
        {"type": "text", "text": "B"},
    ],
}


def test_the_system_prompt() -> None:
    hi = {"role": "user", "content": "hi"}
    chat = {"messages": [*SYSTEMS[CHAT], hi]}
    check(CHAT, chat, MESSAGES, {"system": SYSTEMS[MESSAGES][1:]})
    check(CHAT, chat, RESPONSES, {"instructions": "A\n\nB"})
    system = {"system": SYSTEMS[MESSAGES]}
    check(MESSAGES, system, CHAT, {"messages": [{"role": "system", "content": "A\n\nB"}, hi]}, "billing-line")
    check(MESSAGES, system, RESPONSES, {"instructions": "A\n\nB"}, "billing-line")
    check(MESSAGES, {"system": "A"}, CHAT, {"messages": [{"role": "system", "content": "A"}, hi]})
    developer = {"input": [{"role": "developer", "content": "B"}, hi], "instructions": "A"}
    check(RESPONSES, developer, CHAT, {"messages": [{"role": "system", "content": "A\n\nB"}, hi]})
    check(RESPONSES, developer, MESSAGES, {"system": SYSTEMS[MESSAGES][1:]})


def test_legacy_functions_are_calls() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "function_call": {"name": "ping", "arguments": "{}"}},
        {"role": "function", "name": "ping", "content": "ok"},
    ]
    written = translate(CHAT, {"messages": messages}, MESSAGES).body["messages"]
    assert written[1]["content"][0]["id"] == written[2]["content"][0]["tool_use_id"]


@pytest.mark.parametrize(("arguments", "input"), [("", {}), (" ", {}), ('{"a": 1}', {"a": 1})])
def test_arguments_become_an_object(arguments: str, input: Json) -> None:
    body = {"messages": [{"role": "assistant", "content": "", "tool_calls": [chat_call(arguments=arguments)]}]}
    check(CHAT, body, MESSAGES, {"messages": [{"role": "assistant", "content": [{**CALLED, "input": input}]}]})


@pytest.mark.parametrize("arguments", ['{"a": ', '"text"', "[1]", "null"])
def test_arguments_that_are_no_object_are_wrapped_and_come_back(arguments: str) -> None:
    body = {"messages": [{"role": "assistant", "content": "", "tool_calls": [chat_call(arguments=arguments)]}]}
    done = translate(CHAT, body, MESSAGES)
    assert "wrapped-arguments" in {finding.kind for finding in done.findings}
    back = translate(MESSAGES, {"messages": done.body["messages"]}, CHAT).body["messages"]
    assert back[0]["tool_calls"][0]["function"]["arguments"] == arguments


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────────

DETAILS = {"reasoning_details": [{"type": "reasoning.text", "signature": "S", "format": "f"}]}
THOUGHT = [
    ("chat, its text alone", Reasoning("hm"), {"reasoning_content": "hm"}),
    (
        "chat, with details",
        Reasoning("hm", Seal(CHAT, DETAILS)),
        {
            "reasoning_content": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "S", "format": "f"}],
        },
    ),
    (
        "chat, encrypted",
        Reasoning("hm", Seal(CHAT, {"reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}]})),
        {
            "reasoning_content": "hm",
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "hm"},
                {"type": "reasoning.encrypted", "data": "D"},
            ],
        },
    ),
    (
        "messages",
        Reasoning("hm", Seal(MESSAGES, {"signature": "Eq"})),
        {"type": "thinking", "thinking": "hm", "signature": "Eq"},
    ),
    (
        "messages, redacted",
        Reasoning("", Seal(MESSAGES, {"redacted": "xx"})),
        {"type": "redacted_thinking", "data": "xx"},
    ),
    (
        "responses",
        Reasoning("hm", Seal(RESPONSES, {"encrypted_content": "gA", "id": "rs_1"})),
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "gA",
            "id": "rs_1",
        },
    ),
]


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize(("name", "thinking", "native"), THOUGHT)
def test_thinking_comes_back_as_the_upstream_sent_it(client: str, name: str, thinking: Reasoning, native: Json) -> None:
    """Whatever wire the client speaks: sealed in its opaque field."""
    upstream = thinking.seal.wire if thinking.seal else CHAT
    sealed = seal(thinking, CHAT, KEY)
    body: Json = {
        CHAT: {
            "messages": [
                {
                    "role": "assistant",
                    "content": "a",
                    "reasoning_content": thinking.text,
                    "reasoning_details": [{"type": "reasoning.encrypted", "data": sealed, "format": "interlingua-v1"}],
                }
            ]
        },
        MESSAGES: {"messages": assistant({"type": "thinking", "thinking": "shown", "signature": sealed})[1:]},
        RESPONSES: {"input": [{"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": sealed}]},
    }[client]
    written = translate(client, body, upstream, Profile(own_seals=True)).body
    if upstream == CHAT:
        message = written["messages"][0]
        assert {key: message[key] for key in native} == native, name
    else:
        block = written["input"][0] if upstream == RESPONSES else written["messages"][0]["content"][0]
        assert block == native, name


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_an_upstream_that_wants_its_own_seals_gets_no_other_thinking(target: str) -> None:
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    done = translate(CHAT, {"messages": [message]}, target, Profile(own_seals=True))
    assert "hm" not in json.dumps(done.body)
    assert "thinking-dropped" in {finding.kind for finding in done.findings}


def test_a_seal_of_another_key_is_no_signature() -> None:
    sealed = seal(Reasoning("hm", Seal(CHAT, {})), CHAT, b"another")
    body = {"messages": assistant({"type": "thinking", "thinking": "hm", "signature": sealed})[1:]}
    done = translate(MESSAGES, body, MESSAGES)
    assert done.body["messages"][0]["content"] == [{"type": "thinking", "thinking": "hm", "signature": ""}]
    assert translate(MESSAGES, body, CHAT).body["messages"][0]["reasoning_content"] == "hm"


def test_native_details_of_chat_are_read_piece_by_piece() -> None:
    details = [
        {"type": "reasoning.text", "text": "one", "signature": "1"},
        {"type": "reasoning.text", "text": "two", "signature": "2"},
        {"type": "reasoning.text", "text": "three"},
    ]
    message = {"role": "assistant", "content": "a", "reasoning_details": details}
    written = translate(CHAT, {"messages": [message]}, CHAT, Profile(replay="reasoning_details", top_k=True)).body
    assert written["messages"][0]["reasoning_details"] == details


# ── upstreams ─────────────────────────────────────────────────────────────────────────────────────────────────────

WISH = {"thinking": {"type": "enabled", "budget_tokens": 10240}}
OFF = {"thinking": {"type": "disabled"}}
STYLES: list[tuple[Any, Json, Json, str]] = [
    ("effort", WISH, {"reasoning_effort": "medium"}, "thinking-wish"),
    ("effort", OFF, {"reasoning_effort": "none"}, ""),
    ("openrouter", WISH, {"reasoning": {"max_tokens": 10240}}, ""),
    ("openrouter", {"output_config": {"effort": "high"}}, {"reasoning": {"effort": "high"}}, ""),
    (
        "openrouter",
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"reasoning": {"enabled": True, "exclude": True}},
        "",
    ),
    ("openrouter", OFF, {"reasoning": {"enabled": False}}, ""),
    ("type", WISH, {"thinking": {"type": "enabled"}}, "thinking-wish"),
    ("type", OFF, {"thinking": {"type": "disabled"}}, ""),
    ("budget", WISH, {"thinking": {"type": "enabled", "budget_tokens": 10240}}, ""),
    (
        "budget",
        {"output_config": {"effort": "low"}},
        {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        "thinking-wish",
    ),
    ("enable", WISH, {"enable_thinking": True, "thinking_budget": 10240}, ""),
    ("enable", OFF, {"enable_thinking": False, "thinking_budget": None}, ""),
    ("template", WISH, {"chat_template_kwargs": {"enable_thinking": True}}, "thinking-wish"),
    ("template", OFF, {"chat_template_kwargs": {"enable_thinking": False}}, ""),
    ("think", OFF, {"think": False}, ""),
    ("none", WISH, {"reasoning_effort": None, "thinking": None}, "thinking-wish"),
]


@pytest.mark.parametrize(("style", "body", "expected", "kinds"), STYLES)
def test_every_way_to_ask_for_thinking(style: Any, body: Json, expected: Json, kinds: str) -> None:
    profile = Profile(thinking=style)
    check(MESSAGES, body, CHAT, expected, kinds, profile)
    written = translate(MESSAGES, body, CHAT, profile).body
    again = translate(CHAT, {key: written[key] for key in expected if key in written}, CHAT, profile).body
    assert {key: again.get(key) for key in expected} == expected


MARK = {"type": "ephemeral"}
PROFILES: list[tuple[Json, Json, Json, str]] = [
    ({"max_tokens": "max_completion_tokens"}, {}, {"max_tokens": None, "max_completion_tokens": 8000}, ""),
    ({"top_k": True}, {"top_k": 3}, {"top_k": 3}, ""),
    ({"user": False}, {"metadata": {"user_id": "u"}}, {"user": None}, "field-dropped"),
    ({"usage_option": False}, {"stream": True}, {"stream": True, "stream_options": None}, ""),
    ({"cache_key": True}, {"metadata": {"user_id": '{"session_id":"s"}'}}, {"prompt_cache_key": "s"}, ""),
    (
        {"parallel": False},
        ASK[MESSAGES] | {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"parallel_tool_calls": None},
        "field-dropped",
    ),
    (
        {"strict_tools": True},
        {"tools": [{**TOOL[MESSAGES], "strict": True}]},
        {"tools": [{"type": "function", "function": {"name": "ping", "parameters": PING, "strict": True}}]},
        "",
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
        {"messages": [{"role": "user", "content": [{**ANSWERED, "cache_control": MARK}]}]},
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
        users({**ANSWERED, "content": [IMAGE[MESSAGES]]}),
        {"messages": [{"role": "tool", "tool_call_id": "t1", "content": [IMAGE[CHAT]]}]},
        "",
    ),
    (
        {"replay": "reasoning"},
        {"messages": assistant({"type": "thinking", "thinking": "hm"})[1:]},
        {"messages": [{"role": "assistant", "content": "", "reasoning": "hm"}]},
        "",
    ),
    (
        {"replay": "reasoning_details"},
        {"messages": assistant({"type": "thinking", "thinking": "hm"})[1:]},
        {
            "messages": [
                {"role": "assistant", "content": "", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}
            ]
        },
        "",
    ),
    (
        {"replay": "none"},
        {"messages": assistant({"type": "thinking", "thinking": "hm"})[1:]},
        {"messages": []},
        "thinking-dropped",
    ),
]


@pytest.mark.parametrize(("profile", "body", "expected", "kinds"), PROFILES)
def test_upstreams_of_chat_differ(profile: Json, body: Json, expected: Json, kinds: str) -> None:
    check(MESSAGES, body, CHAT, expected, kinds, msgspec.convert({"name": "x", **profile}, Profile))


# ── the same wire ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_on_one_wire_only_what_the_upstream_wants_otherwise_is_changed() -> None:
    call = {**chat_call(arguments=" {} "), "extra_content": {"google": {"thought_signature": "x"}}}
    body = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "A"},
            {"role": "user", "content": [TEXT[CHAT]]},
            {"role": "assistant", "content": "a", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": "ok"},
        ],
        "max_completion_tokens": 5,
        "unknown": {"a": 1},
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {"name": "ping", "strict": True}}],
    }
    changed = il.translate_request(body, CHAT, CHAT, upstream=Profile(name="x", thinking="type"))
    assert changed == {
        "model": "m",
        "messages": [{"role": "system", "content": "A"}, *body["messages"][1:]],  # type: ignore[index]
        "max_tokens": 5,
        "unknown": {"a": 1},
        "thinking": {"type": "enabled"},
        "tools": [TOOL[CHAT]],
    }


def test_on_one_wire_a_mended_history_is_all_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def mended(request: Request, strict: bool) -> tuple[Request, list[Finding]]:  # noqa: ARG001
        return msgspec.structs.replace(request, messages=[*request.messages, Message("user", [Text("more")])]), []

    monkeypatch.setattr(request_translation, "_mend", mended)
    odd = {"role": "user", "content": [TEXT[CHAT]], "odd": 1}
    body = {"model": "m", "messages": [odd], "max_completion_tokens": 5, "unknown": 1, "stream": False}
    changed = prepare_request(body, CHAT, CHAT)
    more = {"role": "user", "content": [{"type": "text", "text": "more"}]}
    assert changed.body == {**body, "messages": [odd, more]}
    assert changed.findings == []


def test_the_model_is_named_as_the_upstream_knows_it() -> None:
    body = {"model": "m", **SAID[CHAT], "odd": 1}
    assert il.translate_request(body, CHAT, CHAT, model="n") == {**body, "model": "n"}
    assert il.translate_request(body, CHAT, MESSAGES, model="n")["model"] == "n"
    assert body["model"] == "m"


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────

BAD: list[tuple[str, Json, str]] = [
    (CHAT, {"model": 5}, "model: should be a string, not an integer (5)"),
    (CHAT, {"messages": {}}, "messages: should be a list, not an object"),
    (CHAT, {"messages": ["hi"]}, "messages[0]: should be an object, not a string ('hi')"),
    (CHAT, {"messages": [{"role": "robot"}]}, "messages[0].role: should be one of system, developer, user,"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text: should be a"),
    (
        CHAT,
        {"messages": [{"role": "tool", "content": "x"}]},
        "messages[0].tool_call_id: should be a string, not nothing",
    ),
    (CHAT, {"tool_choice": "maybe"}, "tool_choice: should be 'auto', 'required', 'none' or an object, not 'maybe'"),
    (CHAT, {"tool_choice": {"type": "x"}}, "tool_choice.type: should be 'function', 'custom' or"),
    (
        CHAT,
        {"tools": [{"type": "function", "function": {}}]},
        "tools[0].function.name: should be a string, not nothing",
    ),
    (CHAT, {"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name: should be a name"),
    (CHAT, {"response_format": {"type": "xml"}}, "response_format.type: should be 'text' or"),
    (CHAT, {"stop": [5]}, "stop[0]: should be a string"),
    (CHAT, {"temperature": "hot"}, "temperature: should be a number, not a string ('hot')"),
    (MESSAGES, {"messages": [{"role": "tool", "content": ""}]}, "messages[0].role: should be 'user', 'assistant' or"),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
        "messages[0].content[0].tool_use_id:",
    ),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]},
        "messages[0].content[0].source.media_type:",
    ),
    (MESSAGES, {"tool_choice": {"type": "x"}}, "tool_choice.type: should be 'auto', 'any', 'tool' or 'none', not 'x'"),
    (
        MESSAGES,
        {"tools": [{"name": "a", "input_schema": []}]},
        "tools[0].input_schema: should be an object, not a list",
    ),
    (MESSAGES, {"thread": {"type": "create"}}, "thread: conversations are not kept here"),
    (RESPONSES, {"input": [{"role": "robot", "content": ""}]}, "input[0].role: should be 'user', 'assistant',"),
    (
        RESPONSES,
        {"input": [{"type": "function_call", "call_id": "c"}]},
        "input[0].name: should be a string, not nothing",
    ),
    (
        RESPONSES,
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]},
        "tools[0].tools[0].name:",
    ),
    (RESPONSES, {"tool_choice": 5}, "tool_choice: should be 'auto' or 'required' or 'none', not an integer (5)"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id: refers to what another server keeps"),
    (RESPONSES, {"conversation": {"id": "c"}}, "conversation: refers to"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "i"}]}, "input[0]: refers to"),
    (RESPONSES, {"input": [{"id": "i"}]}, "input[0]: refers to"),
]


@pytest.mark.parametrize(("source", "body", "message"), BAD)
def test_a_bad_request_is_told_where(source: str, body: Json, message: str) -> None:
    target = MESSAGES if source == CHAT else CHAT
    with pytest.raises(BadRequest) as refused:
        prepare_request({"model": "m", **SAID[source], **body}, source, target)
    assert str(refused.value).startswith(message)
    assert message.startswith(refused.value.path)


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_several_choices_for_a_wire_with_one(target: str) -> None:
    with pytest.raises(BadRequest, match=r"^n: the upstream's wire gives one choice, not 2"):
        translate(CHAT, {"n": 2}, target)


def test_what_an_upstream_keeps_passes_on_its_own_wire() -> None:
    body = {"model": "m", "input": [{"type": "item_reference", "id": "i"}], "previous_response_id": "r"}
    assert il.translate_request(body, RESPONSES, RESPONSES) == body


@pytest.mark.parametrize(
    ("source", "body", "message"),
    [
        (CHAT, {"model": "m"}, "messages: should be a list, not nothing"),
        (MESSAGES, {"model": "m"}, "messages: should be a list, not nothing"),
        (RESPONSES, {"model": "m"}, "input: should be a list, not nothing"),
        (CHAT, {"model": "m", "messages": [], "tool_choice": []}, "tool_choice: should be"),
    ],
)
def test_what_has_to_be_there(source: str, body: Json, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        prepare_request(body, source, CHAT)
    assert str(refused.value).startswith(message)


def test_what_cannot_be_carried_leaves_no_empty_message() -> None:
    given = [{"type": "mcp_approval_response", "id": "a"}, {"type": "web_search_call", "id": "w"}]
    assert [one["role"] for one in translate(RESPONSES, items(*given), CHAT).body["messages"]] == ["user"]
    assert len(translate(RESPONSES, items(*given), MESSAGES).body["messages"]) == 1


def test_nothing_is_offered_for_calls_if_none_may_be_made() -> None:
    body = {"model": "m", **SAID[CHAT], **ASK[CHAT], "tool_choice": "none"}
    assert prepare_request(body, CHAT, MESSAGES).tools == []


def test_wrong_use() -> None:
    with pytest.raises(UnknownWire):
        il.translate_request({}, "chat", MESSAGES)
    with pytest.raises(UsageError):
        il.translate_request([], CHAT, MESSAGES)  # type: ignore[arg-type]
