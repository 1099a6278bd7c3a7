"""Marker sets: search for the next marker in a text, and for a partial marker at its end."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from interlingua.trace import MarkerRole

__all__ = ["SPECIAL_TOKEN_PREFIXES", "MarkerSet", "assign_roles", "common_prefix", "compile_markers"]


SPECIAL_TOKEN_PREFIXES = ("<|", "<｜")
"""Prefixes of special tokens. They never occur in prose, even if the other markers of a dialect are ordinary text."""


MAX_PRECHECKED_CHARS = 256
"""Maximum length of a text in which the first two characters of the markers are searched before the markers."""


class MarkerSet:
    """The markers that are recognised in one state of a reader.

    The pattern is an alternation of literals, so backtracking is limited to the length of one marker.
    """

    def __init__(self, *literals: str) -> None:
        self.literals = tuple(sorted(set(literals), key=lambda literal: (-len(literal), literal)))
        self._first_chars = tuple(sorted({literal[0] for literal in self.literals}))
        self.only_first_char = self._first_chars[0] if len(self._first_chars) == 1 else ""
        """The first character of all markers; "" if they have several, or if there are no markers."""
        self.search_first_two = _compile_first_two(self.literals).search
        """Search the first two characters of any marker, or the first one at the end of the text."""
        self.max_length = max(map(len, self.literals), default=0)
        self.starts_like_json = any(first in '"{[' or first.isalnum() for first in self._first_chars)
        """True if a marker can begin like a JSON value, so that a JSON reader has to search for markers."""
        self._pattern = re.compile(_write_alternation(self.literals) or r"(?!)")
        last_chars = {literal[-1] for literal in self.literals}
        self._only_last_char = last_chars.pop() if len(last_chars) == 1 else ""
        finds_last_char = self._only_last_char != "" and not self.only_first_char
        self.search = self._search_from_last_char if finds_last_char else self._pattern.search
        """Return the first marker at or after a position; the longest one if several begin at the same place."""
        self.match = self._pattern.match
        """Return the marker that begins at a position."""
        self._prefixes = frozenset(literal[:n] for literal in self.literals for n in range(1, len(literal)))
        self._partial_first_chars = tuple(sorted({prefix[0] for prefix in self._prefixes}))

    def _search_from_last_char(self, text: str, pos: int, end: int = sys.maxsize) -> re.Match[str] | None:
        """Search with `str.find` up to the last character of any marker, because a pattern for several first
        characters is many times slower."""
        last_char_pos = text.find(self._only_last_char, pos, end)
        if last_char_pos < 0:
            return None
        return self._pattern.search(text, max(pos, last_char_pos - self.max_length + 1), end)

    def find_all(self, text: str) -> Iterator[re.Match[str]]:
        """Iterate over all markers in a text."""
        return self._pattern.finditer(text)

    def partial_start(self, text: str, pos: int) -> int:
        """Return the start of a partial marker at the end of the text, or the length of the text if there is none."""
        start = len(text)
        first_start = max(pos, start - self.max_length + 1)
        for first_char in self._partial_first_chars:
            at = text.find(first_char, first_start, start)
            while at >= 0 and text[at:] not in self._prefixes:
                at = text.find(first_char, at + 1, start)
            start = at if at >= 0 else start
        return start

    def is_partial(self, text: str, pos: int) -> bool:
        """Return whether the text from `pos` to its end is a proper prefix of a marker."""
        return len(text) - pos < self.max_length and text[pos:] in self._prefixes

    def can_extend(self, match: re.Match[str]) -> bool:
        """Return whether more text could turn this marker into a longer one."""
        return match.group() in self._prefixes and self.is_partial(match.string, match.start())

    def remove_from(self, text: str) -> str:
        """Return the text without markers, including markers that appear when others are removed."""
        for _ in range(8):
            stripped = self._pattern.sub("", text)
            if stripped == text:
                return text
            text = stripped
        # Markers that are nested on purpose take one pass per level: break the rest by removing their first character.
        return self._pattern.sub(lambda match: match.group()[1:], text)

    def may_occur(self, text: str, pos: int) -> bool:
        """Return whether a marker can begin at or after `pos`. True for long text in which only a search would show it.

        A cheap pre-check: most pieces of text contain no "<" at all, so the full pattern need not run.
        """
        if self.only_first_char:
            return text.find(self.only_first_char, pos) >= 0
        return len(text) - pos > MAX_PRECHECKED_CHARS or self.search_first_two(text, pos) is not None

    def may_begin_in(self, text: str) -> bool:
        """Return whether the first character of a marker occurs in the text."""
        return any(char in text for char in self._first_chars)

    def may_begin(self, text: str) -> bool:
        """Return whether the first two characters of a marker occur in the text, or the first one at its end."""
        return self.search_first_two(text, 0) is not None


def _write_alternation(literals: Iterable[str]) -> str:
    """Return a pattern that matches the longest of the literals.

    Literals with the same beginning share one branch, so that it is compared only once.
    """
    by_first_char: dict[str, list[str]] = {}
    for literal in literals:
        by_first_char.setdefault(literal[:1], []).append(literal)
    has_end = by_first_char.pop("", None) is not None
    alternatives = [_write_branch(group) for group in by_first_char.values()]
    return "|".join((*alternatives, "") if has_end else alternatives)


def _write_branch(literals: list[str]) -> str:
    """Return a pattern for literals with the same first character."""
    prefix = common_prefix(literals)
    if len(literals) == 1:
        return re.escape(prefix)
    return f"{re.escape(prefix)}(?:{_write_alternation(literal[len(prefix) :] for literal in literals)})"


def common_prefix(literals: Sequence[str]) -> str:
    """Return the longest text that all literals begin with."""
    first, last = min(literals), max(literals)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]


def _compile_first_two(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern that finds the first two characters of any literal, or the first one at the end of the text.

    One search stops at the first hit. A separate `str.find` for each first character would scan to the end of the text
    for every character that does not occur.
    """
    second_chars: dict[str, set[str]] = {}
    for literal in literals:
        second_chars.setdefault(literal[0], set()).add(literal[1:2])
    alternatives = (
        re.escape(first_char) + ("" if "" in following else rf"(?:[{''.join(map(re.escape, sorted(following)))}]|\Z)")
        for first_char, following in second_chars.items()
    )
    return re.compile("|".join(alternatives) or r"(?!)")


compile_markers = lru_cache(maxsize=4096)(MarkerSet)
"""Return the `MarkerSet` for these literals from a cache.

Use it only for literals that dialects declare, never for text from clients, which would fill the cache."""


def assign_roles(*roles: tuple[MarkerRole, Iterable[str]]) -> dict[str, MarkerRole]:
    """Return the role of each marker, without whitespace around it; the last role if it has several."""
    return {marker.strip(): role for role, markers in roles for marker in markers if marker.strip()}
