"""Requests that plain model servers refuse, and that the gateway changes and sends again (real sockets)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_stage import APIS, CHAT, MESSAGES, RESPONSES, GatewayStage, stage

NO_TOOL_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
TOO_LARGE = (
    "'max_tokens' or 'max_completion_tokens' is too large: {reply}. This model's maximum context length is 40960 tokens"
    " and your request has {input} input tokens ({reply} > 40960 - {input})."
)
AT_LEAST = (
    "This model's maximum context length is 40960 tokens. However, you requested {reply} output tokens and your prompt"
    " contains at least {input} input tokens, for a total of at least 40961 tokens."
)
NO_IMAGES = "At most 0 image(s) may be provided in one prompt."
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def refuse(message: str, status: str = "400 Bad Request") -> up.Step:
    return up.send_response(status, json.dumps({"error": {"message": message, "type": "BadRequestError"}}).encode())


def answer(text: str = "Hello") -> tuple[up.Step, ...]:
    return (up.send_headers(), up.send(up.ROLE + up.delta(text) + up.delta(finish="stop") + up.DONE))


def bodies(env: GatewayStage, model: str) -> list[dict[str, Any]]:
    return [request.body for request in env.upstream.wait_for_requests(model)]


# ── servers without a tool parser ─────────────────────────────────────────────────────────────────────────────────────

KIMI_CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
    '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.mark.parametrize("api", APIS)
def test_server_without_tool_parser_receives_choice_none_and_its_text_is_parsed(env: GatewayStage, api: str) -> None:
    model = env.add_scripts(f"kimi-k2-{api}", refuse(NO_TOOL_PARSER), answer(KIMI_CALL), answer(KIMI_CALL))
    for view in (env.send(model, api), env.send(model, api)):
        assert (view.status, view.calls) == (200, [("read", '{"path": "a"}')])
    first, *corrected = bodies(env, model)
    assert len(corrected) == 2, "the second request is sent in the corrected form at once"
    assert first.get("tool_choice", "auto") == "auto"
    for body in corrected:
        assert (body["tool_choice"], body["skip_special_tokens"]) == ("none", False)
        assert body["tools"] == first["tools"]


@pytest.mark.parametrize("api", APIS)
def test_calls_of_an_unknown_model_are_detected_without_tool_parser(env: GatewayStage, api: str) -> None:
    call = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'
    model = env.add_scripts(f"my-finetune-{api}", refuse(NO_TOOL_PARSER), answer(call), answer(call))
    for _ in range(2):
        view = env.send(model, api)
        assert view.calls == [("read", '{"path": "a"}')]
        assert view.headers["x-interlingua-dialect"] == "detect"


def test_missing_tool_parser_is_logged_once_with_the_flags(env: GatewayStage) -> None:
    model = env.add_scripts("qwen3-logged", refuse(NO_TOOL_PARSER), answer(), answer())
    first, second = env.send(model), env.send(model)
    assert (first.log["attempts"], first.log["findings"]) == (2, {"refusal-corrected": 1, "no-tool-parser": 1})
    assert (second.log["attempts"], second.log["findings"]) == (1, {"no-tool-parser": 1})
    lines = [json.loads(line) for line in env.gateway.log.read_text().splitlines() if f'"model": "{model}"' in line]
    (learned,) = [line for line in lines if "tool parser" in line["message"]]
    assert "--enable-auto-tool-choice --tool-call-parser" in learned["hint"]


def test_forced_choice_is_left_to_the_model_without_tool_parser(env: GatewayStage) -> None:
    model = env.add_scripts(
        "qwen3-forced", refuse('tool_choice="required" requires --tool-call-parser to be set'), answer(), answer()
    )
    view = env.send(model, tool_choice="required")
    assert (view.status, view.log["findings"].get("choice-relaxed")) == (200, 1)
    env.send(model)
    assert [body.get("tool_choice") for body in bodies(env, model)] == ["required", "none", "none"]


def test_choice_none_of_the_client_forbids_calls_also_without_tool_parser(env: GatewayStage) -> None:
    model = env.add_scripts("kimi-k2-none", refuse(NO_TOOL_PARSER), answer(), answer(KIMI_CALL))
    env.send(model)
    assert env.send(model, tool_choice="none").calls == []


# ── context window and reply limit ────────────────────────────────────────────────────────────────────────────────────

LIMITS: dict[str, dict[str, Any]] = {
    CHAT: {"max_tokens": 32000},
    MESSAGES: {"max_tokens": 32000},
    RESPONSES: {"max_output_tokens": 32000},
}


@pytest.mark.parametrize("api", APIS)
def test_reply_limit_is_lowered_to_what_the_window_leaves(env: GatewayStage, api: str) -> None:
    model = env.add_scripts(f"window-{api}", refuse(TOO_LARGE.format(reply=32000, input=15000)), answer(), answer())
    view = env.send(model, api, **LIMITS[api])
    assert (view.status, view.text, view.log["findings"].get("max-tokens")) == (200, "Hello", 1)
    assert [body["max_tokens"] for body in bodies(env, model)] == [32000, 25960]


def test_client_field_for_the_reply_limit_is_kept(env: GatewayStage) -> None:
    model = env.add_scripts("window-new-field", refuse(TOO_LARGE.format(reply=32000, input=15000)), answer())
    env.send(model, max_completion_tokens=32000)
    corrected = bodies(env, model)[1]
    assert (corrected["max_completion_tokens"], corrected.get("max_tokens")) == (25960, None)


def test_remembered_window_limits_the_reply_of_later_requests(env: GatewayStage) -> None:
    model = env.add_scripts("window-later", refuse(TOO_LARGE.format(reply=32000, input=15000)), answer(), answer())
    env.send(model, max_tokens=32000)
    long_text = "The quick brown fox jumps over the lazy dog. " * 1600  # about 16,000 tokens
    view = env.send(model, max_tokens=32000, messages=[{"role": "user", "content": long_text}])
    assert (view.status, view.log["attempts"]) == (200, 1)
    limit = bodies(env, model)[2]["max_tokens"]
    assert 40960 - 20_000 < limit < 40960 - 12_000
    env.add_scripts(model, answer())
    env.send(model, max_tokens=30000)
    assert bodies(env, model)[3]["max_tokens"] == 30000, "a short prompt leaves enough"


def test_limit_is_not_sent_if_the_server_has_not_counted_the_whole_prompt(env: GatewayStage) -> None:
    model = env.add_scripts("window-at-least", refuse(AT_LEAST.format(reply=32000, input=8961)), answer())
    assert env.send(model, max_tokens=32000).status == 200
    assert [body.get("max_tokens") for body in bodies(env, model)] == [32000, None]


@pytest.mark.parametrize("api", APIS)
def test_real_overflow_reads_prompt_is_too_long(env: GatewayStage, api: str) -> None:
    model = env.add_scripts(f"overflow-{api}", refuse(TOO_LARGE.format(reply=32000, input=40500)))
    view = env.send(model, api, **LIMITS[api])
    assert (view.status, view.log["attempts"]) == (400, 1)
    assert view.error.startswith("prompt is too long") if api == MESSAGES else view.error_code
    learned = [line for line in env.gateway.log.read_text().splitlines() if f'"{model}"' in line and "hint" in line]
    assert learned == [], "no limit was lowered"


def test_second_refusal_of_a_kind_is_returned(env: GatewayStage) -> None:
    refusal = refuse(TOO_LARGE.format(reply=32000, input=15000))
    view = env.send(env.add_scripts("window-twice", refusal, refusal), max_tokens=32000)
    assert (view.status, view.log["attempts"]) == (400, 2)


def test_maximum_reply_of_a_model_is_remembered(env: GatewayStage) -> None:
    message = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"
    model = env.add_scripts("largest", refuse(message), answer(), answer())
    env.send(model, max_tokens=32000)
    assert env.send(model, max_tokens=32000).log["attempts"] == 1
    assert [body["max_tokens"] for body in bodies(env, model)] == [32000, 8192, 8192]


# ── images ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def messages_with_image(api: str) -> dict[str, Any]:
    if api == MESSAGES:
        image: dict[str, Any] = {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
        }
        call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.png"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}
        return {
            "messages": [
                {"role": "user", "content": "Look at a.png"},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
            ]
        }
    url = f"data:image/png;base64,{PIXEL}"
    if api == RESPONSES:
        return {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]}
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("message", "status"),
    [
        (NO_IMAGES, "400 Bad Request"),
        ("some-model is not a multimodal model", "400 Bad Request"),
        (
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "500 Internal Server Error",
        ),
    ],
)
def test_model_that_refuses_an_image_receives_a_note(env: GatewayStage, api: str, message: str, status: str) -> None:
    model = env.add_scripts(f"blind-{api}-{status}-{message[:9]}", refuse(message, status), answer(), answer())
    first, second = (env.send(model, api, **messages_with_image(api)) for _ in range(2))
    assert (first.status, first.log["attempts"], first.log["findings"]["image-omitted"]) == (200, 2, 1)
    assert (second.status, second.log["attempts"], second.log["findings"]["image-omitted"]) == (200, 1, 1)
    refused, *corrected = (json.dumps(body) for body in bodies(env, model))
    assert PIXEL in refused
    for body in corrected:
        assert PIXEL not in body
        assert f"[image omitted: {model} takes no images]" in body


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

THINKING: dict[str, dict[str, Any]] = {
    CHAT: {"reasoning_effort": "high"},
    MESSAGES: {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    RESPONSES: {"reasoning": {"effort": "high"}},
}


@pytest.mark.parametrize("api", APIS)
def test_model_that_cannot_think_receives_no_setting_of_thinking(env: GatewayStage, api: str) -> None:
    model = env.add_scripts(f"llama3-{api}", refuse('"llama3.1:8b" does not support thinking'), answer(), answer())
    first, second = (env.send(model, api, **THINKING[api]) for _ in range(2))
    assert (first.status, first.log["attempts"], first.log["findings"]["refusal-corrected"]) == (200, 2, 1)
    assert (second.status, second.log["attempts"], second.log["findings"]["thinking-wish"]) == (200, 1, 1)
    assert [body.get("reasoning_effort") for body in bodies(env, model)] == ["high", None, None]


def test_refusals_do_not_open_the_circuit_breaker(env: GatewayStage) -> None:
    for n in range(12):
        model = env.add_scripts(f"circuit-{n}", refuse(NO_TOOL_PARSER, "500 Internal Server Error"), answer())
        assert env.send(model).status == 200


def test_several_kinds_are_corrected_in_one_request(env: GatewayStage) -> None:
    model = env.add_scripts("both", refuse(NO_TOOL_PARSER), refuse(NO_IMAGES), answer())
    view = env.send(model, **messages_with_image(CHAT))
    assert (view.status, view.log["attempts"], view.log["findings"]["refusal-corrected"]) == (200, 3, 2)
