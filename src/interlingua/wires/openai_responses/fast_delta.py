"""Fast codec for the most common event: a delta of an open item's text, reasoning or arguments."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Literal

import msgspec

from interlingua.core.text_forwarder import TextForwarder
from interlingua.wires.base import Choice, Chunk, StreamedDelta
from interlingua.wires.openai_responses.event_types import KIND_BY_EVENT_PREFIX, REASONING_SUMMARY, TextKind
from interlingua.wires.openai_responses.item_reader import ItemReader
from interlingua.wires.openai_responses.item_state import WHOLE_ITEM, EventSequence, PartKey
from interlingua.wires.streaming.repeated_chunk import NO_TEXTS, REPLACEMENT_BYTES
from interlingua.wires.streaming.sse import EVENT_END

__all__ = ["ResponsesFastReader", "ResponsesRepeatReader"]


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


class _RepeatedDelta(_FastDelta, forbid_unknown_fields=True):
    """Delta of an event that may be forwarded unread: every field is known, and none has a value that matters here.

    Sequence number and obfuscation differ in each event.
    """

    logprobs: tuple[()] | None = None
    obfuscation: str | None = None

    def continues(self, other: _RepeatedDelta) -> bool:
        """Return whether both are deltas of the same text."""
        return (
            self.item_id == other.item_id
            and self.type == other.type
            and self.output_index == other.output_index
            and self.content_index == other.content_index
            and self.summary_index == other.summary_index
        )


_KIND_BY_EVENT_TYPE = {f"{prefix}.delta": kind for prefix, kind in KIND_BY_EVENT_PREFIX.items()}
_decode = msgspec.json.Decoder(_FastDelta).decode
_decode_repeated = msgspec.json.Decoder(_RepeatedDelta).decode
_decode_all_repeated = msgspec.json.Decoder(list[_RepeatedDelta]).decode


class ResponsesFastReader:
    """Fast codec of a `ResponsesReader`. `items` and `sequence`: the items and sequence numbers that it has read."""

    __slots__ = ("_items", "_sequence", "repeats")

    def __init__(self, items: ItemReader, sequence: EventSequence) -> None:
        self._items = items
        self._sequence = sequence
        self.repeats = ResponsesRepeatReader(items, sequence)

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


class ResponsesRepeatReader:
    """Fast codec of a `ResponsesReader` for repeated events: deltas of the same text, numbered without a gap.

    The number differs in every event, so each one is decoded. With typed fields, this takes less time than a search
    for the bytes around text and number.
    """

    __slots__ = ("_delta", "_head", "_items", "_line_ends", "_sequence")

    affixes = None
    are_affixes_exact = True

    def __init__(self, items: ItemReader, sequence: EventSequence) -> None:
        self._items = items
        self._sequence = sequence
        self._head = b""
        """The bytes of the learned event before its JSON."""
        self._line_ends = 0
        """Number of line ends in the learned event."""
        self._delta: _RepeatedDelta | None = None

    def learn(self, raw: bytes, index: int, delta: StreamedDelta, *, is_next: bool) -> bool:  # noqa: ARG002
        self._delta = None
        before, separator, data = raw.partition(b"data: ")
        try:
            repeated = _decode_repeated(data)
        except (msgspec.MsgspecError, UnicodeError):
            return False
        # A whitespace-only text is no good model: the guard has not decided yet whether the reply is empty.
        if repeated.delta != delta.text or delta.text.isspace() or EVENT_END in before or not raw.endswith(EVENT_END):
            return False
        self._head, self._line_ends, self._delta = before + separator, raw.count(b"\n"), repeated
        return True

    def find_texts(self, data: bytes) -> tuple[list[str], int]:
        known, head, number = self._delta, self._head, self._sequence.last
        if known is None or not data.startswith(head) or (not data.isascii() and REPLACEMENT_BYTES in data):
            return NO_TEXTS
        if data.count(b"\n") > self._line_ends:  # several events
            return self._find_in_events(data, known)
        if not data.endswith(EVENT_END) or b"\r" in data:
            return NO_TEXTS
        try:
            delta = _decode_repeated(data[len(head) :])
        except (msgspec.MsgspecError, UnicodeError):
            return NO_TEXTS
        is_repeated = delta.sequence_number == number + 1 and delta.continues(known) and delta.delta
        return ([delta.delta], len(data)) if is_repeated else NO_TEXTS

    def _find_in_events(self, data: bytes, known: _RepeatedDelta) -> tuple[list[str], int]:
        """`find_texts` for several events."""
        found = self._find_json(data[: data.rfind(EVENT_END)])
        texts: list[str] = []
        for number, delta in enumerate(_decode_deltas(found), self._sequence.last + 1):
            if delta.sequence_number != number or not delta.continues(known) or not delta.delta:
                break
            texts.append(delta.delta)
        size = len(texts) * (len(self._head) + len(EVENT_END)) + sum(map(len, found[: len(texts)]))
        return texts, size

    def _find_json(self, events_data: bytes) -> list[bytes]:
        """Return the JSON of the events that have the same lines as the learned one, from the first event on."""
        head = self._head
        events = events_data.split(EVENT_END)
        found = [event[len(head) :] for event in events]
        # To put the events together again takes less time than to search the beginning of each of them.
        if (
            events_data.count(b"\n") == len(events) * self._line_ends - len(EVENT_END)
            and b"\r" not in events_data
            and head + (EVENT_END + head).join(found) == events_data
        ):
            return found
        return list(takewhile(_is_in_one_line, (event.removeprefix(head) for event in events)))

    def read_text(self, text: str) -> Choice | None:
        delta = self._delta
        if delta is None:
            return None
        text_kind, choice = delta.text_kind, Choice(0, [], exact=False)
        part_key = delta.part_key(text_kind)
        if not self._items.append_text(delta.output_index, delta.item_id, text_kind, part_key, text, choice):
            return None
        self._sequence.last += 1
        return choice

    def arguments_forwarder(self) -> TextForwarder | None:
        return self._items.arguments_forwarder(self._delta.output_index) if self._delta is not None else None

    def forwarded_counter(self) -> Callable[[list[str], str], None] | None:
        delta, sequence = self._delta, self._sequence
        if delta is None:
            return None
        add_text = self._items.text_digest(delta.output_index, delta.part_key(delta.text_kind)).add

        def count_texts(texts: list[str], joined: str) -> None:
            add_text(joined)
            sequence.last += len(texts)

        return count_texts


def _is_in_one_line(found: bytes) -> bool:
    """Return whether this is JSON in one line: a line end in it would end the data of the event."""
    return found.startswith(b"{") and b"\n" not in found and b"\r" not in found


def _decode_deltas(found: list[bytes]) -> list[_RepeatedDelta]:
    """Decode the JSON of several events, up to the first that is no repeated delta."""
    try:
        # A line end is an error inside a string: so each event is one delta, or the number of deltas differs.
        deltas = _decode_all_repeated(b"[%b]" % b",\n".join(found))
        if len(deltas) == len(found):
            return deltas
    except (msgspec.MsgspecError, UnicodeError):
        pass
    deltas = []
    for data in found:
        try:
            deltas.append(_decode_repeated(data))
        except (msgspec.MsgspecError, UnicodeError):
            break
    return deltas
