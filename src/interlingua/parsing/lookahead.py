"""What stands next, told before any of it is read: characters or words that come in turn."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

__all__ = ["BLANK", "END", "Ahead", "Turn", "Way", "in_turn", "literal"]

BLANK = 256
"""How much white space may wait for the marker that it belongs to."""

Way: TypeAlias = tuple[str, ...]
"""Patterns that match in turn. Each takes all that it can; the beginning of what it matches is nothing or matches too.
One of them, and no more, has a group: the word."""
Turn: TypeAlias = tuple[tuple[str, ...], ...]
"""One word out of each of these, in turn, with or without white space between."""
END = ""
"""The word for the end of the text."""
_SPACE = re.compile(r"\s*+")


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


def in_turn(turn: Turn, text: str, pos: int, closed: bool) -> bool | None:
    """Whether these words stand here; None if that depends on how the text goes on, which it does unless `closed`."""
    for words in turn:
        space = _SPACE.match(text, pos)
        start = space.end() if space else pos
        rest = text[start : start + max(map(len, words), default=0) + 1]
        if start - pos > BLANK:
            return False
        if not closed and (not rest or any(word.startswith(rest) and word != rest for word in words)):
            return None
        found = [word for word in words if rest.startswith(word) and (word or not rest)]
        if not found:
            return False
        pos = start + len(max(found, key=len))
    return True


def literal(text: str) -> Way:
    """These characters."""
    return tuple(map(re.escape, text))


def _in_turn(way: Way) -> str:
    """Matches the whole way, and then its last group; or as much of the way as there is."""
    pattern = way[-1] + "()"
    for part in reversed(way[:-1]):
        pattern = rf"{part}(?:\Z|{pattern})"
    return rf"(?:\Z|{pattern})"
