"""Explainer for `translate --explain`: what was received, what was sent, and why, from the trace of a translator."""

from __future__ import annotations

from collections import Counter

from interlingua import events as ev
from interlingua import trace
from interlingua.cli.common.console import SEVERITY_STYLES, printable
from interlingua.cli.common.two_columns import ColumnLine, ColumnRow
from interlingua.cli.translate.chunk_runs import RunPart, forwarded_part, held_back_part, rewritten_part
from interlingua.cli.translate.chunk_summary import (
    decode_messages,
    decode_value,
    essential_fields,
    field_names,
    format_message,
)
from interlingua.cli.translate.row_selection import ExplainedRow
from interlingua.common.ansi import Style
from interlingua.core.finding_severity import SEVERITIES, Severity, severity_of
from interlingua.inspection.trace_description import describe_trace_event
from interlingua.wires.streaming import sse

__all__ = ["Explainer"]

_ROLE_FIELDS = {"role": "assistant"}
"""Essential fields of a frame that only begins a reply."""


class Explainer:
    """Observer of one translator. It makes a row for each message."""

    def __init__(self) -> None:
        self._received: trace.MessageReceived | trace.InputEnded | None = None
        self._events: list[trace.TraceEvent] = []
        self._rows: list[ExplainedRow] = []
        self._counts: Counter[str] = Counter()

    def observe(self, event: trace.TraceEvent) -> None:
        match event:
            case trace.MessageReceived() | trace.InputEnded():
                self._received, self._events = event, []
            case trace.FramesSent():
                self._rows.append(self._explain(self._received, event))
            case _:
                self._events.append(event)

    def take_rows(self) -> list[ExplainedRow]:
        """Return the rows that are complete, and forget them."""
        rows, self._rows = self._rows, []
        return rows

    def summary(self) -> str:
        def format_count(noun: str) -> str:
            return f"{self._counts[noun]} {noun}{'' if self._counts[noun] == 1 else 's'}"

        chunks, frames, calls, findings = map(format_count, ("chunk", "frame", "call", "finding"))
        severities = [f"{format_count(severity)}" for severity in ("error", "warning") if self._counts[severity]]
        return f"{chunks} in, {frames} out: {calls}, {findings}" + (f" ({', '.join(severities)})" if severities else "")

    def _explain(
        self, received_event: trace.MessageReceived | trace.InputEnded | None, frames: trace.FramesSent
    ) -> ExplainedRow:
        received, sent = _messages(received_event), _messages(frames)
        self._count(received, sent)
        number = str(self._counts["chunk"]) if any(message.has_data for message in received) else ""
        left = [ColumnLine(format_message(message)) for message in received] or [_absent_message_line(received_event)]
        dialects = [event for event in self._events if isinstance(event, trace.DialectChosen)]
        dialect_lines = [_reason_line(describe_trace_event(dialect)) for dialect in dialects]
        same_lines = _unchanged_lines(received, sent) if frames.unchanged else _same_fields_lines(received, sent)
        sent_lines = same_lines or _frame_lines(sent)
        reason_lines = self._reason_lines(is_forwarded=bool(same_lines))
        if not reason_lines and not same_lines:
            reason_lines = [_reason_line(_unexplained(received_event, frames))]
        row = ColumnRow(number, left, sent_lines + dialect_lines + reason_lines)
        is_unchanged = len(row.right) == 1 and bool(same_lines) and bool(number)
        part = self._run_part(row, received, sent, is_unchanged=is_unchanged) if number else None
        return ExplainedRow(row, is_unchanged, part, self._worst_severity())

    def _run_part(
        self, row: ColumnRow, received: list[sse.SseMessage], sent: list[sse.SseMessage], *, is_unchanged: bool
    ) -> RunPart | None:
        """Return a chunk as a part of a run; None if something else than the usual happened to it."""
        fields = essential_fields(decode_value(received[0].data)) if len(received) == 1 else None
        if not isinstance(fields, dict):
            return None
        if is_unchanged:
            return forwarded_part(row, fields)
        match self._events:
            case [trace.HeldBack() as event] if not sent:
                return held_back_part(row, fields, event)
            case [trace.EventSent(event=event) | trace.Passed(event=event)] if len(sent) == 1 and len(row.right) == 2:
                return rewritten_part(row, fields, essential_fields(decode_value(sent[0].data)), event)
            case _:
                return None

    def _worst_severity(self) -> Severity | None:
        found: set[Severity] = set()
        for event in self._events:
            if isinstance(event, trace.FindingReported):
                found.add(severity_of(event.finding.kind))
            elif isinstance(event, trace.EventSent) and isinstance(event.event, ev.Failure):
                found.add("error")
        return max(found, key=SEVERITIES.index, default=None)

    def _count(self, received: list[sse.SseMessage], sent: list[sse.SseMessage]) -> None:
        self._counts["chunk"] += sum(message.has_data for message in received)
        self._counts["frame"] += sum(message.has_data for message in sent)
        findings = [event.finding for event in self._events if isinstance(event, trace.FindingReported)]
        self._counts["finding"] += len(findings)
        self._counts.update(severity_of(finding.kind) for finding in findings)
        self._counts["call"] += sum(
            isinstance(event, trace.EventSent) and isinstance(event.event, ev.CallStart) for event in self._events
        )

    def _reason_lines(self, *, is_forwarded: bool) -> list[ColumnLine]:
        """Return a line for each trace event of the message, each marker and each run of equal lines once.

        Args:
            is_forwarded: the message was forwarded, so that no line has to say that its text was.
        """
        lines: list[ColumnLine] = []
        for event in self._events:
            line = _trace_line(event)
            is_plain = isinstance(event, trace.EventSent) and not isinstance(
                event.event, ev.CallStart | ev.CallEnd | ev.Failure
            )
            if line is None or (is_forwarded and (is_plain or isinstance(event, trace.Passed))):
                continue
            if line not in (lines if line.style is Style.MARKER else lines[-1:]):
                lines.append(line)
        return lines


def _messages(event: trace.MessageReceived | trace.InputEnded | trace.FramesSent | None) -> list[sse.SseMessage]:
    if event is None or isinstance(event, trace.InputEnded):
        return []
    return decode_messages(event.data, whole=event.whole)


# ── lines of a row ────────────────────────────────────────────────────────────────────────────────────────────────────


def _absent_message_line(event: trace.MessageReceived | trace.InputEnded | None) -> ColumnLine:
    is_too_long = isinstance(event, trace.MessageReceived)
    return ColumnLine("(an event over the size limit)" if is_too_long else "(end of stream)", Style.FAINT)


def _frame_lines(sent: list[sse.SseMessage]) -> list[ColumnLine]:
    return [ColumnLine(format_message(message), Style.GOOD, "→") for message in sent]


def _unchanged_lines(received: list[sse.SseMessage], sent: list[sse.SseMessage]) -> list[ColumnLine]:
    """Return the lines for frames that end with the message as it was received."""
    frames_before = sent[: len(sent) - len(received)]
    if [essential_fields(decode_value(frame.data)) for frame in frames_before] == [_ROLE_FIELDS]:
        return [ColumnLine("a role, then unchanged, byte for byte", Style.FAINT, "=")]
    words = "then unchanged" if frames_before else "unchanged"
    return [*_frame_lines(frames_before), ColumnLine(f"{words}, byte for byte", Style.FAINT, "=")]


def _same_fields_lines(received: list[sse.SseMessage], sent: list[sse.SseMessage]) -> list[ColumnLine]:
    """Return the line for a message that is sent with the same essential fields; no line if they differ."""
    received_values, sent_values = ([decode_value(message.data) for message in side] for side in (received, sent))
    if (
        len(received_values) != 1
        or not isinstance(received_values[0], dict)
        or [essential_fields(received_values[0])] != [*map(essential_fields, sent_values)]
    ):
        return []
    received_fields, sent_fields = list(field_names(received_values[0])), list(field_names(sent_values[0]))
    removed = ", ".join(field for field in received_fields if field not in sent_fields)
    added = ", ".join(field for field in sent_fields if field not in received_fields)
    changes = [f"without {removed}"] if removed else []
    changes += [f"with {added}"] if added else []
    return [ColumnLine(printable(f"the same, {' and '.join(changes) or 'reformatted'}"), Style.FAINT, "≈")]


def _unexplained(received: trace.MessageReceived | trace.InputEnded | None, frames: trace.FramesSent) -> str:
    if not frames.data:
        return "nothing to send"
    return "end of the client's stream" if isinstance(received, trace.InputEnded) else "rewritten for the client"


# ── trace events ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _trace_line(event: trace.TraceEvent) -> ColumnLine | None:
    """Return the line for a trace event; None for one that is shown elsewhere in the row."""
    if isinstance(event, trace.DialectChosen) or not (text := printable(describe_trace_event(event))):
        return None
    match event:
        case trace.MarkerSeen():
            return ColumnLine(text, Style.MARKER, "·")
        case trace.FindingReported():
            return ColumnLine(text, SEVERITY_STYLES[severity_of(event.finding.kind)], "!")
        case trace.EventSent(event=ev.Failure()):
            return ColumnLine(text, Style.ERROR, "!")
        case _:
            return _reason_line(text)


def _reason_line(text: str) -> ColumnLine:
    return ColumnLine(printable(text), Style.FAINT, "·")
