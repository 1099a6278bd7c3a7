"""Faults after the first event, when the gateway can no longer retry: rows 3 to 7, 9 and 13."""

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
from interlingua.faults.upstream import chat_chunks
from interlingua.faults.upstream.reply_writers import OUTPUT_TOKENS, ChatReplyWriter, ReplyWriter
from interlingua.faults.upstream.script import Script, send, stream_response, stream_then_reset, wait

__all__ = ["SCENARIOS"]

TOOL_NAME, PARTIAL_ARGUMENTS = "get_weather", '{"city": "Pa'
EXPECT_CALL_DROPPED = (
    "An error in the format of the client's API after the text. The partial call is not closed, so no client runs it."
)
EXPECT_ERROR_AFTER_TEXT = "An error in the format of the client's API after the text. The reply does not look complete."


def _text_events(writer: ReplyWriter) -> bytes:
    return writer.begin() + writer.text("Let me", " see.")


def _partial_call_events(writer: ReplyWriter) -> bytes:
    """Return text, a complete call, and the beginning of another call."""
    return (
        _text_events(writer)
        + writer.call(TOOL_NAME, PARIS_ARGUMENTS[:4], PARIS_ARGUMENTS[4:])
        + writer.call(TOOL_NAME, PARTIAL_ARGUMENTS)
    )


def _chat_script(data: bytes) -> Script:
    return stream_response(chat_chunks.ROLE + chat_chunks.delta(INTRO_TEXT) + data)


def _truncated_reply(writer: ReplyWriter) -> Script:
    if writer.is_streaming:
        return stream_then_reset(_partial_call_events(writer))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
    return [send(head + b'{"id": "x", "choices": [{"index": 0, "message": {"role": "assis'), wait(0.05)]


def _judge_usage(response: TrialResponse, trial: Trial) -> Verdict:
    verdict = judge_reply(response, trial, INTRO_TEXT)
    if verdict.outcome is TrialOutcome.PASSED and response.output_tokens != OUTPUT_TOKENS:
        return failed(f"the usage is {response.output_tokens} tokens instead of {OUTPUT_TOKENS}")
    return verdict


def _judge_bad_event_skipped(response: TrialResponse, trial: Trial) -> Verdict:
    verdict = judge_reply(response, trial, "Hello")
    return passed("the malformed event is skipped") if verdict.outcome is TrialOutcome.PASSED else verdict


FINISH_EVENT = chat_chunks.delta(finish="stop")
USAGE_OPTION = {"stream_options": {"include_usage": True}}


def _check_usage(trial: Trial) -> Verdict:
    options: dict[str, Any] = USAGE_OPTION if trial.api == CHAT_PATH else {}
    return _judge_usage(trial.send_request(**options), trial)


MALFORMED_EVENT = b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "functi\n\n'
SCENARIOS: list[Scenario] = [
    stream_fault(
        3,
        "stall-in-text",
        "After some text the upstream sends nothing more.",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(lambda writer: [*stream_response(_text_events(writer)), wait(STALL_SECONDS)]),
        check_stall(INTRO_TEXT),
    ),
    stream_fault(
        3,
        "stall-in-call",
        "In the middle of a call's arguments the upstream sends nothing more.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda writer: [*stream_response(_partial_call_events(writer)), wait(STALL_SECONDS)]),
        check_stall(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        4,
        "reset-inside-call",
        "The connection is reset in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda writer: stream_then_reset(_partial_call_events(writer))),
        check_failure(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        4,
        "reset-in-text",
        "The connection is reset in the middle of a text.",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(lambda writer: stream_then_reset(_text_events(writer))),
        check_failure(INTRO_TEXT),
    ),
    fault(
        4,
        "cut-whole-reply",
        "A whole reply ends before its content-length.",
        "5xx in the format of the client's API.",
        repeat_script(_truncated_reply),
        check_failure(stream=False),
    ),
    stream_fault(
        5,
        "end-inside-call",
        "The stream ends properly in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda writer: stream_response(_partial_call_events(writer))),
        check_failure(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        5,
        "end-in-text",
        "The stream ends properly after a text, without a finish reason and without [DONE].",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(lambda writer: stream_response(_text_events(writer))),
        check_failure(INTRO_TEXT),
    ),
    stream_fault(
        5,
        "no-done",
        "There is a finish reason, but no [DONE].",
        "The reply is complete, and the client receives it.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT)),
        check_reply(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        6,
        "done-without-finish",
        "[DONE] after a text, without a finish reason.",
        "The reply ends with the stop reason that matches its content.",
        repeat_script(lambda _: _chat_script(chat_chunks.DONE)),
        check_reply(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        6,
        "done-behind-call",
        "[DONE] after a complete call, without a finish reason.",
        "The client receives the call, with the stop reason for calls.",
        repeat_script(lambda _: _chat_script(chat_chunks.call(PARIS_ARGUMENTS, name=TOOL_NAME) + chat_chunks.DONE)),
        check_reply(INTRO_TEXT, [WEATHER_CALL]),
        **CHAT_ONLY,
    ),
    stream_fault(
        6,
        "done-inside-call",
        "[DONE] in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(lambda _: _chat_script(chat_chunks.call(PARTIAL_ARGUMENTS, name=TOOL_NAME) + chat_chunks.DONE)),
        check_failure(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        7,
        "finish-twice",
        "Two finish reasons: first `stop`, then `length`.",
        "The client receives the first one only.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT + chat_chunks.delta(finish="length") + chat_chunks.DONE)),
        check_reply(INTRO_TEXT),
        **CHAT_ONLY,
    ),
    stream_fault(
        7,
        "text-behind-finish",
        "Text after the finish reason.",
        "The late text is dropped, or sent before the end.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT + chat_chunks.delta(" late") + chat_chunks.DONE)),
        check_any(
            lambda response, trial: judge_reply(response, trial, INTRO_TEXT),
            lambda response, trial: judge_reply(response, trial, f"{INTRO_TEXT} late"),
        ),
        **CHAT_ONLY,
    ),
    stream_fault(
        7,
        "usage-behind-finish",
        "The usage arrives in a chunk after the finish reason.",
        "The client receives it.",
        repeat_script(lambda _: _chat_script(FINISH_EVENT + ChatReplyWriter().usage() + chat_chunks.DONE)),
        _check_usage,
        **CHAT_ONLY,
    ),
    stream_fault(
        9,
        "error-in-text",
        "An error in the middle of a text: overloaded.",
        EXPECT_ERROR_AFTER_TEXT,
        repeat_script(
            lambda writer: stream_response(_text_events(writer) + writer.error("Overloaded", "overloaded_error", 529))
        ),
        check_failure(INTRO_TEXT),
    ),
    stream_fault(
        9,
        "error-inside-call",
        "An error in the middle of a call's arguments.",
        EXPECT_CALL_DROPPED,
        repeat_script(
            lambda writer: stream_response(
                _partial_call_events(writer) + writer.error("Overloaded", "overloaded_error", 529)
            )
        ),
        check_failure(INTRO_TEXT, [WEATHER_CALL]),
    ),
    stream_fault(
        13,
        "bad-event",
        "One event in the middle of a text is not JSON.",
        "The event is skipped and the stream continues; or an error.",
        repeat_script(
            lambda writer: stream_response(
                writer.begin() + writer.text("Hel") + b"data: {oops\n\n" + writer.text("lo") + writer.end()
            )
        ),
        check_any(_judge_bad_event_skipped, judge_failure),
    ),
    stream_fault(
        13,
        "bad-event-inside-call",
        "One event in the middle of a call's arguments is not JSON, so part of the arguments is lost.",
        "An error. The call is incomplete, so no client runs it.",
        repeat_script(
            lambda _: _chat_script(
                chat_chunks.call('{"city": "P', name=TOOL_NAME)
                + MALFORMED_EVENT
                + chat_chunks.call('is"}')
                + chat_chunks.delta(finish="tool_calls")
                + chat_chunks.DONE
            )
        ),
        check_failure(INTRO_TEXT),
        **CHAT_ONLY,
    ),
]
