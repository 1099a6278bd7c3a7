"""What a JSON object has to be to be a call: its keys, and how much is asked of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from interlingua.parsing.markers import MarkerSet

__all__ = ["CALL_LIST_KEYS", "IGNORED_KEYS", "WRAPPER_KEYS", "CallEvidence", "EnvelopeKeys"]

WRAPPER_KEYS = ("function", "function_call", "tool_call")
"""Keys under which some models put the object itself, or just the name."""

CALL_LIST_KEYS = ("tool_calls",)
"""Keys under which some models put all calls."""

IGNORED_KEYS = ("type", "id", "index", "tool_call_id")
"""Keys of which nothing is lost with them."""


class CallEvidence(Enum):
    """What an object must be to be a call."""

    MARKED = "marked"
    """It stands after an opener: a name is enough."""
    BARE = "bare"
    """It stands alone, as this model writes calls: it has arguments, and the name of a tool that was offered."""
    TENTATIVE = "tried"
    """It stands alone, where this model writes no calls: it must also have its end."""


class EnvelopeKeys(NamedTuple):
    """How a dialect's objects are keyed, and the markers around them."""

    name_keys: tuple[str, ...]
    args_keys: tuple[str, ...]
    id_keys: tuple[str, ...]
    name_is_key: bool
    no_tools: tuple[str, ...]
    bare: bool
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    all_markers: MarkerSet
    """All markers, but for those that are JSON."""
    cut_markers: MarkerSet
    """What cuts an object short: all markers, and the end of a code block."""
    name_end_markers: MarkerSet
    """What ends a key or a name that is only tried: its quote, or a marker that comes before it."""
