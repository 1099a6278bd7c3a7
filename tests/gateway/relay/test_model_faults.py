"""What a gateway makes of replies that are odd in themselves, on real sockets: rows of the table of faults."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support import anthropic_scenarios as messages
from tests.support import responses_scenarios as responses
from tests.support import upstream_server as up
from tests.support.gateway_process import run_gateway
from tests.support.gateway_stage import APIS, CHAT, MESSAGES, RESPONSES, GatewayStage, call, stage, stream_response

SAID = up.ROLE + up.delta("Let me see.")
FIRST = call('{"path": "a"}', name="read")
CALLED = ("read", '{"path": "a"}')
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
    '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.fixture(scope="module")
def on() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


# ── 5: an end that nobody announced ───────────────────────────────────────────────────────────────────────────────

UNANNOUNCED = {
    "a text": SAID,
    "a whole call": SAID + FIRST,
    "kimi-k2 a whole section": SAID + up.delta(KIMI),
    "messages- a whole block": messages.sse(
        messages.message_start(),
        *messages.text_block(0, "Let me see."),
        *messages.tool_use_block(1, '{"path": "a"}', name="read"),
    ),
    "responses- a whole item": responses.sse(
        responses.response_event("response.created"),
        *responses.message_events(["Let me see."]),
        *responses.call_events(['{"path": "a"}'], index=1, name="read"),
    ),
}


@pytest.mark.parametrize("what", UNANNOUNCED)
def test_05_an_end_that_nobody_announced_is_an_error(on: GatewayStage, what: str) -> None:
    """More may have been lost, of the text or of calls, and only the client can ask again."""
    model = on.add_scripts(what, stream_response(UNANNOUNCED[what]))
    for heard in on.send_all(model).values():
        assert heard.text == "Let me see."
        assert [*heard.calls, *([heard.open_call] if heard.open_call else [])] == ([] if what == "a text" else [CALLED])
        assert heard.error
        assert not heard.ended
        assert not heard.stop
        assert heard.log["outcome"] == "upstream-failed"
    for heard in on.send_all(model, stream=False).values():
        assert (heard.status, heard.calls, heard.log["attempts"]) == (502, [], 2)


ENDS = {CHAT: "stop", MESSAGES: "end_turn", RESPONSES: "completed"}
CALL_ENDS = {CHAT: "tool_calls", MESSAGES: "tool_use", RESPONSES: "completed"}


@pytest.mark.parametrize("end", [up.delta(finish="stop"), up.DONE])
def test_05_half_an_announcement_is_one(on: GatewayStage, end: bytes) -> None:
    for data, stops in ((SAID, ENDS), (SAID + FIRST, CALL_ENDS)):
        for api, heard in on.send_all(on.add_scripts(f"05 {end!r} {len(data)}", stream_response(data + end))).items():
            assert (heard.ended, heard.error, heard.stop) == (True, "", stops[api])


# ── 30: nothing but thinking ──────────────────────────────────────────────────────────────────────────────────────

THOUGHT = up.delta(reasoning_content="Hmm.")
FINISH = up.delta(finish="stop") + up.DONE
EMPTY = {
    "only thinking": up.ROLE + THOUGHT + FINISH,
    "only thinking and blanks": up.ROLE + THOUGHT + up.delta("\n") + up.delta("\n") + FINISH,
    "nothing": up.ROLE + FINISH,
    "deepseek-r1 only thinking": up.ROLE + up.delta("<think>Hm") + up.delta("m.</think>\n") + FINISH,
}
NOT_EMPTY = {
    "text": up.ROLE + THOUGHT + up.delta("\n") + up.delta("\n") + up.delta("a") + up.delta("\n") + FINISH,
    "a call": up.ROLE + THOUGHT + FIRST + FINISH,
    "cut by its limit": up.ROLE + THOUGHT + up.delta(finish="length") + up.DONE,
}
RETRYING = """
log: {{format: json}}
empty: retry
upstreams: {{chat: {{url: "{url}", retries: {{backoff: 0.02, budget: 1}}}}}}
default: chat
models: {{silent-*: {{upstream: chat, reasoning: drop}}, patient-*: {{upstream: chat, empty: keep}}}}
"""


@pytest.fixture(scope="module")
def retrying() -> Iterator[GatewayStage]:
    upstream = up.UpstreamServer()
    try:
        with run_gateway(config=RETRYING.format(url=upstream.url)) as gateway:
            yield GatewayStage(upstream, gateway)
    finally:
        upstream.stop()


@pytest.mark.parametrize("pieces", ["at once", "one by one"])
@pytest.mark.parametrize("what", EMPTY)
def test_30_a_turn_without_an_answer_is_told_as_it_is(on: GatewayStage, what: str, pieces: str) -> None:
    data = EMPTY[what]
    events = [event + b"\n\n" for event in data.split(b"\n\n") if event]
    script = stream_response(data) if pieces == "at once" else (up.send_headers(), up.send_pieces(events, 0.01))
    for api, heard in on.send_all(on.add_scripts(f"{what} {pieces}", script)).items():
        assert (heard.ended, heard.error, heard.stop) == (True, "", ENDS[api])
        assert (heard.text.strip(), heard.calls) == ("", [])
        assert heard.log["findings"] == {"empty-turn": 1}


@pytest.mark.parametrize("what", NOT_EMPTY)
def test_30_what_is_not_empty(on: GatewayStage, what: str) -> None:
    events = [event + b"\n\n" for event in NOT_EMPTY[what].split(b"\n\n") if event]
    for heard in on.send_all(on.add_scripts(f"30 {what}", (up.send_headers(), up.send_pieces(events, 0.01)))).values():
        assert "empty-turn" not in heard.log["findings"]


def test_30_no_empty_text_stands_behind_thinking(on: GatewayStage) -> None:
    """Of a message that ends with an empty text, Claude Code prints nothing."""
    model = on.add_scripts("30 blocks", stream_response(EMPTY["only thinking"]))
    heard = on.send(model, MESSAGES)
    assert heard.body.count(b'"type":"content_block_start"') == 1
    assert b'"type":"thinking"' in heard.body
    whole = json.loads(on.send(model, MESSAGES, stream=False).body)
    assert [block["type"] for block in whole["content"]] == ["thinking"]


def test_30_a_message_without_anything_has_one_block(on: GatewayStage) -> None:
    """Clients look at the first one."""
    whole = json.loads(
        on.send(on.add_scripts("30 nothing", stream_response(EMPTY["nothing"])), MESSAGES, stream=False).body
    )
    assert whole["content"] == [{"type": "text", "text": ""}]


def answered() -> tuple[up.Step, ...]:
    return stream_response(up.ROLE + THOUGHT + up.delta("Hello") + FINISH)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("model", "empty"), [("plain", "nothing"), ("silent-", "only thinking")])
@pytest.mark.parametrize("api", APIS)
def test_30_an_empty_turn_is_asked_for_again(
    retrying: GatewayStage, api: str, model: str, empty: str, stream: bool
) -> None:
    name = retrying.add_scripts(f"{model} {api} {stream}", stream_response(EMPTY[empty]), answered())
    heard = retrying.send(name, api, stream)
    assert (heard.text, heard.ended, heard.log["attempts"]) == ("Hello", True, 2)
    assert heard.log["findings"]["asked-again"] == 1


def test_30_but_once(retrying: GatewayStage) -> None:
    heard = retrying.send(retrying.add_scripts("30 ever", stream_response(EMPTY["nothing"])))
    assert (heard.text, heard.ended, heard.log["attempts"]) == ("", True, 2)
    assert heard.log["findings"] == {"asked-again": 1, "empty-turn": 1}


@pytest.mark.parametrize("model", ["patient-", "thinking that has gone out"])
def test_30_nor_where_it_was_not_wanted_or_has_begun(retrying: GatewayStage, model: str) -> None:
    pieces = [up.ROLE + THOUGHT, THOUGHT, FINISH]
    heard = retrying.send(
        retrying.add_scripts(model, (up.send_headers(), up.send_pieces(pieces, 0.1)), answered()), MESSAGES
    )
    assert (heard.text, heard.ended, heard.log["attempts"]) == ("", True, 1)
    assert heard.log["findings"] == {"empty-turn": 1}


# ── 31: arguments that never end ──────────────────────────────────────────────────────────────────────────────────

OPEN = KIMI.partition('{"path"')[0]
BLANK = "\n  \t" * 1024
RUNAWAY = {
    "structured": [up.ROLE, call('{"path":', name="read"), *[call(BLANK)] * 400],
    "kimi-k2 native": [up.ROLE, up.delta(OPEN + '{"path":'), *[up.delta(BLANK)] * 400],
}


@pytest.mark.parametrize("what", RUNAWAY)
def test_31_blanks_without_end_are_an_error(on: GatewayStage, what: str) -> None:
    model = on.add_scripts(f"{what} 31", (up.send_headers(), up.send_pieces(RUNAWAY[what], 0.01), up.wait(20)))
    for heard in on.send_all(model).values():
        assert heard.error == "the arguments of 'read' go on with blanks, more than 16,384"
        assert not heard.ended
        assert heard.calls == []
        assert heard.open_call == ("read", '{"path":' + (BLANK * 5)[:16384])
        assert (heard.log["outcome"], heard.log["findings"]["runaway"]) == ("upstream-failed", 1)
    for asked in on.upstream.wait_for_requests(model):
        assert asked.finished.wait(5)
        assert asked.client_left_at is not None, "the model need not go on"
        assert asked.bytes_sent < 100 * len(BLANK) * 2


def test_31_where_calls_go_out_whole_it_is_asked_again(on: GatewayStage) -> None:
    right = stream_response(up.ROLE + FIRST + up.delta(finish="tool_calls") + up.DONE)
    heard = on.send(on.add_scripts("whole-31", stream_response(b"".join(RUNAWAY["structured"])), right), MESSAGES)
    assert (heard.calls, heard.ended, heard.log["findings"]) == ([CALLED], True, {"asked-again": 1})


def test_31_blanks_in_a_string_are_data(on: GatewayStage) -> None:
    args = '{"path": "' + " " * 100_000 + '"' + " " * 10_000 + "}"
    data = up.ROLE + call(args, name="read") + up.delta(finish="tool_calls") + up.DONE
    heard = on.send(on.add_scripts("31 data", stream_response(data)), CHAT)
    assert (heard.calls, heard.error) == ([("read", args)], "")
