"""Replies in the wrong form, or with malformed content: rows 14 to 16 and 25 to 32."""

from __future__ import annotations

import json
from typing import Any

from interlingua.faults.apis import CHAT_PATH, past_call_fields
from interlingua.faults.checker.expectations import (
    check_reply,
    check_response,
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
    WEATHER_CALL,
    fault,
    repeat_script,
    stream_fault,
)
from interlingua.faults.upstream import chat_chunks
from interlingua.faults.upstream.chat_chunks import call_delta
from interlingua.faults.upstream.reply_writers import ReplyWriter
from interlingua.faults.upstream.script import Script, send_headers, send_pieces, send_response, stream_response

__all__ = ["SCENARIOS"]

TOOL_NAME = "get_weather"
TWO_CALLS = [(TOOL_NAME, {"city": "A"}), (TOOL_NAME, {"city": "B"})]
KIMI_MARKUP = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    f"{PARIS_ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
)
QUOTED_MARKUP = "Models write `<tool_call>` and then JSON, and `</tool_call>` behind it."
RUNAWAY_BLANKS = 2_000_000


def _call_stream(*deltas: bytes) -> Script:
    return stream_response(
        chat_chunks.ROLE + b"".join(deltas) + chat_chunks.delta(finish="tool_calls") + chat_chunks.DONE
    )


def _complete_reply(writer: ReplyWriter) -> Script:
    return [
        send_response("200 OK", json.dumps(writer.complete_reply(INTRO_TEXT, (TOOL_NAME, PARIS_ARGUMENTS))).encode())
    ]


def _streamed_reply(writer: ReplyWriter) -> Script:
    return stream_response(
        writer.begin()
        + writer.text("Let me", " see.")
        + writer.call(TOOL_NAME, PARIS_ARGUMENTS[:5], PARIS_ARGUMENTS[5:])
        + writer.end()
    )


def _enveloped_reply(writer: ReplyWriter) -> Script:
    if not writer.is_streaming:
        return [send_response("200 OK", json.dumps({"data": writer.complete_reply("Hello"), "success": True}).encode())]
    events = [chat_chunks.ROLE, chat_chunks.delta("Hello"), chat_chunks.delta(finish="stop")]
    wrapped = [chat_chunks.event({"data": json.loads(event[6:]), "success": True}) for event in events]
    return stream_response(b"".join(wrapped) + chat_chunks.DONE)


# ── 25: ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_unique_ids(trial: Trial) -> Verdict:
    response = trial.send_request(**past_call_fields(trial.api, "used", '{"city": "Z"}'))
    calls = [(TOOL_NAME, {"city": city}) for city in "ABC"]
    if (verdict := judge_reply(response, trial, None, calls)).outcome is TrialOutcome.FAILED:
        return verdict
    if len({*response.ids, "used"}) < 4 or not all(response.ids):
        return failed(f"ids are not unique: {response.ids}; `used` is in the history")
    return passed("each call has a unique id")


# ── 27 to 29: native markup ───────────────────────────────────────────────────────────────────────────────────────────


def _judge_no_call(response: TrialResponse, trial: Trial) -> Verdict:
    return judge_reply(response, trial, None)


def _text_chunks(text: str, size: int = 7) -> list[bytes]:
    return [chat_chunks.delta(text[start : start + size]) for start in range(0, len(text), size)]


def _native_stream(text: str, *extra_events: bytes, finish: str = "stop") -> Script:
    return stream_response(
        chat_chunks.ROLE
        + b"".join(_text_chunks(text))
        + b"".join(extra_events)
        + chat_chunks.delta(finish=finish)
        + chat_chunks.DONE
    )


# ── 30 to 32: reasoning, runaway arguments, usage ─────────────────────────────────────────────────────────────────────


def _judge_thinking(response: TrialResponse, trial: Trial) -> Verdict:
    verdict = judge_reply(response, trial, None)
    if verdict.outcome is TrialOutcome.FAILED:
        return verdict if not response.error else passed("an error, so the client can retry")
    if "Hm." in response.thinking or "Hm." in response.text or b"Hm." in response.body:
        return verdict
    return failed("the client receives nothing")


def _runaway_arguments(_: ReplyWriter) -> Script:
    blanks = [chat_chunks.call(" " * 2000)] * (RUNAWAY_BLANKS // 2000)
    return [
        send_headers(),
        send_pieces(
            [
                chat_chunks.ROLE,
                chat_chunks.call('{"city": "Paris",', name=TOOL_NAME),
                *blanks,
                chat_chunks.call('"n": 1}'),
            ]
        ),
        send_pieces([chat_chunks.delta(finish="tool_calls") + chat_chunks.DONE]),
    ]


def _judge_bounded(response: TrialResponse, trial: Trial) -> Verdict:
    if (verdict := judge_failure(response, trial)).outcome is TrialOutcome.PASSED:
        return passed(f"{verdict.reason}, after {trial.upstream_requests()[0]['sent']:,} bytes")
    if judge_reply(response, trial, "", [(TOOL_NAME, {"city": "Paris", "n": 1})]).outcome is TrialOutcome.PASSED:
        return passed("everything is forwarded, which is acceptable because nothing is lost")
    return verdict


def _check_usage(trial: Trial) -> Verdict:
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if trial.api == CHAT_PATH else {}
    response = trial.send_request(**options)
    if (verdict := judge_reply(response, trial)).outcome is TrialOutcome.FAILED:
        return verdict
    return (
        passed(f"{response.output_tokens} tokens (estimate)")
        if response.output_tokens
        else failed("the usage is missing or 0")
    )


EXPECT_COMPLETE_CALLS = "Each call exactly once, with complete arguments."
SCENARIOS: list[Scenario] = [
    stream_fault(
        14,
        "whole-for-stream",
        "A stream was requested, but the upstream sends a whole reply as JSON.",
        "The client receives a stream.",
        repeat_script(_complete_reply),
        check_reply(INTRO_TEXT, [WEATHER_CALL]),
    ),
    fault(
        15,
        "stream-for-whole",
        "A whole reply was requested, but the upstream sends a stream.",
        "The client receives a whole reply.",
        repeat_script(_streamed_reply),
        check_reply(INTRO_TEXT, [WEATHER_CALL], stream=False),
    ),
    stream_fault(
        16,
        "envelope",
        'Every chunk is wrapped: {"data": …, "success": true}.',
        "The gateway unwraps the reply, and the client receives it.",
        repeat_script(_enveloped_reply),
        check_reply(),
        **CHAT_ONLY,
    ),
    fault(
        16,
        "envelope-whole",
        "A whole reply is wrapped in the same way.",
        "The gateway unwraps the reply, and the client receives it.",
        repeat_script(_enveloped_reply),
        check_reply(stream=False),
        **CHAT_ONLY,
    ),
    stream_fault(
        25,
        "same-ids",
        "Two calls with the same id, and one whose id is already in the history.",
        "Each call has a unique id.",
        repeat_script(
            lambda _: _call_stream(
                call_delta(0, "same", name=TOOL_NAME, arguments='{"city": "A"}'),
                call_delta(1, "same", name=TOOL_NAME, arguments='{"city": "B"}'),
                call_delta(2, "used", name=TOOL_NAME, arguments='{"city": "C"}'),
            )
        ),
        _check_unique_ids,
        **CHAT_ONLY,
    ),
    stream_fault(
        25,
        "prefixed-name",
        "The name of the tool is `functions.get_weather`.",
        "The client receives the name of the tool that it offered.",
        repeat_script(
            lambda _: _call_stream(call_delta(0, "a", name=f"functions.{TOOL_NAME}", arguments=PARIS_ARGUMENTS))
        ),
        check_reply("", [WEATHER_CALL]),
        **CHAT_ONLY,
    ),
    stream_fault(
        26,
        "interleaved",
        "Deltas of two calls alternate.",
        EXPECT_COMPLETE_CALLS,
        repeat_script(
            lambda _: _call_stream(
                call_delta(0, "a", name=TOOL_NAME, arguments=""),
                call_delta(1, "b", name=TOOL_NAME, arguments=""),
                call_delta(0, arguments='{"city": '),
                call_delta(1, arguments='{"city": "'),
                call_delta(0, arguments='"A"}'),
                call_delta(1, arguments='B"}'),
            )
        ),
        check_reply("", TWO_CALLS),
        **CHAT_ONLY,
    ),
    stream_fault(
        26,
        "unindexed",
        "Call deltas without an index.",
        EXPECT_COMPLETE_CALLS,
        repeat_script(
            lambda _: _call_stream(
                call_delta(None, "a", name=TOOL_NAME, arguments='{"city": '),
                call_delta(None, arguments='"A"}'),
                call_delta(None, "b", name=TOOL_NAME, arguments='{"city": "B"}'),
            )
        ),
        check_reply("", TWO_CALLS),
        **CHAT_ONLY,
    ),
    stream_fault(
        26,
        "one-index",
        "Two calls, both with index 0.",
        EXPECT_COMPLETE_CALLS,
        repeat_script(
            lambda _: _call_stream(
                call_delta(0, "a", name=TOOL_NAME, arguments='{"city": "A"}'),
                call_delta(0, "b", name=TOOL_NAME, arguments='{"city": "B"}'),
            )
        ),
        check_reply("", TWO_CALLS),
        **CHAT_ONLY,
    ),
    stream_fault(
        26,
        "name-each-time",
        "Each delta of a call repeats id and name.",
        EXPECT_COMPLETE_CALLS,
        repeat_script(
            lambda _: _call_stream(
                *[
                    call_delta(n, id, name=TOOL_NAME, arguments=piece)
                    for n, id, text in ((0, "a", '{"city": "A"}'), (1, "b", '{"city": "B"}'))
                    for piece in (text[:4], text[4:9], text[9:])
                ]
            )
        ),
        check_reply("", TWO_CALLS),
        **CHAT_ONLY,
    ),
    stream_fault(
        26,
        "all-again",
        "After its deltas, the complete arguments of a call are sent again.",
        EXPECT_COMPLETE_CALLS,
        repeat_script(
            lambda _: _call_stream(
                call_delta(0, "a", name=TOOL_NAME, arguments='{"city": '),
                call_delta(0, arguments='"A"}'),
                call_delta(0, arguments='{"city": "A"}'),
                call_delta(1, "b", name=TOOL_NAME, arguments='{"city": "B"}'),
                call_delta(1, "b", name=TOOL_NAME, arguments='{"city": "B"}'),
            )
        ),
        check_reply("", TWO_CALLS),
        **CHAT_ONLY,
    ),
    stream_fault(
        26,
        "cumulative",
        "Each delta repeats all previous arguments.",
        EXPECT_COMPLETE_CALLS,
        repeat_script(
            lambda _: _call_stream(
                *[
                    call_delta(n, id, name=TOOL_NAME, arguments=text[:length])
                    for n, id, text in ((0, "a", '{"city": "A"}'), (1, "b", '{"city": "B"}'))
                    for length in (4, 9, len(text))
                ]
            )
        ),
        check_reply("", TWO_CALLS),
        **CHAT_ONLY,
    ),
    stream_fault(
        27,
        "told-twice-kimi-k2",
        "The same call twice: as text in the model's markup, and structured.",
        "One call, and no markup in the text.",
        repeat_script(
            lambda _: _native_stream(
                f"So: {KIMI_MARKUP}",
                call_delta(0, "functions.get_weather:0", name=TOOL_NAME, arguments=PARIS_ARGUMENTS),
                finish="tool_calls",
            )
        ),
        check_reply("So:", [WEATHER_CALL]),
        **CHAT_ONLY,
    ),
    stream_fault(
        28,
        "quoted-markup-qwen2-5",
        "The text quotes the markup of calls.",
        "The exact text, and no call.",
        repeat_script(lambda _: _native_stream(QUOTED_MARKUP)),
        check_reply(QUOTED_MARKUP),
        **CHAT_ONLY,
    ),
    stream_fault(
        29,
        "call-without-tools-kimi-k2",
        "The model writes a call in its markup, although no tool was offered.",
        "The text of the model, and no call.",
        repeat_script(lambda _: _native_stream(f"So: {KIMI_MARKUP}")),
        check_response(_judge_no_call, offer=False),
        **CHAT_ONLY,
    ),
    stream_fault(
        30,
        "thinking-only",
        "The model sends reasoning only.",
        "The client receives the reasoning and a regular end; or an error on which it retries.",
        repeat_script(
            lambda _: stream_response(
                chat_chunks.ROLE
                + chat_chunks.delta(reasoning_content="Hm.")
                + chat_chunks.delta(finish="stop")
                + chat_chunks.DONE
            )
        ),
        check_response(_judge_thinking),
        **CHAT_ONLY,
    ),
    stream_fault(
        31,
        "runaway-blanks",
        f"{RUNAWAY_BLANKS:,} spaces between two parameters.",
        "An error; or the client receives everything in time.",
        repeat_script(_runaway_arguments),
        check_response(_judge_bounded, seconds=60),
        **CHAT_ONLY,
        alone=True,
    ),
    stream_fault(
        32,
        "no-usage",
        "Usage was requested, but the upstream sends none.",
        "The client receives an estimate.",
        repeat_script(
            lambda _: stream_response(
                chat_chunks.ROLE + chat_chunks.delta("Hello") + chat_chunks.delta(finish="stop") + chat_chunks.DONE
            )
        ),
        _check_usage,
        **CHAT_ONLY,
    ),
]
