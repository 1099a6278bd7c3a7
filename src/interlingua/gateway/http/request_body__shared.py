"""What many requests say alike is kept once: an agent offers the same tools with each of them, and each stream holds
them to its end."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

__all__ = ["ToolListCache"]

MAX_CACHED_TOOL_LISTS = 16
"""Lists of tools that are kept: those that came last."""
MAX_CACHED_TOOL_LIST_BYTES = 256 * 1024
"""Bytes of JSON in a list that is kept."""


class ToolListCache:
    """Values that came as JSON, by their JSON: whoever gets one of them in the place of its own cannot tell. Nobody may
    change what is in a request."""

    def __init__(self) -> None:
        self._lists: OrderedDict[bytes, list[Any]] = OrderedDict()

    def share_tools(self, body: dict[str, Any]) -> dict[str, Any]:
        """The same request, with tools that others hold, too."""
        tools = body.get("tools")
        if isinstance(tools, list) and tools:
            body["tools"] = self._cached(tools)
        return body

    def _cached(self, tools: list[Any]) -> list[Any]:
        try:
            encoded = msgspec.json.encode(tools)
        except (ValueError, OverflowError, RecursionError):  # half characters, large numbers, deep nesting
            return tools
        if len(encoded) > MAX_CACHED_TOOL_LIST_BYTES:
            return tools
        cached = self._lists.setdefault(encoded, tools)
        self._lists.move_to_end(encoded)
        if len(self._lists) > MAX_CACHED_TOOL_LISTS:
            self._lists.popitem(last=False)
        return cached
