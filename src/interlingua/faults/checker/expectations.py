"""What a client must see, in words that rows share. Each function is, or makes, the check of a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH
from interlingua.faults.checker.scenario import Check, Outcome, Verdict
from interlingua.faults.checker.trial import Play, Told

__all__ = [
    "Judge",
    "either",
    "failing",
    "fails",
    "lives",
    "on_hearing",
    "refused",
    "refuses",
    "right",
    "says",
    "stalls",
    "told",
    "well",
    "wrong",
]

Judge = Callable[[Told, Play], Verdict]


def right(why: str) -> Verdict:
    return Verdict(Outcome.RIGHT, why)


def wrong(why: str) -> Verdict:
    return Verdict(Outcome.WRONG, why)


def on_hearing(judge: Judge, **how: Any) -> Check:
    """Asks in the usual way, and judges what came."""
    return lambda play: judge(play.ask(**how), play)


def told(heard: Told) -> str:
    """What it was, in few words."""
    if not heard.status:
        return "no answer" if heard.waiting else f"no answer: {heard.error or 'the connection was closed'}"
    if heard.status >= 400:
        return f"{heard.status}: {heard.error[:100]}"
    said = f"text {_short(heard.text)}, calls {_short(str(heard.calls))}, stop {heard.stop or 'none'}"
    return said + (f", error {heard.error[:80]!r}" if heard.error else "")


def _short(text: str) -> str:
    return repr(text) if len(text) < 60 else f"{text[:40]!r}… ({len(text)} characters)"


# ── replies that are to come through ──────────────────────────────────────────────────────────────────────────────

CALLED = {CHAT_PATH: "tool_calls", MESSAGES_PATH: "tool_use", RESPONSES_PATH: "completed"}
STOPPED = {CHAT_PATH: "stop", MESSAGES_PATH: "end_turn", RESPONSES_PATH: "completed"}


def well(heard: Told, play: Play, text: str | None = "Hello", calls: Sequence[tuple[str, Any]] = ()) -> Verdict:
    """The reply came through: this text, these calls with these arguments, and an end as its API has it."""
    if problem := _not_over(heard):
        return wrong(problem)
    if text is not None and heard.text.strip() != text.strip():
        return wrong(f"the text is {_short(heard.text)} and not {_short(text)}")
    if problem := _other_calls(heard, calls):
        return wrong(problem)
    stop = (CALLED if calls else STOPPED)[play.api]
    if heard.stop != stop:
        return wrong(f"it stops with {heard.stop or 'nothing'} and not with {stop}")
    if heard.odd:
        return wrong(heard.odd[0])
    return right("the reply came through")


def _not_over(heard: Told) -> str:
    if heard.waiting:
        return f"no end within {heard.took:.0f} s; {told(heard)}"
    if heard.status != 200 or heard.error:
        return told(heard)
    if heard.cut:
        return f"the answer breaks off; {told(heard)}"
    return "" if heard.ended else f"it ends without an end; {told(heard)}"


def _other_calls(heard: Told, calls: Sequence[tuple[str, Any]]) -> str:
    if heard.open:
        return f"the call of {heard.open[0]} was never closed"
    try:
        got = [(name, json.loads(args)) for name, args in heard.calls]
    except ValueError:
        return f"arguments that are no JSON: {_short(str(heard.calls))}"
    return "" if got == list(calls) else f"the calls are {_short(str(got))} and not {_short(str(list(calls)))}"


def says(text: str | None = "Hello", calls: Sequence[tuple[str, Any]] = (), **how: Any) -> Check:
    return on_hearing(lambda heard, play: well(heard, play, text, calls), **how)


# ── replies that are to fail, and must not look well ──────────────────────────────────────────────────────────────


def failing(heard: Told, _: Play, text: str = "", calls: Sequence[tuple[str, Any]] = ()) -> Verdict:
    """The client notices: an error of its API, or a connection that breaks off. What it would run is whole."""
    if heard.waiting:
        return wrong(f"no end within {heard.took:.0f} s; {told(heard)}")
    extra = [call for call in heard.calls if not _among(call, calls)]
    if extra and not heard.error and not heard.cut:
        return wrong(f"the client runs {extra[0][0]} with {_short(extra[0][1])}")
    if heard.ended:
        return wrong(f"it ends as if all were well; {told(heard)}")
    if not heard.error and not heard.cut:
        return wrong(f"it ends without a word of what went wrong; {told(heard)}")
    if extra:
        return wrong(f"the call of {extra[0][0]} is closed with {_short(extra[0][1])}, an error follows")
    if heard.status == 200 and text and not heard.text.startswith(text):
        return wrong(f"what was said before is lost: {told(heard)}")
    if heard.error and heard.odd:
        return wrong(heard.odd[0])
    return right(_how(heard))


def _among(call: tuple[str, str], calls: Sequence[tuple[str, Any]]) -> bool:
    try:
        return (call[0], json.loads(call[1])) in list(calls)
    except ValueError:
        return False


def _how(heard: Told) -> str:
    if not heard.status:
        return "the connection is closed without an answer, which clients notice"
    if heard.status >= 400:
        return f"{heard.status} in its API's words"
    return "an error in its API's words" if heard.error else "the connection breaks off, which clients notice"


def fails(text: str = "", calls: Sequence[tuple[str, Any]] = (), **how: Any) -> Check:
    return on_hearing(lambda heard, play: failing(heard, play, text, calls), **how)


def stalls(text: str = "", calls: Sequence[tuple[str, Any]] = ()) -> Check:
    """As `fails`. Whoever shows that it waits may have more patience than this client."""

    def judge(heard: Told, play: Play) -> Verdict:
        if heard.waiting and heard.alive:
            why = f"it still waits after {heard.took:.0f} s (keep-alive comments come): give more --patience"
            return Verdict(Outcome.UNJUDGED, why)
        return failing(heard, play, text, calls)

    return on_hearing(judge)


def refused(*statuses: int, word: str = "", asked: int | None = None) -> Judge:
    """An error of one of these statuses, or the like within a stream, in its API's words."""

    def judge(heard: Told, play: Play) -> Verdict:
        verdict = failing(heard, play)
        if verdict.outcome is not Outcome.RIGHT or not heard.error:
            return verdict if heard.error or verdict.outcome is Outcome.WRONG else wrong(told(heard))
        if heard.status != 200 and heard.status not in statuses:
            return wrong(f"{told(heard)}; not {' or '.join(map(str, statuses))}")
        if word and word.lower() not in heard.error.lower():
            return wrong(f"{told(heard)}: what the upstream said is lost")
        if asked is not None and (count := len(play.seen())) > asked:
            return wrong(f"{told(heard)}, and the upstream was asked {count} times")
        return verdict

    return judge


def refuses(*statuses: int, word: str = "", asked: int | None = None, **how: Any) -> Check:
    return on_hearing(refused(*statuses, word=word, asked=asked), **how)


def either(*judges: Judge, **how: Any) -> Check:
    """One answer, right if any of these calls it so. The first one says what is wrong."""

    def judge(heard: Told, play: Play) -> Verdict:
        verdicts = [one(heard, play) for one in judges]
        return next((one for one in verdicts if one.outcome is Outcome.RIGHT), verdicts[0])

    return on_hearing(judge, **how)


def lives(verdict: Verdict, play: Play) -> Verdict:
    """And the gateway goes on."""
    again = Play(play.target, play.api, "fault-00-none", play.run)
    heard = again.send(again.request(again.body()))
    return verdict if well(heard, again).outcome is Outcome.RIGHT else wrong(f"it does not go on: {told(heard)}")
