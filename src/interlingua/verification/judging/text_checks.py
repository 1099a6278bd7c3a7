"""Checks of MiniMax-Provider-Verifier on the text of a reply."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["has_cyrillic", "names_parameters_in_order", "repeats_itself"]

NGRAM_CHARS = 3
MAX_NGRAM_COUNT = 3
_CYRILLIC = re.compile("[\u0400-\u04ff]")


def has_cyrillic(text: str) -> bool:
    return _CYRILLIC.search(text) is not None


def repeats_itself(text: str) -> bool:
    """Return whether any three adjacent characters occur four times without overlap."""
    candidates = Counter(text[start : start + NGRAM_CHARS] for start in range(len(text) - NGRAM_CHARS + 1))
    return any(count > MAX_NGRAM_COUNT and text.count(ngram) > MAX_NGRAM_COUNT for ngram, count in candidates.items())


def names_parameters_in_order(text: str, parameters: Sequence[str]) -> bool:
    """Return whether a text names the first parameters of a tool, at least two, in their order.

    A provider that sorts the keys of the tools changes the order that the model sees. A parameter stands where its name
    occurs first. A request without parameters passes.
    """
    named = sorted((name for name in parameters if name in text), key=text.index)
    return not parameters or (len(named) >= 2 and named == list(parameters[: len(named)]))
