"""Reader for the events of an Anthropic Messages stream: chunks → neutral events.

A reply has one choice. The token counts that the upstream sends at the start and at the end become one usage event at
the end, because some clients of other wires add up all counts that they receive.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_str
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.wires.anthropic_messages.content_blocks import NAME, BlockReader, untranslated_finding
from interlingua.wires.anthropic_messages.fast_delta import MessagesFastReader
from interlingua.wires.base import Choice, Chunk, Json

__all__ = ["NAME", "STOP_REASONS", "MessagesReader", "has_counts"]

STOP_REASONS: dict[str, ev.StopReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "model_context_window_exceeded": "length",
}
_NATIVE_STOP_REASONS = ("pause_turn", "model_context_window_exceeded")
_ALIASES: dict[str, ev.StopReason] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}  # any other value is read as "stop"


class _State(Enum):
    FRESH = "nothing was received"
    OPEN = "open"
    STOPPED = "the stop reason was received"


class MessagesReader:
    """Reader for the chunks of one stream."""

    __slots__ = ("_blocks", "_state", "_stop_reason", "_usage", "fast")

    def __init__(self, limits: Limits | None = None, arguments: ArgumentsPolicy = "repair") -> None:
        self._state = _State.FRESH
        self._blocks = BlockReader(limits or Limits(), arguments)
        self.fast = MessagesFastReader(self._blocks)
        self._usage: Json = {}
        self._stop_reason: Any = None

    def read(self, chunk: Json) -> Chunk:
        event_type = chunk.get("type")
        if event_type == "error" or chunk.get("error"):
            return Chunk([], [_failure(chunk)], exact=False)
        read_event = _EVENT_READERS.get(event_type) if isinstance(event_type, str) else None
        if read_event is not None:
            return read_event(self, chunk)
        if event_type == "ping":
            return Chunk([], [], exact=True)
        if isinstance(event_type, str):
            return Chunk([], [untranslated_finding("an event", event_type)], exact=True)
        return Chunk([], [ev.Finding("bad-chunk", f"an event without a type: {chunk!r:.60}; dropped")], exact=False)

    def close(self, finished: bool) -> list[tuple[int, list[ev.Event]]]:
        """End the stream and return what is buffered, with the usage if no stop reason was received."""
        if self._state is _State.FRESH:
            return []
        choice = Choice(0, [], exact=False)
        if finished:
            self._blocks.finish(choice)
        choice.events += self._blocks.flush()
        if self._state is _State.OPEN:
            choice.events += self._usage_events()
        return [(0, choice.events)]

    # ── the message ───────────────────────────────────────────────────────────────────────────────────────────────

    def _read_message_start(self, chunk: Json) -> Chunk:
        choice = Choice(0, [], exact=True)
        message = as_dict(chunk.get("message"))
        model = as_str(message.get("model"))
        if self._state is not _State.FRESH:
            choice.report("bad-chunk", "a second message_start inside the message: dropped")
            return Chunk([choice], [], exact=False)
        self._state = _State.OPEN
        self._merge_usage(message)
        choice.events.append(ev.Begin(as_str(message.get("id")), model))
        choice.exact &= bool(message.get("id") and model) and message.get("role") == "assistant"
        choice.exact &= has_counts(message.get("usage"), "input_tokens", "output_tokens")
        content = message.get("content")
        if isinstance(content, list) and content:
            choice.exact = False
            for block in content:
                self._blocks.read_start(self._blocks.count, block, choice)
                self._blocks.read_stop(self._blocks.count - 1, choice)
        else:
            choice.exact &= content == []
        return Chunk([choice], [], choice.exact, model=model or "")

    def _read_message_delta(self, chunk: Json) -> Chunk:
        choice = self._new_choice()
        delta = as_dict(chunk.get("delta"))
        self._merge_usage(chunk)
        choice.exact &= has_counts(chunk.get("usage"), "output_tokens")
        reason = delta.get("stop_reason")
        if reason:
            self._read_stop(reason, delta, choice)
        choice.exact &= bool(reason)
        common = self._usage_events() if self._state is _State.STOPPED else []
        return Chunk([choice], common, choice.exact)

    def _read_stop(self, reason: Any, delta: Json, choice: Choice) -> None:
        if self._state is _State.STOPPED and reason == self._stop_reason:
            return  # a repeated stop reason, sent with the final usage
        self._state, self._stop_reason = _State.STOPPED, reason
        known_reason = STOP_REASONS.get(reason) if isinstance(reason, str) else None
        neutral_reason = known_reason or _ALIASES.get(str(reason).lower(), "stop")
        self._blocks.finish(choice, truncated=neutral_reason in ev.TRUNCATION_REASONS)
        if explanation := as_str(as_dict(delta.get("stop_details")).get("explanation")):
            choice.events.append(ev.RefusalDelta(explanation))
        if known_reason is None:
            choice.report(
                "unknown-finish-reason", f"stop_reason {reason!r} is unknown on this wire: read as {neutral_reason!r}"
            )
        sequence = as_str(delta.get("stop_sequence")) if reason == "stop_sequence" else None
        choice.events.append(ev.Stop(neutral_reason, sequence, reason if reason in _NATIVE_STOP_REASONS else None))

    def _read_message_stop(self, chunk: Json) -> Chunk:  # noqa: ARG002 (the event has no content)
        return Chunk([], [], exact=True, last=True)

    # ── its blocks ────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_block_start(self, chunk: Json) -> Chunk:
        choice = self._new_choice()
        self._blocks.read_start(_index(chunk), chunk.get("content_block"), choice)
        return Chunk([choice], [], choice.exact)

    def _read_block_delta(self, chunk: Json) -> Chunk:
        choice = self._new_choice()
        self._blocks.read_delta(_index(chunk), chunk.get("delta"), choice)
        return Chunk([choice], [], choice.exact)

    def _read_block_stop(self, chunk: Json) -> Chunk:
        choice = self._new_choice()
        self._blocks.read_stop(_index(chunk), choice)
        return Chunk([choice], [], choice.exact)

    def _new_choice(self) -> Choice:
        choice = Choice(0, [], exact=True)
        if self._state is _State.FRESH:
            self._state = _State.OPEN
            choice.report("no-message-start", "a message without a message_start: one is created")
        return choice

    # ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _merge_usage(self, container: Json) -> None:
        """Merge token counts. They are cumulative: a later count replaces an earlier one, and absent counts stay."""
        self._usage |= {key: value for key, value in as_dict(container.get("usage")).items() if value is not None}

    def _usage_events(self) -> list[ev.Event]:
        if not self._usage:
            return []
        cache_read, cache_written = (
            _count(self._usage, "cache_read_input_tokens"),
            _count(self._usage, "cache_creation_input_tokens"),
        )
        event = ev.Usage(
            input=_count(self._usage, "input_tokens") + cache_read + cache_written,
            output=_count(self._usage, "output_tokens"),
            cached=cache_read,
            cache_written=cache_written,
            reasoning=_count(as_dict(self._usage.get("output_tokens_details")), "thinking_tokens"),
            native=dict(self._usage),
        )
        return [event]


_EVENT_READERS: dict[str, Callable[[MessagesReader, Json], Chunk]] = {
    "message_start": MessagesReader._read_message_start,
    "content_block_start": MessagesReader._read_block_start,
    "content_block_delta": MessagesReader._read_block_delta,
    "content_block_stop": MessagesReader._read_block_stop,
    "message_delta": MessagesReader._read_message_delta,
    "message_stop": MessagesReader._read_message_stop,
}


def has_counts(usage: Any, *fields: str) -> bool:
    """Return whether usage has the counts that clients require."""
    return isinstance(usage, dict) and all(isinstance(usage.get(field), int) for field in fields)


def _failure(chunk: Json) -> ev.Failure:
    """Read an error event or HTTP error. `native` is the whole chunk, which clients of this wire receive."""
    raw_error = chunk.get("error") or chunk.get("message")
    error = raw_error if isinstance(raw_error, dict) else {"message": raw_error}
    message = str(error.get("message") or "the upstream failed")
    error_type = as_str(error.get("type")) or "api_error"
    code = error.get("code")
    return ev.Failure(
        message,
        error_type,
        code if isinstance(code, str | int) else None,
        {**chunk, "type": "error", "error": {**error, "type": error_type, "message": message}},
    )


def _index(chunk: Json) -> int | None:
    index = chunk.get("index")
    return index if isinstance(index, int) else None


def _count(container: Json, key: str) -> int:
    value = container.get(key)
    return value if isinstance(value, int) else 0
