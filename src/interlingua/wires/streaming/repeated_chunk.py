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
MAX_PROBES = 32
"""Some streams never repeat a chunk. The search for the affixes is given up after this many failed attempts."""
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
    """

    __slots__ = (
        "_probes_left",
        "_text_slice",
        "_two_events_size",
        "affixes",
        "are_affixes_exact",
        "delta",
        "index",
    )

    def __init__(self) -> None:
        self._probes_left = MAX_PROBES
        self.affixes: Affixes = b"", b""
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
    ) -> bool:
        """Find the bytes around the text of this chunk. Return whether they are known.

        The text is replaced by a placeholder, and the reader must find just the placeholder: then the bytes around it
        do not depend on the text.

        Args:
            raw: the chunk as a whole event.
            index: the index of its choice.
            delta: its only event.
            probe: returns the delta, if this JSON holds one delta only.
        """
        # A whitespace-only text is no good model: the guard has not decided yet whether the reply is empty.
        if delta.text.isspace():
            return False
        if type(self.delta) is type(delta) and self.index == index and self.find_texts(raw)[0] == [delta.text]:
            return True
        if self._probes_left == 0:
            return False
        before, after = _split_at_text(raw, delta.text)
        if EVENT_END in before or not after.endswith(EVENT_END):
            return False
        self.affixes = prefix, suffix = before + b'"', b'"' + after
        self._text_slice = slice(len(before), -len(after))
        self._two_events_size = 2 * (len(prefix) + len(suffix))
        _, _, data = PROBE_JSON.join(self.affixes).partition(b"data: ")
        probed = probe(data) if after else None
        if (
            probed is None
            or probed.choice_index != index
            or type(probed.delta) is not type(delta)
            or probed.delta.text != PROBE_TEXT
        ):
            self._probes_left -= 1
            self.delta, self._two_events_size = None, 0
            return False
        self.index, self.delta, self.are_affixes_exact = probed
        return True

    def find_texts(self, data: bytes) -> tuple[list[str], int]:
        """Return the texts of the events that have these affixes, from the first event on, and the size of the events.

        None of the texts is empty.
        """
        if len(data) >= self._two_events_size:
            return self._find_in_events(data)
        prefix, suffix = self.affixes
        if not data.startswith(prefix) or not data.endswith(suffix):
            return NO_TEXTS
        try:
            text = _decode_string(data[self._text_slice])
        except (msgspec.MsgspecError, UnicodeError):
            return NO_TEXTS
        return ([text], len(data)) if text and (text.isascii() or "\ufffd" not in text) else NO_TEXTS

    def _find_in_events(self, data: bytes) -> tuple[list[str], int]:
        """`find_texts` for several events, or one with a long text."""
        prefix, suffix = self.affixes
        if self.delta is None or not data.startswith(prefix) or (not data.isascii() and REPLACEMENT_BYTES in data):
            return NO_TEXTS
        pieces = self._find_pieces(data)
        texts = _decode_pieces(pieces)
        return texts, sum(map(len, pieces[: len(texts)])) + len(texts) * (len(prefix) + len(suffix))

    def _find_pieces(self, data: bytes) -> list[bytes]:
        """Return the bytes between the affixes of each event, up to the first event that does not have them."""
        prefix, suffix = self.affixes
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


def _split_at_text(raw: bytes, text: str) -> tuple[bytes, bytes]:
    """Return the bytes before and after a text with its quotes. They are `raw` and b"" if it is not found.

    Servers write characters beyond ASCII as they are, or escaped.
    """
    before, quoted, after = raw.partition(_encode_json(text))
    if not quoted and not text.isascii():
        before, _, after = raw.partition(json.dumps(text).encode())
    return before, after


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
