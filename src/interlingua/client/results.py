"""What came of running one call."""

from __future__ import annotations

import base64
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.events import Finding
from interlingua.reply import Call

__all__ = ["Outcome", "ToolResult", "as_text"]

Outcome: TypeAlias = Literal["ok", "bad-call", "unknown-tool", "failed", "timeout", "cancelled"]
"""Whether it ran well; else whether the call was wrong, no such tool is there, the tool raised, or took too long."""


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool answered to a call, in words for the model: whatever it was, it goes back as the call's result."""

    call: Call
    outcome: Outcome
    content: str
    seconds: float = 0.0
    value: Any = None
    """What the tool returned, if it did."""
    error: BaseException | None = None
    """What it raised, or what is wrong with the call."""
    findings: list[Finding] = []
    """What was mended in the arguments, if that was allowed."""

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


def as_text(value: Any, limit: int) -> str:
    """What a tool returned, as a model reads it: text as it is, all else as JSON, the middle left out if too long."""
    text = value if isinstance(value, str) else _as_json(value)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _as_json(value: Any) -> str:
    if value is None:
        return "done"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return str(value)
