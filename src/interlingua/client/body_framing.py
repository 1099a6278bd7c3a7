"""Converts a response body to server-sent events: from SSE bytes, SSE lines without line ends, or JSON objects."""

from __future__ import annotations

import re

from interlingua.errors import UpstreamError
from interlingua.translation.reply_decoder import DONE
from interlingua.wires.streaming import sse
from interlingua.wires.streaming.chunk_decoder import ChunkDecoder

__all__ = ["BodyFraming"]

_BOM = b"\xef\xbb\xbf"
_LINE_ENDS = b"\r\n"
_SSE_FIELD = re.compile(rb"(data|event|id|retry)?:")
_END_OF_EVENT = b"\n\n"
"""Has no effect after an event that has already ended."""


class BodyFraming:
    """Frames the pieces of one body. `limit` is the maximum size of a JSON body in bytes.

    A byte stream may be cut anywhere, and then a piece is not a line. So a piece counts as a line only if it is
    complete: `data:` with a whole JSON object, or a field that is followed by another field.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()
        self._rejected_size = 0  # size of the body at the last attempt to parse it as JSON
        self._at_line_start = True  # the next piece starts a line
        self._unended_line = b""  # the last piece, if it is a field that lacks only its line end
        self._expected_bom = _BOM

    def feed(self, piece: bytes) -> bytes:
        """Return the SSE bytes for this piece.

        Raises:
            UpstreamError: A JSON body is larger than the limit.
        """
        if not piece:
            return self._end_event()
        piece = self._strip_bom(piece)
        if self._body or (self._at_line_start and piece.lstrip()[:1] == b"{"):
            return self._feed_body(piece)
        field = _SSE_FIELD.match(piece)
        line_end = b"\n" if self._unended_line and field and not _begins_json(self._unended_line) else b""
        is_complete_line = field is not None and (self._at_line_start or bool(line_end)) and _is_line(piece)
        self._unended_line = b""
        if is_complete_line and _is_complete_data(piece):
            self._at_line_start = True
            return line_end + piece.rstrip(_LINE_ENDS) + _END_OF_EVENT
        self._at_line_start = piece[-1:] in (b"\r", b"\n") or (self._at_line_start and not piece.strip())
        if is_complete_line and not self._at_line_start:
            self._unended_line = piece
        return line_end + piece

    def close(self) -> bytes:
        """Return the SSE bytes for a JSON body that is still buffered, at the end of the input."""
        body = bytes(self._body)
        self._body.clear()
        return sse.encode_event(body) if body.strip() else b""

    def _strip_bom(self, piece: bytes) -> bytes:
        while self._expected_bom and piece:
            if piece[0] != self._expected_bom[0]:
                self._expected_bom = b""
                break
            piece, self._expected_bom = piece[1:], self._expected_bom[1:]
        return piece

    def _end_event(self) -> bytes:
        """End an event at an empty line. In a byte stream, an empty piece has no effect."""
        line, value = self._unended_line, self._unended_line.partition(b":")[2].strip()
        if not line.startswith(b"data:") or not value or _begins_json(line):
            return b""
        self._unended_line, self._at_line_start = b"", True
        return _END_OF_EVENT

    def _feed_body(self, piece: bytes) -> bytes:
        """Buffer a piece of a JSON body, and return the event once the object is complete.

        Parsing is attempted only if the buffer ends with `}` and has doubled since the last failed attempt. So the
        total time is linear in the size of the body. A body that is never attempted is parsed at the end.
        """
        self._body += piece
        size = len(self._body)
        if size > self._limit:
            self._body.clear()
            raise UpstreamError(f"the upstream sent a body of more than {self._limit:,} bytes")
        if piece.rstrip()[-1:] != b"}" or size < 2 * self._rejected_size:
            return b""
        if not _is_object(bytes(self._body)):
            self._rejected_size = size
            return b""
        self._rejected_size, self._at_line_start = 0, True
        return self.close()


def _is_line(piece: bytes) -> bool:
    """Return whether the piece has no line end except at its end."""
    return len(piece.splitlines()) == 1 and not piece.endswith((b"\n\n", b"\r\n\r\n"))


def _begins_json(line: bytes) -> bool:
    return line.startswith(b"data:") and line[5:].lstrip()[:1] == b"{"


def _is_complete_data(line: bytes) -> bool:
    """Return whether the line is a `data:` field with a complete value."""
    if not line.startswith(b"data:"):
        return False
    value = line[5:].strip()
    return value == DONE.encode() or (value[:1] == b"{" and value[-1:] == b"}" and _is_object(value))


def _is_object(data: bytes) -> bool:
    return ChunkDecoder().decode(data.decode("utf-8", "replace")) is not None
