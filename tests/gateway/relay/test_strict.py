"""Constraints of models (`strict`), over HTTP: the upstream's model writes calls wrong unless it is constrained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.faults.upstream.constrained_model import constrained_reply
from tests.support import upstream_server as up
from tests.support.gateway_process import run_gateway
from tests.support.gateway_stage import APIS, CHAT, MESSAGES, RESPONSES, GatewayStage, LoggedClientView
from tests.support.upstream_server import UpstreamServer

CONFIG = """
log: {{format: json}}
upstreams:
  vllm: {{url: "{url}", profile: vllm, retries: {{backoff: 0.02, budget: 1}}}}
  sglang: {{url: "{url}", profile: sglang, retries: {{backoff: 0.02, budget: 1}}}}
  plain: {{url: "{url}", profile: any}}
  second: {{url: "{url}", profile: any}}
default: vllm
models:
  sglang-*: {{upstream: sglang}}
  plain-*: {{upstream: plain}}
  plain-always-*: {{upstream: plain, strict: always}}
  always-*: {{upstream: vllm, strict: always}}
  off-*: {{upstream: vllm, strict: "off"}}
  whole-*: {{upstream: vllm, delivery: whole, fallback: [second]}}
  off-whole-*: {{upstream: vllm, strict: "off", delivery: whole, fallback: [second]}}
  second: {{upstream: second}}
"""
RIGHT = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'
WRONG = '<tool_call>\n{"name": "read", "arguments": {"path": "a'
OTHER = '<tool_call>\n{"name": "raed", "arguments": {"path": "a"}}\n</tool_call>'
CALL = [("read", '{"path": "a"}')]
REQUIRED: dict[str, Any] = {CHAT: "required", MESSAGES: {"type": "any"}, RESPONSES: "required"}
REFUSAL = up.send_response(
    "400 Bad Request", json.dumps({"error": {"message": "Invalid structural tag specification."}}).encode()
)
NO_PARSER = up.send_response(
    "400 Bad Request",
    json.dumps({"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice and …'}}).encode(),
)


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    upstream = UpstreamServer()
    try:
        with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway:
            yield GatewayStage(upstream, gateway)
    finally:
        upstream.stop()


def add_model(env: GatewayStage, name: str, *texts: str) -> str:
    """Add a model that prefers these texts, in this order."""
    return env.add_scripts(f"{name}-qwen3-8b", constrained_reply(texts))


def findings(view: LoggedClientView) -> dict[str, int]:
    """Return the findings, except that the model stops although it makes a call: its server has no tool parser."""
    return {kind: count for kind, count in view.log["findings"].items() if kind != "stop-reason"}


def last_body(env: GatewayStage, model: str) -> dict[str, Any]:
    return env.upstream.wait_for_requests(model)[-1].body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", ["vllm", "sglang"])
@pytest.mark.parametrize("api", APIS)
def test_a_required_call_is_constrained(env: GatewayStage, api: str, upstream: str, stream: bool) -> None:
    model = add_model(env, f"{upstream}-{api}-{stream}", OTHER, WRONG, "No.", RIGHT)
    view = env.send(model, api, stream, tool_choice=REQUIRED[api])
    assert (view.status, view.calls) == (200, CALL)
    assert view.log["constraint"] == "1 tools in hermes, a call is required"
    body = last_body(env, model)
    assert body["tool_choice"] == "auto"
    assert ("structured_outputs" in body, "response_format" in body) == (upstream == "vllm", upstream == "sglang")


def test_a_named_tool_is_constrained(env: GatewayStage) -> None:
    model = add_model(env, "named", "No.", RIGHT)
    view = env.send(model, tool_choice={"type": "function", "function": {"name": "read"}})
    assert view.calls == CALL


@pytest.mark.parametrize("api", APIS)
def test_a_required_call_of_a_server_without_tool_parser_is_constrained(env: GatewayStage, api: str) -> None:
    model = env.add_scripts(f"no-parser-{api}-qwen3-8b", NO_PARSER, constrained_reply((OTHER, WRONG, RIGHT)))
    view = env.send(model, api, tool_choice=REQUIRED[api])
    assert (view.status, view.calls, view.log["attempts"]) == (200, CALL, 2)
    assert view.log["findings"]["no-tool-parser"] == 1
    body = last_body(env, model)
    assert (body["tool_choice"], body["skip_special_tokens"]) == ("none", False)
    assert "structured_outputs" in body


def test_a_strict_tool_is_constrained_and_text_stays_possible(env: GatewayStage) -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools = [{"type": "function", "function": {"name": "read", "parameters": parameters, "strict": True}}]
    assert env.send(add_model(env, "strict", WRONG, OTHER, RIGHT), tools=tools).calls == CALL
    text = env.send(add_model(env, "strict-text", "No call.", RIGHT), tools=tools)
    assert (text.text, text.log["constraint"]) == ("No call.", "1 tools in hermes")


@pytest.mark.parametrize("name", ["auto", "off", "plain"])
def test_no_constraint(env: GatewayStage, name: str) -> None:
    """With the tool choice `auto` and no strict tool; with `strict: off`; for an upstream that is not known."""
    model = add_model(env, f"{name}-free", RIGHT)
    choice: dict[str, Any] = {} if name == "auto" else {"tool_choice": "required"}
    view = env.send(model, **choice)
    assert (view.calls, view.log["constraint"], findings(view)) == (CALL, "", {})
    body = last_body(env, model)
    assert not {"structured_outputs", "response_format"} & body.keys()
    assert body.get("tool_choice", "auto") == choice.get("tool_choice", "auto")


def test_always_constrains_every_request_with_tools(env: GatewayStage) -> None:
    assert env.send(add_model(env, "always-right", WRONG, RIGHT)).calls == CALL
    without_tools = env.send(add_model(env, "always-text", "Hello"), tools=[])
    assert (without_tools.text, without_tools.log["constraint"]) == ("Hello", "")


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("plain-always-x", {}),  # the upstream is not known to take a constraint
        ("always-unknown-model", {}),  # nor is the dialect
        ("always-own-qwen3", {"response_format": {"type": "json_object"}}),
        ("always-nested-minimax-m3", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
    ],
)
def test_what_cannot_be_constrained_is_a_finding(env: GatewayStage, model: str, fields: dict[str, Any]) -> None:
    env.add_scripts(model, constrained_reply(["Hello"]))
    view = env.send(model, **fields)
    assert (view.text, view.log["constraint"]) == ("Hello", "")
    assert findings(view) == {"not-constrained": 1}


def test_a_refused_constraint_is_remembered(env: GatewayStage) -> None:
    model = env.add_scripts("old-qwen3-8b", REFUSAL, constrained_reply([RIGHT]), constrained_reply([RIGHT]))
    first, second = (env.send(model, tool_choice="required") for _ in range(2))
    assert (first.calls, findings(first), first.log["attempts"]) == (CALL, {"refusal-corrected": 1}, 2)
    assert (second.calls, findings(second), second.log["attempts"]) == (CALL, {}, 1)
    constrained, *others = [request.body for request in env.upstream.wait_for_requests(model, 3)]
    assert "structured_outputs" in constrained
    for body in others:
        assert ("structured_outputs" in body, body["tool_choice"]) == (False, "required")
    log = env.gateway.log.read_text()
    assert any("accepts no structural tag" in line and model in line for line in log.splitlines())


@pytest.mark.parametrize("stream", [True, False])
def test_whole_delivery_asks_again_constrained(env: GatewayStage, stream: bool) -> None:
    model = add_model(env, f"whole-{stream}", WRONG, RIGHT)
    view = env.send(model, stream=stream)
    assert (view.calls, view.log["attempts"], view.log["upstream"]) == (CALL, 2, "vllm")
    assert findings(view) == {"call-asked-again": 1}
    assert view.log["constraint"] == "1 tools in hermes"
    first, second = (request.body for request in env.upstream.wait_for_requests(model, 2))
    assert ("structured_outputs" in first, "structured_outputs" in second) == (False, True)


def test_a_mistake_of_the_model_is_asked_once_and_reaches_no_fallback(env: GatewayStage) -> None:
    model = env.add_scripts("off-whole-qwen3-8b", constrained_reply([WRONG]))
    view = env.send(model)
    assert (view.calls, view.log["attempts"], view.log["upstream"]) == ([], 2, "vllm")
    assert view.log["findings"]["call-asked-again"] == 1
    assert env.upstream.count("second") == 0


def test_invalid_tag_is_refused_by_the_upstream_of_the_tests(env: GatewayStage) -> None:
    """The stand-in for an engine is no engine that accepts everything."""
    model = add_model(env, "off-invalid", RIGHT)
    view = env.send(model, structured_outputs={"structural_tag": "{}"})
    assert (view.status, view.calls) == (400, [])
