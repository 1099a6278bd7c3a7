"""Length and CRC of the text received so far.

When an upstream repeats the complete text, `remainder()` returns the part that is new.
"""

from __future__ import annotations

from zlib import crc32

__all__ = ["TextDigest"]


class TextDigest:
    """Length and checksum of one text, built up piece by piece."""

    def __init__(self) -> None:
        self.size = 0
        self._checksum = 0

    def add(self, text: str) -> None:
        self.size += len(text)
        data = text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")
        self._checksum = crc32(data, self._checksum)

    def remainder(self, full_text: str) -> str | None:
        """Return the part of `full_text` after the text so far; None if it does not begin with that text."""
        return (
            full_text[self.size :]
            if self.size <= len(full_text) and _checksum(full_text[: self.size]) == self._checksum
            else None
        )


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
