"""Repeated chunks of a wire: they differ from the last one only in their text.

The bytes around the text are known from the last chunk (its *affixes*), so that the texts of several events are found
without decoding anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

import msgspec

from interlingua.wires.base import Affixes, StreamedDelta
from interlingua.wires.streaming.sse import EVENT_END

__all__ = ["NO_TEXTS", "PROBE_JSON", "REPLACEMENT_BYTES", "ProbedDelta", "RepeatedChunk"]

PROBE_TEXT, PROBE_JSON = "…", b"\\u2026"
"""Placeholder text, escaped as no server writes it. It replaces a chunk's text to find where the text comes out."""
PROBE, OTHER_PROBE = b'"%b"' % PROBE_JSON, b'"%b%b"' % (PROBE_JSON, PROBE_JSON)
"""The placeholder, and a different one, with their quotes."""
MAX_PROBES = 32
"""Some streams never repeat a chunk. No more are learned after this many in a row that no other chunk has repeated."""
REPLACEMENT_BYTES = "\ufffd".encode()
"""Character in the data of an event that may stand for bytes that were not UTF-8. Such events are not forwarded."""
NO_TEXTS: tuple[list[str], int] = [], 0

_decode_string = msgspec.json.Decoder(str).decode
_decode_strings = msgspec.json.Decoder(list[str]).decode
_encode_json = msgspec.json.Encoder().encode


class ProbedDelta(NamedTuple):
    """The only delta of a chunk with the placeholder text."""

    choice_index: int
    """The index of its choice."""
    delta: StreamedDelta
    is_exact: bool
    """True if the chunk is written just as clients expect it."""


class RepeatedChunk:
    """The chunk that the next ones may repeat. `delta`: its text, as the wire's reader finds it; None if unknown.

    `index`: the index of its choice.

    Some servers send reasoning twice in each chunk, in two fields. Such chunks are found one at a time.
    """

    __slots__ = (
        "_infix",
        "_prefix",
        "_probes_left",
        "_suffix",
        "_text_slice",
        "_two_events_size",
        "are_affixes_exact",
        "delta",
        "index",
    )

    def __init__(self) -> None:
        self._probes_left = MAX_PROBES
        self._prefix = self._suffix = b""
        self._infix: bytes | None = None
        """The bytes between the text and the same text; None if it is there once. Like the affixes, with its quotes."""
        self.are_affixes_exact = True
        """True if the chunk is written just as clients expect it, unless its text is not."""
        self._text_slice = slice(0, 0)
        """The place of the text, with its quotes, in a chunk."""
        self._two_events_size = 0
        """The minimum size of two events."""
        self.index = 0
        self.delta: StreamedDelta | None = None

    def learn(
        self,
        raw: bytes,
        index: int,
        delta: StreamedDelta,
        probe: Callable[[bytes], ProbedDelta | None],
        *,
        is_next: bool,
    ) -> bool:
        """Find the bytes around the text of this chunk. Return whether they are known.

        The text is replaced by a placeholder, and the reader must find just the placeholder: then the bytes around it
        do not depend on the text.

        Args:
            raw: the chunk as a whole event.
            index: the index of its choice.
            delta: its only event.
            probe: returns the delta, if this JSON holds one delta only.
            is_next: it follows the chunk that was learned last.
        """
        # A whitespace-only text is no good model: the guard has not decided yet whether the reply is empty.
        if delta.text.isspace():
            return False
        if type(self.delta) is type(delta) and self.index == index and self.find_texts(raw)[0] == [delta.text]:
            self._probes_left = MAX_PROBES
            return True
        if not is_next and self.delta is not None:
            self._probes_left = MAX_PROBES
        if self._probes_left == 0:
            self.delta, self._two_events_size = None, 0
            return False
        self._probes_left -= 1
        pieces = _split_at_text(raw, delta.text)
        if len(pieces) == 1 or EVENT_END in pieces[0] or not pieces[-1].endswith(EVENT_END):
            return False
        probed = _probe_pieces(pieces, probe)
        if (
            probed is None
            or probed.choice_index != index
            or type(probed.delta) is not type(delta)
            or probed.delta.text != PROBE_TEXT
        ):
            self.delta, self._two_events_size = None, 0
            return False
        self._set_affixes(pieces)
        self.index, self.delta, self.are_affixes_exact = probed
        return True

    def _set_affixes(self, pieces: list[bytes]) -> None:
        before, *between, after = pieces
        self._prefix, self._suffix = before + b'"', b'"' + after
        self._infix = b'"%b"' % between[0] if between else None
        self._text_slice = slice(len(before), -len(after))
        self._two_events_size = 0 if between else 2 * (len(self._prefix) + len(self._suffix))

    @property
    def affixes(self) -> Affixes | None:
        """The bytes before and after the text; None if it is there twice."""
        return (self._prefix, self._suffix) if self._infix is None else None

    def find_texts(self, data: bytes) -> tuple[list[str], int]:
        """Return the texts of the events that have these affixes, from the first event on, and the size of the events.

        None of the texts is empty.
        """
        if len(data) >= self._two_events_size:
            return self._find_in_events(data)
        if not data.startswith(self._prefix) or not data.endswith(self._suffix):
            return NO_TEXTS
        try:
            text = _decode_string(data[self._text_slice])
        except (msgspec.MsgspecError, UnicodeError):
            return NO_TEXTS
        return ([text], len(data)) if text and (text.isascii() or "\ufffd" not in text) else NO_TEXTS

    def _find_in_events(self, data: bytes) -> tuple[list[str], int]:
        """`find_texts` for several events, one with a long text, or one with its text twice."""
        prefix, suffix = self._prefix, self._suffix
        if self.delta is None or not data.startswith(prefix) or (not data.isascii() and REPLACEMENT_BYTES in data):
            return NO_TEXTS
        if self._infix is not None:
            return self._find_twice(data, self._infix)
        pieces = self._find_pieces(data)
        texts = _decode_pieces(pieces)
        return texts, sum(map(len, pieces[: len(texts)])) + len(texts) * (len(prefix) + len(suffix))

    def _find_twice(self, data: bytes, infix: bytes) -> tuple[list[str], int]:
        """`find_texts` for one event with its text twice."""
        prefix, suffix = self._prefix, self._suffix
        size = (len(data) - len(prefix) - len(infix) - len(suffix)) // 2
        piece = data[len(prefix) : len(prefix) + size]
        if size <= 0 or prefix + piece + infix + piece + suffix != data:
            return NO_TEXTS
        text = _decode_piece(piece)
        return ([text], len(data)) if text else NO_TEXTS

    def _find_pieces(self, data: bytes) -> list[bytes]:
        """Return the bytes between the affixes of each event, up to the first event that does not have them."""
        prefix, suffix = self._prefix, self._suffix
        events = data[: data.rfind(EVENT_END) + len(EVENT_END)]
        *head_lines, head = prefix.split(b"\n")
        lines = events.split(b"\n")[len(head_lines) : -1 : len(head_lines) + len(EVENT_END)]
        start, stop = len(head), len(EVENT_END) - len(suffix)
        pieces = [line[start:stop] for line in lines]
        # To put the events together again takes less time than to search their affixes.
        if prefix + (suffix + prefix).join(pieces) + suffix == events:
            return pieces
        pieces, position = [], 0
        while data.startswith(prefix, position):
            start = position + len(prefix)
            stop = data.find(suffix, start)
            if stop < 0:
                break
            pieces.append(data[start:stop])
            position = stop + len(suffix)
        return pieces


def _split_at_text(raw: bytes, text: str) -> list[bytes]:
    """Return the bytes around a text with its quotes: three pieces if it is there twice; `raw` if it is not found.

    Servers write characters beyond ASCII as they are, or escaped.
    """
    quoted = _encode_json(text)
    pieces = raw.split(quoted)
    if len(pieces) == 1 and not text.isascii():
        quoted = json.dumps(text).encode()
        pieces = raw.split(quoted)
    return pieces if len(pieces) <= 3 else raw.split(quoted, 1)


def _probe_pieces(pieces: list[bytes], probe: Callable[[bytes], ProbedDelta | None]) -> ProbedDelta | None:
    """Return the delta of the event with these pieces around the placeholder text. If the text is there twice, both
    must be the text of the delta: None if the event can be read with two different texts."""
    if len(pieces) == 3:
        with_different_texts = OTHER_PROBE.join([PROBE.join(pieces[:2]), pieces[2]])
        if probe(_data_of(with_different_texts)) is not None:
            return None
    return probe(_data_of(PROBE.join(pieces)))


def _data_of(event: bytes) -> bytes:
    return event.partition(b"data: ")[2]


def _decode_pieces(pieces: list[bytes]) -> list[str]:
    """Decode JSON strings without their quotes, up to the first one that is empty or invalid."""
    try:
        # A line end is an error inside a string: so each piece is one string, or the number of strings differs.
        texts = _decode_strings(b'["%b"]' % b'",\n"'.join(pieces))
        if len(texts) == len(pieces) and "" not in texts:
            return texts
    except (msgspec.MsgspecError, UnicodeError):
        pass
    return list(takewhile(bool, map(_decode_piece, pieces)))


def _decode_piece(piece: bytes) -> str:
    """Decode a JSON string without its quotes; "" if it is invalid."""
    try:
        return _decode_string(b'"%b"' % piece)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
