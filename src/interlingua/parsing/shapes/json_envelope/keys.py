"""What a JSON object has to be to be a call: its keys, and how much is asked of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from interlingua.parsing.markers import Markers

__all__ = ["IGNORED", "LISTS", "WRAPPERS", "Gate", "Keys"]

WRAPPERS = ("function", "function_call", "tool_call")
"""Keys under which some models put the object itself, or just the name."""

LISTS = ("tool_calls",)
"""Keys under which some models put all calls."""

IGNORED = ("type", "id", "index", "tool_call_id")
"""Keys of which nothing is lost with them."""


class Gate(Enum):
    """What an object must be to be a call."""

    MARKED = "marked"
    """It stands after an opener: a name is enough."""
    BARE = "bare"
    """It stands alone, as this model writes calls: it has arguments, and the name of a tool that was offered."""
    TRIED = "tried"
    """It stands alone, where this model writes no calls: it must also have its end."""


class Keys(NamedTuple):
    """How a dialect's objects are keyed, and the markers around them."""

    name: tuple[str, ...]
    args: tuple[str, ...]
    id: tuple[str, ...]
    name_is_key: bool
    no_tools: tuple[str, ...]
    bare: bool
    opens: tuple[str, ...]
    closes: tuple[str, ...]
    marks: Markers
    """All markers, but for those that are JSON."""
    cuts: Markers
    """What cuts an object short: all markers, and the end of a code block."""
    ends_name: Markers
    """What ends a key or a name that is only tried: its quote, or a marker that comes before it."""
