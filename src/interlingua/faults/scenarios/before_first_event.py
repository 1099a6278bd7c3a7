"""Faults before the first event, when the gateway can still retry: rows 1, 2, 8, 10 and 11."""

from __future__ import annotations

import gzip

from interlingua.faults.checker.expectations import (
    check_any,
    check_refusal,
    check_response,
    describe_response,
    failed,
    judge_failure,
    judge_refusal,
    judge_reply,
    passed,
)
from interlingua.faults.checker.scenario import Scenario, ScriptFactory, TrialOutcome, Verdict
from interlingua.faults.checker.trial import Trial, TrialResponse
from interlingua.faults.scenarios.helpers import STALL_SECONDS, fault, repeat_script, script_then_reply, stream_fault
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import (
    Script,
    reset,
    send_headers,
    send_pieces,
    send_response,
    stream_response,
    wait,
)

__all__ = ["SCENARIOS"]

JSON_TYPE = "application/json"
CONTEXT_ERROR_TEXT = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
)
HTML_PAGE = (
    b"<!doctype html><html><head><title>502 Bad Gateway</title><style>p {}</style></head><body>nginx</body></html>"
)


def _judge_waiting(response: TrialResponse, trial: Trial) -> Verdict:
    """Pass if the client receives keep-alives while it waits, or an error."""
    if not response.timed_out:
        return judge_failure(response, trial)
    received = response.body.strip()
    return (
        passed("the client receives keep-alives while it waits")
        if received
        else failed(f"no byte within {response.elapsed:.0f} s")
    )


def _judge_context_error(response: TrialResponse, trial: Trial) -> Verdict:
    """Pass if agents recognise the error: Claude Code searches for words, Codex for a code."""
    verdict = judge_failure(response, trial)
    if verdict.outcome is TrialOutcome.FAILED:
        return verdict
    if response.status not in (200, 400, 413):
        return failed(f"{describe_response(response)}: clients will retry")
    recognisable = "prompt is too long" in response.error.lower() or response.error_code == "context_length_exceeded"
    recognisable |= "maximum context length" in response.error
    return (
        passed(f"{response.status}, and agents recognise the reason")
        if recognisable
        else failed(f"{describe_response(response)}: agents do not recognise the reason")
    )


def _judge_retry_after(response: TrialResponse, trial: Trial) -> Verdict:
    verdict = judge_failure(response, trial)
    if verdict.outcome is TrialOutcome.FAILED or response.status != 429:
        return verdict if verdict.outcome is TrialOutcome.FAILED else failed(f"{describe_response(response)}; not 429")
    retry_after = response.headers.get("retry-after", "")
    return passed(f"429 with retry-after {retry_after}") if retry_after else failed("429, but retry-after is lost")


def _respond_with(status: str, body: bytes, type: str = JSON_TYPE, *headers: str) -> ScriptFactory:
    return repeat_script(lambda _: [send_response(status, body, type, *headers)])


def _respond_error(status: str, message: str, error_type: str, code: str | None = None) -> ScriptFactory:
    return repeat_script(lambda writer: [send_response(status, writer.error_body(message, error_type, code))])


def _rate_limited(writer: ReplyWriter, retry_after: str) -> Script:
    body = writer.error_body("slow down", "rate_limit_error")
    return [send_response("429 Too Many Requests", body, JSON_TYPE, f"retry-after: {retry_after}")]


def _gzip_error(writer: ReplyWriter) -> Script:
    body = gzip.compress(writer.error_body("It broke", "server_error"))
    return [send_response("500 Oh", body, JSON_TYPE, "content-encoding: gzip")]


def _huge_error(_: ReplyWriter) -> Script:
    return [send_headers("500 Oh", "text/plain", length=10_000_000), send_pieces([b"It broke. " * 10_000] * 100)]


def _judge_short_error(response: TrialResponse, trial: Trial) -> Verdict:
    if len(response.body) > 100_000:
        return failed(f"the client receives {len(response.body):,} bytes of it")
    return judge_refusal(*SERVER_ERROR_STATUSES)(response, trial)


SERVER_ERROR_STATUSES = (500, 502, 503, 504, 529)
EXPECT_RETRY = "The gateway retries and the client receives the reply; or an error on which the client retries."
SCENARIOS: list[Scenario] = [
    fault(
        1,
        "reset-once",
        "The first connection is reset before any header; the next one gets a reply.",
        EXPECT_RETRY,
        script_then_reply(lambda _: [reset()]),
        check_any(judge_reply, judge_failure),
    ),
    fault(
        1,
        "reset-ever",
        "Every connection is reset before any header.",
        "A few retries, then 5xx in the format of the client's API.",
        repeat_script(lambda _: [reset()]),
        check_refusal(*SERVER_ERROR_STATUSES),
    ),
    fault(
        1,
        "reset-ever-whole",
        "Every connection is reset before any header; the client requests a whole reply.",
        "A few retries, then 5xx in the format of the client's API.",
        repeat_script(lambda _: [reset()]),
        check_refusal(*SERVER_ERROR_STATUSES, stream=False),
    ),
    fault(
        2,
        "silence",
        "Headers with status 200, then no data.",
        "The client receives keep-alives, or an error in time.",
        repeat_script(lambda _: [send_headers(), wait(STALL_SECONDS)]),
        check_response(_judge_waiting),
    ),
    fault(
        2,
        "no-headers",
        "The upstream reads the request and never responds.",
        "The client receives keep-alives, or an error in time.",
        repeat_script(lambda _: [wait(STALL_SECONDS)]),
        check_response(_judge_waiting),
    ),
    stream_fault(
        8,
        "error-first",
        "Status 200, and the first event is an error: 503, overloaded.",
        "An error of that kind, as a status or an event, and nothing that looks like a successful reply.",
        repeat_script(lambda writer: stream_response(writer.error("Provider is down", "overloaded_error", 503))),
        check_refusal(*SERVER_ERROR_STATUSES, error_text="Provider is down"),
    ),
    stream_fault(
        8,
        "error-first-once",
        "As error-first, but a retry gets a reply.",
        EXPECT_RETRY,
        script_then_reply(lambda writer: stream_response(writer.error("Provider is down", "overloaded_error", 503))),
        check_any(judge_reply, judge_failure),
    ),
    fault(
        10,
        "400-json",
        "400 with a message.",
        "400 with the message, and no retry.",
        _respond_error("400 Bad Request", "temperature must be below 2", "invalid_request_error"),
        check_refusal(400, error_text="temperature must be below 2", max_requests=1),
    ),
    fault(
        10,
        "401-json",
        "401: the gateway's key is invalid.",
        "An error with that message, and no retry.",
        _respond_error("401 Unauthorized", "Incorrect API key provided", "authentication_error"),
        check_refusal(401, 403, 500, 502, error_text="Incorrect API key", max_requests=1),
    ),
    fault(
        10,
        "502-page",
        "502 with an HTML page.",
        "5xx in the format of the client's API, without the page.",
        _respond_with("502 Bad Gateway", HTML_PAGE, "text/html"),
        check_refusal(*SERVER_ERROR_STATUSES),
    ),
    fault(
        10,
        "503-empty",
        "503 without a body.",
        "5xx in the format of the client's API.",
        _respond_with("503 Service Unavailable", b"", "text/plain"),
        check_refusal(*SERVER_ERROR_STATUSES),
    ),
    fault(
        10,
        "500-gzip",
        "500 with a message that is compressed although that was not requested.",
        "5xx with the message.",
        repeat_script(_gzip_error),
        check_refusal(*SERVER_ERROR_STATUSES, error_text="It broke"),
    ),
    fault(
        10,
        "500-huge",
        "500 with ten megabytes of text.",
        "5xx with a short message.",
        repeat_script(_huge_error),
        check_response(_judge_short_error),
        alone=True,
    ),
    fault(
        10,
        "400-too-long",
        "400: the prompt exceeds the model's context window.",
        "400 with a message by which agents recognise that they must shorten the prompt.",
        _respond_error("400 Bad Request", CONTEXT_ERROR_TEXT, "invalid_request_error", "context_length_exceeded"),
        check_response(_judge_context_error),
    ),
    fault(
        11,
        "429-then-well",
        "429 with a retry-after of one second, then a reply.",
        "The gateway waits and retries, or forwards 429 with the header.",
        script_then_reply(lambda writer: _rate_limited(writer, "1")),
        check_any(judge_reply, _judge_retry_after),
    ),
    fault(
        11,
        "429-long",
        "429 with a retry-after of ten minutes.",
        "429 with the header, immediately.",
        repeat_script(lambda writer: _rate_limited(writer, "600")),
        check_response(_judge_retry_after),
    ),
]
