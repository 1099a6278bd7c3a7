"""Requests that no SDK would send: rows 21 and 23. The upstream has no fault."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from typing import Any

from interlingua.faults.apis import MESSAGES_PATH, past_call_fields
from interlingua.faults.checker import raw_client
from interlingua.faults.checker.expectations import describe_response, failed, judge_reply, passed, verify_still_serving
from interlingua.faults.checker.scenario import Scenario, ScenarioCheck, TrialOutcome, Verdict
from interlingua.faults.checker.trial import Trial, TrialResponse
from interlingua.faults.scenarios.helpers import fault, healthy_upstream

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024


# ── 21: unusual HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────


def _judge_reply_or_refusal(response: TrialResponse, trial: Trial) -> Verdict:
    """Pass for a reply, or a proper error status."""
    verdict = judge_reply(response, trial)
    if verdict.outcome is TrialOutcome.PASSED:
        return verdict
    if 400 <= response.status < 500 or response.status in (501, 505):
        return passed(f"refused with {response.status}")
    return verdict


def _check_http_10(trial: Trial) -> Verdict:
    data = trial.build_request(trial.body()).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)
    response = trial.send(data)
    if response.headers.get("transfer-encoding"):
        return failed("the response to an HTTP/1.0 request is chunked")
    return _judge_reply_or_refusal(response, trial)


def _check_pipelined(trial: Trial) -> Verdict:
    body = trial.body(stream=False)
    first, last = trial.build_request(body, connection="keep-alive"), trial.build_request(body)
    with trial.open_connection(first + last) as sock:
        raw, complete = raw_client.read_response(sock, trial.target.timeout, response_count=2)
    response_count = raw.count(b"HTTP/1.1 ")
    if not complete:
        return failed(f"not finished within {trial.target.timeout:.0f} s, after {response_count} responses")
    if response_count == 2:
        return passed("both requests get a response")
    response = trial.response_from(raw_client.parse_response(raw))
    return (
        passed(f"refused with {response.status}")
        if response.status >= 400
        else failed(f"{response_count} responses to two requests")
    )


def _check_expect_continue(trial: Trial) -> Verdict:
    body = trial.body()
    head = trial.build_request(body, expect="100-continue")[: -len(body)]
    with trial.open_connection(head) as sock:
        sock.settimeout(5)
        try:
            first = sock.recv(1 << 16)
        except TimeoutError:
            return failed("the client waits for 100 Continue and receives nothing")
        if not first.startswith(b"HTTP/1.1 100"):
            return _judge_reply_or_refusal(trial.response_from(raw_client.parse_response(first)), trial)
        sock.sendall(body)
        raw, _ = raw_client.read_response(sock, trial.target.timeout)
    return _judge_reply_or_refusal(trial.response_from(raw_client.parse_response(first + raw)), trial)


def _check_chunked(trial: Trial) -> Verdict:
    body = trial.body()
    length = f"content-length: {len(body)}".encode()
    head = trial.build_request(body).partition(b"\r\n\r\n")[0].replace(length, b"transfer-encoding: chunked")
    half = len(body) // 2
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:half], body[half:]))
    return _judge_reply_or_refusal(trial.send(head + b"\r\n\r\n" + pieces + b"0\r\n\r\n"), trial)


def _check_gzip(trial: Trial) -> Verdict:
    return _judge_reply_or_refusal(
        trial.send(trial.build_request(gzip.compress(trial.body()), content_encoding="gzip")), trial
    )


def _check_half_closed(trial: Trial) -> Verdict:
    with trial.open_connection(trial.build_request(trial.body())) as sock:
        sock.shutdown(socket.SHUT_WR)
        raw, complete = raw_client.read_response(sock, trial.target.timeout)
    if not raw and complete:
        return passed("treated as a disconnect, which is acceptable because the client detects it")
    return _judge_reply_or_refusal(trial.response_from(raw_client.parse_response(raw)), trial)


# ── 23: hostile bodies ────────────────────────────────────────────────────────────────────────────────────────────────


def _check_hostile_body(variant: str) -> ScenarioCheck:
    """Return a check that a hostile body is accepted or refused with 4xx, and never causes a 5xx."""

    def check(trial: Trial) -> Verdict:
        response = trial.send(trial.build_request(_HOSTILE_BODIES[variant](trial.body())), 60)
        verdict = judge_reply(response, trial)
        if 400 <= response.status < 500:
            verdict = passed(f"refused with {response.status}")
        elif verdict.outcome is TrialOutcome.FAILED and response.status >= 500:
            verdict = failed(f"{describe_response(response)}: a client error reported as a server error")
        return verify_still_serving(verdict, trial) if verdict.outcome is TrialOutcome.PASSED else verdict

    return check


def _metadata_suffix(text: bytes) -> bytes:
    return b', "metadata": {"a": ' + text + b"}}"


_HOSTILE_BODIES: dict[str, Callable[[bytes], bytes]] = {
    "large": lambda usual: usual[:-1] + _metadata_suffix(b'"' + b"x" * (48 * MIB) + b'"'),
    "deep": lambda usual: usual[:-1] + _metadata_suffix(b"[" * 10_000 + b"]" * 10_000),
    "nan": lambda usual: usual[:-1] + b', "temperature": NaN}',
    "half": lambda usual: usual[:-1] + b', "user": "a\\ud83d b"}',
    "broken": lambda usual: usual[: len(usual) // 2],
    "list": lambda _: b"[1, 2]",
    "latin": lambda usual: usual.replace(b'"hi"', b'"h\xff\xfe"'),
}
LARGE_INTEGER = 2**53 + 1


def _history_with_large_integer(api: str) -> dict[str, Any]:
    """Return a history with a call whose argument a 64-bit float cannot represent."""
    if api == MESSAGES_PATH:  # here arguments are JSON values; in the other APIs they are strings
        use = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"n": LARGE_INTEGER}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "sun"}
        turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return {"messages": [{"role": "user", "content": "hi"}, *turns]}
    return past_call_fields(api, "c1", json.dumps({"n": LARGE_INTEGER}))


def _check_digits(trial: Trial) -> Verdict:
    history = _history_with_large_integer(trial.api)
    response = trial.send_request(**history)
    if (verdict := judge_reply(response, trial)).outcome is TrialOutcome.FAILED:
        return verdict
    sent = json.dumps(trial.upstream_requests()[0]["body"])
    return passed("all digits are preserved") if str(LARGE_INTEGER) in sent else failed("the digits have changed")


EXPECT_REPLY_OR_4XX = "A reply, or a proper 4xx."
EXPECT_NO_SERVER_ERROR = "Accepted, or refused with 4xx; never an internal error of the gateway."
SCENARIOS: list[Scenario] = [
    fault(
        21,
        "http-10",
        "The client uses HTTP/1.0.",
        f"{EXPECT_REPLY_OR_4XX} No chunked encoding.",
        healthy_upstream,
        _check_http_10,
    ),
    fault(
        21,
        "pipelined",
        "Two pipelined requests on one connection.",
        "Both get a response, in order.",
        healthy_upstream,
        _check_pipelined,
    ),
    fault(
        21,
        "expect-continue",
        "The client waits for 100 Continue before it sends its body.",
        "The gateway sends 100 Continue.",
        healthy_upstream,
        _check_expect_continue,
    ),
    fault(
        21,
        "chunked-request",
        "The client sends its body with chunked encoding.",
        EXPECT_REPLY_OR_4XX,
        healthy_upstream,
        _check_chunked,
    ),
    fault(
        21,
        "gzip-request",
        "The client compresses its body with gzip.",
        EXPECT_REPLY_OR_4XX,
        healthy_upstream,
        _check_gzip,
    ),
    fault(
        21,
        "half-closed",
        "The client closes its half of the connection after the request.",
        EXPECT_REPLY_OR_4XX,
        healthy_upstream,
        _check_half_closed,
    ),
    fault(
        23,
        "large-body",
        "A body of 48 MiB.",
        EXPECT_NO_SERVER_ERROR,
        healthy_upstream,
        _check_hostile_body("large"),
        alone=True,
    ),
    fault(
        23,
        "deep-json",
        "JSON nested ten thousand levels deep.",
        EXPECT_NO_SERVER_ERROR,
        healthy_upstream,
        _check_hostile_body("deep"),
        alone=True,
    ),
    fault(23, "nan", "NaN as a number.", EXPECT_NO_SERVER_ERROR, healthy_upstream, _check_hostile_body("nan")),
    fault(
        23,
        "half-character",
        "A lone surrogate in a text.",
        EXPECT_NO_SERVER_ERROR,
        healthy_upstream,
        _check_hostile_body("half"),
    ),
    fault(23, "broken-json", "Truncated JSON.", "4xx.", healthy_upstream, _check_hostile_body("broken")),
    fault(23, "no-object", "JSON that is not an object.", "4xx.", healthy_upstream, _check_hostile_body("list")),
    fault(
        23,
        "not-utf-8",
        "A body that is not UTF-8.",
        EXPECT_NO_SERVER_ERROR,
        healthy_upstream,
        _check_hostile_body("latin"),
    ),
    fault(
        23,
        "long-integer",
        f"A past call with the number {LARGE_INTEGER}, which a 64-bit float cannot represent.",
        "All digits are preserved.",
        healthy_upstream,
        _check_digits,
    ),
]
