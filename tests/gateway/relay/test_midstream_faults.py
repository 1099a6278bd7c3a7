"""What a gateway must survive behind the first word, when nothing can be asked again: rows of the table of faults, by
their number. What was said stays said, a call that was cut stays open, and the end is an error of the client's API."""

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

SAID = up.ROLE + up.delta("Let me see.")
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
def on() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


def in_error(heard: LoggedClientView) -> None:
    """It failed, as its API says so."""
    assert heard.status == 200
    assert heard.error
    assert not heard.ended
    assert not heard.stop
    assert heard.log["outcome"] == "upstream-failed"
    assert heard.log["error"] == heard.error
    assert heard.log["attempts"] == 1
    assert b"[DONE]" not in heard.body


# ── 3: it stalls ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_03_a_stall_ends_with_an_error(on: GatewayStage) -> None:
    stalled = (*stream_response(SAID + FIRST + call('{"pa', 1, name="read")), up.wait(9))
    for api, heard in on.send_all(on.add_scripts("03", stalled)).items():
        in_error(heard)
        assert (heard.text, heard.calls, heard.open_call) == ("Let me see.", [DONE_CALL], ("read", '{"pa'))
        assert heard.error == "chat: the upstream's next word took longer than 1.2 s, inside the call of 'read'"
        assert (heard.error_type or heard.error_code) == ("server_error" if api == RESPONSES else "timeout_error")
        assert on.upstream.wait_for_requests("03")[-1].finished.wait(5)
    assert all(asked.client_left_at for asked in on.upstream.wait_for_requests("03")), "the upstream need not go on"


# ── 4, 5: it breaks off ───────────────────────────────────────────────────────────────────────────────────────────

CUTS: dict[str, tuple[bytes, list[tuple[str, str]], tuple[str, str] | None]] = {
    # what came, which calls are whole, and which one is open
    "in the text": (SAID, [], None),
    "in an argument": (SAID + FIRST + call('{"pa', 1, name="read"), [DONE_CALL], ("read", '{"pa')),
    "behind a name": (SAID + call("", name="read"), [], ("read", "")),
    "in a letter": (SAID + HALF, [], None),
    "kimi-k2 in a marker": (SAID + up.delta("<|tool_calls_section_be"), [], None),
    "kimi-k2 in an argument": (
        SAID + up.delta(NATIVE + OPENER.format(1) + '{"path": "b'),
        [DONE_CALL],
        ("read", '{"path": "b'),
    ),
    "kimi-k2 in a letter of an argument": (
        SAID + up.delta(NATIVE + OPENER.format(1) + '{"path": "') + HALF,
        [DONE_CALL],
        ("read", '{"path": "'),
    ),
}


@pytest.mark.parametrize("how", ["torn", "over"])
@pytest.mark.parametrize("cut", CUTS)
def test_04_and_05_breaking_off_never_closes_a_call(on: GatewayStage, cut: str, how: str) -> None:
    data, calls, opened = CUTS[cut]
    model = on.add_scripts(f"{cut} {how}", stream_then_reset(data) if how == "torn" else stream_response(data))
    for api, heard in on.send_all(model).items():
        in_error(heard)
        assert heard.text.startswith("Let me see.")
        assert (heard.calls, heard.open_call) == (calls, opened)
        assert (heard.error_type or heard.error_code) == ("server_error" if api == RESPONSES else "api_error")
        assert ("inside the call of 'read'" in heard.error) == (opened is not None)
    for heard in on.send_all(model, stream=False).values():
        assert (heard.status, heard.calls, heard.log["attempts"]) == (502, [], 2)


@pytest.mark.parametrize("how", ["torn", "over"])
def test_04_a_section_that_is_not_over(on: GatewayStage, how: str) -> None:
    """The call before the cut was whole. More may have followed."""
    data = SAID + up.delta(NATIVE)
    for heard in on.send_all(
        on.add_scripts(f"kimi-k2 {how}", stream_then_reset(data) if how == "torn" else stream_response(data))
    ).values():
        in_error(heard)
        assert [*heard.calls, heard.open_call][0] == DONE_CALL


def begun(api: str) -> bytes:
    """Text and the beginning of a call, of an upstream of this API."""
    if api == CHAT:
        return SAID + call('{"pa', name="read")
    if api == MESSAGES:
        opened = messages.tool_use_block(1, '{"pa', name="read")[:-1]
        return messages.sse(messages.message_start(), *messages.text_block(0, "Let me see."), *opened)
    opened = responses.call_events(['{"pa', 'th": "a"}'], index=1, name="read")[:2]
    return responses.sse(
        responses.response_event("response.created"), *responses.message_events(["Let me see."]), *opened
    )


UPSTREAMS = {CHAT: "plain", MESSAGES: "messages-", RESPONSES: "responses-"}


@pytest.mark.parametrize("how", ["torn", "over"])
@pytest.mark.parametrize("source", APIS)
def test_04_upstreams_of_every_api(on: GatewayStage, source: str, how: str) -> None:
    data = begun(source)
    model = on.add_scripts(
        f"{UPSTREAMS[source]} {how}", stream_then_reset(data) if how == "torn" else stream_response(data)
    )
    for heard in on.send_all(model).values():
        in_error(heard)
        assert (heard.text, heard.calls, heard.open_call) == ("Let me see.", [], ("read", '{"pa'))


def sdk_error(on: GatewayStage, api: str, model: str) -> Any:
    """What the official SDK makes of a stream that fails."""
    if api == MESSAGES:
        client = anthropic.Anthropic(api_key="none", base_url=on.gateway.base, max_retries=0)
        with pytest.raises(anthropic.APIError) as failed:
            list(client.messages.create(model=model, stream=True, **request_fields(api)))
        return failed.value.message
    openai_client = openai.OpenAI(api_key="none", base_url=f"{on.gateway.base}/v1", max_retries=0)
    if api == CHAT:
        with pytest.raises(openai.APIError) as raised:
            list(openai_client.chat.completions.create(model=model, stream=True, **request_fields(api)))
        return raised.value.message
    last: Any = list(openai_client.responses.create(model=model, stream=True, **request_fields(api)))[-1]
    assert last.type == "response.failed"
    return last.response.error.message


@pytest.mark.parametrize("api", APIS)
def test_04_sdks_notice(on: GatewayStage, api: str) -> None:
    model = on.add_scripts("04-sdk", stream_then_reset(begun(CHAT)))
    assert "it broke off in the middle of its reply, inside the call of 'read'" in sdk_error(on, api, model)


# ── 6, 7: odd ends ────────────────────────────────────────────────────────────────────────────────────────────────

WELL = {CHAT: "stop", MESSAGES: "end_turn", RESPONSES: "completed"}
CALLED = {CHAT: "tool_calls", MESSAGES: "tool_use", RESPONSES: "completed"}
ENDS: dict[str, tuple[tuple[up.Step, ...], dict[str, str], list[tuple[str, str]], int, dict[str, int]]] = {
    # what came, the stop reasons, calls, tokens, findings
    "06 done": (stream_response(SAID + up.DONE), WELL, [], 0, {"no-finish-reason": 1}),
    "06 done behind a call": (stream_response(SAID + FIRST + up.DONE), CALLED, [DONE_CALL], 0, {"no-finish-reason": 1}),
    "05 no done": (stream_response(SAID + FINISH), WELL, [], 0, {}),
    "07 usage behind": (stream_response(SAID + FINISH + USAGE + up.DONE), WELL, [], 7, {}),
    "07 usage and no done": (stream_response(SAID + FINISH + USAGE), WELL, [], 7, {}),
    "07 finish twice": (
        stream_response(SAID + FINISH + up.delta(finish="length") + USAGE + up.DONE),
        WELL,
        [],
        7,
        {"after-stop": 1},
    ),
    "07 more text": (
        stream_response(SAID + FINISH + up.delta("late") + USAGE + up.DONE),
        WELL,
        [],
        7,
        {"after-stop": 1},
    ),
    "07 torn behind the finish": (stream_then_reset(SAID + FINISH + USAGE), WELL, [], 7, {}),
    "07 no end behind the finish": ((*stream_response(SAID + FINISH + USAGE), up.wait(9)), WELL, [], 7, {}),
    "07 error behind the finish": (stream_response(SAID + FINISH + OH), WELL, [], 0, {"after-stop": 1}),
}


@pytest.mark.parametrize("end", ENDS)
def test_06_and_07_odd_ends_are_ends(on: GatewayStage, end: str) -> None:
    steps, stops, calls, tokens, findings = ENDS[end]
    for api, heard in on.send_all(on.add_scripts(end, steps)).items():
        assert (heard.text, heard.calls, heard.open_call) == ("Let me see.", calls, None)
        assert (heard.ended, heard.error, heard.stop) == (True, "", stops[api])
        assert heard.output_tokens == tokens or not tokens
        assert (heard.log["outcome"], heard.log["findings"]) == ("ok", findings)


def test_06_done_inside_a_call_is_an_error(on: GatewayStage) -> None:
    for heard in on.send_all(
        on.add_scripts("06 cut", stream_response(SAID + call('{"pa', name="read") + up.DONE))
    ).values():
        in_error(heard)
        assert (heard.calls, heard.open_call) == ([], ("read", '{"pa'))
        assert heard.error == "the upstream ended inside the call of 'read'"


# ── 9: an error in the middle ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"message": "slow down", "code": 429}, "rate_limit_error", "rate_limit_exceeded"),
        ({"message": "busy", "type": "overloaded_error"}, "overloaded_error", "server_is_overloaded"),
        ({"message": "oh"}, "api_error", "server_error"),
    ],
)
def test_09_an_error_in_the_middle(on: GatewayStage, error: dict[str, Any], kind: str, code: str) -> None:
    data = SAID + FIRST + call('{"pa', 1, name="read") + up.event({"error": error}) + up.delta("more") + up.DONE
    for api, heard in on.send_all(on.add_scripts(f"09 {error}", stream_response(data))).items():
        in_error(heard)
        assert heard.error == error["message"]
        assert (heard.text, heard.calls, heard.open_call) == ("Let me see.", [DONE_CALL], ("read", '{"pa'))
        if api == MESSAGES:
            assert heard.error_type == kind
        elif api == RESPONSES:
            assert heard.error_code == code


def test_09_messages_upstreams_say_it_in_their_words(on: GatewayStage) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    data = begun(MESSAGES) + messages.sse(error)
    for api, heard in on.send_all(on.add_scripts("messages-09", stream_response(data))).items():
        in_error(heard)
        assert heard.error == "Overloaded"
        assert (heard.calls, heard.open_call) == ([], ("read", '{"pa'))
        if api == MESSAGES:
            assert heard.error_type == "overloaded_error"
