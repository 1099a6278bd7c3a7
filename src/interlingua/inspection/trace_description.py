"""Descriptions of trace events, in one line of words. `translate --explain` and the inspector show the same."""

from __future__ import annotations

from typing import assert_never

import msgspec

from interlingua import events as ev
from interlingua import trace
from interlingua.common.short_text import shorten
from interlingua.core.finding_severity import severity_of

__all__ = ["MAX_QUOTED_CHARS", "describe_trace_event", "quote_text"]

MAX_QUOTED_CHARS = 60
"""Longer texts are shortened in the middle."""
_DELTA_NAMES = {
    ev.TextDelta: "text",
    ev.ReasoningDelta: "reasoning",
    ev.RefusalDelta: "refusal",
    ev.Seal: "reasoning signature",
}


def describe_trace_event(event: trace.TraceEvent) -> str:
    """Return the description; "" for events that are shown as data: messages, frames, the end of the input."""
    match event:
        case trace.MarkerSeen():
            return f"marker {event.marker}"
        case trace.HeldBack():
            reason = trace.HOLD_REASONS[event.reason]
            return f"buffered: {quote_text(event.text)} ({reason})" if event.text else f"buffered: {reason}"
        case trace.Released():
            conclusion = "is not a marker" if event.reason in ("marker", "whitespace") else "is text"
            return f"{quote_text(event.text)} {conclusion} after all"
        case trace.EventSent() | trace.Passed():
            return _describe_event(event.event)
        case trace.FindingReported():
            severity = severity_of(event.finding.kind)
            label = "finding" if severity == "info" else severity
            return f"{label} {event.finding.kind}: {event.finding.message}"
        case trace.DialectChosen():
            return f"dialect: {event.dialect}"
        case trace.MessageReceived() | trace.InputEnded() | trace.FramesSent():
            return ""
        case _:
            assert_never(event)


def _describe_event(event: ev.ReplyEvent) -> str:
    match event:
        case ev.Failure():
            return f"failed: {event.message}"
        case ev.CallStart():
            return f"call opened: {event.name}, id {event.id}"
        case ev.ArgsDelta():
            return "arguments forwarded"
        case ev.CallEnd():
            return "call closed" if event.complete else "call ended incomplete"
        case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta() | ev.Seal():
            return f"{_DELTA_NAMES[type(event)]} forwarded"
        case ev.Usage():
            return f"usage: {event.input} tokens in, {event.output} out"
        case ev.Stop():
            return f"stop reason: {event.reason}"
        case ev.Begin():
            return "start of the reply"
        case _:
            assert_never(event)


def quote_text(text: str) -> str:
    return msgspec.json.encode(shorten(text, MAX_QUOTED_CHARS)).decode()
