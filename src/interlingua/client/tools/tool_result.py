"""What came of running one call."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.core.reply import Call
from interlingua.events import Finding

__all__ = ["Outcome", "ToolResult", "as_text", "in_words"]

Outcome: TypeAlias = Literal["ok", "bad-call", "unknown-tool", "failed", "timeout", "cancelled"]
"""Whether it ran well; else whether the call was wrong, no such tool is there, the tool raised, or took too long."""
_half_pair = re.compile("[\ud800-\udfff]")


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool answered to a call, in words for the model: whatever it was, it goes back as the call's result."""

    call: Call
    outcome: Outcome
    content: str
    seconds: float = 0.0
    value: Any = None
    """What the tool returned, if it did; of a generator, the list of what it yielded."""
    error: BaseException | None = None
    """What it raised, or what is wrong with the call."""
    findings: list[Finding] = []
    """What was mended in the arguments, if that was allowed."""

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


def as_text(value: Any, limit: int) -> str:
    """What a tool returned, as a model reads it: text as it is, all else as JSON, the middle left out if too long.
    Half a surrogate pair is no character, and no request can have it: it is replaced."""
    text = value if isinstance(value, str) else _as_json(value)
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[len(text) - half :]}"
    return text if text.isascii() else _half_pair.sub("\ufffd", text)


def in_words(value: object) -> str:
    """What an object says of itself; its type if it cannot."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  it is the tool's own code
        return f"<{type(value).__name__}>"


def _as_json(value: Any) -> str:
    if value is None:
        return "done"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except UnicodeError:
        return _with_half_pairs(value)
    except Exception:  # noqa: BLE001  it is the tool's own code
        return in_words(value)


def _with_half_pairs(value: Any) -> str:
    """JSON writes half a surrogate pair as an escape."""
    try:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain))
    except Exception:  # noqa: BLE001  it is the tool's own code
        return in_words(value)


def _plain(value: Any) -> Any:
    """A value that JSON does not know: a pydantic model is an object, all else is what it says of itself."""
    try:
        return value.model_dump(mode="json")
    except Exception:  # noqa: BLE001  it is the tool's own code
        return in_words(value)
