"""The markers that count in one state of a reading: where the next one is, and what may yet become one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["SPECIAL_TOKEN_PREFIXES", "MarkerSet", "compile_markers"]


SPECIAL_TOKEN_PREFIXES = ("<|", "<｜")
"""How special tokens begin. No prose holds these, even where a dialect's other markers are ordinary text."""


class MarkerSet:
    """The markers that count in one state of a reader.

    The pattern is a choice of literals: no match goes back further than one marker is long.
    """

    def __init__(self, *literals: str) -> None:
        self.literals = tuple(sorted(set(literals), key=lambda literal: (-len(literal), literal)))
        self._first_chars = tuple(sorted({literal[0] for literal in self.literals}))
        self._only_first_char = self._first_chars[0] if len(self._first_chars) == 1 else ""
        self._search_first_two = _compile_first_two(self.literals).search
        self.max_length = max(map(len, self.literals), default=0)
        self.starts_like_json = any(first in '"{[' or first.isalnum() for first in self._first_chars)
        """Whether some begin as a JSON value does, so that a reader of JSON has to look for them."""
        self._pattern = _compile_alternation(self.literals)
        self._prefixes = frozenset(literal[:n] for literal in self.literals for n in range(1, len(literal)))

    def search(self, text: str, pos: int, end: int = sys.maxsize) -> re.Match[str] | None:
        """The first marker from here on; the longest where several begin."""
        return self._pattern.search(text, pos, end)

    def match(self, text: str, pos: int) -> re.Match[str] | None:
        """The marker that stands here."""
        return self._pattern.match(text, pos)

    def find_all(self, text: str) -> Iterator[re.Match[str]]:
        """Every marker in a text."""
        return self._pattern.finditer(text)

    def partial_start(self, text: str, pos: int) -> int:
        """Where the end of the text begins that may yet become a marker; the text's length if there is none."""
        start = len(text)
        for first_char in self._first_chars:
            at = text.find(first_char, max(pos, len(text) - self.max_length + 1), start)
            while at >= 0 and text[at:] not in self._prefixes:
                at = text.find(first_char, at + 1, start)
            start = at if at >= 0 else start
        return start

    def is_partial(self, text: str, pos: int) -> bool:
        """Whether the text from here to its end is the beginning of a marker."""
        return len(text) - pos < self.max_length and text[pos:] in self._prefixes

    def can_extend(self, match: re.Match[str]) -> bool:
        """Whether what follows may make this marker a longer one."""
        return match.group() in self._prefixes and self.is_partial(match.string, match.start())

    def remove_from(self, text: str) -> str:
        """The text with all markers taken out, also such as come about by that."""
        for _ in range(8):
            stripped = self._pattern.sub("", text)
            if stripped == text:
                return text
            text = stripped
        return self._pattern.sub(lambda match: match.group()[1:], text)  # somebody nests them: no more than half of it

    def may_occur(self, text: str, pos: int) -> bool:
        """Whether a marker may begin anywhere from here on. Most pieces hold no '<' at all: no pattern need look."""
        if self._only_first_char:
            return text.find(self._only_first_char, pos) >= 0
        return self._search_first_two(text, pos) is not None


def _compile_alternation(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of these, the longest first. Where many begin alike, their first characters are looked at once."""
    suffixes_by_prefix: dict[str, list[str]] = {}
    for literal in literals:
        suffixes_by_prefix.setdefault(literal[:2], []).append(re.escape(literal[2:]))
    prefixes = sorted(suffixes_by_prefix, key=len, reverse=True)
    alternatives = (rf"{re.escape(prefix)}(?:{'|'.join(suffixes_by_prefix[prefix])})" for prefix in prefixes)
    return re.compile("|".join(alternatives) or r"(?!)")


def _compile_first_two(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the first two characters of any of these, or the first one where the text ends: in one look that goes no
    further than what it finds. A look for each first character would go on to the end for all that are not there."""
    second_chars: dict[str, set[str]] = {}
    for literal in literals:
        second_chars.setdefault(literal[0], set()).add(literal[1:2])
    alternatives = (
        re.escape(first_char) + ("" if "" in following else rf"(?:[{''.join(map(re.escape, sorted(following)))}]|\Z)")
        for first_char, following in second_chars.items()
    )
    return re.compile("|".join(alternatives) or r"(?!)")


compile_markers = lru_cache(maxsize=256)(MarkerSet)
"""Markers, compiled once for each set of literals. Only for what dialects declare, never for what clients send."""
