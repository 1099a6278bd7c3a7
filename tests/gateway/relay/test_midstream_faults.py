"""Faults after the first content of a stream, when no retry is possible (rows 3–7 and 9 of the fault table).

Content that was sent is never withdrawn, a truncated call stays open, and the stream ends with an error event of the
client's API.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.support import anthropic_scenarios as messages
from tests.support import responses_scenarios as responses
from tests.support import upstream_server as up
from tests.support.gateway_stage import (
    APIS,
    CHAT,
    MESSAGES,
    RESPONSES,
    GatewayStage,
    LoggedClientView,
    call,
    request_fields,
    stage,
    stream_response,
    stream_then_reset,
)

TEXT_START = up.ROLE + up.delta("Let me see.")
FIRST = call('{"path": "a"}', name="read")
SECTION = "<|tool_calls_section_begin|>"
OPENER = "<|tool_call_begin|>functions.read:{}<|tool_call_argument_begin|>"
NATIVE = SECTION + OPENER.format(0) + '{"path": "a"}<|tool_call_end|>'
HALF = 'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "é'.encode()[:-1]
FINISH = up.delta(finish="stop")
USAGE = up.event(
    {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    | {"usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}}
)
OH = up.event({"error": {"message": "oh"}})
DONE_CALL = ("read", '{"path": "a"}')


@pytest.fixture(scope="module")
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def assert_ended_with_error(view: LoggedClientView) -> None:
    """Assert that the stream ended with an error event of its API."""
    assert view.status == 200
    assert view.error
    assert not view.ended
    assert not view.stop
    assert view.log["outcome"] == "upstream-failed"
    assert view.log["error"] == view.error
    assert view.log["attempts"] == 1
    assert b"[DONE]" not in view.body


# ── 3: the stream stalls ──────────────────────────────────────────────────────────────────────────────────────────


def test_03_stalled_stream_ends_with_a_timeout_error(env: GatewayStage) -> None:
    stalled = (*stream_response(TEXT_START + FIRST + call('{"pa', 1, name="read")), up.wait(9))
    for api, view in env.send_all(env.add_scripts("hasty-03", stalled)).items():
        assert_ended_with_error(view)
        assert (view.text, view.calls, view.open_call) == ("Let me see.", [DONE_CALL], ("read", '{"pa'))
        assert view.error == "hasty: the next event took longer than 1.2 s, inside the call of 'read'"
        assert (view.error_type or view.error_code) == ("server_error" if api == RESPONSES else "timeout_error")
        assert env.upstream.wait_for_requests("hasty-03")[-1].finished.wait(5)
    assert all(received.client_left_at for received in env.upstream.wait_for_requests("hasty-03")), (
        "the gateway disconnects, so that the upstream can stop"
    )


# ── 4, 5: the stream is truncated ─────────────────────────────────────────────────────────────────────────────────

CUTS: dict[str, tuple[bytes, list[tuple[str, str]], tuple[str, str] | None]] = {
    # upstream data, complete calls, open call
    "in the text": (TEXT_START, [], None),
    "in an argument": (TEXT_START + FIRST + call('{"pa', 1, name="read"), [DONE_CALL], ("read", '{"pa')),
    "after the name": (TEXT_START + call("", name="read"), [], ("read", "")),
    "in a UTF-8 character": (TEXT_START + HALF, [], None),
    "kimi-k2 in a marker": (TEXT_START + up.delta("<|tool_calls_section_be"), [], None),
    "kimi-k2 in an argument": (
        TEXT_START + up.delta(NATIVE + OPENER.format(1) + '{"path": "b'),
        [DONE_CALL],
        ("read", '{"path": "b'),
    ),
    "kimi-k2 in a UTF-8 character of an argument": (
        TEXT_START + up.delta(NATIVE + OPENER.format(1) + '{"path": "') + HALF,
        [DONE_CALL],
        ("read", '{"path": "'),
    ),
}


@pytest.mark.parametrize("how", ["reset", "closed"])
@pytest.mark.parametrize("cut", CUTS)
def test_04_and_05_truncated_stream_never_closes_an_open_call(env: GatewayStage, cut: str, how: str) -> None:
    data, calls, opened = CUTS[cut]
    model = env.add_scripts(f"{cut} {how}", stream_then_reset(data) if how == "reset" else stream_response(data))
    for api, view in env.send_all(model).items():
        assert_ended_with_error(view)
        assert view.text.startswith("Let me see.")
        assert (view.calls, view.open_call) == (calls, opened)
        assert (view.error_type or view.error_code) == ("server_error" if api == RESPONSES else "api_error")
        assert ("inside the call of 'read'" in view.error) == (opened is not None)
    for view in env.send_all(model, stream=False).values():
        assert (view.status, view.calls, view.log["attempts"]) == (502, [], 2)


@pytest.mark.parametrize("how", ["reset", "closed"])
def test_04_stream_truncated_inside_a_call_section_is_an_error(env: GatewayStage, how: str) -> None:
    """The call before the truncation is complete, but more calls may have followed."""
    data = TEXT_START + up.delta(NATIVE)
    for view in env.send_all(
        env.add_scripts(f"kimi-k2 {how}", stream_then_reset(data) if how == "reset" else stream_response(data))
    ).values():
        assert_ended_with_error(view)
        assert [*view.calls, view.open_call][0] == DONE_CALL


def truncated_reply(api: str) -> bytes:
    """Return text and the start of a call in the format of an upstream of this API."""
    if api == CHAT:
        return TEXT_START + call('{"pa', name="read")
    if api == MESSAGES:
        opened = messages.tool_use_block(1, '{"pa', name="read")[:-1]
        return messages.sse(messages.message_start(), *messages.text_block(0, "Let me see."), *opened)
    opened = responses.call_events(['{"pa', 'th": "a"}'], index=1, name="read")[:2]
    return responses.sse(
        responses.response_event("response.created"), *responses.message_events(["Let me see."]), *opened
    )


UPSTREAMS = {CHAT: "plain", MESSAGES: "messages-", RESPONSES: "responses-"}


@pytest.mark.parametrize("how", ["reset", "closed"])
@pytest.mark.parametrize("source", APIS)
def test_04_truncated_streams_of_every_upstream_api(env: GatewayStage, source: str, how: str) -> None:
    data = truncated_reply(source)
    model = env.add_scripts(
        f"{UPSTREAMS[source]} {how}", stream_then_reset(data) if how == "reset" else stream_response(data)
    )
    for view in env.send_all(model).values():
        assert_ended_with_error(view)
        assert (view.text, view.calls, view.open_call) == ("Let me see.", [], ("read", '{"pa'))


def sdk_error(env: GatewayStage, api: str, model: str) -> Any:
    """Return the error message that the official SDK reports for a stream that fails."""
    if api == MESSAGES:
        client = anthropic.Anthropic(api_key="none", base_url=env.gateway.base, max_retries=0)
        with pytest.raises(anthropic.APIError) as failed:
            list(client.messages.create(model=model, stream=True, **request_fields(api)))
        return failed.value.message
    openai_client = openai.OpenAI(api_key="none", base_url=f"{env.gateway.base}/v1", max_retries=0)
    if api == CHAT:
        with pytest.raises(openai.APIError) as raised:
            list(openai_client.chat.completions.create(model=model, stream=True, **request_fields(api)))
        return raised.value.message
    last: Any = list(openai_client.responses.create(model=model, stream=True, **request_fields(api)))[-1]
    assert last.type == "response.failed"
    return last.response.error.message


@pytest.mark.parametrize("api", APIS)
def test_04_official_sdks_report_a_truncated_stream(env: GatewayStage, api: str) -> None:
    model = env.add_scripts("04-sdk", stream_then_reset(truncated_reply(CHAT)))
    assert "the connection was lost in the middle of the reply, inside the call of 'read'" in sdk_error(env, api, model)


# ── 6, 7: unusual stream ends ─────────────────────────────────────────────────────────────────────────────────────

WELL = {CHAT: "stop", MESSAGES: "end_turn", RESPONSES: "completed"}
CALLED = {CHAT: "tool_calls", MESSAGES: "tool_use", RESPONSES: "completed"}
ENDS: dict[str, tuple[tuple[up.Step, ...], dict[str, str], list[tuple[str, str]], int, dict[str, int]]] = {
    # upstream data, stop reasons, calls, tokens, findings
    "06 done": (stream_response(TEXT_START + up.DONE), WELL, [], 0, {"no-finish-reason": 1}),
    "06 done after a call": (
        stream_response(TEXT_START + FIRST + up.DONE),
        CALLED,
        [DONE_CALL],
        0,
        {"no-finish-reason": 1},
    ),
    "05 no done": (stream_response(TEXT_START + FINISH), WELL, [], 0, {}),
    "07 usage after finish": (stream_response(TEXT_START + FINISH + USAGE + up.DONE), WELL, [], 7, {}),
    "07 usage and no done": (stream_response(TEXT_START + FINISH + USAGE), WELL, [], 7, {}),
    "07 finish twice": (
        stream_response(TEXT_START + FINISH + up.delta(finish="length") + USAGE + up.DONE),
        WELL,
        [],
        7,
        {"after-stop": 1},
    ),
    "07 more text": (
        stream_response(TEXT_START + FINISH + up.delta("late") + USAGE + up.DONE),
        WELL,
        [],
        7,
        {"after-stop": 1},
    ),
    "07 reset after finish": (stream_then_reset(TEXT_START + FINISH + USAGE), WELL, [], 7, {}),
    "hasty-07 no end after finish": ((*stream_response(TEXT_START + FINISH + USAGE), up.wait(9)), WELL, [], 7, {}),
    "07 error after finish": (stream_response(TEXT_START + FINISH + OH), WELL, [], 0, {"after-stop": 1}),
}


@pytest.mark.parametrize("end", ENDS)
def test_06_and_07_unusual_stream_ends_are_accepted(env: GatewayStage, end: str) -> None:
    steps, stops, calls, tokens, findings = ENDS[end]
    for api, view in env.send_all(env.add_scripts(end, steps)).items():
        assert (view.text, view.calls, view.open_call) == ("Let me see.", calls, None)
        assert (view.ended, view.error, view.stop) == (True, "", stops[api])
        assert view.output_tokens == tokens or not tokens
        assert (view.log["outcome"], view.log["findings"]) == ("ok", findings)


def test_06_done_inside_a_call_is_an_error(env: GatewayStage) -> None:
    for view in env.send_all(
        env.add_scripts("06 cut", stream_response(TEXT_START + call('{"pa', name="read") + up.DONE))
    ).values():
        assert_ended_with_error(view)
        assert (view.calls, view.open_call) == ([], ("read", '{"pa'))
        assert view.error == "the upstream ended inside the call of 'read'"


# ── 9: error event in the middle of a stream ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"message": "slow down", "code": 429}, "rate_limit_error", "rate_limit_exceeded"),
        ({"message": "busy", "type": "overloaded_error"}, "overloaded_error", "server_is_overloaded"),
        ({"message": "oh"}, "api_error", "server_error"),
    ],
)
def test_09_error_event_in_the_middle_of_a_stream(
    env: GatewayStage, error: dict[str, Any], kind: str, code: str
) -> None:
    data = TEXT_START + FIRST + call('{"pa', 1, name="read") + up.event({"error": error}) + up.delta("more") + up.DONE
    for api, view in env.send_all(env.add_scripts(f"09 {error}", stream_response(data))).items():
        assert_ended_with_error(view)
        assert view.error == error["message"]
        assert (view.text, view.calls, view.open_call) == ("Let me see.", [DONE_CALL], ("read", '{"pa'))
        if api == MESSAGES:
            assert view.error_type == kind
        elif api == RESPONSES:
            assert view.error_code == code


def test_09_error_event_of_a_messages_upstream(env: GatewayStage) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    data = truncated_reply(MESSAGES) + messages.sse(error)
    for api, view in env.send_all(env.add_scripts("messages-09", stream_response(data))).items():
        assert_ended_with_error(view)
        assert view.error == "Overloaded"
        assert (view.calls, view.open_call) == ([], ("read", '{"pa'))
        if api == MESSAGES:
            assert view.error_type == "overloaded_error"
