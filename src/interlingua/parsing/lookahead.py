"""What stands next, told before any of it is read: characters or words that come in turn."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

__all__ = [
    "END_OF_TEXT",
    "MAX_BUFFERED_WHITESPACE_CHARS",
    "Lookahead",
    "PatternSequence",
    "WordSequence",
    "literal_sequence",
    "match_word_sequence",
]

MAX_BUFFERED_WHITESPACE_CHARS = 256
"""How much white space may wait for the marker that it belongs to."""

PatternSequence: TypeAlias = tuple[str, ...]
"""Patterns that match in turn. Each takes all that it can; the beginning of what it matches is nothing or matches too.
One of them, and no more, has a group: the word."""
WordSequence: TypeAlias = tuple[tuple[str, ...], ...]
"""One word out of each of these, in turn, with or without white space between."""
END_OF_TEXT = ""
"""The word for the end of the text."""
_SPACE = re.compile(r"\s*+")


class Lookahead:
    """Tells whether one of several ways stands next, as soon as the text is long enough to tell.

    A way that is the beginning of another one comes before it.
    """

    def __init__(self, *sequences: PatternSequence) -> None:
        self._pattern = re.compile("|".join(map(_compile_sequence, sequences)) or r"(?!)")

    def find_word(self, text: str, pos: int, end: int, words: Collection[str] | None) -> tuple[str | None, bool]:
        """The word, if one of the ways stands here in full; and whether it may yet, if the text goes on.

        Only these words count, or all.
        """
        match = self._pattern.match(text, pos, end)
        if match is None:
            return None, False
        last_group = match.lastindex  # each way has two: its word, or the beginning of it, and its end
        if last_group is None:
            return None, True
        word = match[last_group - 1 + last_group % 2]
        if last_group % 2:
            return None, words is None or any(candidate.startswith(word) for candidate in words)
        return word if words is None or word in words else None, False


def match_word_sequence(sequence: WordSequence, text: str, pos: int, closed: bool) -> bool | None:
    """Whether these words stand here; None if that depends on how the text goes on, which it does unless `closed`."""
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
    """These characters."""
    return tuple(map(re.escape, text))


def _compile_sequence(sequence: PatternSequence) -> str:
    """Matches the whole way, and then its last group; or as much of the way as there is."""
    pattern = sequence[-1] + "()"
    for part in reversed(sequence[:-1]):
        pattern = rf"{part}(?:\Z|{pattern})"
    return rf"(?:\Z|{pattern})"
