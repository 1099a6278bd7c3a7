"""Check of recordings with the current code: what differs between APIs without a change of the meaning."""

from __future__ import annotations

import msgspec
import pytest

from interlingua.captures.capture_format import CapturedExchange
from interlingua.cassettes.captured_exchange import record_captured
from interlingua.cassettes.cassette_check import find_problems
from tests.support.captured_exchanges import capture_exchange, chat_chunk, chat_stream
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


def test_changed_meaning_is_found() -> None:
    exchange = record_captured(agent_session()[-1])
    changed = msgspec.structs.replace(exchange, meaning=msgspec.structs.replace(exchange.meaning, text="other"))
    (problem,) = find_problems(changed)
    assert problem.startswith("text: ")
    calls = [msgspec.structs.replace(call, complete=True) for call in exchange.meaning.calls]
    changed = msgspec.structs.replace(exchange, meaning=msgspec.structs.replace(exchange.meaning, calls=calls))
    assert find_problems(changed) != []
