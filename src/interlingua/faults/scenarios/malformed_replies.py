"""Replies that are not as they were asked for, or not as anybody would write them: rows 14 to 16 and 25 to 32."""

from __future__ import annotations

import json
from typing import Any

from interlingua.faults.apis import CHAT_PATH, past_call
from interlingua.faults.checker.expectations import failing, on_hearing, right, says, well, wrong
from interlingua.faults.checker.scenario import Outcome, Scenario, Verdict
from interlingua.faults.checker.trial import Play, Told
from interlingua.faults.scenarios.helpers import IN_CHAT, PARIS, SAID, WEATHER, always, fault, stream_fault
from interlingua.faults.upstream import chat_chunks as chat
from interlingua.faults.upstream.chat_chunks import call_delta
from interlingua.faults.upstream.reply_writers import Voice
from interlingua.faults.upstream.script import Script, answer, each, head, streamed

__all__ = ["SCENARIOS"]

NAME = "get_weather"
BOTH = [(NAME, {"city": "A"}), (NAME, {"city": "B"})]
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    f"{PARIS}<|tool_call_end|><|tool_calls_section_end|>"
)
QUOTED = "Models write `<tool_call>` and then JSON, and `</tool_call>` behind it."
MUCH = 2_000_000


def _calls(*deltas: bytes) -> Script:
    return streamed(chat.ROLE + b"".join(deltas) + chat.delta(finish="tool_calls") + chat.DONE)


def _whole(say: Voice) -> Script:
    return [answer("200 OK", json.dumps(say.whole(SAID, (NAME, PARIS))).encode())]


def _stream(say: Voice) -> Script:
    return streamed(say.begin() + say.text("Let me", " see.") + say.call(NAME, PARIS[:5], PARIS[5:]) + say.end())


def _envelope(say: Voice) -> Script:
    if not say.streams:
        return [answer("200 OK", json.dumps({"data": say.whole("Hello"), "success": True}).encode())]
    events = [chat.ROLE, chat.delta("Hello"), chat.delta(finish="stop")]
    wrapped = [chat.event({"data": json.loads(event[6:]), "success": True}) for event in events]
    return streamed(b"".join(wrapped) + chat.DONE)


# ── 25 ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _own_ids(play: Play) -> Verdict:
    heard = play.ask(**past_call(play.api, "used", '{"city": "Z"}'))
    calls = [(NAME, {"city": city}) for city in "ABC"]
    if (verdict := well(heard, play, None, calls)).outcome is Outcome.WRONG:
        return verdict
    if len({*heard.ids, "used"}) < 4 or not all(heard.ids):
        return wrong(f"ids are not unique: {heard.ids}, and `used` was in the conversation")
    return right("each call has an id of its own")


# ── 27 to 29 ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _no_markup(heard: Told, play: Play) -> Verdict:
    verdict = well(heard, play, None)
    if verdict.outcome is Outcome.RIGHT and "<|" in heard.text:
        return wrong(f"the client sees markup: {heard.text[:80]!r}")
    return verdict


def _pieces(text: str, size: int = 7) -> list[bytes]:
    return [chat.delta(text[at : at + size]) for at in range(0, len(text), size)]


def _native(text: str, *more: bytes, finish: str = "stop") -> Script:
    return streamed(chat.ROLE + b"".join(_pieces(text)) + b"".join(more) + chat.delta(finish=finish) + chat.DONE)


# ── 30 to 32 ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _thought(heard: Told, play: Play) -> Verdict:
    verdict = well(heard, play, None)
    if verdict.outcome is Outcome.WRONG:
        return verdict if not heard.error else right("an error, so that the client may ask again")
    if "Hm." in heard.thinking or "Hm." in heard.text or b"Hm." in heard.body:
        return verdict
    return wrong("the client gets nothing at all")


def _runaway(_: Voice) -> Script:
    blanks = [chat.call(" " * 2000)] * (MUCH // 2000)
    return [
        head(),
        each([chat.ROLE, chat.call('{"city": "Paris",', name=NAME), *blanks, chat.call('"n": 1}')]),
        each([chat.delta(finish="tool_calls") + chat.DONE]),
    ]


def _bounded(heard: Told, play: Play) -> Verdict:
    if (verdict := failing(heard, play)).outcome is Outcome.RIGHT:
        return right(f"{verdict.why}, behind {play.seen()[0]['sent']:,} bytes")
    if well(heard, play, "", [(NAME, {"city": "Paris", "n": 1})]).outcome is Outcome.RIGHT:
        return right("all of it is passed on: a choice, for nothing is lost")
    return verdict


def _counted(play: Play) -> Verdict:
    more: dict[str, Any] = {"stream_options": {"include_usage": True}} if play.api == CHAT_PATH else {}
    heard = play.ask(**more)
    if (verdict := well(heard, play)).outcome is Outcome.WRONG:
        return verdict
    return right(f"{heard.tokens} tokens, as an estimate") if heard.tokens else wrong("the usage is missing, or nought")


SAME = "The calls that are meant, each whole and once."
SCENARIOS: list[Scenario] = [
    stream_fault(
        14,
        "whole-for-stream",
        "A stream was asked for, and a whole reply comes as JSON.",
        "The client gets a stream.",
        always(_whole),
        says(SAID, [WEATHER]),
    ),
    fault(
        15,
        "stream-for-whole",
        "A whole reply was asked for, and a stream comes.",
        "The client gets a whole reply.",
        always(_stream),
        says(SAID, [WEATHER], stream=False),
    ),
    stream_fault(
        16,
        "envelope",
        'Every chunk is wrapped: {"data": …, "success": true}.',
        "It is unwrapped: the reply comes through.",
        always(_envelope),
        says(),
        **IN_CHAT,
    ),
    fault(
        16,
        "envelope-whole",
        "A whole reply is wrapped in the same way.",
        "It is unwrapped: the reply comes through.",
        always(_envelope),
        says(stream=False),
        **IN_CHAT,
    ),
    stream_fault(
        25,
        "same-ids",
        "Two calls with one id, one without, and one whose id the conversation has.",
        "Each call has an id of its own.",
        always(
            lambda _: _calls(
                call_delta(0, "same", name=NAME, arguments='{"city": "A"}'),
                call_delta(1, "same", name=NAME, arguments='{"city": "B"}'),
                call_delta(2, "used", name=NAME, arguments='{"city": "C"}'),
            )
        ),
        _own_ids,
        **IN_CHAT,
    ),
    stream_fault(
        25,
        "prefixed-name",
        "The tool is called `functions.get_weather`.",
        "It is the tool that was offered.",
        always(lambda _: _calls(call_delta(0, "a", name=f"functions.{NAME}", arguments=PARIS))),
        says("", [WEATHER]),
        **IN_CHAT,
    ),
    stream_fault(
        26,
        "interleaved",
        "Pieces of two calls take turns.",
        SAME,
        always(
            lambda _: _calls(
                call_delta(0, "a", name=NAME, arguments=""),
                call_delta(1, "b", name=NAME, arguments=""),
                call_delta(0, arguments='{"city": '),
                call_delta(1, arguments='{"city": "'),
                call_delta(0, arguments='"A"}'),
                call_delta(1, arguments='B"}'),
            )
        ),
        says("", BOTH),
        **IN_CHAT,
    ),
    stream_fault(
        26,
        "unindexed",
        "Pieces of calls without an index.",
        SAME,
        always(
            lambda _: _calls(
                call_delta(None, "a", name=NAME, arguments='{"city": '),
                call_delta(None, arguments='"A"}'),
                call_delta(None, "b", name=NAME, arguments='{"city": "B"}'),
            )
        ),
        says("", BOTH),
        **IN_CHAT,
    ),
    stream_fault(
        26,
        "one-index",
        "Two calls, both with the index 0.",
        SAME,
        always(
            lambda _: _calls(
                call_delta(0, "a", name=NAME, arguments='{"city": "A"}'),
                call_delta(0, "b", name=NAME, arguments='{"city": "B"}'),
            )
        ),
        says("", BOTH),
        **IN_CHAT,
    ),
    stream_fault(
        26,
        "name-each-time",
        "Id and name stand in each piece of a call.",
        SAME,
        always(
            lambda _: _calls(
                *[
                    call_delta(n, id, name=NAME, arguments=piece)
                    for n, id, text in ((0, "a", '{"city": "A"}'), (1, "b", '{"city": "B"}'))
                    for piece in (text[:4], text[4:9], text[9:])
                ]
            )
        ),
        says("", BOTH),
        **IN_CHAT,
    ),
    stream_fault(
        26,
        "all-again",
        "Behind its pieces, all arguments of a call come again.",
        SAME,
        always(
            lambda _: _calls(
                call_delta(0, "a", name=NAME, arguments='{"city": '),
                call_delta(0, arguments='"A"}'),
                call_delta(0, arguments='{"city": "A"}'),
                call_delta(1, "b", name=NAME, arguments='{"city": "B"}'),
                call_delta(1, "b", name=NAME, arguments='{"city": "B"}'),
            )
        ),
        says("", BOTH),
        **IN_CHAT,
    ),
    stream_fault(
        26,
        "cumulative",
        "Each piece holds all that came before it.",
        SAME,
        always(
            lambda _: _calls(
                *[
                    call_delta(n, id, name=NAME, arguments=text[:length])
                    for n, id, text in ((0, "a", '{"city": "A"}'), (1, "b", '{"city": "B"}'))
                    for length in (4, 9, len(text))
                ]
            )
        ),
        says("", BOTH),
        **IN_CHAT,
    ),
    stream_fault(
        27,
        "told-twice-kimi-k2",
        "The same call, as text in the model's own markup and structured.",
        "It is one call, and the markup is no text.",
        always(
            lambda _: _native(
                f"So: {KIMI}", call_delta(0, "functions.get_weather:0", name=NAME, arguments=PARIS), finish="tool_calls"
            )
        ),
        says("So:", [WEATHER]),
        **IN_CHAT,
    ),
    stream_fault(
        28,
        "quoted-markup-qwen2-5",
        "The model's text quotes the markup of calls.",
        "It is text, to the letter, and no call.",
        always(lambda _: _native(QUOTED)),
        says(QUOTED),
        **IN_CHAT,
    ),
    stream_fault(
        29,
        "call-without-tools-kimi-k2",
        "The model writes a call in its own markup, and no tool was offered.",
        "Text without the markup, and no call.",
        always(lambda _: _native(f"So: {KIMI}")),
        on_hearing(_no_markup, offer=False),
        **IN_CHAT,
    ),
    stream_fault(
        30,
        "thinking-only",
        "The model thinks, and says nothing.",
        "The client gets the thinking and an end; or an error on which it asks again.",
        always(
            lambda _: streamed(chat.ROLE + chat.delta(reasoning_content="Hm.") + chat.delta(finish="stop") + chat.DONE)
        ),
        on_hearing(_thought),
        **IN_CHAT,
    ),
    stream_fault(
        31,
        "runaway-blanks",
        f"Between two parameters come {MUCH:,} blanks.",
        "It is cut off with an error; or all of it comes through in time.",
        always(_runaway),
        on_hearing(_bounded, seconds=60),
        **IN_CHAT,
        alone=True,
    ),
    stream_fault(
        32,
        "no-usage",
        "Usage was asked for, and the upstream never says any.",
        "The client gets an estimate.",
        always(lambda _: streamed(chat.ROLE + chat.delta("Hello") + chat.delta(finish="stop") + chat.DONE)),
        _counted,
        **IN_CHAT,
    ),
]
