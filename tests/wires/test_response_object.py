"""Fields of a response object that repeat the request, and the phase of messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import Response

import interlingua as il
from interlingua.translation.exchange import Exchange, UpstreamTarget
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams import get_profile
from interlingua.wires.openai_responses.request_echo import MIN_SHARED_CHARS, echo_request
from interlingua.wires.requests.shared_tools import SharedToolList
from tests.support.chat_scenarios import SECTION_OF_PARIS, text_stream
from tests.support.open_responses import RESPONSE, check_schema, check_stream
from tests.support.sdk import Json

RESPONSES, CHAT = "openai-responses", "openai-chat"
FUNCTION: Json = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
COMPLETE_FUNCTION: Json = {**FUNCTION, "description": None, "strict": None}


def reply(request: Json, pieces: list[str], *, stream: bool = False, **options: Any) -> Json:
    """Return the final response to a request, from a chat upstream that sends this text."""
    target = UpstreamTarget(api=CHAT, profile=get_profile("vllm"), name="local", dialect="kimi_k2")
    body = {"model": "m", "input": "weather in Paris?", "stream": stream, **request}
    receiver = Exchange(RESPONSES, body, target, il.Options(**options)).receive("text/event-stream")
    data = receiver.feed(text_stream(pieces)) + receiver.close()
    if not stream:
        response: Json = json.loads(data)
        check_schema(response, RESPONSE)
        return response
    return check_stream([json.loads(block.split(b"data: ", 1)[1]) for block in data.split(b"\n\n") if block])


ECHOES: list[tuple[Json, Json]] = [
    ({}, {"temperature": 1.0, "store": False, "tools": [], "instructions": None, "reasoning": {"effort": None}}),
    ({"temperature": 0, "top_p": None}, {"temperature": 0, "top_p": 1.0}),
    ({"tools": [FUNCTION]}, {"tools": [COMPLETE_FUNCTION]}),
    ({"tool_choice": "required", "tools": [FUNCTION]}, {"tool_choice": "required"}),
    ({"reasoning": {"summary": "auto"}}, {"reasoning": {"effort": None, "summary": "auto"}}),
    ({"text": {"verbosity": "low", "format": None}}, {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
    ({"service_tier": "auto"}, {"service_tier": "default"}),
    ({"service_tier": "flex"}, {"service_tier": "flex"}),
    ({"instructions": "é" * MIN_SHARED_CHARS}, {"instructions": "é" * MIN_SHARED_CHARS}),
    ({"truncation": 5, "max_tool_calls": "3"}, {"truncation": "disabled", "max_tool_calls": None}),
    ({"metadata": {"a": "b"}, "user": "u"}, {"metadata": {"a": "b"}, "user": "u"}),
]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("request_fields", "expected"), ECHOES, ids=lambda value: str(value)[:40])
def test_response_repeats_request(request_fields: Json, expected: Json, stream: bool) -> None:
    response = reply(request_fields, ["Hello."], stream=stream)
    assert {name: response[name] for name in expected if name != "reasoning"} == {
        name: value for name, value in expected.items() if name != "reasoning"
    }
    assert expected.get("reasoning", {}).items() <= response["reasoning"].items()
    Response.model_validate(response, strict=False)


def test_responses_share_no_objects_with_the_defaults() -> None:
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
    responses = [il.Translator(CHAT, RESPONSES).reply(whole) for _ in range(2)]
    responses[0]["metadata"]["topic"] = responses[0]["text"]["format"]["type"] = "changed"
    assert responses[1]["metadata"] == {}
    assert responses[1]["text"] == {"format": {"type": "text"}}


def test_given_echo_takes_precedence() -> None:
    response = reply({"store": True}, ["Hello."], echo={"store": True, "previous_response_id": "resp_1"})
    assert (response["store"], response["previous_response_id"]) == (True, "resp_1")


@pytest.mark.parametrize(("clock", "completed_at"), [(None, None), (lambda: 12.5, 12)])
def test_completion_time_needs_a_clock(clock: Any, completed_at: int | None) -> None:
    assert reply({}, ["Hello."], clock=clock)["completed_at"] == completed_at


def test_unpaired_surrogates_do_not_break_the_encoded_fields() -> None:
    response = reply({"metadata": {"a": "\ud83d"}, "tools": [FUNCTION]}, ["Hello."])
    assert response["metadata"] == {"a": "\ud83d"}
    assert response["tools"] == [COMPLETE_FUNCTION]


def test_replies_share_large_fields() -> None:
    instructions, tools = "x" * MIN_SHARED_CHARS, SharedToolList([FUNCTION], json.dumps([FUNCTION]).encode())
    echoes = [echo_request({"instructions": instructions[:-1] + "x", "tools": tools}) for _ in range(2)]
    assert echoes[0]["instructions"] is echoes[1]["instructions"]
    assert echoes[0]["tools"] is echoes[1]["tools"]


# ── phase ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("pieces", "phases"),
    [
        (["All done."], ["final_answer"]),
        (["I will look.", SECTION_OF_PARIS], ["commentary"]),
        ([SECTION_OF_PARIS], []),
    ],
)
def test_phase_of_messages(pieces: list[str], phases: list[str], stream: bool) -> None:
    response = reply({"tools": [FUNCTION]}, pieces, stream=stream)
    assert [item.get("phase") for item in response["output"] if item["type"] == "message"] == phases


HISTORY = [
    {"role": "user", "content": "Look."},
    {"type": "message", "role": "assistant", "content": "I will look.", "phase": "commentary"},
    {"type": "message", "role": "assistant", "content": "It is empty.", "phase": "final_answer"},
    {"role": "user", "content": "Thanks."},
]


def test_phase_in_the_history_is_no_loss_for_chat_upstreams() -> None:
    """The positions of text and calls contain the same information."""
    prepared = prepare_request({"model": "m", "input": HISTORY}, RESPONSES, CHAT)
    assert not prepared.findings
    assert "phase" not in json.dumps(prepared.body)


@pytest.mark.parametrize("profile", ["openai", None])
def test_phase_in_the_history_reaches_responses_upstreams(profile: str | None) -> None:
    orphan = {"type": "function_call_output", "call_id": "none", "output": "x"}  # rewrites the conversation
    body = {"model": "m", "input": [*HISTORY, orphan]}
    written = prepare_request(body, RESPONSES, RESPONSES, upstream=profile).body["input"]
    assert [item.get("phase") for item in written if item.get("role") == "assistant"] == ["commentary", "final_answer"]


def test_phase_of_another_type_is_ignored() -> None:
    body = {"model": "m", "input": [HISTORY[0], {"role": "assistant", "content": "y", "phase": None}, HISTORY[3]]}
    assert prepare_request(body, RESPONSES, CHAT).body["messages"][1] == {"role": "assistant", "content": "y"}
