"""JSON text that may be none: read, or None. The only place that knows all the ways in which decoding fails."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

__all__ = ["read_json", "read_object"]

T = TypeVar("T")

# Text with half a surrogate pair cannot be encoded, and nesting beyond any use exhausts the stack.
_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError)


def read_json(text: str, type: type[T]) -> T | None:
    """The value, if this is JSON of that type."""
    try:
        return msgspec.json.decode(text, type=type)
    except _FAILURES:
        return None


def read_object(text: str) -> dict[str, Any] | None:
    """The object, its values left unread, if this is a JSON object."""
    return read_json(text, dict[str, msgspec.Raw])
