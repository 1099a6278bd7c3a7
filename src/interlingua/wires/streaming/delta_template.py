"""More of one text, written: what stands around it is the same each time."""

from __future__ import annotations

import msgspec

__all__ = ["DeltaTemplate"]

_encode = msgspec.json.Encoder().encode


class DeltaTemplate:
    """`kept` is where the texts are kept, if anybody asks for all of them later."""

    __slots__ = ("_after", "_before", "_collected")

    def __init__(self, before: bytes, after: bytes, collected: list[str] | None) -> None:
        self._before = before
        self._after = after
        self._collected = collected

    def render(self, text: str) -> bytes:
        if self._collected is not None:
            self._collected.append(text)
        return self._before + _encode(text) + self._after
