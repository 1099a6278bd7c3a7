"""What a client must see, in words that rows share. Each function is, or makes, the check of a scenario."""

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
    """Asks in the usual way, and judges what came."""
    return lambda trial: judge(trial.send_request(**request_options), trial)


def describe_response(response: TrialResponse) -> str:
    """What it was, in few words."""
    if not response.status:
        return "no answer" if response.timed_out else f"no answer: {response.error or 'the connection was closed'}"
    if response.status >= 400:
        return f"{response.status}: {response.error[:100]}"
    summary = (
        f"text {_quote_short(response.text)}, calls {_quote_short(str(response.calls))}, stop {response.stop or 'none'}"
    )
    return summary + (f", error {response.error[:80]!r}" if response.error else "")


def _quote_short(text: str) -> str:
    return repr(text) if len(text) < 60 else f"{text[:40]!r}… ({len(text)} characters)"


# ── replies that are to come through ──────────────────────────────────────────────────────────────────────────────

CALL_STOP_REASONS = {CHAT_PATH: "tool_calls", MESSAGES_PATH: "tool_use", RESPONSES_PATH: "completed"}
TEXT_STOP_REASONS = {CHAT_PATH: "stop", MESSAGES_PATH: "end_turn", RESPONSES_PATH: "completed"}


def judge_reply(
    response: TrialResponse, trial: Trial, text: str | None = "Hello", calls: Sequence[tuple[str, Any]] = ()
) -> Verdict:
    """The reply came through: this text, these calls with these arguments, and an end as its API has it."""
    if problem := _incomplete_reason(response):
        return failed(problem)
    if text is not None and response.text.strip() != text.strip():
        return failed(f"the text is {_quote_short(response.text)} and not {_quote_short(text)}")
    if problem := _call_mismatch(response, calls):
        return failed(problem)
    stop = (CALL_STOP_REASONS if calls else TEXT_STOP_REASONS)[trial.api]
    if response.stop != stop:
        return failed(f"it stops with {response.stop or 'nothing'} and not with {stop}")
    if response.violations:
        return failed(response.violations[0])
    return passed("the reply came through")


def _incomplete_reason(response: TrialResponse) -> str:
    if response.timed_out:
        return f"no end within {response.elapsed:.0f} s; {describe_response(response)}"
    if response.status != 200 or response.error:
        return describe_response(response)
    if response.truncated:
        return f"the answer breaks off; {describe_response(response)}"
    return "" if response.ended else f"it ends without an end; {describe_response(response)}"


def _call_mismatch(response: TrialResponse, calls: Sequence[tuple[str, Any]]) -> str:
    if response.open_call:
        return f"the call of {response.open_call[0]} was never closed"
    try:
        received = [(name, json.loads(args)) for name, args in response.calls]
    except ValueError:
        return f"arguments that are no JSON: {_quote_short(str(response.calls))}"
    return (
        ""
        if received == list(calls)
        else f"the calls are {_quote_short(str(received))} and not {_quote_short(str(list(calls)))}"
    )


def check_reply(
    text: str | None = "Hello", calls: Sequence[tuple[str, Any]] = (), **request_options: Any
) -> ScenarioCheck:
    return check_response(lambda response, trial: judge_reply(response, trial, text, calls), **request_options)


# ── replies that are to fail, and must not look well ──────────────────────────────────────────────────────────────


def judge_failure(response: TrialResponse, _: Trial, text: str = "", calls: Sequence[tuple[str, Any]] = ()) -> Verdict:
    """The client notices: an error of its API, or a connection that breaks off. What it would run is whole."""
    if response.timed_out:
        return failed(f"no end within {response.elapsed:.0f} s; {describe_response(response)}")
    extra = [call for call in response.calls if not _is_expected_call(call, calls)]
    if extra and not response.error and not response.truncated:
        return failed(f"the client runs {extra[0][0]} with {_quote_short(extra[0][1])}")
    if response.ended:
        return failed(f"it ends as if all were well; {describe_response(response)}")
    if not response.error and not response.truncated:
        return failed(f"it ends without a word of what went wrong; {describe_response(response)}")
    if extra:
        return failed(f"the call of {extra[0][0]} is closed with {_quote_short(extra[0][1])}, an error follows")
    if response.status == 200 and text and not response.text.startswith(text):
        return failed(f"what was said before is lost: {describe_response(response)}")
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
        return "the connection is closed without an answer, which clients notice"
    if response.status >= 400:
        return f"{response.status} in its API's words"
    return "an error in its API's words" if response.error else "the connection breaks off, which clients notice"


def check_failure(text: str = "", calls: Sequence[tuple[str, Any]] = (), **request_options: Any) -> ScenarioCheck:
    return check_response(lambda response, trial: judge_failure(response, trial, text, calls), **request_options)


def check_stall(text: str = "", calls: Sequence[tuple[str, Any]] = ()) -> ScenarioCheck:
    """As `fails`. Whoever shows that it waits may have more patience than this client."""

    def judge(response: TrialResponse, trial: Trial) -> Verdict:
        if response.timed_out and response.is_kept_alive:
            reason = f"it still waits after {response.elapsed:.0f} s (keep-alive comments come): give more --patience"
            return Verdict(TrialOutcome.NOT_JUDGED, reason)
        return judge_failure(response, trial, text, calls)

    return check_response(judge)


def judge_refusal(*statuses: int, error_text: str = "", max_requests: int | None = None) -> Judge:
    """An error of one of these statuses, or the like within a stream, in its API's words."""

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
            return failed(f"{describe_response(response)}: what the upstream said is lost")
        if max_requests is not None and (count := len(trial.upstream_requests())) > max_requests:
            return failed(f"{describe_response(response)}, and the upstream was asked {count} times")
        return verdict

    return judge


def check_refusal(
    *statuses: int, error_text: str = "", max_requests: int | None = None, **request_options: Any
) -> ScenarioCheck:
    return check_response(judge_refusal(*statuses, error_text=error_text, max_requests=max_requests), **request_options)


def check_any(*judges: Judge, **request_options: Any) -> ScenarioCheck:
    """One answer, right if any of these calls it so. The first one says what is wrong."""

    def judge(response: TrialResponse, trial: Trial) -> Verdict:
        verdicts = [candidate(response, trial) for candidate in judges]
        return next((one for one in verdicts if one.outcome is TrialOutcome.PASSED), verdicts[0])

    return check_response(judge, **request_options)


def verify_still_serving(verdict: Verdict, trial: Trial) -> Verdict:
    """And the gateway goes on."""
    retrial = Trial(trial.target, trial.api, "fault-00-none", trial.run_id)
    response = retrial.send(retrial.build_request(retrial.body()))
    return (
        verdict
        if judge_reply(response, retrial).outcome is TrialOutcome.PASSED
        else failed(f"it does not go on: {describe_response(response)}")
    )
