"""Expectations that scenarios share. `judge_*` rate a response; `check_*` return the check of a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH
from interlingua.faults.checker.scenario import ScenarioCheck, TrialOutcome, Verdict
from interlingua.faults.checker.trial import Trial, TrialResponse

__all__ = [
    "Judge",
    "check_any",
    "check_failure",
    "check_refusal",
    "check_reply",
    "check_response",
    "check_stall",
    "describe_response",
    "failed",
    "judge_failure",
    "judge_refusal",
    "judge_reply",
    "passed",
    "verify_still_serving",
]

Judge = Callable[[TrialResponse, Trial], Verdict]


def passed(reason: str) -> Verdict:
    return Verdict(TrialOutcome.PASSED, reason)


def failed(reason: str) -> Verdict:
    return Verdict(TrialOutcome.FAILED, reason)


def check_response(judge: Judge, **request_options: Any) -> ScenarioCheck:
    """Return a check that sends a normal request and rates the response."""
    return lambda trial: judge(trial.send_request(**request_options), trial)


def describe_response(response: TrialResponse) -> str:
    """Return a short description of the response."""
    if not response.status:
        return "no response" if response.timed_out else f"no response: {response.error or 'the connection was closed'}"
    if response.status >= 400:
        return f"{response.status}: {response.error[:100]}"
    summary = (
        f"text {_quote_short(response.text)}, calls {_quote_short(str(response.calls))}, stop {response.stop or 'none'}"
    )
    return summary + (f", error {response.error[:80]!r}" if response.error else "")


def _quote_short(text: str) -> str:
    return repr(text) if len(text) < 60 else f"{text[:40]!r}… ({len(text)} characters)"


# ── expected: a reply ─────────────────────────────────────────────────────────────────────────────────────────────────

CALL_STOP_REASONS = {CHAT_PATH: "tool_calls", MESSAGES_PATH: "tool_use", RESPONSES_PATH: "completed"}
TEXT_STOP_REASONS = {CHAT_PATH: "stop", MESSAGES_PATH: "end_turn", RESPONSES_PATH: "completed"}


def judge_reply(
    response: TrialResponse, trial: Trial, text: str | None = "Hello", calls: Sequence[tuple[str, Any]] = ()
) -> Verdict:
    """Rate a response that must be a reply with this text, these calls and the right stop reason.

    Args:
        response: The response.
        trial: The trial, for its API.
        text: Expected text; None if any text is right.
        calls: Expected names and decoded arguments.
    """
    if problem := _incomplete_reason(response):
        return failed(problem)
    if text is not None and response.text.strip() != text.strip():
        return failed(f"the text is {_quote_short(response.text)} instead of {_quote_short(text)}")
    if problem := _call_mismatch(response, calls):
        return failed(problem)
    stop = (CALL_STOP_REASONS if calls else TEXT_STOP_REASONS)[trial.api]
    if response.stop != stop:
        return failed(f"the stop reason is {response.stop or 'missing'} instead of {stop}")
    if response.violations:
        return failed(response.violations[0])
    return passed("the client receives the reply")


def _incomplete_reason(response: TrialResponse) -> str:
    if response.timed_out:
        return f"not finished within {response.elapsed:.0f} s; {describe_response(response)}"
    if response.status != 200 or response.error:
        return describe_response(response)
    if response.truncated:
        return f"the response is truncated; {describe_response(response)}"
    return "" if response.ended else f"the response has no regular end; {describe_response(response)}"


def _call_mismatch(response: TrialResponse, calls: Sequence[tuple[str, Any]]) -> str:
    if response.open_call:
        return f"the call of {response.open_call[0]} is never closed"
    try:
        received = [(name, json.loads(args)) for name, args in response.calls]
    except ValueError:
        return f"arguments are not JSON: {_quote_short(str(response.calls))}"
    return (
        ""
        if received == list(calls)
        else f"the calls are {_quote_short(str(received))} instead of {_quote_short(str(list(calls)))}"
    )


def check_reply(
    text: str | None = "Hello", calls: Sequence[tuple[str, Any]] = (), **request_options: Any
) -> ScenarioCheck:
    return check_response(lambda response, trial: judge_reply(response, trial, text, calls), **request_options)


# ── expected: an error ────────────────────────────────────────────────────────────────────────────────────────────────


def judge_failure(response: TrialResponse, _: Trial, text: str = "", calls: Sequence[tuple[str, Any]] = ()) -> Verdict:
    """Rate a response that must report a failure: an error of the client's API, or a truncated connection.

    Args:
        response: The response.
        text: Text that must precede the error.
        calls: Complete calls before the error; the client must not run others.
    """
    if response.timed_out:
        return failed(f"not finished within {response.elapsed:.0f} s; {describe_response(response)}")
    extra = [call for call in response.calls if not _is_expected_call(call, calls)]
    if extra and not response.error and not response.truncated:
        return failed(f"the client runs {extra[0][0]} with {_quote_short(extra[0][1])}")
    if response.ended:
        return failed(f"the response looks successful; {describe_response(response)}")
    if not response.error and not response.truncated:
        return failed(f"the response ends without an error; {describe_response(response)}")
    if extra:
        return failed(f"the call of {extra[0][0]} is closed with {_quote_short(extra[0][1])}, then an error follows")
    if response.status == 200 and text and not response.text.startswith(text):
        return failed(f"the text before the error is lost: {describe_response(response)}")
    if response.error and response.violations:
        return failed(response.violations[0])
    return passed(_failure_form(response))


def _is_expected_call(call: tuple[str, str], calls: Sequence[tuple[str, Any]]) -> bool:
    try:
        return (call[0], json.loads(call[1])) in list(calls)
    except ValueError:
        return False


def _failure_form(response: TrialResponse) -> str:
    if not response.status:
        return "the connection is closed without a response, which clients detect"
    if response.status >= 400:
        return f"{response.status} in the format of the API"
    return (
        "an error in the format of the API"
        if response.error
        else "the connection is closed early, which clients detect"
    )


def check_failure(text: str = "", calls: Sequence[tuple[str, Any]] = (), **request_options: Any) -> ScenarioCheck:
    return check_response(lambda response, trial: judge_failure(response, trial, text, calls), **request_options)


def check_stall(text: str = "", calls: Sequence[tuple[str, Any]] = ()) -> ScenarioCheck:
    """Like `check_failure`. A gateway that is still sending keep-alives is not judged: its timeout may be longer."""

    def judge(response: TrialResponse, trial: Trial) -> Verdict:
        if response.timed_out and response.is_kept_alive:
            reason = f"still waiting after {response.elapsed:.0f} s (with keep-alives): increase --patience"
            return Verdict(TrialOutcome.NOT_JUDGED, reason)
        return judge_failure(response, trial, text, calls)

    return check_response(judge)


def judge_refusal(*statuses: int, error_text: str = "", max_requests: int | None = None) -> Judge:
    """Return a judge that expects an error in the API's format, with one of these statuses or within a stream.

    Args:
        statuses: Accepted statuses.
        error_text: Text that the error message must contain.
        max_requests: Maximum number of requests to the upstream.
    """

    def judge(response: TrialResponse, trial: Trial) -> Verdict:
        verdict = judge_failure(response, trial)
        if verdict.outcome is not TrialOutcome.PASSED or not response.error:
            return (
                verdict
                if response.error or verdict.outcome is TrialOutcome.FAILED
                else failed(describe_response(response))
            )
        if response.status != 200 and response.status not in statuses:
            return failed(f"{describe_response(response)}; not {' or '.join(map(str, statuses))}")
        if error_text and error_text.lower() not in response.error.lower():
            return failed(f"{describe_response(response)}: the message of the upstream is lost")
        if max_requests is not None and (count := len(trial.upstream_requests())) > max_requests:
            return failed(f"{describe_response(response)}, and the upstream received {count} requests")
        return verdict

    return judge


def check_refusal(
    *statuses: int, error_text: str = "", max_requests: int | None = None, **request_options: Any
) -> ScenarioCheck:
    return check_response(judge_refusal(*statuses, error_text=error_text, max_requests=max_requests), **request_options)


def check_any(*judges: Judge, **request_options: Any) -> ScenarioCheck:
    """Return a check that passes if any of these judges passes. Otherwise the first judge's verdict is returned."""

    def judge(response: TrialResponse, trial: Trial) -> Verdict:
        verdicts = [candidate(response, trial) for candidate in judges]
        return next((verdict for verdict in verdicts if verdict.outcome is TrialOutcome.PASSED), verdicts[0])

    return check_response(judge, **request_options)


def verify_still_serving(verdict: Verdict, trial: Trial) -> Verdict:
    """Return the verdict if the gateway still handles a normal request, else a failure."""
    retrial = Trial(trial.target, trial.api, "fault-00-none", trial.run_id)
    response = retrial.send(retrial.build_request(retrial.body()))
    return (
        verdict
        if judge_reply(response, retrial).outcome is TrialOutcome.PASSED
        else failed(f"the gateway fails afterwards: {describe_response(response)}")
    )
