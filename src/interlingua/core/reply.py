"""A complete reply, and the fold that builds it from events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, assert_never

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.partial import parse_partial
from interlingua.core.call_arguments import RepairPolicy, parse_arguments
from interlingua.core.tools import Tool
from interlingua.events import EventOrder

__all__ = ["Call", "Part", "Reasoning", "Reply", "ReplyBuilder", "Text", "fold"]


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text", omit_defaults=True):
    """Text of a message. `phase` is the role of the model's text in its turn, on wires that have it: a commentary
    between calls, or the final answer."""

    text: str
    phase: str = ""


class Reasoning(msgspec.Struct, frozen=True, tag_field="kind", tag="reasoning", omit_defaults=True):
    """Thinking, and the data that its upstream expects back with it."""

    text: str
    seal: ev.Seal | None = None


class Call(msgspec.Struct, frozen=True, tag_field="kind", tag="call"):
    """One tool call. `arguments` is its JSON text as the model wrote it. `complete` is true if the model closed it.

    `extra` holds further fields of a chat completion's call, such as a signature that its upstream expects back.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True
    extra: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    def parse(
        self,
        tool: Tool | Mapping[str, Any] | None = None,
        *,
        repair: RepairPolicy = "never",
        findings: list[ev.Finding] | None = None,
    ) -> dict[str, Any]:
        """Return the arguments as an object that matches the tool's schema.

        Args:
            tool: The tool with the schema; None skips validation.
            repair: `safe` repairs errors if that cannot change the meaning (a code fence, an extra comma, the same
                object twice).
            findings: List that receives a finding for each repair.

        Raises:
            CallError: The arguments are invalid, or the call is incomplete, so that its remaining arguments are
                unknown. The message describes the problem to the model.
        """
        value, repairs = parse_arguments(self.name, self.arguments, tool, repair, self.complete)
        if findings is not None:
            findings += repairs
        return value

    def partial(self) -> dict[str, Any]:
        """Return the arguments that are certain so far, for a call that is still streaming. This parses them from the
        beginning, so for a long call do not use it with every token."""
        value = parse_partial(self.arguments)
        return value if isinstance(value, dict) else {}


Part: TypeAlias = Text | Reasoning | Call


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply: its parts in order, its stop reason, and its findings."""

    parts: list[Part] = []
    stop_reason: ev.StopReason | None = None
    refusal: str = ""
    usage: ev.Usage | None = None
    failure: ev.Failure | None = None
    findings: list[ev.Finding] = []

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]


def fold(events: Iterable[ev.Event]) -> Reply:
    """Return the reply that these events form. Adjacent deltas of one kind become one part, however the stream was
    cut."""
    builder = ReplyBuilder()
    for event in events:
        builder.add(event)
    return builder.reply()


class ReplyBuilder:
    """Builder that takes events one by one and returns the reply so far at any time."""

    def __init__(self) -> None:
        self._order = EventOrder()
        self._parts: list[Part] = []
        self._text_type: type[Text | Reasoning] | None = None
        self._texts: list[str] = []
        self._call_start: ev.CallStart | None = None
        self._args: list[str] = []
        self._refusal: list[str] = []
        self.stop_reason: ev.StopReason | None = None
        self._usage: ev.Usage | None = None
        self.failure: ev.Failure | None = None
        self._findings: list[ev.Finding] = []

    def add(self, event: ev.Event) -> None:
        self._order.check(event)
        match event:
            case ev.TextDelta() | ev.ReasoningDelta():
                self._append_text(Text if isinstance(event, ev.TextDelta) else Reasoning, event.text)
            case ev.Seal():
                self._add_seal(event)
            case ev.RefusalDelta():
                self._refusal.append(event.text)
            case ev.CallStart():
                self._end_text()
                self._call_start = event
            case ev.ArgsDelta():
                self._args.append(event.text)
            case ev.CallEnd():
                self._end_call(event.complete)
            case ev.Usage():
                self._usage = event
            case ev.Stop():
                self.stop_reason = event.reason
            case ev.Failure():
                self.failure = event
            case ev.Finding():
                self._findings.append(event)
            case ev.Begin():
                pass
            case _:
                assert_never(event)

    def reply(self) -> Reply:
        text_part = self._open_text()
        call = self._open_call(complete=False)
        return Reply(
            parts=[*self._parts, *([text_part] if text_part else []), *([call] if call else [])],
            stop_reason=self.stop_reason,
            refusal=_join_in_place(self._refusal),
            usage=self._usage,
            failure=self.failure,
            findings=[*self._findings],
        )

    @property
    def text(self) -> str:
        """Text of the reply so far, without reasoning and calls."""
        open_text = _join_in_place(self._texts) if self._text_type is Text else ""
        texts = [part.text for part in self._parts if isinstance(part, Text)]
        return "".join([*texts, open_text]) if texts else open_text

    def _append_text(self, text_type: type[Text | Reasoning], text: str) -> None:
        if text_type is not self._text_type:
            self._end_text()
            self._text_type = text_type
        self._texts.append(text)

    def _add_seal(self, seal: ev.Seal) -> None:
        """Close the preceding reasoning as one part with this seal."""
        text = _join_in_place(self._texts) if self._text_type is Reasoning else ""
        if not text:
            self._end_text()
        self._parts.append(Reasoning(text, seal))
        self._text_type, self._texts = None, []

    def _open_text(self) -> Text | Reasoning | None:
        """Return the text or reasoning part that is still open."""
        text = _join_in_place(self._texts)
        return self._text_type(text) if self._text_type is not None and text else None

    def _end_text(self) -> None:
        if (text_part := self._open_text()) is not None:
            self._parts.append(text_part)
        self._text_type, self._texts = None, []

    def _open_call(self, complete: bool) -> Call | None:
        """Return the call that is still open."""
        start = self._call_start
        if start is None:
            return None
        return Call(start.id or "", start.name, _join_in_place(self._args), complete, start.extra or msgspec.UNSET)

    def _end_call(self, complete: bool) -> None:
        if (call := self._open_call(complete)) is not None:
            self._parts.append(call)
        self._call_start, self._args = None, []


def _join_in_place(pieces: list[str]) -> str:
    """Join the pieces and replace them by the result: a caller that uses this with every token joins only two pieces
    each time."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""
