"""Input of a request of the Responses API as a list of items."""

from __future__ import annotations

from typing import Any

from interlingua.common.coerce import as_list
from interlingua.gateway.http.field_origins import Origin, Origins

__all__ = ["input_items", "input_origins"]


def input_items(body: dict[str, Any]) -> list[Any]:
    """Return the input of a request as a list of items."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return as_list(value)


def input_origins(body: dict[str, Any]) -> Origins:
    """Return the origins of the items that `input_items` returns."""
    if isinstance(body.get("input"), str):
        return [Origin("input", is_same=False)]
    return [Origin(f"input[{position}]") for position in range(len(as_list(body.get("input"))))]
