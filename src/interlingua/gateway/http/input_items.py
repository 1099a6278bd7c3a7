"""Items of a conversation in the Responses API."""

from __future__ import annotations

from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.gateway.http.field_origins import Origin, Origins

__all__ = ["COMPACTION", "add_response", "input_items", "input_origins"]

COMPACTION = "compaction"
"""Type of an item with a summary of the conversation before it."""


def add_response(conversation: list[Any], output: list[Any]) -> None:
    """Add the output of a response to a conversation. A summary in it replaces everything before the summary."""
    positions = [position for position, item in enumerate(output) if as_dict(item).get("type") == COMPACTION]
    if positions:
        conversation.clear()
    conversation += output[positions[-1] :] if positions else output


def input_items(body: dict[str, Any]) -> list[Any]:
    """Return the input of a request as a list of items."""
    value = body.get("input")
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    return as_list(value)


def input_origins(body: dict[str, Any]) -> Origins:
    """Return the origins of the items that `input_items` returns."""
    origins = Origins()
    if isinstance(body.get("input"), str):
        origins.add(Origin("input", is_same=False))
    else:
        origins.add_items("input", len(as_list(body.get("input"))))
    return origins
