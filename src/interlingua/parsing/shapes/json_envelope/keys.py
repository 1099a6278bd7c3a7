"""Keys of a JSON object that is a call, and the evidence that is required to accept it as one."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from interlingua.parsing.call_boundary import CallBoundary
from interlingua.parsing.markers import MarkerSet

__all__ = ["CALL_LIST_KEYS", "CODE_FENCE", "IGNORED_KEYS", "WRAPPER_KEYS", "CallEvidence", "EnvelopeKeys"]

CODE_FENCE = "```"

WRAPPER_KEYS = ("function", "function_call", "tool_call")
"""Keys under which some models nest the call object, or only the name."""

CALL_LIST_KEYS = ("tool_calls",)
"""Keys under which some models nest a list of all calls."""

IGNORED_KEYS = ("type", "id", "index", "tool_call_id")
"""Keys that can be dropped without a finding, because they carry no information for the client."""


class CallEvidence(Enum):
    """Evidence that an object is a call, which determines what else is required of it."""

    MARKED = "marked"
    """It follows an opener: a name is enough."""
    BARE = "bare"
    """It has no opener, which is normal for this model: it needs arguments, and the name of an offered tool."""
    TENTATIVE = "tried"
    """It has no opener, which is not normal for this model: it must also be complete."""
    INLINE = "inline"
    """It follows text on the same line: its tool must be offered, it is not part of other JSON, and only further calls
    may follow it."""

    @property
    def is_tentative(self) -> bool:
        """True if the object may turn out to be text after its arguments have begun."""
        return self in _TENTATIVE


_TENTATIVE = (CallEvidence.TENTATIVE, CallEvidence.INLINE)


class EnvelopeKeys(NamedTuple):
    """Keys of the call objects of one dialect, and the markers around them."""

    name_keys: tuple[str, ...]
    args_keys: tuple[str, ...]
    id_keys: tuple[str, ...]
    name_is_key: bool
    no_tools: tuple[str, ...]
    bare: bool
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    all_markers: MarkerSet
    """All markers, except those that are JSON syntax."""
    cut_markers: MarkerSet
    """Markers that cut an object short: all markers, and the end of a code block."""
    name_end_markers: MarkerSet
    """Markers that end a key or name of a tentative object: its quote, or any marker before it."""
    boundary: CallBoundary | None
    """Markers that end a call in a string that is never closed; None if the dialect has none."""
    key_boundary: CallBoundary | None
    """The same for keys, names and ids. None of them quotes a call, so an opener without a closer is enough."""
