"""What came of a response's body, as server-sent events: be it those, lines of them without their ends, or JSON."""

from __future__ import annotations

import re

from interlingua.errors import UpstreamError
from interlingua.translation.translator__ending import DONE
from interlingua.wires.streaming import sse
from interlingua.wires.streaming.chunk_decoder import ChunkDecoder

__all__ = ["Framing"]

_BOM = b"\xef\xbb\xbf"
_ENDS = b"\r\n"
_FIELD = re.compile(rb"(data|event|id|retry)?:")
_END_OF_EVENT = b"\n\n"
"""Behind an event that has ended already, it says nothing."""


class Framing:
    """Takes the pieces of one body. `limit` is the most bytes that a body of JSON may have.

    Bytes may be cut anywhere, and then no piece is a line. So a piece is taken as a line only if it is one that says
    something whole: `data:` with a JSON object, or a field in front of another.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()
        self._tried = 0  # so much of the body was no JSON yet
        self._line_start = True  # what comes begins a line
        self._line = b""  # the last piece, if it is a field and lacks only its line end
        self._bom = _BOM

    def take(self, piece: bytes) -> bytes:
        """The events, as far as this piece tells them. Raises UpstreamError if a body is too long."""
        if not piece:
            return self._end_line()
        piece = self._without_bom(piece)
        if self._body or (self._line_start and piece.lstrip()[:1] == b"{"):
            return self._take_body(piece)
        field = _FIELD.match(piece)
        before = b"\n" if self._line and field and not _begins_json(self._line) else b""
        whole_line = field is not None and (self._line_start or bool(before)) and _is_line(piece)
        self._line = b""
        if whole_line and _says_all(piece):
            self._line_start = True
            return before + piece.rstrip(_ENDS) + _END_OF_EVENT
        self._line_start = piece[-1:] in (b"\r", b"\n") or (self._line_start and not piece.strip())
        if whole_line and not self._line_start:
            self._line = piece
        return before + piece

    def close(self) -> bytes:
        """No more will come."""
        rest = bytes(self._body)
        self._body.clear()
        return sse.encode(rest) if rest.strip() else b""

    def _without_bom(self, piece: bytes) -> bytes:
        while self._bom and piece:
            if piece[0] != self._bom[0]:
                self._bom = b""
                break
            piece, self._bom = piece[1:], self._bom[1:]
        return piece

    def _end_line(self) -> bytes:
        """An empty line, if lines come, ends an event. If bytes come, an empty piece says nothing."""
        line, value = self._line, self._line.partition(b":")[2].strip()
        if not line.startswith(b"data:") or not value or _begins_json(line):
            return b""
        self._line, self._line_start = b"", True
        return _END_OF_EVENT

    def _take_body(self, piece: bytes) -> bytes:
        """An object is tried when it looks complete, and has grown since it was not: all in all, it is read in a time
        that grows as its length does. What is never tried is read at the end."""
        self._body += piece
        size = len(self._body)
        if size > self._limit:
            self._body.clear()
            raise UpstreamError(f"the upstream sent a body of more than {self._limit:,} bytes")
        if piece.rstrip()[-1:] != b"}" or size < 2 * self._tried:
            return b""
        if not _is_object(bytes(self._body)):
            self._tried = size
            return b""
        self._tried, self._line_start = 0, True
        return self.close()


def _is_line(piece: bytes) -> bool:
    """Whether there is no line end in it, or only at its end."""
    return len(piece.splitlines()) == 1 and not piece.endswith((b"\n\n", b"\r\n\r\n"))


def _begins_json(line: bytes) -> bool:
    return line.startswith(b"data:") and line[5:].lstrip()[:1] == b"{"


def _says_all(line: bytes) -> bool:
    """Whether it is data that needs no other line."""
    if not line.startswith(b"data:"):
        return False
    value = line[5:].strip()
    return value == DONE.encode() or (value[:1] == b"{" and value[-1:] == b"}" and _is_object(value))


def _is_object(data: bytes) -> bool:
    return ChunkDecoder().decode(data.decode("utf-8", "replace")) is not None
