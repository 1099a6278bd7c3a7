"""A reply as a plain client reads it, in one form for all wires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.resolver import as_mapping

__all__ = ["CallDelta", "ClientCall", "ClientReply", "ReplyAssembler", "as_count", "as_text"]

TOOL_CALL_FINISHES = frozenset({"tool_calls", "tool_use", "function_call"})
"""Finish reasons of the wires that tell the client to run tools. Responses has none."""
RESPONSE_COMPLETED = "completed"
"""Status of a complete response of Responses."""


class CallDelta(msgspec.Struct, frozen=True):
    """A piece of a call's arguments: the number of the call, the text, and the number of its event."""

    call: int
    text: str
    event: int


class ClientCall(msgspec.Struct, frozen=True):
    id: str
    name: str
    arguments: str
    """The arguments as the client concatenates them."""


class ClientReply(msgspec.Struct, frozen=True, kw_only=True):
    """Reply as a client reads it that follows its SDK and corrects nothing."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ClientCall, ...] = ()
    finish_reason: str = ""
    """The wire's own word; "" if there is none."""
    input_tokens: int = 0
    output_tokens: int = 0
    has_ended: bool = False
    """True if the reply has a regular end: a finish reason, or the last event of its wire."""
    error: str = ""
    """Error message of the server, in the body or in the stream."""
    unreadable_events: int = 0
    """Number of events that are not JSON objects."""
    events: int = 0
    deltas: tuple[CallDelta, ...] = ()
    """Arguments as they arrived; empty for a whole reply."""
    first_event_seconds: float = 0.0
    first_content_seconds: float = 0.0
    first_call_seconds: float = 0.0

    @property
    def wants_tools(self) -> bool:
        """True if the finish reason tells the client to run tools. Responses has none: there the calls do."""
        is_response_with_calls = self.finish_reason == RESPONSE_COMPLETED and bool(self.calls)
        return self.finish_reason in TOOL_CALL_FINISHES or is_response_with_calls


class _OpenCall(msgspec.Struct):
    number: int
    id: str = ""
    name: str = ""
    pieces: list[str] = []


class ReplyAssembler:
    """Mutable reply that the reader of a wire fills."""

    def __init__(self) -> None:
        self.finish_reason = ""
        self.input_tokens = 0
        self.output_tokens = 0
        self.has_ended = False
        self.error = ""
        self.event = 0
        self.call_began = False
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[object, _OpenCall] = {}
        self._deltas: list[CallDelta] = []

    @property
    def has_content(self) -> bool:
        return bool(self._texts or self._reasoning or self._calls)

    def add_text(self, text: str) -> None:
        if text:
            self._texts.append(text)

    def add_reasoning(self, text: str) -> None:
        if text:
            self._reasoning.append(text)

    def begin_call(self, key: object, id: str, name: str) -> None:
        """Begin the call with this key, or complete its id and name."""
        call = self._call(key)
        call.id, call.name = call.id or id, name or call.name

    def add_arguments(self, key: object, text: str) -> None:
        call = self._call(key)
        if text:
            call.pieces.append(text)
            self._deltas.append(CallDelta(call.number, text, self.event))

    def set_arguments(self, key: object, text: str) -> None:
        """Set the complete arguments of a call that had no deltas."""
        call = self._call(key)
        call.pieces = call.pieces or [text]

    def _call(self, key: object) -> _OpenCall:
        self.call_began = True
        return self._calls.setdefault(key, _OpenCall(len(self._calls)))

    def reply(self, **fields: Any) -> ClientReply:
        return ClientReply(
            text="".join(self._texts),
            reasoning="".join(self._reasoning),
            calls=tuple(ClientCall(call.id, call.name, "".join(call.pieces)) for call in self._calls.values()),
            finish_reason=self.finish_reason,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            has_ended=self.has_ended,
            error=self.error,
            deltas=tuple(self._deltas),
            **fields,
        )


def as_text(value: object) -> str:
    """Return the value if it is text, JSON if it is another value, and "" for null."""
    return value if isinstance(value, str) else "" if value is None else write_json(value)


def as_count(usage: object, *names: str) -> int:
    """Return the first of these fields that is a number of tokens; 0 if there is none."""
    fields: Mapping[str, Any] = as_mapping(usage)
    counts = (fields.get(name) for name in names)
    known = (count for count in counts if isinstance(count, int) and not isinstance(count, bool))
    return max(0, next(known, 0))
