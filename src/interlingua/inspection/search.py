"""Search for a text in an exchange: in its requests, and in its reply as it was streamed or as it reads."""

from __future__ import annotations

import json
import re

from interlingua.captures.capture_format import (
    CapturedExchange,
    ClientRequestLine,
    ReceivedLine,
    SentLine,
    UpstreamRequestLine,
)

__all__ = ["contains_text"]

_STREAMED_TEXT = re.compile(
    rb'"(?:content|text|reasoning|reasoning_content|thinking|arguments|partial_json|delta|refusal)"\s*:\s*'
    rb'"((?:[^"\\]|\\.)*)"'
)
"""Text of a delta, on any wire."""


def contains_text(captured: CapturedExchange, text: str) -> bool:
    """Return whether the text occurs in the exchange, in any case of its letters. A stream may cut it anywhere."""
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    needles = [form.encode("utf-8", "replace").lower() for form in forms]
    for line in captured.lines:
        if isinstance(line, ClientRequestLine | UpstreamRequestLine) and _has_any(line.data, needles):
            return True
    for line_type in (ReceivedLine, SentLine):
        data = b"".join([line.data for line in captured.lines if isinstance(line, line_type)])
        if _has_any(data, needles) or _has_any(b"".join(_STREAMED_TEXT.findall(data)), needles):
            return True
    return False


def _has_any(data: bytes, needles: list[bytes]) -> bool:
    lower = data.lower()
    return any(needle in lower for needle in needles)
