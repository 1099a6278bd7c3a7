"""Did the text hold calls that nobody looked for? The same reply, read a second time by what its text says."""

from __future__ import annotations

from collections.abc import Iterator

import interlingua as il
from interlingua.dialects.registry import STANDARD_DIALECT

__all__ = ["MissedCallDetector"]

DETECTED_FINDING_KIND = "detected"
"""The finding that tells which dialect a text is in."""


class MissedCallDetector:
    """Listens to what a Translator is fed, and has a word to say where that one looks into no text."""

    def __init__(self, translator: il.Translator, detecting_translator: il.Translator) -> None:
        self._translator = translator
        self._detecting_translator = detecting_translator

    def observe(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._detecting_translator.feed(chunk)
            yield chunk
        self._detecting_translator.close()

    def hint(self) -> str:
        """What to do about it; nothing, if all is well."""
        detection = next(
            (finding for finding in self._detecting_translator.findings if finding.kind == DETECTED_FINDING_KIND), None
        )
        if detection is None or self._translator.dialect not in (None, STANDARD_DIALECT):
            return ""
        description = detection.message.partition(":")[0]
        return (
            f"no text was looked into, for this model is not known, but {description}; "
            "try --dialect with that name, and set it for the model in the gateway's settings"
        )
