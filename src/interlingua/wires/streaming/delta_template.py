"""Frame template for consecutive deltas of one text: the bytes around the text are constant."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import msgspec

__all__ = ["DeltaTemplate"]

_encode = msgspec.json.Encoder().encode


class DeltaTemplate:
    """Template of one frame.

    Args:
        pieces: The bytes around the text, with all but its quotes. Between two pieces is the text.
        collected: A buffer for the texts; None if the text is not needed later.
    """

    __slots__ = ("_collected", "_pieces")

    def __init__(self, pieces: Sequence[bytes], collected: StringIO | None) -> None:
        self._pieces = tuple(pieces)
        self._collected = collected

    def render(self, texts: list[str], joined: str) -> bytes:
        """Return a frame for each text. `joined`: all of them as one."""
        if self._collected is not None:
            self._collected.write(joined)
        pieces = self._pieces
        if len(texts) == 1:
            return _encode(joined).join(pieces)
        if len(pieces) > 2:
            return b"".join([_encode(text).join(pieces) for text in texts])
        before, after = pieces
        return before + (after + before).join(map(_encode, texts)) + after
