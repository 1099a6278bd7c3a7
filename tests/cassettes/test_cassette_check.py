"""Check of recordings with the current code: what differs between APIs without a change of the meaning."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from interlingua.captures.capture_format import CapturedExchange
from interlingua.cassettes.captured_exchange import record_captured
from interlingua.cassettes.cassette_check import find_problems
from interlingua.cassettes.cassette_format import read_cassette, write_cassette
from interlingua.cassettes.recorded_exchange import RecordedRequest
from tests.support.captured_exchanges import DONE, capture_exchange, chat_chunk, chat_stream
from tests.support.inspector_scenes import agent_session, kimi_call, section

BODY = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}],
}
FAILED = [chat_chunk({"content": "half an ans"}), b'data: {"error":{"message":"overloaded","code":500}}\n\n']
NO_OBJECT = chat_stream([section(kimi_call("run", 0, "[1, 2"))])


@pytest.mark.parametrize(
    "captured",
    [
        *agent_session(),
        capture_exchange(BODY, FAILED),
        capture_exchange(BODY, NO_OBJECT, dialect="kimi_k2"),
    ],
    ids=["call", "call-2", "text", "repaired", "cut-short", "failed", "no-object"],
)
def test_reply_means_the_same_on_every_api(captured: CapturedExchange) -> None:
    assert find_problems(record_captured(captured)) == []


def choice(index: int, delta: dict[str, Any], finish: str | None = None) -> bytes:
    return f"data: {json.dumps({'choices': [{'index': index, 'delta': delta, 'finish_reason': finish}]})}\n\n".encode()


TWO_CHOICES = [
    *(choice(0, {"content": "one"}), choice(1, {"content": "two"}), choice(1, {"content": " and"})),
    *(choice(0, {}, "stop"), choice(1, {}, "length"), DONE),
]


def test_recording_with_several_choices_has_no_problem_and_shows_them_all() -> None:
    """Other APIs have only one choice: there is nothing to compare."""
    exchange = record_captured(capture_exchange({**BODY, "n": 2}, TWO_CHOICES))
    (second,) = exchange.meaning.other_choices
    assert (exchange.meaning.text, second.text, second.stop_reason) == ("one", "two and", "length")
    assert find_problems(exchange) == []
    (read,) = read_cassette(write_cassette([exchange]), "test")
    assert read.meaning == exchange.meaning
    other = msgspec.structs.replace(exchange.meaning, other_choices=[msgspec.structs.replace(second, text="2")])
    (problem,) = find_problems(msgspec.structs.replace(exchange, meaning=other))
    assert problem.startswith("other choices: ")


@pytest.mark.parametrize("number", [0, -1, 10**12, 1.5, "2", None, True])
def test_odd_number_of_choices_is_no_problem(number: Any) -> None:
    reply = RecordedRequest(wire="openai-chat", body={**BODY, "n": number})
    assert 1 <= reply.choices <= 128


def test_changed_meaning_is_found() -> None:
    exchange = record_captured(agent_session()[-1])
    changed = msgspec.structs.replace(exchange, meaning=msgspec.structs.replace(exchange.meaning, text="other"))
    (problem,) = find_problems(changed)
    assert problem.startswith("text: ")
    calls = [msgspec.structs.replace(call, complete=True) for call in exchange.meaning.calls]
    changed = msgspec.structs.replace(exchange, meaning=msgspec.structs.replace(exchange.meaning, calls=calls))
    assert find_problems(changed) != []
