"""Behind the first word, when nothing can be asked again: rows 3 to 7, 9 and 13."""

from __future__ import annotations

from typing import Any

from interlingua.faults.apis import CHAT_PATH
from interlingua.faults.checker.expectations import either, failing, fails, right, says, stalls, well, wrong
from interlingua.faults.checker.scenario import Outcome, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Told
from interlingua.faults.scenarios.helpers import IN_CHAT, LONG, PARIS, SAID, WEATHER, always, fault, stream_fault
from interlingua.faults.upstream import chat_chunks as chat
from interlingua.faults.upstream.reply_writers import TOKENS_OUT, ChatVoice, Voice
from interlingua.faults.upstream.script import Script, send, streamed, torn, wait

__all__ = ["SCENARIOS"]

NAME, HALF = "get_weather", '{"city": "Pa'
OPEN_CALL = "An error of the client's API. What was said stays; the call is not closed, and nobody runs it."
OPEN_TEXT = "An error of the client's API behind the text; it does not end as if all were well."


def _text(say: Voice) -> bytes:
    return say.begin() + say.text("Let me", " see.")


def _in_call(say: Voice) -> bytes:
    """Text, a call that is whole, and the beginning of another."""
    return _text(say) + say.call(NAME, PARIS[:4], PARIS[4:]) + say.call(NAME, HALF)


def _chat(data: bytes) -> Script:
    return streamed(chat.ROLE + chat.delta(SAID) + data)


def _whole_cut(say: Voice) -> Script:
    if say.streams:
        return torn(_in_call(say))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
    return [send(head + b'{"id": "x", "choices": [{"index": 0, "message": {"role": "assis'), wait(0.05)]


def _usage(heard: Told, play: Play) -> Verdict:
    verdict = well(heard, play, SAID)
    if verdict.outcome is Outcome.RIGHT and heard.tokens != TOKENS_OUT:
        return wrong(f"the usage says {heard.tokens} tokens and not {TOKENS_OUT}")
    return verdict


def _without_the_bad_one(heard: Told, play: Play) -> Verdict:
    verdict = well(heard, play, "Hello")
    return right("the event that is no JSON is left out") if verdict.outcome is Outcome.RIGHT else verdict


FINISH = chat.delta(finish="stop")
USAGE = {"stream_options": {"include_usage": True}}


def _usage_check(play: Play) -> Verdict:
    more: dict[str, Any] = USAGE if play.api == CHAT_PATH else {}
    return _usage(play.ask(**more), play)


OOPS = b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "functi\n\n'
SCENARIOS: list[Scenario] = [
    stream_fault(
        3,
        "stall-in-text",
        "After some text the upstream says nothing any more.",
        OPEN_TEXT,
        always(lambda say: [*streamed(_text(say)), wait(LONG)]),
        stalls(SAID),
    ),
    stream_fault(
        3,
        "stall-in-call",
        "In the middle of a call's arguments the upstream says nothing any more.",
        OPEN_CALL,
        always(lambda say: [*streamed(_in_call(say)), wait(LONG)]),
        stalls(SAID, [WEATHER]),
    ),
    stream_fault(
        4,
        "reset-inside-call",
        "The connection is reset in the middle of a call's arguments.",
        OPEN_CALL,
        always(lambda say: torn(_in_call(say))),
        fails(SAID, [WEATHER]),
    ),
    stream_fault(
        4,
        "reset-in-text",
        "The connection is reset in the middle of a text.",
        OPEN_TEXT,
        always(lambda say: torn(_text(say))),
        fails(SAID),
    ),
    fault(
        4,
        "cut-whole-reply",
        "A whole reply breaks off before the length that it said.",
        "5xx in the client's words.",
        always(_whole_cut),
        fails(stream=False),
    ),
    stream_fault(
        5,
        "end-inside-call",
        "The stream ends properly in the middle of a call's arguments.",
        OPEN_CALL,
        always(lambda say: streamed(_in_call(say))),
        fails(SAID, [WEATHER]),
    ),
    stream_fault(
        5,
        "end-in-text",
        "The stream ends properly behind a text, without a finish and without [DONE].",
        OPEN_TEXT,
        always(lambda say: streamed(_text(say))),
        fails(SAID),
    ),
    stream_fault(
        5,
        "no-done",
        "There is a finish reason, but no [DONE].",
        "The reply is whole: it ends well.",
        always(lambda _: _chat(FINISH)),
        says(SAID),
        **IN_CHAT,
    ),
    stream_fault(
        6,
        "done-without-finish",
        "[DONE] behind a text, without a finish reason.",
        "The reply ends with the reason that its content has.",
        always(lambda _: _chat(chat.DONE)),
        says(SAID),
        **IN_CHAT,
    ),
    stream_fault(
        6,
        "done-behind-call",
        "[DONE] behind a whole call, without a finish reason.",
        "The call is run: the reply ends as one with calls does.",
        always(lambda _: _chat(chat.call(PARIS, name=NAME) + chat.DONE)),
        says(SAID, [WEATHER]),
        **IN_CHAT,
    ),
    stream_fault(
        6,
        "done-inside-call",
        "[DONE] in the middle of a call's arguments.",
        OPEN_CALL,
        always(lambda _: _chat(chat.call(HALF, name=NAME) + chat.DONE)),
        fails(SAID),
        **IN_CHAT,
    ),
    stream_fault(
        7,
        "finish-twice",
        "Two finish reasons: first `stop`, then `length`.",
        "The first one counts, and the client hears only that.",
        always(lambda _: _chat(FINISH + chat.delta(finish="length") + chat.DONE)),
        says(SAID),
        **IN_CHAT,
    ),
    stream_fault(
        7,
        "text-behind-finish",
        "Text behind the finish reason.",
        "The reply was over: it is not told, or not behind the end.",
        always(lambda _: _chat(FINISH + chat.delta(" late") + chat.DONE)),
        either(lambda heard, play: well(heard, play, SAID), lambda heard, play: well(heard, play, f"{SAID} late")),
        **IN_CHAT,
    ),
    stream_fault(
        7,
        "usage-behind-finish",
        "The usage comes in a chunk behind the finish reason.",
        "The client gets it.",
        always(lambda _: _chat(FINISH + ChatVoice().usage() + chat.DONE)),
        _usage_check,
        **IN_CHAT,
    ),
    stream_fault(
        9,
        "error-in-text",
        "An error in the middle of a text: overloaded.",
        OPEN_TEXT,
        always(lambda say: streamed(_text(say) + say.error("Overloaded", "overloaded_error", 529))),
        fails(SAID),
    ),
    stream_fault(
        9,
        "error-inside-call",
        "An error in the middle of a call's arguments.",
        OPEN_CALL,
        always(lambda say: streamed(_in_call(say) + say.error("Overloaded", "overloaded_error", 529))),
        fails(SAID, [WEATHER]),
    ),
    stream_fault(
        13,
        "bad-event",
        "One event in the middle of a text is no JSON.",
        "It is left out and the rest goes on; or an error.",
        always(lambda say: streamed(say.begin() + say.text("Hel") + b"data: {oops\n\n" + say.text("lo") + say.end())),
        either(_without_the_bad_one, failing),
    ),
    stream_fault(
        13,
        "bad-event-inside-call",
        "One event in the middle of a call's arguments is no JSON: a piece of them is lost.",
        "An error. The call has a hole, and nobody runs it.",
        always(
            lambda _: _chat(
                chat.call('{"city": "P', name=NAME)
                + OOPS
                + chat.call('is"}')
                + chat.delta(finish="tool_calls")
                + chat.DONE
            )
        ),
        fails(SAID),
        **IN_CHAT,
    ),
]
