"""Names in a sentence: `a, b and 3 more`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["join_names"]


def join_names(names: Sequence[str], limit: int) -> str:
    """Return at most `limit` names, separated by commas, and the number of the others."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
