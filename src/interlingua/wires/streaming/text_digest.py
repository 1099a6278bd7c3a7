"""A text that came in pieces, known again when it comes whole: of what was told, only size and checksum are kept."""

from __future__ import annotations

from zlib import crc32

__all__ = ["Told"]


class Told:
    """What has been told of one text so far."""

    def __init__(self) -> None:
        self.size = 0
        self._sum = 0

    def add(self, text: str) -> None:
        self.size += len(text)
        self._sum = crc32(text.encode("utf-8", "surrogatepass"), self._sum)

    def rest(self, whole: str) -> str | None:
        """What the whole has behind what was told; None if it does not begin with that."""
        return whole[self.size :] if self.size <= len(whole) and _sum(whole[: self.size]) == self._sum else None


def _sum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
