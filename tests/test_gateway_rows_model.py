"""What a gateway makes of replies that are odd in themselves, on real sockets: rows of the table of faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import anthropic_scenarios as messages
from tests import responses_scenarios as responses
from tests import upstream_server as up
from tests.gateway_stage import CHAT, MESSAGES, RESPONSES, Stage, call, stage, streamed

SAID = up.ROLE + up.delta("Let me see.")
FIRST = call('{"path": "a"}', name="read")
CALLED = ("read", '{"path": "a"}')
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
    '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.fixture(scope="module")
def on() -> Iterator[Stage]:
    with stage() as started:
        yield started


# ── 5: an end that nobody announced ───────────────────────────────────────────────────────────────────────────────

UNANNOUNCED = {
    "a text": SAID,
    "a whole call": SAID + FIRST,
    "kimi-k2 a whole section": SAID + up.delta(KIMI),
    "messages- a whole block": messages.sse(
        messages.begin(), *messages.text(0, "Let me see."), *messages.call(1, '{"path": "a"}', name="read")
    ),
    "responses- a whole item": responses.sse(
        responses.response("response.created"),
        *responses.told_message(["Let me see."]),
        *responses.told_call(['{"path": "a"}'], index=1, name="read"),
    ),
}


@pytest.mark.parametrize("what", UNANNOUNCED)
def test_05_an_end_that_nobody_announced_is_an_error(on: Stage, what: str) -> None:
    """More may have been lost, of the text or of calls, and only the client can ask again."""
    model = on.plays(what, streamed(UNANNOUNCED[what]))
    for heard in on.ask_all(model).values():
        assert heard.text == "Let me see."
        assert [*heard.calls, *([heard.open] if heard.open else [])] == ([] if what == "a text" else [CALLED])
        assert heard.error
        assert not heard.ended
        assert not heard.stop
        assert heard.log["outcome"] == "upstream-failed"
    for heard in on.ask_all(model, stream=False).values():
        assert (heard.status, heard.calls, heard.log["attempts"]) == (502, [], 2)


ENDS = {CHAT: "stop", MESSAGES: "end_turn", RESPONSES: "completed"}
CALL_ENDS = {CHAT: "tool_calls", MESSAGES: "tool_use", RESPONSES: "completed"}


@pytest.mark.parametrize("end", [up.delta(finish="stop"), up.DONE])
def test_05_half_an_announcement_is_one(on: Stage, end: bytes) -> None:
    for data, stops in ((SAID, ENDS), (SAID + FIRST, CALL_ENDS)):
        for api, heard in on.ask_all(on.plays(f"05 {end!r} {len(data)}", streamed(data + end))).items():
            assert (heard.ended, heard.error, heard.stop) == (True, "", stops[api])
