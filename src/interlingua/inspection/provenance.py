"""Provenance: the parts of the upstream's messages that each step of a translation came from.

A parser holds text back, drops markers and rewrites values, so an event can come from several messages, and only from a
part of each. The text of all messages is one sequence per choice. Events leave in the order of their text, so each is
searched for in the text that no earlier event has used. An event that is not found there was rewritten: it came from
all of the unused text that is not held back.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable

import msgspec

from interlingua import events as ev
from interlingua import trace
from interlingua.common.jsontext.codec import read_full_object
from interlingua.core.options import Options
from interlingua.inspection.json_strings import StringLiteral, find_string
from interlingua.wires import get_wire
from interlingua.wires.base import Chunk, Json

__all__ = ["ProvenanceTracker", "SourceRange"]

_DATA_LINE = re.compile(r"^data: ?(.*)$", re.MULTILINE)
MAX_USED_PIECES = 32
"""Number of texts that are kept although they were used."""
MAX_UNUSED_CALL_TEXTS = 1000
"""Number of texts of structured calls that wait for their event: a client gets calls one after another."""


class SourceRange(msgspec.Struct, frozen=True, array_like=True):
    """Characters of one message of the upstream, from `start` up to `end`, exclusively.

    `end` is 0 for the whole message. Positions count UTF-16 code units, as in a browser.
    """

    message: int
    start: int = 0
    end: int = 0


class _Piece(msgspec.Struct):
    """Text of one message, at a position in the text of its choice."""

    position: int
    text: str
    message: int
    data: str
    literal: StringLiteral | None
    """Place of the text in the message; None if it was not found there."""

    def range_of(self, start: int, end: int) -> SourceRange:
        """Return the place of the characters between these positions in the text of the choice."""
        if self.literal is None:
            return SourceRange(self.message)
        first, last = max(start - self.position, 0), min(end - self.position, len(self.text))
        return _source_range(self.message, self.data, *self.literal.range_of(first, last))


class _ChoiceText:
    """Text of one choice that no event has used yet."""

    def __init__(self) -> None:
        self._pieces: deque[_Piece] = deque()
        self._start = 0
        """Position of the unused text in the whole text."""
        self._end = 0
        self.is_in_opener = False
        """True after the opening marker of a call that may still turn out to be text."""

    def add(self, text: str, message: int, data: str, literal: StringLiteral | None) -> None:
        self._pieces.append(_Piece(self._end, text, message, data, literal))
        self._end += len(text)

    def take(self, text: str) -> list[SourceRange] | None:
        """Use the text up to the end of this one. None if it is not part of the unused text."""
        position = self._find(text)
        if position < 0:
            return None
        ranges = self._ranges(position, position + len(text))
        self._use(max(position + len(text), self._start))
        return ranges

    def find(self, text: str) -> list[SourceRange] | None:
        """Return the place of a text without using it. None if it is not part of the unused text."""
        position = self._find(text)
        return None if position < 0 else self._ranges(position, position + len(text))

    def find_last(self, char_count: int) -> list[SourceRange]:
        return self._ranges(max(self._end - char_count, self._start), self._end)

    def all_unused(self) -> list[SourceRange]:
        return self._ranges(self._start, self._end)

    def use_all(self) -> None:
        self._use(self._end)

    def _find(self, text: str) -> int:
        """Return the first position of the text in the unused text; else its last one in what was used recently, for
        text between calls that is sent after them; else -1."""
        if not text or not self._pieces:
            return -1
        joined = "".join([piece.text for piece in self._pieces])
        first_position = self._pieces[0].position
        offset = joined.find(text, self._start - first_position)
        if offset < 0:
            offset = joined.rfind(text)
        return offset if offset < 0 else first_position + offset

    def _use(self, end: int) -> None:
        self._start = end
        self.is_in_opener = False
        pieces = self._pieces
        while len(pieces) > MAX_USED_PIECES and pieces[0].position + len(pieces[0].text) <= end:
            pieces.popleft()

    def _ranges(self, start: int, end: int) -> list[SourceRange]:
        return [
            piece.range_of(start, end)
            for piece in self._pieces
            if piece.position < end and piece.position + len(piece.text) > start
        ]


class ProvenanceTracker:
    """Follows one reply, and returns the sources of its steps.

    Args:
        wire: The upstream's wire, whose reader shows which texts of a message are text of the model.
    """

    def __init__(self, wire: str) -> None:
        self._wire = get_wire(wire)
        self._reader = self._wire.reader(Options())
        self._texts: dict[int, _ChoiceText] = {}
        self._call_texts: deque[tuple[str, SourceRange]] = deque(maxlen=MAX_UNUSED_CALL_TEXTS)
        """Texts of structured calls that no event has used yet."""
        self._message = 0
        self._data = ""
        self._is_whole = False
        self._is_read = True

    def begin_message(self, number: int, data: str, *, whole: bool = False) -> None:
        """Begin a message of the upstream. It is read only if a step needs more than a text that was forwarded."""
        self._message, self._data, self._is_whole, self._is_read = number, data, whole, False

    def _read_message(self) -> None:
        if self._is_read:
            return
        self._is_read = True
        chunk = _decode_message(self._data, self._is_whole)
        if chunk is None:
            return
        try:
            read = self._wire.read_body(chunk, self._reader) if self._is_whole else self._reader.read(chunk)
        except (TypeError, ValueError, KeyError, AttributeError):  # not a chunk: its steps have the whole message
            return
        self._add_texts(read)

    def end_message(self, held: Iterable[trace.HeldBack]) -> None:
        """Mark everything as used, unless some of it is held back: then an event may still use markers before it."""
        self._read_message()
        held_choices = {event.choice for event in held if event.channel is not None}
        for choice, text in self._texts.items():
            if choice not in held_choices and not text.is_in_opener:
                text.use_all()

    def sources(self, event: trace.TraceEvent) -> list[SourceRange]:
        """Return the parts of the messages that this event came from."""
        whole_message = [SourceRange(self._message)]
        if isinstance(event, trace.Passed) and not self._is_read:
            self._is_read = True  # the fast path forwards a message that is nothing but text
            return self._find_string(event.event.text) or whole_message
        self._read_message()
        match event:
            case trace.Passed() | trace.EventSent():
                return self._event_sources(event.choice or 0, event.event) or whole_message
            case trace.MarkerSeen():
                text = self._text(event.choice)
                text.is_in_opener = text.is_in_opener or event.role == "opener"
                return text.find(event.marker) or whole_message
            case trace.HeldBack():
                return self._text(event.choice).find_last(len(event.text)) or whole_message
            case trace.Released():
                return self._text(event.choice).find(event.text) or whole_message
            case _:
                return whole_message

    def _event_sources(self, choice: int, event: ev.ReplyEvent) -> list[SourceRange] | None:
        text = self._text(choice)
        match event:
            case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta():
                return text.take(event.text) or text.all_unused()
            case ev.CallStart():
                return self._take_call_text(event.name) or text.take(event.name) or text.all_unused()
            case ev.ArgsDelta():
                return (
                    self._take_call_text(event.text)
                    or text.take(event.text)
                    or text.take(_unescape(event.text))
                    or text.all_unused()
                )
            case ev.Stop():
                return self._find_string(event.native or event.reason or "")
            case _:
                return None

    def _text(self, choice: int) -> _ChoiceText:
        return self._texts.setdefault(choice, _ChoiceText())

    def _add_texts(self, chunk: Chunk) -> None:
        position = 0
        for choice in chunk.choices:
            for event in choice.events:
                match event:
                    case ev.TextDelta() | ev.ReasoningDelta():
                        literal = find_string(self._data, event.text, position) or find_string(self._data, event.text)
                        position = literal.end if literal is not None else position
                        self._text(choice.index).add(event.text, self._message, self._data, literal)
                    case ev.CallStart():
                        self._add_call_text(event.name)
                    case ev.ArgsDelta():
                        self._add_call_text(event.text)
                    case _:
                        pass

    def _add_call_text(self, text: str) -> None:
        literal = find_string(self._data, text) if text else None
        if literal is not None:
            source = _source_range(self._message, self._data, literal.start, literal.end)
            self._call_texts.append((text, source))

    def _take_call_text(self, text: str) -> list[SourceRange] | None:
        """Use a text of a structured call, or several that were joined. None if there is none."""
        for index, (received, source) in enumerate(self._call_texts):
            if received == text:
                del self._call_texts[index]
                return [source]
        joined: list[SourceRange] = []
        rest = text
        for received, source in self._call_texts:
            if not rest.startswith(received):
                return None
            rest = rest[len(received) :]
            joined.append(source)
            if not rest:
                for _ in joined:
                    self._call_texts.popleft()
                return joined
        return None

    def _find_string(self, word: str) -> list[SourceRange] | None:
        """Return the place of a string in the current message."""
        literal = find_string(self._data, word) if word else None
        if literal is None:
            return None
        return [_source_range(self._message, self._data, literal.start, literal.end)]


def _decode_message(data: str, is_whole: bool) -> Json | None:
    """Return the JSON object in a message; None if it has none."""
    body = data if is_whole else "\n".join(_DATA_LINE.findall(data))
    return read_full_object(body) if body.lstrip().startswith("{") else None


def _unescape(arguments: str) -> str:
    """Return the text of a part of a JSON string; "" if it is none. Values of params are written as JSON strings."""
    try:
        decoded = json.loads(f'"{arguments}"')
    except ValueError:
        return ""
    return str(decoded)


def _source_range(message: int, data: str, start: int, end: int) -> SourceRange:
    if data.isascii():
        return SourceRange(message, start, end)
    return SourceRange(message, _utf16_length(data[:start]), _utf16_length(data[:end]))


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
