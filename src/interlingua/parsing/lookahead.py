"""Lookahead: recognise a sequence of patterns or words in the buffer without consuming it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from typing import Protocol, TypeAlias

__all__ = [
    "END_OF_TEXT",
    "MAX_BUFFERED_WHITESPACE_CHARS",
    "Lookahead",
    "PatternSequence",
    "SortedWords",
    "WordFinder",
    "WordSequence",
    "literal_sequence",
    "match_word_sequence",
]

MAX_BUFFERED_WHITESPACE_CHARS = 256
"""Limit for whitespace that is buffered until the next marker is known."""

PatternSequence: TypeAlias = tuple[str, ...]
"""Patterns that match one after the other.

Each pattern is possessive. Every prefix of a string that it matches is empty or matches, too. Exactly one pattern has a
capture group: the word."""
WordSequence: TypeAlias = tuple[tuple[str, ...], ...]
"""Alternatives for consecutive words: one word out of each tuple, with or without whitespace between them."""
END_OF_TEXT = ""
"""The word that matches the end of the text."""
_SPACE = re.compile(r"\s*+")


class WordFinder(Protocol):
    """Decides whether something comes next, and finds a word in it, as soon as the text is long enough."""

    def find_word(self, text: str, pos: int, end: int, words: Collection[str] | None) -> tuple[str | None, bool]:
        """Match at `pos`, as `Lookahead.find_word` does."""
        ...


class Lookahead:
    """Decide whether one of several pattern sequences comes next, as soon as the text is long enough.

    A sequence that is the beginning of another one comes before it.
    """

    def __init__(self, *sequences: PatternSequence) -> None:
        self._sequences = sequences
        self._pattern: re.Pattern[str] | None = None  # compiled when it is needed: few replies need it

    def _compile(self) -> re.Pattern[str]:
        self._pattern = re.compile("|".join(map(_write_sequence, self._sequences)) or r"(?!)")
        return self._pattern

    def find_word(self, text: str, pos: int, end: int, words: Collection[str] | None) -> tuple[str | None, bool]:
        """Match the sequences at `pos`.

        Args:
            text: The buffered text.
            pos: The start of the match.
            end: The end of the part of `text` that is searched.
            words: The words that are accepted, or None for any word.

        Returns:
            The word of a sequence that matches completely, or None; and whether a match is still possible if more text
            follows.
        """
        match = (self._pattern or self._compile()).match(text, pos, end)
        if match is None:
            return None, False
        last_group = match.lastindex  # each sequence has two groups: its word (or a prefix of it) and its end
        if last_group is None:
            return None, True
        word = match[last_group - 1 + last_group % 2]
        if last_group % 2:
            return None, words is None or any(candidate.startswith(word) for candidate in words)
        return word if words is None or word in words else None, False


class SortedWords:
    """Many words, such as the names of a thousand tools, of which few can come next."""

    def __init__(self, words: Collection[str]) -> None:
        self._words = frozenset(words)
        self._sorted = sorted(self._words)
        self._lengths = sorted(set(map(len, self._words)))

    def candidates(self, text: str, pos: int) -> list[str]:
        """Return the words that the text at `pos` begins with, and one of those that it may begin if it goes on."""
        beginning = text[pos : pos + self._lengths[-1]]
        found = [beginning[:length] for length in self._lengths if beginning[:length] in self._words]
        longer = bisect_right(self._sorted, beginning)
        return found + self._sorted[longer : longer + 1]


def match_word_sequence(sequence: WordSequence, text: str, pos: int, closed: bool) -> bool | None:
    """Return whether the words occur at `pos`; None if that depends on text to come. `closed`: no text will come."""
    for words in sequence:
        space = _SPACE.match(text, pos)
        start = space.end() if space else pos
        remainder = text[start : start + max(map(len, words), default=0) + 1]
        if start - pos > MAX_BUFFERED_WHITESPACE_CHARS:
            return False
        if not closed and (not remainder or any(word.startswith(remainder) and word != remainder for word in words)):
            return None
        matches = [word for word in words if remainder.startswith(word) and (word or not remainder)]
        if not matches:
            return False
        pos = start + len(max(matches, key=len))
    return True


def literal_sequence(text: str) -> PatternSequence:
    """Return a sequence that matches exactly this text, one pattern per character."""
    return tuple(map(re.escape, text))


def _write_sequence(sequence: PatternSequence) -> str:
    """Return a pattern for a sequence that matches all of it, or as much of it as the text contains.

    The last group takes part only in a complete match.
    """
    pattern = sequence[-1] + "()"
    for part in reversed(sequence[:-1]):
        pattern = rf"{part}(?:\Z|{pattern})"
    return rf"(?:\Z|{pattern})"
