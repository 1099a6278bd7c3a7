"""Did the text hold calls that nobody looked for? The same reply, read a second time by what its text says."""

from __future__ import annotations

from collections.abc import Iterator

import interlingua as il
from interlingua.dialects.registry import STANDARD

__all__ = ["Overlooked"]

FOUND = "detected"
"""The finding that tells which dialect a text is in."""


class Overlooked:
    """Listens to what a Translator is fed, and has a word to say where that one looks into no text."""

    def __init__(self, translator: il.Translator, listener: il.Translator) -> None:
        self._translator = translator
        self._listener = listener

    def listening(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._listener.feed(piece)
            yield piece
        self._listener.close()

    def hint(self) -> str:
        """What to do about it; nothing, if all is well."""
        found = next((finding for finding in self._listener.findings if finding.kind == FOUND), None)
        if found is None or self._translator.dialect not in (None, STANDARD):
            return ""
        what = found.message.partition(":")[0]
        return (
            f"no text was looked into, for this model is not known, but {what}; "
            "try --dialect with that name, and set it for the model in the gateway's settings"
        )
