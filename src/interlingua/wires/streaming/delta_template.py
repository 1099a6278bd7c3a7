"""Frame template for consecutive deltas of one text: the bytes around the text are constant."""

from __future__ import annotations

from io import StringIO

import msgspec

__all__ = ["DeltaTemplate"]

_encode = msgspec.json.Encoder().encode


class DeltaTemplate:
    """Template of one frame. `collected`: a buffer for the texts; None if the text is not needed later."""

    __slots__ = ("_after", "_before", "_collected")

    def __init__(self, before: bytes, after: bytes, collected: StringIO | None) -> None:
        self._before = before
        self._after = after
        self._collected = collected

    def render(self, text: str) -> bytes:
        if self._collected is not None:
            self._collected.write(text)
        return self._before + _encode(text) + self._after
