"""What came, what went out, and why: a translation told step by step, for whoever has to debug an upstream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import assert_never

from interlingua import events as ev
from interlingua.cli.common.console import printable
from interlingua.cli.common.two_columns import Line, Row, Tone
from interlingua.cli.translate.chunk_summary import fields, messages, quoted, read, shown, strings, what_matters
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.markers import markers
from interlingua.translation.translator__pipeline import Step, Translator
from interlingua.wires.streaming import sse

__all__ = ["Explainer"]

_REMARKS = (ev.CallStart, ev.CallEnd, ev.Failure, ev.Finding)


class Explainer:
    """Explains the steps of one Translator, in their order."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._dialect: Dialect | None = None
        self._held = ""
        self._after = ""  # the last marker, until something comes of it
        self._counts: Counter[str] = Counter()

    def explain(self, step: Step) -> Row:
        came, sent = messages(step.came), messages(step.sent)
        self._count(came, sent, step.events)
        number = str(self._counts["chunk"]) if any(message.has_data for message in came) else ""
        left = [Line(shown(message)) for message in came] or [Line("(the end)", Tone.FAINT)]
        dialect = self._about_dialect() if number else []
        passed = _about_passing(step, came, sent)
        if passed:
            right = [passed, *dialect, *(_told(event) for event in step.events if isinstance(event, _REMARKS))]
        else:
            right = [Line(shown(message), Tone.SENT, "→") for message in sent] + dialect + self._why(step)
        self._held = step.held
        return Row(number, left, right)

    def summary(self) -> str:
        def counted(noun: str) -> str:
            return f"{self._counts[noun]} {noun}{'' if self._counts[noun] == 1 else 's'}"

        self._counts["call"] = self._translator.tally.calls
        return f"{counted('chunk')} in, {counted('frame')} out: {counted('call')}, {counted('finding')}"

    def _count(self, came: list[sse.Message], sent: list[sse.Message], events: list[ev.Event]) -> None:
        self._counts["chunk"] += sum(message.has_data for message in came)
        self._counts["frame"] += sum(message.has_data for message in sent)
        self._counts["finding"] += sum(isinstance(event, ev.Finding) for event in events)

    # ── why ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _why(self, step: Step) -> list[Line]:
        why = self._about_markers(step) + _about_events(step.events) + self._about_held(step.held)
        return why or [self._about_silence(step)]

    def _about_dialect(self) -> list[Line]:
        known, self._dialect = self._dialect, self._translator.dialect
        return [_because(f"dialect: {self._dialect.name}")] if self._dialect and not known else []

    def _about_markers(self, step: Step) -> list[Line]:
        """The markers that are gone. One that went on was data."""
        went_on = _spoken(step.events)
        lines = []
        if went_on:
            self._after = ""
            if self._held and went_on.startswith(self._held):
                lines.append(_because(f"{quoted(self._held)} was no marker after all"))
        for marker in dict.fromkeys(self._markers_in(step.data)):
            if marker not in went_on and marker.encode() not in step.sent:
                self._after = marker
                lines.append(Line(f"marker {printable(marker)}", Tone.MARKER, "·"))
        return lines

    def _markers_in(self, data: str) -> Iterator[str]:
        marks = markers(*(self._dialect.markers if self._dialect else ()))
        for text in strings(read(data)):
            text, position = self._held + text, 0
            while found := marks.search(text, position):
                yield found.group()
                position = found.end()

    def _about_held(self, held: str) -> list[Line]:
        if not held:
            return []
        if held.isspace():
            what = "white space may belong to a marker"
        elif self._dialect and markers(*self._dialect.markers).may_begin(held.lstrip(), 0):
            what = "may become a marker"
        else:
            what = "is not known to be a call yet"
        return [_because(f"held back: {quoted(held)} {what}")]

    def _about_silence(self, step: Step) -> Line:
        if step.sent:
            return _because("rewritten for the client" if step.came else "the client's stream is ended")
        return _because(f"held back: more must follow {self._after}" if self._after else "nothing to send")


def _about_passing(step: Step, came: list[sse.Message], sent: list[sse.Message]) -> Line | None:
    """A chunk that says to the client what it said to us needs no further reasons."""
    if came and step.sent.endswith(step.came):
        first = "" if step.sent == step.came else "a role, then "
        return Line(f"{first}untouched, byte for byte", Tone.FAINT, "=")
    given, written = ([read(message.data) for message in side] for side in (came, sent))
    if len(given) != 1 or not isinstance(given[0], dict) or [what_matters(given[0])] != [*map(what_matters, written)]:
        return None
    before, after = list(fields(given[0])), list(fields(written[0]))
    gone = ", ".join(field for field in before if field not in after)
    new = ", ".join(field for field in after if field not in before)
    how = [f"without {gone}"] if gone else []
    how += [f"with {new}"] if new else []
    return Line(printable(f"the same, {' and '.join(how) or 'written anew'}"), Tone.FAINT, "≈")


_SPOKEN = {ev.TextDelta: "text", ev.ReasoningDelta: "thinking", ev.RefusalDelta: "refusal", ev.Seal: "seal"}


def _about_events(events: list[ev.Event]) -> list[Line]:
    return [line for line, _ in groupby(_told(event) for event in events)]


def _told(event: ev.Event) -> Line:
    match event:
        case ev.Finding():
            return Line(printable(f"finding {event.kind}: {event.message}"), Tone.FINDING, "!")
        case ev.Failure():
            return Line(printable(f"failed: {event.message}"), Tone.FAILED, "!")
        case ev.CallStart():
            return _because(f"call opened: {event.name}, id {event.id}")
        case ev.ArgsDelta():
            return _because("arguments passed on")
        case ev.CallEnd():
            return _because("call closed" if event.complete else "call left incomplete")
        case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta() | ev.Seal():
            return _because(f"{_SPOKEN[type(event)]} passed on")
        case ev.Usage():
            return _because(f"usage: {event.input} tokens in, {event.output} out")
        case ev.Stop():
            return _because(f"stop reason: {event.reason}")
        case ev.Begin():
            return _because("the reply begins")
        case _:
            assert_never(event)


def _because(text: str) -> Line:
    return Line(printable(text), Tone.FAINT, "·")


def _spoken(events: list[ev.Event]) -> str:
    spoken = (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.ArgsDelta)
    return "".join(event.text for event in events if isinstance(event, spoken))
