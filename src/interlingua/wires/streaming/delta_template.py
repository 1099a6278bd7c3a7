"""More of one text, written: what stands around it is the same each time."""

from __future__ import annotations

import msgspec

__all__ = ["More"]

_write = msgspec.json.Encoder().encode


class More:
    """`kept` is where the texts are kept, if anybody asks for all of them later."""

    __slots__ = ("_before", "_behind", "_kept")

    def __init__(self, before: bytes, behind: bytes, kept: list[str] | None) -> None:
        self._before = before
        self._behind = behind
        self._kept = kept

    def say(self, text: str) -> bytes:
        if self._kept is not None:
            self._kept.append(text)
        return self._before + _write(text) + self._behind
