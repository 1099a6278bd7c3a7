"""Requests that no SDK would send: rows 21 and 23. The upstream does nothing wrong."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from typing import Any

from interlingua.faults.apis import MESSAGES_PATH, past_call_fields
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.expectations import describe_response, failed, judge_reply, passed, verify_still_serving
from interlingua.faults.checker.scenario import Scenario, ScenarioCheck, TrialOutcome, Verdict
from interlingua.faults.checker.trial import Trial, TrialResponse
from interlingua.faults.scenarios.helpers import fault, healthy_upstream

__all__ = ["SCENARIOS"]

MIB = 1024 * 1024


# ── 21: odd HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────


def _judge_reply_or_refusal(response: TrialResponse, trial: Trial) -> Verdict:
    """A reply, or a refusal that says so."""
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
        return failed("HTTP/1.0 was asked, and the answer is in chunks")
    return _judge_reply_or_refusal(response, trial)


def _check_pipelined(trial: Trial) -> Verdict:
    body = trial.body(stream=False)
    first, last = trial.build_request(body, connection="keep-alive"), trial.build_request(body)
    with trial.open_connection(first + last) as sock:
        raw, complete = client.read_response(sock, trial.target.timeout, response_count=2)
    response_count = raw.count(b"HTTP/1.1 ")
    if not complete:
        return failed(f"no end within {trial.target.timeout:.0f} s, behind {response_count} answers")
    if response_count == 2:
        return passed("both requests are answered")
    response = trial.response_from(client.parse_response(raw))
    return (
        passed(f"refused with {response.status}")
        if response.status >= 400
        else failed(f"{response_count} answers to two requests")
    )


def _check_expect_continue(trial: Trial) -> Verdict:
    body = trial.body()
    head = trial.build_request(body, expect="100-continue")[: -len(body)]
    with trial.open_connection(head) as sock:
        sock.settimeout(5)
        try:
            first = sock.recv(1 << 16)
        except TimeoutError:
            return failed("the client waits for 100 Continue, and nothing comes")
        if not first.startswith(b"HTTP/1.1 100"):
            return _judge_reply_or_refusal(trial.response_from(client.parse_response(first)), trial)
        sock.sendall(body)
        raw, _ = client.read_response(sock, trial.target.timeout)
    return _judge_reply_or_refusal(trial.response_from(client.parse_response(first + raw)), trial)


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
        raw, complete = client.read_response(sock, trial.target.timeout)
    if not raw and complete:
        return passed("it counts as gone: a choice, and the client notices")
    return _judge_reply_or_refusal(trial.response_from(client.parse_response(raw)), trial)


# ── 23: bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_hostile_body(variant: str) -> ScenarioCheck:
    """A hostile body is taken or refused, and never a fault of the gateway's own."""

    def check(trial: Trial) -> Verdict:
        response = trial.send(trial.build_request(_HOSTILE_BODIES[variant](trial.body())), 60)
        verdict = judge_reply(response, trial)
        if 400 <= response.status < 500:
            verdict = passed(f"refused with {response.status}")
        elif verdict.outcome is TrialOutcome.FAILED and response.status >= 500:
            verdict = failed(f"{describe_response(response)}: a fault of the client's, told as the server's")
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
    """A conversation in which a tool was called with a number that no double has."""
    if api == MESSAGES_PATH:  # written as a value; elsewhere it is text
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
    return (
        passed("its digits are the same")
        if str(LARGE_INTEGER) in sent
        else failed("its digits have changed on the way")
    )


EXPECT_REPLY_OR_4XX = "A reply, or a clean 4xx."
EXPECT_NO_SERVER_ERROR = "Taken, or refused with 4xx; never a fault of the gateway's own."
SCENARIOS: list[Scenario] = [
    fault(
        21,
        "http-10",
        "The client speaks HTTP/1.0.",
        f"{EXPECT_REPLY_OR_4XX} No chunks.",
        healthy_upstream,
        _check_http_10,
    ),
    fault(
        21,
        "pipelined",
        "Two requests at once on one connection.",
        "Both are answered, in their order.",
        healthy_upstream,
        _check_pipelined,
    ),
    fault(
        21,
        "expect-continue",
        "The client waits for 100 Continue before its body.",
        "It is told to go on.",
        healthy_upstream,
        _check_expect_continue,
    ),
    fault(
        21,
        "chunked-request",
        "The client sends its body in chunks.",
        EXPECT_REPLY_OR_4XX,
        healthy_upstream,
        _check_chunked,
    ),
    fault(21, "gzip-request", "The client packs its body.", EXPECT_REPLY_OR_4XX, healthy_upstream, _check_gzip),
    fault(
        21,
        "half-closed",
        "The client closes its half of the connection behind the request.",
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
        "JSON with ten thousand levels.",
        EXPECT_NO_SERVER_ERROR,
        healthy_upstream,
        _check_hostile_body("deep"),
        alone=True,
    ),
    fault(
        23, "nan", "A number that is none: NaN.", EXPECT_NO_SERVER_ERROR, healthy_upstream, _check_hostile_body("nan")
    ),
    fault(
        23,
        "half-character",
        "Half of an emoji in a text.",
        EXPECT_NO_SERVER_ERROR,
        healthy_upstream,
        _check_hostile_body("half"),
    ),
    fault(23, "broken-json", "JSON that breaks off.", "4xx.", healthy_upstream, _check_hostile_body("broken")),
    fault(23, "no-object", "JSON that is no object.", "4xx.", healthy_upstream, _check_hostile_body("list")),
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
        f"A past call with the number {LARGE_INTEGER}, which no double has.",
        "It keeps its digits.",
        healthy_upstream,
        _check_digits,
    ),
]
