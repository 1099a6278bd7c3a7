"""A whole reply, and how it is folded from events."""

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


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text"):
    text: str


class Reasoning(msgspec.Struct, frozen=True, tag_field="kind", tag="reasoning", omit_defaults=True):
    """Thinking, and what its upstream wants back with it."""

    text: str
    seal: ev.Seal | None = None


class Call(msgspec.Struct, frozen=True, tag_field="kind", tag="call"):
    """One tool call. `arguments` is its JSON text as the model wrote it, `complete` whether the model closed it.

    `extra` is what a chat completion has beside that, such as a signature that its upstream wants back.
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
        """The arguments as an object that fits the tool. Raises CallError, whose text tells a model what to mend: of
        a call that is not complete as well, for nobody knows what would have followed.

        `repair="safe"` mends what cannot change the meaning (a code fence, a comma too many, the same object twice) and
        adds to `findings` what it did.
        """
        value, repairs = parse_arguments(self.name, self.arguments, tool, repair, self.complete)
        if findings is not None:
            findings += repairs
        return value

    def partial(self) -> dict[str, Any]:
        """The arguments as far as they are certain: for a call that is still coming. It reads them from the beginning,
        so for a long call ask it now and then, and not with every token."""
        value = parse_partial(self.arguments)
        return value if isinstance(value, dict) else {}


Part: TypeAlias = Text | Reasoning | Call


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered: its parts in order, why it stopped, and what was odd about it."""

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
    """The reply that these events tell. Neighbours of one kind become one part, wherever the stream was cut."""
    builder = ReplyBuilder()
    for event in events:
        builder.add(event)
    return builder.reply()


class ReplyBuilder:
    """Takes events one by one, and tells the reply so far at any time."""

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
        """The text of the reply so far, without the rest of it."""
        open_text = _join_in_place(self._texts) if self._text_type is Text else ""
        texts = [part.text for part in self._parts if isinstance(part, Text)]
        return "".join([*texts, open_text]) if texts else open_text

    def _append_text(self, text_type: type[Text | Reasoning], text: str) -> None:
        if text_type is not self._text_type:
            self._end_text()
            self._text_type = text_type
        self._texts.append(text)

    def _add_seal(self, seal: ev.Seal) -> None:
        """The thinking before it is one part with it, and ends there."""
        text = _join_in_place(self._texts) if self._text_type is Reasoning else ""
        if not text:
            self._end_text()
        self._parts.append(Reasoning(text, seal))
        self._text_type, self._texts = None, []

    def _open_text(self) -> Text | Reasoning | None:
        """The text that is being said."""
        text = _join_in_place(self._texts)
        return self._text_type(text) if self._text_type is not None and text else None

    def _end_text(self) -> None:
        if (text_part := self._open_text()) is not None:
            self._parts.append(text_part)
        self._text_type, self._texts = None, []

    def _open_call(self, complete: bool) -> Call | None:
        """The call that is open."""
        start = self._call_start
        if start is None:
            return None
        return Call(start.id or "", start.name, _join_in_place(self._args), complete, start.extra or msgspec.UNSET)

    def _end_call(self, complete: bool) -> None:
        if (call := self._open_call(complete)) is not None:
            self._parts.append(call)
        self._call_start, self._args = None, []


def _join_in_place(pieces: list[str]) -> str:
    """All of them as one, which is the only piece from now on: asked with every token, it joins two each time."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""
