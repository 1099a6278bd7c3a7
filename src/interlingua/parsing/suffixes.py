"""Suffixes of tags that differ between the checkpoints of a family, as in `<tool_call:6124c78e>`.

A dialect's markers have one suffix as an example. Another one is learned from the first tag that has it: the markers
are then also recognised with that suffix.
"""

from __future__ import annotations

import dataclasses
import re
from functools import lru_cache
from typing import Any, NamedTuple

from interlingua.parsing.dialect import Dialect
from interlingua.parsing.lookahead import Lookahead, literal_sequence

__all__ = ["MAX_LEARNED_SUFFIXES", "SuffixedTag", "add_suffix", "find_suffix", "suffixed_tags", "with_suffix"]

MAX_SUFFIX_CHARS = 32
MAX_LEARNED_SUFFIXES = 4
"""Number of suffixes that are learned in one reply. Each one costs the compilation of a grammar."""


class SuffixedTag(NamedTuple):
    """A marker around its suffix. `start` includes the first character of the suffix, usually a colon."""

    start: str
    end: str
    lookahead: Lookahead

    @property
    def max_length(self) -> int:
        return len(self.start) + MAX_SUFFIX_CHARS + len(self.end)


@lru_cache(maxsize=32)
def suffixed_tags(dialect: Dialect) -> dict[str, SuffixedTag]:
    """Return the markers of the dialect that have its suffix, by their start."""
    separator = dialect.suffix[:1]
    parts = (marker.partition(dialect.suffix) for marker in dialect.markers if separator and dialect.suffix in marker)
    return {
        before + separator: SuffixedTag(
            before + separator,
            after,
            Lookahead((*literal_sequence(before + separator), r"(\w++)", *literal_sequence(after))),
        )
        for before, _, after in parts
    }


def find_suffix(dialect: Dialect, text: str) -> str:
    """Return the suffix, with its separator, of the last tag in the text; "" if there is none."""
    starts = "|".join(map(re.escape, suffixed_tags(dialect)))
    suffixes = re.findall(rf"(?:{starts})(\w{{1,{MAX_SUFFIX_CHARS}}})[^\w]", text) if starts else []
    return dialect.suffix[:1] + suffixes[-1] if suffixes else ""


@lru_cache(maxsize=32)
def add_suffix(dialect: Dialect, suffix: str) -> Dialect:
    """Return the dialect with further spellings of its markers, which have this suffix.

    The suffix is text of a model: the cache keeps a few variants only.
    """
    variant = _extend(dialect, dialect.suffix, suffix)
    assert isinstance(variant, Dialect)
    return variant


def _extend(value: Any, known: str, suffix: str) -> Any:
    """Return a dataclass in which each tuple of markers or spans also has them with the other suffix."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, tuple):
            changes[field.name] = tuple(
                spelling for item in inner for spelling in dict.fromkeys((item, _replace(item, known, suffix)))
            )
        elif dataclasses.is_dataclass(inner):
            changes[field.name] = _extend(inner, known, suffix)
    return dataclasses.replace(value, **changes)


@lru_cache(maxsize=32)
def with_suffix(dialect: Dialect, suffix: str) -> Dialect:
    """Return the dialect with this suffix in place of its own."""
    variant = _replace(dialect, dialect.suffix, suffix)
    assert isinstance(variant, Dialect)
    return variant


def _replace(item: Any, known: str, suffix: str) -> Any:
    """Return a text, a tuple or a dataclass with the other suffix in all of its texts."""
    if isinstance(item, str):
        return item.replace(known, suffix)
    if isinstance(item, tuple):
        return tuple(_replace(inner, known, suffix) for inner in item)
    if not dataclasses.is_dataclass(item) or isinstance(item, type):
        return item
    texts = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    return dataclasses.replace(item, **{name: _replace(text, known, suffix) for name, text in texts.items()})
