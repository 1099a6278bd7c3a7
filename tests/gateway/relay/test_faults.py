"""What a gateway must survive, on real sockets: each test is a row of the table of faults, by its number.

Here: all that goes wrong before the first word, so that another attempt may go right. The client never notices, or gets
an error of its own API.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import anthropic
import openai
import pytest

from interlingua.gateway.settings.schema import Retries
from interlingua.gateway.upstream.errors import UpstreamFailed
from interlingua.gateway.upstream.retry_policy import backoff
from tests.support import upstream_server as up
from tests.support.gateway_stage import (
    APIS,
    CHAT,
    MESSAGES,
    RESPONSES,
    GatewayStage,
    call,
    request_fields,
    stage,
    stream_response,
    stream_then_reset,
)

HOW = [(api, stream) for api in APIS for stream in (True, False)]
WHOLE = b'{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [%b], "usage": null}'
HELLO = WHOLE % b'{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}'


def hello(stream: bool) -> up.Step:
    return up.chat_stream("Hello") if stream else up.send_response("200 OK", HELLO)


@pytest.fixture(scope="module")
def on() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


# ── 1: no answer ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("api", "stream"), HOW)
def test_01_reset_before_headers_is_asked_again(on: GatewayStage, api: str, stream: bool) -> None:
    heard = on.send(on.add_scripts(f"01-{api}-{stream}", up.reset(), hello(stream)), api, stream)
    assert (heard.status, heard.text, heard.ended, heard.error) == (200, "Hello", True, "")
    assert (heard.log["outcome"], heard.log["attempts"], heard.log["findings"]) == ("ok", 2, {"asked-again": 1})


@pytest.mark.parametrize(("api", "stream"), HOW)
def test_01_reset_for_good_is_an_error_of_the_api(on: GatewayStage, api: str, stream: bool) -> None:
    heard = on.send(on.add_scripts(f"01-ever-{api}-{stream}", up.reset()), api, stream)
    assert heard.status == 502
    assert heard.error_type == ("api_error" if api == MESSAGES else "server_error")
    assert "closed the connection without an answer" in heard.error
    log = heard.log
    assert (log["outcome"], log["status"], log["upstream_status"], log["attempts"]) == ("upstream-failed", 502, 0, 2)
    assert log["error"] == heard.error


def test_01_nobody_listens(on: GatewayStage) -> None:
    heard = on.send("nobody")
    assert heard.status == 502
    assert "cannot connect to http://127.0.0.1:9/v1" in heard.error
    assert (heard.log["upstream_status"], heard.log["attempts"]) == (0, 2)


@pytest.mark.parametrize("api", APIS)
def test_01_the_next_upstream_is_asked(on: GatewayStage, api: str) -> None:
    on.add_scripts("second", up.chat_stream("Hello"))
    heard = on.send("nobody-then-second", api)
    assert (heard.status, heard.text, heard.ended) == (200, "Hello", True)
    assert heard.headers["x-interlingua-upstream"] == heard.log["upstream"] == "other"
    assert (heard.log["attempts"], heard.log["findings"]) == (3, {"asked-again": 2})


# ── 2: an answer that does not come ───────────────────────────────────────────────────────────────────────────────


def test_02_silence_is_bridged_with_comments_and_ends_with_an_error(on: GatewayStage) -> None:
    for api, heard in on.send_all(on.add_scripts("02", (up.send_headers(), up.wait(9)))).items():
        assert heard.status == 200, "it had to begin, to say that it waits"
        assert heard.body.startswith(b": keep-alive\n\n: keep-alive\n\n")
        assert heard.error == "chat: its first word took longer than 1.2 s"
        assert (heard.error_type or heard.error_code) == ("server_error" if api == RESPONSES else "timeout_error")
        assert not heard.ended
        log = heard.log
        assert (log["outcome"], log["upstream_status"], log["attempts"]) == ("upstream-failed", 200, 2)


def test_02_silence_instead_of_a_whole_reply_is_504(on: GatewayStage) -> None:
    heard = on.send(
        on.add_scripts("02-whole", (up.send_headers(type="application/json"), up.wait(9))), MESSAGES, stream=False
    )
    assert (heard.status, heard.error_type) == (504, "timeout_error")


def test_02_comments_of_the_upstream_are_no_word(on: GatewayStage) -> None:
    pings = (up.send_headers(), up.send_pieces([b": processing\n\n"] * 20, 0.3))
    heard = on.send(on.add_scripts("02-pings", pings, up.chat_stream("Hello")), MESSAGES)
    assert (heard.text, heard.ended, heard.log["findings"]) == ("Hello", True, {"asked-again": 1})


def test_02_what_speaks_but_not_to_the_client_is_waited_for(on: GatewayStage) -> None:
    """A call that goes out whole may take long: each piece of it is a sign of life."""
    pieces = [call('{"path": "', name="read"), *[call("a")] * 4, call('"}'), up.delta(finish="tool_calls") + up.DONE]
    heard = on.send(on.add_scripts("whole-02-slow", (up.send_headers(), up.send_pieces(pieces, 0.4))), MESSAGES)
    assert heard.calls == [("read", '{"path": "aaaa"}')]
    assert (heard.log["outcome"], heard.log["attempts"]) == ("ok", 1)


# ── 4: a call that was cut before anything went out ───────────────────────────────────────────────────────────────


CUT = up.ROLE + call('{"path": "a', name="read")
LOST = {
    "torn": stream_then_reset(CUT),
    "over": stream_response(CUT),
    "done": stream_response(CUT + up.DONE),
    "finished": stream_response(CUT + up.delta(finish="tool_calls") + up.DONE),
}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("api", APIS)
def test_04_whole_delivery_asks_again_for_a_call_that_was_cut(on: GatewayStage, api: str, how: str) -> None:
    right = stream_response(up.ROLE + call('{"path": "a"}', name="read") + up.delta(finish="tool_calls") + up.DONE)
    heard = on.send(on.add_scripts(f"whole-04-{how}-{api}", LOST[how], right), api)
    assert (heard.status, heard.error, heard.ended) == (200, "", True)
    assert heard.calls == [("read", '{"path": "a"}')]
    assert (heard.log["outcome"], heard.log["attempts"], heard.log["findings"]) == ("ok", 2, {"asked-again": 1})


def test_04_whole_delivery_gives_up_with_an_error(on: GatewayStage) -> None:
    heard = on.send(on.add_scripts("whole-04-ever", LOST["torn"]), MESSAGES)
    assert (heard.status, heard.error_type) == (502, "api_error")
    assert heard.error == "chat: it broke off in the middle of its reply"


# ── 8: an error as the first event of a 200 ───────────────────────────────────────────────────────────────────────


def error(message: str, **fields: Any) -> tuple[up.Step, ...]:
    return stream_response(up.event({"error": {"message": message, **fields}}))


@pytest.mark.parametrize("api", APIS)
def test_08_an_error_first_is_a_status(on: GatewayStage, api: str) -> None:
    heard = on.send(on.add_scripts(f"08-{api}", error("Provider is down", code=503)), api)
    assert (heard.status, heard.error) == (503, "chat: Provider is down")
    assert (heard.log["outcome"], heard.log["upstream_status"], heard.log["attempts"]) == ("upstream-failed", 200, 2)


@pytest.mark.parametrize(
    ("fields", "status", "attempts"),
    [
        ({"code": 400}, 400, 1),
        ({"type": "invalid_request_error"}, 400, 1),
        ({"type": "authentication_error"}, 401, 1),
        ({"code": 429}, 429, 2),
        ({"type": "overloaded_error"}, 529, 2),
        ({"code": "server_is_overloaded"}, 503, 2),
        ({}, 502, 2),
    ],
)
def test_08_which_status(on: GatewayStage, fields: dict[str, Any], status: int, attempts: int) -> None:
    heard = on.send(on.add_scripts(f"08-{fields}", error("no", **fields)), MESSAGES)
    assert (heard.status, heard.log["attempts"]) == (status, attempts)


def test_08_another_upstream_takes_over(on: GatewayStage) -> None:
    on.add_scripts("first", error("Provider is down", code=503))
    on.add_scripts("second", up.chat_stream("Hello"))
    heard = on.send("first-then-second", RESPONSES)
    assert (heard.status, heard.text, heard.log["upstream"], heard.log["attempts"]) == (200, "Hello", "other", 3)


def test_08_behind_keep_alives_it_still_says_what_it_is(on: GatewayStage) -> None:
    late = (
        up.send_headers(),
        up.wait(0.6),
        up.send(up.event({"error": {"message": "maximum context length is 8192"}})),
    )
    for api, heard in on.send_all(on.add_scripts("08-late", late)).items():
        code = None if api == MESSAGES else "context_length_exceeded"
        assert (heard.status, heard.error_code, heard.log["attempts"]) == (200, code, 1)
        assert heard.error_type == ("" if api == RESPONSES else "invalid_request_error")
        assert heard.error.startswith("prompt is too long: ") == (api == MESSAGES)


# ── 11: come back later ───────────────────────────────────────────────────────────────────────────────────────────


def busy(header: str) -> up.Step:
    return up.send_response("429 Too Many Requests", b'{"error": {"message": "slow down"}}', "application/json", header)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("retry-after: 0.3", 0.3),
        ("retry-after-ms: 300", 0.3),
        ("retry-after: 1", 1.0),
        (f"retry-after: {formatdate(1445412480, usegmt=True)}", 0),
        ("retry-after: soon", 0),
        ("x-none: 1", 0),
    ],
)
def test_11_a_short_wait_is_made_here(on: GatewayStage, header: str, seconds: float) -> None:
    began = time.monotonic()
    heard = on.send(on.add_scripts(f"11-{header}", busy(header), up.chat_stream("Hello")), MESSAGES)
    assert (heard.status, heard.text, heard.log["findings"]) == (200, "Hello", {"asked-again": 1})
    assert seconds <= time.monotonic() - began < seconds + 1


@pytest.mark.parametrize("form", ["retry-after: 30", "retry-after-ms: 30000", "retry-after: {date}"])
@pytest.mark.parametrize("api", APIS)
def test_11_a_long_wait_is_the_clients(on: GatewayStage, api: str, form: str) -> None:
    header = form.format(date=formatdate(time.time() + 30, usegmt=True))
    heard = on.send(on.add_scripts(f"11-{form}-{api}", busy(header)), api)
    assert (heard.status, heard.error_type, heard.error) == (429, "rate_limit_error", "chat: slow down")
    assert 28 <= int(heard.headers["retry-after"]) <= 30
    assert (heard.log["attempts"], heard.log["upstream_status"]) == (1, 429)


def test_11_another_upstream_need_not_wait(on: GatewayStage) -> None:
    on.add_scripts("11-first", busy("retry-after: 30"))
    on.add_scripts("second", up.chat_stream("Hello"))
    heard = on.send("busy-then-second")
    assert (heard.status, heard.text, heard.log["attempts"]) == (200, "Hello", 2)


@pytest.mark.parametrize(
    ("attempt", "error", "least", "most"),
    [
        (1, UpstreamFailed("oh"), 1.0, 2.0),
        (2, UpstreamFailed("oh"), 2.0, 4.0),
        (3, UpstreamFailed("oh"), 2.5, 5.0),
        (1, UpstreamFailed("oh", retry_after=0), 0, 0),
        (1, UpstreamFailed("oh", retry_after=5), 5, 5),
    ],
)
def test_11_how_long_is_waited(attempt: int, error: UpstreamFailed, least: float, most: float) -> None:
    retries = Retries(attempts=9, backoff=2, longest=5)
    waits = [backoff(retries, attempt, error) for _ in range(50)]
    assert all(wait is not None and least <= wait <= most for wait in waits)
    assert (len(set(waits)) > 1) == (least < most), "many who wait do not come back together"


@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        (9, UpstreamFailed("the last one")),
        (1, UpstreamFailed("for good", retryable=False)),
        (1, UpstreamFailed("too long a wait", retry_after=5.1)),
    ],
)
def test_11_when_nobody_waits(attempt: int, error: UpstreamFailed) -> None:
    assert backoff(Retries(attempts=9, backoff=2, longest=5), attempt, error) is None


# ── what the official SDKs make of it ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sdk(on: GatewayStage) -> dict[str, Any]:
    """Calls of the official SDKs, which do not retry here."""
    messages = anthropic.Anthropic(api_key="none", base_url=on.gateway.base, max_retries=0).messages
    client = openai.OpenAI(api_key="none", base_url=f"{on.gateway.base}/v1", max_retries=0)
    return {CHAT: client.chat.completions.create, MESSAGES: messages.create, RESPONSES: client.responses.create}


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ("400 Bad Request", "BadRequestError"),
        ("401 Unauthorized", "AuthenticationError"),
        ("403 Forbidden", "PermissionDeniedError"),
        ("404 Not Found", "NotFoundError"),
        ("422 Unprocessable", "UnprocessableEntityError"),
        ("429 Too Many Requests", "RateLimitError"),
        ("500 Oh", "InternalServerError"),
        ("529 Overloaded", "InternalServerError"),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_10_sdks_raise_what_they_would(on: GatewayStage, sdk: dict[str, Any], api: str, status: str, name: str) -> None:
    model = on.add_scripts(f"10-{status}-{api}", up.send_response(status, b'{"error": {"message": "not so"}}'))
    module = anthropic if api == MESSAGES else openai
    with pytest.raises(module.APIStatusError) as raised:
        sdk[api](model=model, stream=True, **request_fields(api))
    kind = type(raised.value).__name__
    assert kind == name or (kind == "OverloadedError" and status.startswith("529"))
    assert raised.value.status_code == int(status[:3])
    assert "chat: not so" in raised.value.message
    assert raised.value.request_id == raised.value.response.headers["x-interlingua-id"]
    tries = 1 if status.startswith("4") and not status.startswith("429") else 2
    assert on.upstream.count(model) == tries
