"""A text that came in pieces, known again when it comes whole: of what was told, only size and checksum are kept."""

from __future__ import annotations

from zlib import crc32

__all__ = ["TextDigest"]


class TextDigest:
    """What has been told of one text so far."""

    def __init__(self) -> None:
        self.size = 0
        self._checksum = 0

    def add(self, text: str) -> None:
        self.size += len(text)
        self._checksum = crc32(text.encode("utf-8", "surrogatepass"), self._checksum)

    def remainder(self, full_text: str) -> str | None:
        """What the whole has behind what was told; None if it does not begin with that."""
        return (
            full_text[self.size :]
            if self.size <= len(full_text) and _checksum(full_text[: self.size]) == self._checksum
            else None
        )


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
