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

    def render(self, texts: list[str], joined: str) -> bytes:
        """Return a frame for each text. `joined`: all of them as one."""
        if self._collected is not None:
            self._collected.write(joined)
        if len(texts) == 1:
            return self._before + _encode(joined) + self._after
        return self._before + (self._after + self._before).join(map(_encode, texts)) + self._after
