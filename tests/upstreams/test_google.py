"""Gemini's signatures of calls: they reach clients of every API sealed, and Google as it had sent them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua.translation.exchange import Exchange, UpstreamTarget
from interlingua.upstreams import get_profile, profile_for_model, profile_for_url
from interlingua.wires import WIRES, get_wire
from tests.support.sdk import Json

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
MODEL, SIGNATURE = "gemini-3-pro-preview", "c2lnbmF0dXJl"
SKIPPED = "skip_thought_signature_validator"
KEY = b"k" * 32
GOOGLE = UpstreamTarget(api=CHAT, profile=get_profile("google"), name="gemini", model=MODEL)
OTHER = UpstreamTarget(api=CHAT, profile=get_profile("deepseek"), name="other", model="deepseek-v4")
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
each_wire = pytest.mark.parametrize("wire", WIRES)
each_form = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def signed(signature: str) -> Json:
    return {"extra_content": {"google": {"thought_signature": signature}}}


def call(number: int, **fields: Any) -> Json:
    function = {"name": "get_weather", "arguments": json.dumps({"city": f"C{number}"})}
    return {"id": f"function-call-{number}4711", "type": "function", "function": function, **fields}


CALLS = [call(0, **signed(SIGNATURE)), call(1)]
"""Two calls at once: Gemini signs the first one."""
REPLY = {
    "id": "r",
    "object": "chat.completion",
    "created": 1,
    "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": CALLS}, "finish_reason": "tool_calls"}],
}


def request(wire: str, turns: list[Json], stream: bool = False) -> Json:
    """Return a request of this wire with a prompt and further turns."""
    common = {"model": "m", "stream": stream}
    prompt = {"role": "user", "content": "weather?"}
    tool = {"name": "get_weather", "description": "d"}
    if wire == RESPONSES:
        return {**common, "input": [prompt, *turns], "tools": [{"type": "function", **tool, "parameters": PARAMETERS}]}
    tools = (
        [{**tool, "input_schema": PARAMETERS}]
        if wire == MESSAGES
        else [{"type": "function", "function": {**tool, "parameters": PARAMETERS}}]
    )
    return {**common, "max_tokens": 4000, "messages": [prompt, *turns], "tools": tools}


def chunks() -> bytes:
    """Return the reply as a stream: each call in a chunk."""
    base = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    deltas: list[Json] = [{"role": "assistant", "tool_calls": [{"index": n, **entry}]} for n, entry in enumerate(CALLS)]
    deltas[1].pop("role")
    frames = [{**base, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    frames.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames) + b"data: [DONE]\n\n"


def exchange(wire: str, turns: list[Json], target: UpstreamTarget, stream: bool = False) -> Exchange:
    return Exchange(wire, request(wire, turns, stream), target, il.Options(seal_key=KEY))


def turns_after(wire: str, stream: bool) -> list[Json]:
    """Return the turns that a client adds after the reply: the model's, and the results."""
    receiver = exchange(wire, [], GOOGLE, stream).receive("text/event-stream" if stream else "application/json")
    data = receiver.feed(chunks() if stream else json.dumps(REPLY).encode()) + receiver.close()
    if stream:  # as the SDK of this wire would assemble it
        reader = il.Translator(wire, wire, tools=None)
        data = json.dumps(reader.fold(data)).encode()
    reply = json.loads(data)
    assert SIGNATURE not in json.dumps(reply)
    if wire == RESPONSES:
        ids = [item["call_id"] for item in reply["output"] if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": id, "output": "sunny"} for id in ids]
        return [*reply["output"], *results]
    if wire == MESSAGES:
        blocks = reply["content"]
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "sunny"} for id in ids]
        return [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    message = reply["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": entry["id"], "content": "sunny"} for entry in message["tool_calls"]]
    return [message, *results]


def sent_extras(wire: str, turns: list[Json], target: UpstreamTarget) -> list[Json]:
    """Return the additional fields of each call in the request to the upstream."""
    messages = json.loads(exchange(wire, turns, target).body)["messages"]
    calls = [entry for message in messages for entry in message.get("tool_calls", [])]
    return [{key: value for key, value in entry.items() if key not in ("id", "type", "function")} for entry in calls]


@each_wire
@each_form
def test_signature_returns_to_google(wire: str, stream: bool) -> None:
    assert sent_extras(wire, turns_after(wire, stream), GOOGLE) == [signed(SIGNATURE), {}]


@each_wire
@each_form
def test_no_other_upstream_receives_the_signature(wire: str, stream: bool) -> None:
    turns = turns_after(wire, stream)
    assert sent_extras(wire, turns, OTHER) == [{}, {}]
    kinds = {finding.kind for finding in exchange(wire, turns, OTHER).findings}
    assert kinds & {"seal-dropped", "thinking-dropped"}


@each_wire
def test_calls_of_other_models_skip_the_validation(wire: str) -> None:
    """Only the first call of a step: Gemini itself signs no other."""
    history = il.translate_request(
        request(CHAT, [{"role": "assistant", "content": None, "tool_calls": [call(0), call(1)]}]), CHAT, wire
    )
    turns = history[get_wire(wire).TRAITS.conversation_field][1:]
    assert sent_extras(wire, turns, GOOGLE) == [signed(SKIPPED), {}]


def test_client_that_keeps_signatures_itself() -> None:
    turns = [
        {"role": "assistant", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": CALLS[0]["id"], "content": "x"},
    ]
    assert sent_extras(CHAT, turns, GOOGLE)[0] == signed(SIGNATURE)


def test_changed_envelope_is_not_sent() -> None:
    turns = turns_after(CHAT, False)
    turns[0]["tool_calls"][0]["extra_content"]["google"]["thought_signature"] += "x"
    assert sent_extras(CHAT, turns, GOOGLE) == [signed(SKIPPED), {}]
    assert "seal-unreadable" in [finding.kind for finding in exchange(CHAT, turns, GOOGLE).findings]


@pytest.mark.parametrize("reasoning", ["drop", "as_content"])
@pytest.mark.parametrize("wire", [MESSAGES, RESPONSES])
def test_no_signature_without_thinking(wire: str, reasoning: Any) -> None:
    options = il.Options(seal_key=KEY, reasoning=reasoning)
    receiver = Exchange(wire, request(wire, []), GOOGLE, options).receive("application/json")
    reply = json.loads(receiver.feed(json.dumps(REPLY).encode()) + receiver.close())
    assert {item["type"] for item in reply.get("output", reply.get("content"))} <= {"function_call", "tool_use"}


def test_profile_of_google() -> None:
    profile = profile_for_url("https://generativelanguage.googleapis.com/v1beta/openai/")
    assert profile.name == "google"
    assert profile_for_model(profile, "gemini-2.5-flash").call_signature == ""
    assert profile_for_model(profile, "models/gemini-3-flash").call_signature == SKIPPED
