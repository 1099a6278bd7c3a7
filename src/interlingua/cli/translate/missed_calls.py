"""Detector of missed tool calls: translate the reply a second time with automatic dialect detection."""

from __future__ import annotations

import interlingua as il
from interlingua.core.tools import ToolsLike
from interlingua.dialects.registry import STANDARD_DIALECT

__all__ = ["MissedCallDetector"]

DETECTED_FINDING_KIND = "detected"
"""Kind of the finding that names the detected dialect."""


class MissedCallDetector:
    """Detects calls in the text of a reply that its translator may forward without parsing.

    Args:
        source: the upstream's wire.
        tools: the tools that the client offered; None if they are not known.
    """

    def __init__(self, source: str, tools: ToolsLike) -> None:
        self._translator = il.Translator(source=source, target=source, dialect="detect", tools=tools)

    def feed(self, data: bytes) -> None:
        self._translator.feed(data)

    def close(self) -> None:
        self._translator.close()

    def hint(self, dialect: il.Dialect | None) -> str:
        """Return a hint for the user if calls were missed in this dialect, else ""."""
        detection = next(
            (finding for finding in self._translator.findings if finding.kind == DETECTED_FINDING_KIND), None
        )
        if detection is None or dialect not in (None, STANDARD_DIALECT):
            return ""
        return (
            "the text was not parsed for calls, because the dialect of this model is unknown; "
            f"{detection.message.partition(':')[0]}: try --dialect with that name, and set it for the model in the "
            "gateway's settings"
        )
