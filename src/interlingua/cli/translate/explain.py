"""Explainer for `translate --explain`: what was received, what was sent, and why, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import assert_never

from interlingua import events as ev
from interlingua.cli.common.console import printable
from interlingua.cli.common.two_columns import ColumnLine, ColumnRow, Style
from interlingua.cli.translate.chunk_summary import (
    decode_messages,
    decode_value,
    essential_fields,
    field_names,
    format_message,
    quote,
    strings,
)
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.markers import compile_markers
from interlingua.translation.translator import TraceStep, Translator
from interlingua.wires.streaming import sse

__all__ = ["Explainer"]

_REMARKED_EVENTS = (ev.CallStart, ev.CallEnd, ev.Failure, ev.Finding)


class Explainer:
    """Explains the steps of one translator, in order."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._dialect: Dialect | None = None
        self._buffered = ""
        self._last_marker = ""  # reset when text or arguments are sent
        self._counts: Counter[str] = Counter()

    def explain(self, step: TraceStep) -> ColumnRow:
        received, sent = decode_messages(step.received), decode_messages(step.sent)
        self._count(received, sent, step.events)
        number = str(self._counts["chunk"]) if any(message.has_data for message in received) else ""
        left = [ColumnLine(format_message(message)) for message in received] or [
            ColumnLine("(end of stream)", Style.FAINT)
        ]
        dialect_lines = self._dialect_lines() if number else []
        passthrough = _passthrough_line(step, received, sent)
        if passthrough:
            right = [
                passthrough,
                *dialect_lines,
                *(_event_line(event) for event in step.events if isinstance(event, _REMARKED_EVENTS)),
            ]
        else:
            right = (
                [ColumnLine(format_message(message), Style.SENT, "→") for message in sent]
                + dialect_lines
                + self._reason_lines(step)
            )
        self._buffered = step.buffered
        return ColumnRow(number, left, right)

    def summary(self) -> str:
        def format_count(noun: str) -> str:
            return f"{self._counts[noun]} {noun}{'' if self._counts[noun] == 1 else 's'}"

        self._counts["call"] = self._translator.tally.calls
        chunks, frames, calls, findings = map(format_count, ("chunk", "frame", "call", "finding"))
        return f"{chunks} in, {frames} out: {calls}, {findings}"

    def _count(self, received: list[sse.SseMessage], sent: list[sse.SseMessage], events: list[ev.Event]) -> None:
        self._counts["chunk"] += sum(message.has_data for message in received)
        self._counts["frame"] += sum(message.has_data for message in sent)
        self._counts["finding"] += sum(isinstance(event, ev.Finding) for event in events)

    # ── reasons ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _reason_lines(self, step: TraceStep) -> list[ColumnLine]:
        lines = self._marker_lines(step) + _event_lines(step.events) + self._buffered_lines(step.buffered)
        return lines or [self._no_event_line(step)]

    def _dialect_lines(self) -> list[ColumnLine]:
        previous, self._dialect = self._dialect, self._translator.dialect
        return [_reason_line(f"dialect: {self._dialect.name}")] if self._dialect and not previous else []

    def _marker_lines(self, step: TraceStep) -> list[ColumnLine]:
        """Lines for the markers that the parser removed. A marker that was forwarded was data."""
        forwarded = _delta_text(step.events)
        lines = []
        if forwarded:
            self._last_marker = ""
            if self._buffered and forwarded.startswith(self._buffered):
                lines.append(_reason_line(f"{quote(self._buffered)} is not a marker after all"))
        for marker in dict.fromkeys(self._find_markers(step.data)):
            if marker not in forwarded and marker.encode() not in step.sent:
                self._last_marker = marker
                lines.append(ColumnLine(f"marker {printable(marker)}", Style.MARKER, "·"))
        return lines

    def _find_markers(self, data: str) -> Iterator[str]:
        marker_set = compile_markers(*(self._dialect.markers if self._dialect else ()))
        for text in strings(decode_value(data)):
            text, position = self._buffered + text, 0
            while match := marker_set.search(text, position):
                yield match.group()
                position = match.end()

    def _buffered_lines(self, buffered: str) -> list[ColumnLine]:
        if not buffered:
            return []
        if buffered.isspace():
            description = "(whitespace may belong to a marker)"
        elif self._dialect and compile_markers(*self._dialect.markers).is_partial(buffered.lstrip(), 0):
            description = "(may become a marker)"
        else:
            description = "(may become a call)"
        return [_reason_line(f"buffered: {quote(buffered)} {description}")]

    def _no_event_line(self, step: TraceStep) -> ColumnLine:
        if step.sent:
            return _reason_line("rewritten for the client" if step.received else "end of the client's stream")
        return _reason_line(
            f"buffered: waiting for the text after {self._last_marker}" if self._last_marker else "nothing to send"
        )


def _passthrough_line(step: TraceStep, received: list[sse.SseMessage], sent: list[sse.SseMessage]) -> ColumnLine | None:
    """Return the line for a chunk that is forwarded unchanged or with the same essential fields; else None."""
    if received and step.sent.endswith(step.received):
        prefix = "" if step.sent == step.received else "a role, then "
        return ColumnLine(f"{prefix}unchanged, byte for byte", Style.FAINT, "=")
    received_values, sent_values = ([decode_value(message.data) for message in side] for side in (received, sent))
    if (
        len(received_values) != 1
        or not isinstance(received_values[0], dict)
        or [essential_fields(received_values[0])] != [*map(essential_fields, sent_values)]
    ):
        return None
    received_fields, sent_fields = list(field_names(received_values[0])), list(field_names(sent_values[0]))
    removed = ", ".join(field for field in received_fields if field not in sent_fields)
    added = ", ".join(field for field in sent_fields if field not in received_fields)
    changes = [f"without {removed}"] if removed else []
    changes += [f"with {added}"] if added else []
    return ColumnLine(printable(f"the same, {' and '.join(changes) or 'reformatted'}"), Style.FAINT, "≈")


_DELTA_NAMES = {
    ev.TextDelta: "text",
    ev.ReasoningDelta: "reasoning",
    ev.RefusalDelta: "refusal",
    ev.Seal: "reasoning signature",
}


def _event_lines(events: list[ev.Event]) -> list[ColumnLine]:
    return [line for line, _ in groupby(_event_line(event) for event in events)]


def _event_line(event: ev.Event) -> ColumnLine:
    match event:
        case ev.Finding():
            return ColumnLine(printable(f"finding {event.kind}: {event.message}"), Style.FINDING, "!")
        case ev.Failure():
            return ColumnLine(printable(f"failed: {event.message}"), Style.FAILED, "!")
        case ev.CallStart():
            return _reason_line(f"call opened: {event.name}, id {event.id}")
        case ev.ArgsDelta():
            return _reason_line("arguments forwarded")
        case ev.CallEnd():
            return _reason_line("call closed" if event.complete else "call ended incomplete")
        case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta() | ev.Seal():
            return _reason_line(f"{_DELTA_NAMES[type(event)]} forwarded")
        case ev.Usage():
            return _reason_line(f"usage: {event.input} tokens in, {event.output} out")
        case ev.Stop():
            return _reason_line(f"stop reason: {event.reason}")
        case ev.Begin():
            return _reason_line("start of the reply")
        case _:
            assert_never(event)


def _reason_line(text: str) -> ColumnLine:
    return ColumnLine(printable(text), Style.FAINT, "·")


def _delta_text(events: list[ev.Event]) -> str:
    delta_types = (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.ArgsDelta)
    return "".join(event.text for event in events if isinstance(event, delta_types))
