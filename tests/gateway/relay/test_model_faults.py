"""Faulty replies of models: missing end, empty turn, endless whitespace (rows 5, 30, 31 of the fault table)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support import anthropic_scenarios as messages
from tests.support import responses_scenarios as responses
from tests.support import upstream_server as up
from tests.support.gateway_process import run_gateway
from tests.support.gateway_stage import APIS, CHAT, MESSAGES, RESPONSES, GatewayStage, call, stage, stream_response

TEXT_START = up.ROLE + up.delta("Let me see.")
FIRST = call('{"path": "a"}', name="read")
CALLED = ("read", '{"path": "a"}')
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
    '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


# ── 5: stream end without finish marker ───────────────────────────────────────────────────────────────────────────

UNFINISHED = {
    "a text": TEXT_START,
    "a whole call": TEXT_START + FIRST,
    "kimi-k2 a whole section": TEXT_START + up.delta(KIMI),
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


@pytest.mark.parametrize("what", UNFINISHED)
def test_05_stream_end_without_finish_marker_is_an_error(env: GatewayStage, what: str) -> None:
    """More text or calls may have been lost, and only the client can retry."""
    model = env.add_scripts(what, stream_response(UNFINISHED[what]))
    for view in env.send_all(model).values():
        assert view.text == "Let me see."
        assert [*view.calls, *([view.open_call] if view.open_call else [])] == ([] if what == "a text" else [CALLED])
        assert view.error
        assert not view.ended
        assert not view.stop
        assert view.log["outcome"] == "upstream-failed"
    for view in env.send_all(model, stream=False).values():
        assert (view.status, view.calls, view.log["attempts"]) == (502, [], 2)


ENDS = {CHAT: "stop", MESSAGES: "end_turn", RESPONSES: "completed"}
CALL_ENDS = {CHAT: "tool_calls", MESSAGES: "tool_use", RESPONSES: "completed"}


@pytest.mark.parametrize("end", [up.delta(finish="stop"), up.DONE])
def test_05_finish_reason_or_done_alone_is_a_regular_end(env: GatewayStage, end: bytes) -> None:
    for data, stops in ((TEXT_START, ENDS), (TEXT_START + FIRST, CALL_ENDS)):
        for api, view in env.send_all(env.add_scripts(f"05 {end!r} {len(data)}", stream_response(data + end))).items():
            assert (view.ended, view.error, view.stop) == (True, "", stops[api])


# ── 30: empty turn, or reasoning only ─────────────────────────────────────────────────────────────────────────────

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
def test_30_empty_turn_is_forwarded_and_reported(env: GatewayStage, what: str, pieces: str) -> None:
    data = EMPTY[what]
    events = [event + b"\n\n" for event in data.split(b"\n\n") if event]
    script = stream_response(data) if pieces == "at once" else (up.send_headers(), up.send_pieces(events, 0.01))
    for api, view in env.send_all(env.add_scripts(f"{what} {pieces}", script)).items():
        assert (view.ended, view.error, view.stop) == (True, "", ENDS[api])
        assert (view.text.strip(), view.calls) == ("", [])
        assert view.log["findings"] == {"empty-turn": 1}


@pytest.mark.parametrize("what", NOT_EMPTY)
def test_30_turns_that_are_not_empty(env: GatewayStage, what: str) -> None:
    events = [event + b"\n\n" for event in NOT_EMPTY[what].split(b"\n\n") if event]
    for view in env.send_all(env.add_scripts(f"30 {what}", (up.send_headers(), up.send_pieces(events, 0.01)))).values():
        assert "empty-turn" not in view.log["findings"]


def test_30_no_empty_text_block_follows_reasoning(env: GatewayStage) -> None:
    """Claude Code prints nothing for a message that ends with an empty text block."""
    model = env.add_scripts("30 blocks", stream_response(EMPTY["only thinking"]))
    view = env.send(model, MESSAGES)
    assert view.body.count(b'"type":"content_block_start"') == 1
    assert b'"type":"thinking"' in view.body
    whole = json.loads(env.send(model, MESSAGES, stream=False).body)
    assert [block["type"] for block in whole["content"]] == ["thinking"]


def test_30_empty_message_has_one_text_block(env: GatewayStage) -> None:
    """Clients read the first block."""
    whole = json.loads(
        env.send(env.add_scripts("30 nothing", stream_response(EMPTY["nothing"])), MESSAGES, stream=False).body
    )
    assert whole["content"] == [{"type": "text", "text": ""}]


def full_reply() -> tuple[up.Step, ...]:
    return stream_response(up.ROLE + THOUGHT + up.delta("Hello") + FINISH)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("model", "empty"), [("plain", "nothing"), ("silent-", "only thinking")])
@pytest.mark.parametrize("api", APIS)
def test_30_empty_turn_is_retried_if_configured(
    retrying: GatewayStage, api: str, model: str, empty: str, stream: bool
) -> None:
    name = retrying.add_scripts(f"{model} {api} {stream}", stream_response(EMPTY[empty]), full_reply())
    view = retrying.send(name, api, stream)
    assert (view.text, view.ended, view.log["attempts"]) == ("Hello", True, 2)
    assert view.log["findings"]["asked-again"] == 1


def test_30_empty_turn_is_retried_only_once(retrying: GatewayStage) -> None:
    view = retrying.send(retrying.add_scripts("30 ever", stream_response(EMPTY["nothing"])))
    assert (view.text, view.ended, view.log["attempts"]) == ("", True, 2)
    assert view.log["findings"] == {"asked-again": 1, "empty-turn": 1}


@pytest.mark.parametrize("model", ["patient-", "thinking that has gone out"])
def test_30_no_retry_if_disabled_or_after_reasoning_was_sent(retrying: GatewayStage, model: str) -> None:
    pieces = [up.ROLE + THOUGHT, THOUGHT, FINISH]
    view = retrying.send(
        retrying.add_scripts(model, (up.send_headers(), up.send_pieces(pieces, 0.1)), full_reply()), MESSAGES
    )
    assert (view.text, view.ended, view.log["attempts"]) == ("", True, 1)
    assert view.log["findings"] == {"empty-turn": 1}


# ── 31: arguments that never end ──────────────────────────────────────────────────────────────────────────────────

OPEN = KIMI.partition('{"path"')[0]
BLANK = "\n  \t" * 1024
RUNAWAY = {
    "structured": [up.ROLE, call('{"path":', name="read"), *[call(BLANK)] * 400],
    "kimi-k2 native": [up.ROLE, up.delta(OPEN + '{"path":'), *[up.delta(BLANK)] * 400],
}


@pytest.mark.parametrize("what", RUNAWAY)
def test_31_endless_whitespace_in_arguments_is_an_error(env: GatewayStage, what: str) -> None:
    model = env.add_scripts(f"{what} 31", (up.send_headers(), up.send_pieces(RUNAWAY[what], 0.01), up.wait(20)))
    for view in env.send_all(model).values():
        assert view.error == "the arguments of 'read' have more than 16,384 whitespace characters in a row"
        assert not view.ended
        assert view.calls == []
        assert view.open_call == ("read", '{"path":' + (BLANK * 5)[:16384])
        assert (view.log["outcome"], view.log["findings"]["runaway"]) == ("upstream-failed", 1)
    for received in env.upstream.wait_for_requests(model):
        assert received.finished.wait(5)
        assert received.client_left_at is not None, "the gateway disconnects, so that the model can stop"
        assert received.bytes_sent < 100 * len(BLANK) * 2


def test_31_endless_whitespace_is_retried_with_whole_delivery(env: GatewayStage) -> None:
    right = stream_response(up.ROLE + FIRST + up.delta(finish="tool_calls") + up.DONE)
    view = env.send(env.add_scripts("whole-31", stream_response(b"".join(RUNAWAY["structured"])), right), MESSAGES)
    assert (view.calls, view.ended, view.log["findings"]) == ([CALLED], True, {"asked-again": 1})


def test_31_whitespace_inside_a_string_is_data(env: GatewayStage) -> None:
    args = '{"path": "' + " " * 100_000 + '"' + " " * 10_000 + "}"
    data = up.ROLE + call(args, name="read") + up.delta(finish="tool_calls") + up.DONE
    view = env.send(env.add_scripts("31 data", stream_response(data)), CHAT)
    assert (view.calls, view.error) == ([("read", args)], "")
