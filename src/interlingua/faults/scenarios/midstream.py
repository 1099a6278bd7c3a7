"""Behind the first word, when nothing can be asked again: rows 3 to 7, 9 and 13."""

from __future__ import annotations

from typing import Any

from interlingua.faults.apis import CHAT_PATH
from interlingua.faults.checker.expectations import (
    check_any,
    check_failure,
    check_reply,
    check_stall,
    failed,
    judge_failure,
    judge_reply,
    passed,
)
from interlingua.faults.checker.scenario import Scenario, TrialOutcome, Verdict
from interlingua.faults.checker.trial import Trial, TrialResponse
from interlingua.faults.scenarios.helpers import (
    CHAT_ONLY,
    INTRO_TEXT,
    PARIS_ARGUMENTS,
    STALL_SECONDS,
    WEATHER_CALL,
    fault,
    repeat_script,
    stream_fault,
)
from interlingua.faults.upstream import chat_chunks as chat
from interlingua.faults.upstream.reply_writers import OUTPUT_TOKENS, ChatReplyWriter, ReplyWriter
from interlingua.faults.upstream.script import Script, send, stream_response, stream_then_reset, wait

__all__ = ["SCENARIOS"]

TOOL_NAME, PARTIAL_ARGUMENTS = "get_weather", '{"city": "Pa'
EXPECT_CALL_DROPPED = "An error of the client's API. What was said stays; the call is not closed, and nobody runs it."
EXPECT_ERROR_AFTER_TEXT = "An error of the client's API behind the text; it does not end as if all were well."


def _text_events(writer: ReplyWriter) -> bytes:
    return writer.begin() + writer.text("Let me", " see.")


def _partial_call_events(writer: ReplyWriter) -> bytes:
    """Text, a call that is whole, and the beginning of another."""
    return (
        _text_events(writer)
        + writer.call(TOOL_NAME, PARIS_ARGUMENTS[:4], PARIS_ARGUMENTS[4:])
        + writer.call(TOOL_NAME, PARTIAL_ARGUMENTS)
    )


def _chat_script(data: bytes) -> Script:
    return stream_response(chat.ROLE + chat.delta(INTRO_TEXT) + data)


def _truncated_reply(writer: ReplyWriter) -> Script:
    if writer.is_streaming:
        return stream_then_reset(_partial_call_events(writer))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
    return [send(head + b'{"id": "x", "choices": [{"index": 0, "message": {"role": "assis'), wait(0.05)]


def _judge_usage(response: TrialResponse, trial: Trial) -> Verdict:
    verdict = judge_reply(response, trial, INTRO_TEXT)
    if verdict.outcome is TrialOutcome.PASSED and response.output_tokens != OUTPUT_TOKENS:
        return failed(f"the usage says {response.output_tokens} tokens and not {OUTPUT_TOKENS}")
    return verdict


def _judge_bad_event_skipped(response: TrialResponse, trial: Trial) -> Verdict:
    verdict = judge_reply(response, trial, "Hello")
    return passed("the event that is no JSON is left out") if verdict.outcome is TrialOutcome.PASSED else verdict


FINISH_EVENT = chat.delta(finish="stop")
USAGE_OPTION = {"stream_options": {"include_usage": True}}


def _check_usage(trial: Trial) -> Verdict:
    options: dict[str, Any] = USAGE_OPTION if trial.api == CHAT_PATH else {}
    return _judge_usage(trial.send_request(**options), trial)


MALFORMED_EVENT = b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "functi\n\n'
SCENARIOS: list[Scenario] = [
    stream_fault(
        3,
        "stall-in-text",
        "After some text the upstream says nothing any more.",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(lambda say: [*stream_response(_text_events(say)), wait(STALL_SECONDS)]),
        check_stall(INTRO_TEXT),
    ),
    stream_fault(
        3,
        "stall-in-call",
        "In the middle of a call's arguments the upstream says nothing any more.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda say: [*stream_response(_partial_call_events(say)), wait(STALL_SECONDS)]),
        check_stall(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        4,
        "reset-inside-call",
        "The connection is reset in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda say: stream_then_reset(_partial_call_events(say))),
        check_failure(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        4,
        "reset-in-text",
        "The connection is reset in the middle of a text.",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(lambda say: stream_then_reset(_text_events(say))),
        check_failure(INTRO_TEXT),
    ),
    fault(
        4,
        "cut-whole-reply",
        "A whole reply breaks off before the length that it said.",
        "5xx in the client's words.",
        repeat_script(_truncated_reply),
        check_failure(stream=False),
    ),
    stream_fault(
        5,
        "end-inside-call",
        "The stream ends properly in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda say: stream_response(_partial_call_events(say))),
        check_failure(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        5,
        "end-in-text",
        "The stream ends properly behind a text, without a finish and without [DONE].",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(lambda say: stream_response(_text_events(say))),
        check_failure(INTRO_TEXT),
    ),
    stream_fault(
        5,
        "no-done",
        "There is a finish reason, but no [DONE].",
        "The reply is whole: it ends well.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT)),
        check_reply(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        6,
        "done-without-finish",
        "[DONE] behind a text, without a finish reason.",
        "The reply ends with the reason that its content has.",
        repeat_script(lambda _: _chat_script(chat.DONE)),
        check_reply(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        6,
        "done-behind-call",
        "[DONE] behind a whole call, without a finish reason.",
        "The call is run: the reply ends as one with calls does.",
        repeat_script(lambda _: _chat_script(chat.call(PARIS_ARGUMENTS, name=TOOL_NAME) + chat.DONE)),
        check_reply(INTRO_TEXT, [WEATHER_CALL]),
        **CHAT_ONLY,
    ),
    stream_fault(
        6,
        "done-inside-call",
        "[DONE] in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda _: _chat_script(chat.call(PARTIAL_ARGUMENTS, name=TOOL_NAME) + chat.DONE)),
        check_failure(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        7,
        "finish-twice",
        "Two finish reasons: first `stop`, then `length`.",
        "The first one counts, and the client hears only that.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT + chat.delta(finish="length") + chat.DONE)),
        check_reply(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        7,
        "text-behind-finish",
        "Text behind the finish reason.",
        "The reply was over: it is not told, or not behind the end.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT + chat.delta(" late") + chat.DONE)),
        check_any(
            lambda heard, play: judge_reply(heard, play, INTRO_TEXT),
            lambda heard, play: judge_reply(heard, play, f"{INTRO_TEXT} late"),
        ),
        **CHAT_ONLY,
    ),
    stream_fault(
        7,
        "usage-behind-finish",
        "The usage comes in a chunk behind the finish reason.",
        "The client gets it.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT + ChatReplyWriter().usage() + chat.DONE)),
        _check_usage,
        **CHAT_ONLY,
    ),
    stream_fault(
        9,
        "error-in-text",
        "An error in the middle of a text: overloaded.",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(
            lambda say: stream_response(_text_events(say) + say.error("Overloaded", "overloaded_error", 529))
        ),
        check_failure(INTRO_TEXT),
    ),
    stream_fault(
        9,
        "error-inside-call",
        "An error in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(
            lambda say: stream_response(_partial_call_events(say) + say.error("Overloaded", "overloaded_error", 529))
        ),
        check_failure(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        13,
        "bad-event",
        "One event in the middle of a text is no JSON.",
        "It is left out and the rest goes on; or an error.",
        repeat_script(
            lambda say: stream_response(say.begin() + say.text("Hel") + b"data: {oops\n\n" + say.text("lo") + say.end())
        ),
        check_any(_judge_bad_event_skipped, judge_failure),
    ),
    stream_fault(
        13,
        "bad-event-inside-call",
        "One event in the middle of a call's arguments is no JSON: a piece of them is lost.",
        "An error. The call has a hole, and nobody runs it.",
        repeat_script(
            lambda _: _chat_script(
                chat.call('{"city": "P', name=TOOL_NAME)
                + MALFORMED_EVENT
                + chat.call('is"}')
                + chat.delta(finish="tool_calls")
                + chat.DONE
            )
        ),
        check_failure(INTRO_TEXT),
        **CHAT_ONLY,
    ),
]
