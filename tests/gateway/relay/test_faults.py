"""Faults before the first content of a reply, when a retry is possible (rows of the fault table, real sockets).

The client notices nothing, or gets an error in the format of its API.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import anthropic
import openai
import pytest

from interlingua.gateway.settings.schema import Retries
from interlingua.gateway.upstream.retry_policy import backoff
from interlingua.translation.upstream_errors import UpstreamFailed
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
def env() -> Iterator[GatewayStage]:
    with stage() as started:
        yield started


# ── 1: no response ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("api", "stream"), HOW)
def test_01_reset_before_headers_is_retried(env: GatewayStage, api: str, stream: bool) -> None:
    view = env.send(env.add_scripts(f"01-{api}-{stream}", up.reset(), hello(stream)), api, stream)
    assert (view.status, view.text, view.ended, view.error) == (200, "Hello", True, "")
    assert (view.log["outcome"], view.log["attempts"], view.log["findings"]) == ("ok", 2, {"asked-again": 1})


@pytest.mark.parametrize(("api", "stream"), HOW)
def test_01_repeated_reset_is_an_error_of_the_client_api(env: GatewayStage, api: str, stream: bool) -> None:
    view = env.send(env.add_scripts(f"01-ever-{api}-{stream}", up.reset()), api, stream)
    assert view.status == 502
    assert view.error_type == ("api_error" if api == MESSAGES else "server_error")
    assert "closed the connection without a response" in view.error
    log = view.log
    assert (log["outcome"], log["status"], log["upstream_status"], log["attempts"]) == ("upstream-failed", 502, 0, 2)
    assert log["error"] == view.error


def test_01_connection_refused(env: GatewayStage) -> None:
    view = env.send("nobody")
    assert view.status == 502
    assert "cannot connect to http://127.0.0.1:9/v1" in view.error
    assert (view.log["upstream_status"], view.log["attempts"]) == (0, 2)


@pytest.mark.parametrize("api", APIS)
def test_01_fails_over_to_the_next_upstream(env: GatewayStage, api: str) -> None:
    env.add_scripts("second", up.chat_stream("Hello"))
    view = env.send("nobody-then-second", api)
    assert (view.status, view.text, view.ended) == (200, "Hello", True)
    assert view.headers["x-interlingua-upstream"] == view.log["upstream"] == "other"
    assert (view.log["attempts"], view.log["findings"]) == (3, {"asked-again": 2})


def test_01_dead_upstream_is_named_although_a_fallback_answers(env: GatewayStage) -> None:
    env.add_scripts("second", up.chat_stream("Hello"))
    view = env.send("nobody-then-second")
    assert view.headers["x-interlingua-failed"] == '"nobody";model="first";reason="unreachable";attempts=2'
    reason = "cannot connect to http://127.0.0.1:9/v1: Connection refused"
    failure = {"upstream": "nobody", "model": "first", "kind": "unreachable", "reason": reason}
    assert view.log["failed_attempts"] == [failure, failure]
    assert view.log["error"] == ""
    env.gateway.wait_for_log(r'"message": "upstream failing", "upstream": "nobody", "model": "first"[^\n]*refused')
    metrics = read_text(f"{env.gateway.base}/metrics")
    assert 'upstream_errors_total{upstream="nobody",model="first",kind="unreachable"}' in metrics
    failing = json.loads(read_text(f"{env.gateway.base}/status"))["failing_models"]
    assert ("nobody", "first", reason) in [(each["upstream"], each["model"], each["reason"]) for each in failing]


def test_01_broken_stream_is_a_failed_attempt(env: GatewayStage) -> None:
    view = env.send(env.add_scripts("01-broken", up.chat_stream("Hel", finish=None, done=False)))
    assert [(each["model"], each["kind"]) for each in view.log["failed_attempts"]] == [("01-broken", "stream")]
    assert 'kind="stream"' in read_text(f"{env.gateway.base}/metrics")


def read_text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as response:
        text: str = response.read().decode()
    return text


# ── 2: headers, but no content ────────────────────────────────────────────────────────────────────────────────────


def test_02_silent_upstream_gets_keepalives_then_a_timeout_error(env: GatewayStage) -> None:
    for api, view in env.send_all(env.add_scripts("hasty-02", (up.send_headers(), up.wait(9)))).items():
        assert view.status == 200, "the response had to start for the keep-alive comments"
        assert view.body.startswith(b": keep-alive\n\n: keep-alive\n\n")
        assert view.error == "hasty: the first event took longer than 1.2 s"
        assert (view.error_type or view.error_code) == ("server_error" if api == RESPONSES else "timeout_error")
        assert not view.ended
        log = view.log
        assert (log["outcome"], log["upstream_status"], log["attempts"]) == ("upstream-failed", 200, 2)


def test_02_silent_upstream_without_stream_is_504(env: GatewayStage) -> None:
    view = env.send(
        env.add_scripts("hasty-02-whole", (up.send_headers(type="application/json"), up.wait(9))),
        MESSAGES,
        stream=False,
    )
    assert (view.status, view.error_type) == (504, "timeout_error")


def test_02_upstream_comments_do_not_count_as_content(env: GatewayStage) -> None:
    pings = (up.send_headers(), up.send_pieces([b": processing\n\n"] * 20, 0.3))
    view = env.send(env.add_scripts("hasty-02-pings", pings, up.chat_stream("Hello")), MESSAGES)
    assert (view.text, view.ended, view.log["findings"]) == ("Hello", True, {"asked-again": 1})


def test_02_buffered_call_deltas_extend_the_timeout(env: GatewayStage) -> None:
    """A call that is delivered whole may take long; each of its deltas restarts the idle timeout."""
    pieces = [call('{"path": "', name="read"), *[call("a")] * 4, call('"}'), up.delta(finish="tool_calls") + up.DONE]
    view = env.send(env.add_scripts("hasty-whole-02", (up.send_headers(), up.send_pieces(pieces, 0.4))), MESSAGES)
    assert view.calls == [("read", '{"path": "aaaa"}')]
    assert (view.log["outcome"], view.log["attempts"]) == ("ok", 1)


# ── 4: call truncated before anything was sent ────────────────────────────────────────────────────────────────────


CUT = up.ROLE + call('{"path": "a', name="read")
LOST = {
    "reset": stream_then_reset(CUT),
    "closed": stream_response(CUT),
    "done": stream_response(CUT + up.DONE),
    "finished": stream_response(CUT + up.delta(finish="tool_calls") + up.DONE),
}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("api", APIS)
def test_04_whole_delivery_retries_a_truncated_call(env: GatewayStage, api: str, how: str) -> None:
    right = stream_response(up.ROLE + call('{"path": "a"}', name="read") + up.delta(finish="tool_calls") + up.DONE)
    view = env.send(env.add_scripts(f"whole-04-{how}-{api}", LOST[how], right), api)
    assert (view.status, view.error, view.ended) == (200, "", True)
    assert view.calls == [("read", '{"path": "a"}')]
    # A call that the model ended itself is its own mistake, not a failure of the upstream.
    finding = "call-asked-again" if how == "finished" else "asked-again"
    assert (view.log["outcome"], view.log["attempts"], view.log["findings"]) == ("ok", 2, {finding: 1})


def test_04_whole_delivery_ends_with_an_error_after_retries(env: GatewayStage) -> None:
    view = env.send(env.add_scripts("whole-04-ever", LOST["reset"]), MESSAGES)
    assert (view.status, view.error_type) == (502, "api_error")
    assert view.error == "chat: the connection was lost in the middle of the reply"


# ── 8: an error as the first event of a 200 ───────────────────────────────────────────────────────────────────────


def error(message: str, **fields: Any) -> tuple[up.Step, ...]:
    return stream_response(up.event({"error": {"message": message, **fields}}))


@pytest.mark.parametrize("api", APIS)
def test_08_error_as_first_event_becomes_an_http_status(env: GatewayStage, api: str) -> None:
    view = env.send(env.add_scripts(f"08-{api}", error("Provider is down", code=503)), api)
    assert (view.status, view.error) == (503, "chat: Provider is down")
    assert (view.log["outcome"], view.log["upstream_status"], view.log["attempts"]) == ("upstream-failed", 200, 2)


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
def test_08_http_status_for_error_types_and_codes(
    env: GatewayStage, fields: dict[str, Any], status: int, attempts: int
) -> None:
    view = env.send(env.add_scripts(f"08-{fields}", error("no", **fields)), MESSAGES)
    assert (view.status, view.log["attempts"]) == (status, attempts)


def test_08_fails_over_to_another_upstream(env: GatewayStage) -> None:
    env.add_scripts("first", error("Provider is down", code=503))
    env.add_scripts("second", up.chat_stream("Hello"))
    view = env.send("first-then-second", RESPONSES)
    assert (view.status, view.text, view.log["upstream"], view.log["attempts"]) == (200, "Hello", "other", 3)


def test_08_error_after_keepalives_keeps_its_type_and_code(env: GatewayStage) -> None:
    late = (
        up.send_headers(),
        up.wait(0.6),
        up.send(up.event({"error": {"message": "maximum context length is 8192"}})),
    )
    for api, view in env.send_all(env.add_scripts("08-late", late)).items():
        code = None if api == MESSAGES else "context_length_exceeded"
        assert (view.status, view.error_code, view.log["attempts"]) == (200, code, 1)
        assert view.error_type == ("" if api == RESPONSES else "invalid_request_error")
        assert view.error.startswith("prompt is too long: ") == (api == MESSAGES)


# ── 11: retry-after ───────────────────────────────────────────────────────────────────────────────────────────────


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
def test_11_gateway_waits_for_a_short_retry_after(env: GatewayStage, header: str, seconds: float) -> None:
    began = time.monotonic()
    view = env.send(env.add_scripts(f"11-{header}", busy(header), up.chat_stream("Hello")), MESSAGES)
    assert (view.status, view.text, view.log["findings"]) == (200, "Hello", {"asked-again": 1})
    assert seconds <= time.monotonic() - began < seconds + 1


@pytest.mark.parametrize("form", ["retry-after: 30", "retry-after-ms: 30000", "retry-after: {date}"])
@pytest.mark.parametrize("api", APIS)
def test_11_long_retry_after_is_forwarded_to_the_client(env: GatewayStage, api: str, form: str) -> None:
    header = form.format(date=formatdate(time.time() + 30, usegmt=True))
    view = env.send(env.add_scripts(f"11-{form}-{api}", busy(header)), api)
    assert (view.status, view.error_type, view.error) == (429, "rate_limit_error", "chat: slow down")
    assert 28 <= int(view.headers["retry-after"]) <= 30
    assert (view.log["attempts"], view.log["upstream_status"]) == (1, 429)


def test_11_fails_over_instead_of_a_long_wait(env: GatewayStage) -> None:
    env.add_scripts("11-first", busy("retry-after: 30"))
    env.add_scripts("second", up.chat_stream("Hello"))
    view = env.send("busy-then-second")
    assert (view.status, view.text, view.log["attempts"]) == (200, "Hello", 2)


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
def test_11_backoff_delay(attempt: int, error: UpstreamFailed, least: float, most: float) -> None:
    retries = Retries(attempts=9, backoff=2, longest=5)
    waits = [backoff(retries, attempt, error) for _ in range(50)]
    assert all(wait is not None and least <= wait <= most for wait in waits)
    assert (len(set(waits)) > 1) == (least < most), "jitter spreads the retries of many clients"


@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        (9, UpstreamFailed("the last one")),
        (1, UpstreamFailed("for good", retryable=False)),
        (1, UpstreamFailed("too long a wait", retry_after=5.1)),
    ],
)
def test_11_no_backoff_if_not_retryable(attempt: int, error: UpstreamFailed) -> None:
    assert backoff(Retries(attempts=9, backoff=2, longest=5), attempt, error) is None


# ── official SDKs ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sdk(env: GatewayStage) -> Iterator[dict[str, Any]]:
    """Return the create functions of the official SDKs, with their own retries disabled."""
    with (
        anthropic.Anthropic(api_key="none", base_url=env.gateway.base, max_retries=0) as claude,
        openai.OpenAI(api_key="none", base_url=f"{env.gateway.base}/v1", max_retries=0) as client,
    ):
        creators = (client.chat.completions.create, claude.messages.create, client.responses.create)
        yield dict(zip((CHAT, MESSAGES, RESPONSES), creators, strict=True))


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
def test_10_official_sdks_raise_the_usual_exceptions(
    env: GatewayStage, sdk: dict[str, Any], api: str, status: str, name: str
) -> None:
    model = env.add_scripts(f"10-{status}-{api}", up.send_response(status, b'{"error": {"message": "not so"}}'))
    module = anthropic if api == MESSAGES else openai
    with pytest.raises(module.APIStatusError) as raised:
        sdk[api](model=model, stream=True, **request_fields(api))
    kind = type(raised.value).__name__
    assert kind == name or (kind == "OverloadedError" and status.startswith("529"))
    assert raised.value.status_code == int(status[:3])
    assert "chat: not so" in raised.value.message
    assert raised.value.request_id == raised.value.response.headers["x-interlingua-id"]
    tries = 1 if status.startswith("4") and not status.startswith("429") else 2
    assert env.upstream.count(model) == tries
