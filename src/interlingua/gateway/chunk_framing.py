"""Chunks of HTTP/1.1 bodies (`transfer-encoding: chunked`): their framing, one chunk at a time."""

from __future__ import annotations

__all__ = ["frame_chunk", "unframe_chunk"]

CRLF = b"\r\n"
MAX_TWO_DIGIT_CHUNK_BYTES = 0xFF + 6
"""Size of the largest chunk whose content has a size of two hexadecimal digits, with its framing."""


def frame_chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def unframe_chunk(data: bytes) -> bytes | None:
    """Return the content of a chunk of 16 to 4095 bytes; None if `data` is not just one such chunk.

    Servers usually send each event as one chunk, in one packet. All other chunks need a real parser, with a state.
    """
    size = len(data) - (6 if len(data) <= MAX_TWO_DIGIT_CHUNK_BYTES else 7)
    size_line = b"%x\r\n" % size
    if not data.startswith(size_line) and data[: len(size_line)].lower() != size_line:
        return None
    content = data[len(size_line) : -2]
    return content if data.endswith(CRLF) and len(content) == size else None
