"""What stands next, told before any of it is read: a few characters that come in turn, with one word among them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

__all__ = ["Ahead", "Way", "literal"]

Way: TypeAlias = tuple[str, ...]
"""Patterns that match in turn. Each takes all that it can; the beginning of what it matches is nothing or matches too.
One of them, and no more, has a group: the word."""


class Ahead:
    """Tells whether one of several ways stands next, as soon as the text is long enough to tell.

    A way that is the beginning of another one comes before it.
    """

    def __init__(self, *ways: Way) -> None:
        self._pattern = re.compile("|".join(map(_in_turn, ways)) or r"(?!)")

    def look(self, text: str, pos: int, end: int, words: Collection[str] | None) -> tuple[str | None, bool]:
        """The word, if one of the ways stands here in full; and whether it may yet, if the text goes on.

        Only these words count, or all.
        """
        found = self._pattern.match(text, pos, end)
        if found is None:
            return None, False
        groups = found.lastindex  # each way has two: its word, or the beginning of it, and its end
        if groups is None:
            return None, True
        word = found[groups - 1 + groups % 2]
        if groups % 2:
            return None, words is None or any(known.startswith(word) for known in words)
        return word if words is None or word in words else None, False


def literal(text: str) -> Way:
    """These characters."""
    return tuple(map(re.escape, text))


def _in_turn(way: Way) -> str:
    """Matches the whole way, and then its last group; or as much of the way as there is."""
    pattern = way[-1] + "()"
    for part in reversed(way[:-1]):
        pattern = rf"{part}(?:\Z|{pattern})"
    return rf"(?:\Z|{pattern})"
