"""What many requests say alike is kept once: an agent offers the same tools with each of them, and each stream holds
them to its end."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

__all__ = ["Shared"]

OFFERS = 16
"""Lists of tools that are kept: those that came last."""
LARGEST = 256 * 1024
"""Bytes of JSON in a list that is kept."""


class Shared:
    """Values that came as JSON, by their JSON: whoever gets one of them in the place of its own cannot tell. Nobody may
    change what is in a request."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, list[Any]] = OrderedDict()

    def body(self, body: dict[str, Any]) -> dict[str, Any]:
        """The same request, with tools that others hold, too."""
        tools = body.get("tools")
        if isinstance(tools, list) and tools:
            body["tools"] = self._one(tools)
        return body

    def _one(self, tools: list[Any]) -> list[Any]:
        try:
            text = msgspec.json.encode(tools)
        except (ValueError, OverflowError, RecursionError):  # half characters, large numbers, deep nesting
            return tools
        if len(text) > LARGEST:
            return tools
        kept = self._kept.setdefault(text, tools)
        self._kept.move_to_end(text)
        if len(self._kept) > OFFERS:
            self._kept.popitem(last=False)
        return kept
