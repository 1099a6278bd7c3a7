"""Checks of MiniMax-Provider-Verifier on the text of a reply."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["has_cyrillic", "repeats_itself"]

NGRAM_CHARS = 3
MAX_NGRAM_COUNT = 3
_CYRILLIC = re.compile("[\u0400-\u04ff]")


def has_cyrillic(text: str) -> bool:
    return _CYRILLIC.search(text) is not None


def repeats_itself(text: str) -> bool:
    """Return whether any three adjacent characters occur four times without overlap."""
    candidates = Counter(text[start : start + NGRAM_CHARS] for start in range(len(text) - NGRAM_CHARS + 1))
    return any(count > MAX_NGRAM_COUNT and text.count(ngram) > MAX_NGRAM_COUNT for ngram, count in candidates.items())
