"""Fast codec for the most common event: a delta of an open item's text, reasoning or arguments."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlingua.wires.base import Choice, Chunk
from interlingua.wires.openai_responses.event_types import KIND_BY_EVENT_PREFIX, REASONING_SUMMARY, TextKind
from interlingua.wires.openai_responses.item_reader import ItemReader
from interlingua.wires.openai_responses.item_state import WHOLE_ITEM, EventSequence, PartKey

__all__ = ["ResponsesFastReader"]


class _FastDelta(msgspec.Struct, gc=False):
    type: Literal[
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
    ]
    item_id: str
    output_index: int
    delta: str
    sequence_number: int
    content_index: int = 0
    summary_index: int = 0
    response: None = None
    error: None = None

    @property
    def text_kind(self) -> TextKind:
        return _KIND_BY_EVENT_TYPE[self.type]

    def part_key(self, text_kind: TextKind) -> PartKey:
        """Return the part of the item that the delta belongs to: the field with the parts, and the index."""
        if not text_kind.parts_field:
            return WHOLE_ITEM
        return text_kind.parts_field, self.summary_index if text_kind is REASONING_SUMMARY else self.content_index


_KIND_BY_EVENT_TYPE = {f"{prefix}.delta": kind for prefix, kind in KIND_BY_EVENT_PREFIX.items()}
_decode = msgspec.json.Decoder(_FastDelta).decode


class ResponsesFastReader:
    """Fast codec of a `ResponsesReader`. `items` and `sequence`: the items and sequence numbers that it has read."""

    __slots__ = ("_items", "_sequence")

    repeats = None
    """The sequence number differs in every event, so no two events have the same bytes around their text."""

    def __init__(self, items: ItemReader, sequence: EventSequence) -> None:
        self._items = items
        self._sequence = sequence

    def read(self, data: bytes) -> Chunk | None:
        try:
            delta = _decode(data)
        except (msgspec.MsgspecError, UnicodeError):
            return None
        text_kind, number = delta.text_kind, delta.sequence_number
        choice = Choice(0, [], exact=number > self._sequence.last)
        part_key = delta.part_key(text_kind)
        if not self._items.append_text(delta.output_index, delta.item_id, text_kind, part_key, delta.delta, choice):
            return None
        self._sequence.last = number
        return Chunk([choice], [], choice.exact)
