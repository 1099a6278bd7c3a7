"""What came of running one call."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.core.reply import Call
from interlingua.events import Finding

__all__ = ["Outcome", "ToolResult", "safe_str", "value_to_text"]

Outcome: TypeAlias = Literal["ok", "bad-call", "unknown-tool", "failed", "timeout", "cancelled"]
"""Whether it ran well; else whether the call was wrong, no such tool is there, the tool raised, or took too long."""
_lone_surrogate = re.compile("[\ud800-\udfff]")


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


def value_to_text(value: Any, limit: int) -> str:
    """What a tool returned, as a model reads it: text as it is, all else as JSON, the middle left out if too long.
    Half a surrogate pair is no character, and no request can have it: it is replaced."""
    text = value if isinstance(value, str) else _value_to_json(value)
    if len(text) > limit:
        half_limit = limit // 2
        omitted = len(text) - 2 * half_limit
        text = f"{text[:half_limit]}\n[… {omitted:,} characters left out …]\n{text[len(text) - half_limit :]}"
    return text if text.isascii() else _lone_surrogate.sub("\ufffd", text)


def safe_str(value: object) -> str:
    """What an object says of itself; its type if it cannot."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  it is the tool's own code
        return f"<{type(value).__name__}>"


def _value_to_json(value: Any) -> str:
    if value is None:
        return "done"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    try:
        return msgspec.json.encode(value, enc_hook=_encode_unknown).decode()
    except UnicodeError:
        return _json_with_surrogates(value)
    except Exception:  # noqa: BLE001  it is the tool's own code
        return safe_str(value)


def _json_with_surrogates(value: Any) -> str:
    """JSON writes half a surrogate pair as an escape."""
    try:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_encode_unknown))
    except Exception:  # noqa: BLE001  it is the tool's own code
        return safe_str(value)


def _encode_unknown(value: Any) -> Any:
    """A value that JSON does not know: a pydantic model is an object, all else is what it says of itself."""
    try:
        return value.model_dump(mode="json")
    except Exception:  # noqa: BLE001  it is the tool's own code
        return safe_str(value)
