"""Detector of missed tool calls: translate the reply a second time with automatic dialect detection."""

from __future__ import annotations

from collections.abc import Iterator

import interlingua as il
from interlingua.dialects.registry import STANDARD_DIALECT

__all__ = ["MissedCallDetector"]

DETECTED_FINDING_KIND = "detected"
"""Kind of the finding that names the detected dialect."""


class MissedCallDetector:
    """Detects calls in the text of a reply that a translator forwards without parsing."""

    def __init__(self, translator: il.Translator, detecting_translator: il.Translator) -> None:
        self._translator = translator
        self._detecting_translator = detecting_translator

    def observe(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._detecting_translator.feed(chunk)
            yield chunk
        self._detecting_translator.close()

    def hint(self) -> str:
        """Return a hint for the user; "" if no calls were missed."""
        detection = next(
            (finding for finding in self._detecting_translator.findings if finding.kind == DETECTED_FINDING_KIND), None
        )
        if detection is None or self._translator.dialect not in (None, STANDARD_DIALECT):
            return ""
        description = detection.message.partition(":")[0]
        return (
            f"the text was not parsed for calls, because the dialect of this model is unknown, but {description}; "
            "try --dialect with that name, and set it for the model in the gateway's settings"
        )
