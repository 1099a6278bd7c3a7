"""Type checks for untrusted values in chunks: return the value if it has the type, else an empty value or None."""

from __future__ import annotations

from typing import Any

__all__ = ["as_dict", "as_int", "as_list", "as_str"]


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def as_int(value: Any) -> int | None:
    # bool is a subclass of int and passes, too
    return value if isinstance(value, int) else None
