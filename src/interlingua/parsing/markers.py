"""The markers that count in one state of a reading: where the next one is, and what may yet become one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["TOKENS", "Markers", "markers"]


TOKENS = ("<|", "<｜")
"""How special tokens begin. No prose holds these, even where a dialect's other markers are ordinary text."""


class Markers:
    """The markers that count in one state of a reader.

    The pattern is a choice of literals: no match goes back further than one marker is long.
    """

    def __init__(self, *literals: str) -> None:
        self.literals = tuple(sorted(set(literals), key=lambda literal: (-len(literal), literal)))
        self._firsts = tuple(sorted({literal[0] for literal in self.literals}))
        self._first = self._firsts[0] if len(self._firsts) == 1 else ""
        self._first_two = _first_two(self.literals).search
        self.longest = max(map(len, self.literals), default=0)
        self.like_json = any(first in '"{[' or first.isalnum() for first in self._firsts)
        """Whether some begin as a JSON value does, so that a reader of JSON has to look for them."""
        self._whole = _any_of(self.literals)
        self._beginnings = frozenset(literal[:n] for literal in self.literals for n in range(1, len(literal)))

    def search(self, text: str, pos: int, end: int = sys.maxsize) -> re.Match[str] | None:
        """The first marker from here on; the longest where several begin."""
        return self._whole.search(text, pos, end)

    def match(self, text: str, pos: int) -> re.Match[str] | None:
        """The marker that stands here."""
        return self._whole.match(text, pos)

    def all(self, text: str) -> Iterator[re.Match[str]]:
        """Every marker in a text."""
        return self._whole.finditer(text)

    def tail(self, text: str, pos: int) -> int:
        """Where the end of the text begins that may yet become a marker; the text's length if there is none."""
        best = len(text)
        for first in self._firsts:
            at = text.find(first, max(pos, len(text) - self.longest + 1), best)
            while at >= 0 and text[at:] not in self._beginnings:
                at = text.find(first, at + 1, best)
            best = at if at >= 0 else best
        return best

    def may_begin(self, text: str, pos: int) -> bool:
        """Whether the text from here to its end is the beginning of a marker."""
        return len(text) - pos < self.longest and text[pos:] in self._beginnings

    def may_grow(self, found: re.Match[str]) -> bool:
        """Whether what follows may make this marker a longer one."""
        return found.group() in self._beginnings and self.may_begin(found.string, found.start())

    def without(self, text: str) -> str:
        """The text with all markers taken out, also such as come about by that."""
        for _ in range(8):
            less = self._whole.sub("", text)
            if less == text:
                return text
            text = less
        return self._whole.sub(lambda found: found.group()[1:], text)  # somebody nests them: no more than half of it

    def possible(self, text: str, pos: int) -> bool:
        """Whether a marker may begin anywhere from here on. Most pieces hold no '<' at all: no pattern need look."""
        if self._first:
            return text.find(self._first, pos) >= 0
        return self._first_two(text, pos) is not None


def _any_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of these, the longest first. Where many begin alike, their first characters are looked at once."""
    alike: dict[str, list[str]] = {}
    for literal in literals:
        alike.setdefault(literal[:2], []).append(re.escape(literal[2:]))
    shorter_last = sorted(alike, key=len, reverse=True)
    ways = (rf"{re.escape(begin)}(?:{'|'.join(alike[begin])})" for begin in shorter_last)
    return re.compile("|".join(ways) or r"(?!)")


def _first_two(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the first two characters of any of these, or the first one where the text ends: in one look that goes no
    further than what it finds. A look for each first character would go on to the end for all that are not there."""
    seconds: dict[str, set[str]] = {}
    for literal in literals:
        seconds.setdefault(literal[0], set()).add(literal[1:2])
    ways = (
        re.escape(first) + ("" if "" in after else rf"(?:[{''.join(map(re.escape, sorted(after)))}]|\Z)")
        for first, after in seconds.items()
    )
    return re.compile("|".join(ways) or r"(?!)")


markers = lru_cache(maxsize=256)(Markers)
"""Markers, compiled once for each set of literals. Only for what dialects declare, never for what clients send."""
