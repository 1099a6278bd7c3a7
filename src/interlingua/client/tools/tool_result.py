"""Result of running one tool call."""

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
"""Outcome of a call.

ok: the tool returned. bad-call: the arguments are invalid. unknown-tool: no tool has this name. failed: the tool
raised an exception. timeout: the tool took too long. cancelled: the tool was cancelled.
"""
_lone_surrogate = re.compile("[\ud800-\udfff]")


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one call. `content` is the text for the model, also if the call failed."""

    call: Call
    outcome: Outcome
    content: str
    seconds: float = 0.0
    value: Any = None
    """Return value of the tool. For a generator: the list of yielded items."""
    error: BaseException | None = None
    """Exception that the tool raised, or the CallError of an invalid call."""
    findings: list[Finding] = []
    """Repairs of the arguments, if `repair` allows them."""

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


def value_to_text(value: Any, limit: int) -> str:
    """Convert the return value of a tool to text for the model.

    Strings are kept, other values are written as JSON. Text over the limit loses its middle. A lone surrogate is
    replaced, because a request cannot encode it.
    """
    text = value if isinstance(value, str) else _value_to_json(value)
    if len(text) > limit:
        half_limit = limit // 2
        omitted = len(text) - 2 * half_limit
        text = f"{text[:half_limit]}\n[… {omitted:,} characters left out …]\n{text[len(text) - half_limit :]}"
    return text if text.isascii() else _lone_surrogate.sub("\ufffd", text)


def safe_str(value: object) -> str:
    """Return `str(value)`, or the name of its type if that raises."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  __str__ may be the tool's own code
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
    """Encode with the standard library, which writes a lone surrogate as an escape."""
    try:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_encode_unknown))
    except Exception:  # noqa: BLE001  it is the tool's own code
        return safe_str(value)


def _encode_unknown(value: Any) -> Any:
    """Encode a value without a JSON type: a pydantic model as an object, any other as its `str`."""
    try:
        return value.model_dump(mode="json")
    except Exception:  # noqa: BLE001  it is the tool's own code
        return safe_str(value)
