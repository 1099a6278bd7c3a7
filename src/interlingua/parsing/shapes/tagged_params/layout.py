"""Patterns for the markup between two values, as templates write it.

They decide the most frequent case at once. Whatever they do not match is decided step by step, in `value_end`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.shapes.tagged_params.tag import (
    MAX_HEAD_CHARS,
    MAX_NAME_CHARS,
    NO_NAME_CHARS,
    PLAIN_SPACE,
    Tag,
)

__all__ = ["Layout", "next_call", "next_param"]

_NAME = rf"[^{NO_NAME_CHARS}]{{1,{MAX_NAME_CHARS}}}+"


class Layout(NamedTuple):
    """A pattern for markup that comes next. Its group is the name in the head, after which more may follow."""

    pattern: str
    beginning: str
    """A pattern for the beginning of this markup, at the end of the buffer."""

    def after(self, markers: tuple[str, ...], *, is_optional: bool = False, others: Iterable[str] = ()) -> Layout:
        """Return this layout with one of these markers before it, after whitespace.

        Args:
            markers: The markers.
            is_optional: True if the marker may be missing.
            others: Other markers. If one of them begins like one of `markers`, it is not taken for it.
        """
        if not markers:
            return self
        longer = "|".join(re.escape(other) for other in others if other not in markers and other.startswith(markers))
        literals = "|".join(map(re.escape, sorted(markers, key=len, reverse=True)))
        marker = rf"{PLAIN_SPACE}{f'(?!{longer})' if longer else ''}(?:{literals})"
        if is_optional:
            marker = f"(?:{marker})?"
        return Layout(marker + self.pattern, f"(?:{marker}{self.beginning}|{PLAIN_SPACE}{_prefixes(markers)})")


def next_param(param: Tag, body: MarkerSet, markers: MarkerSet, *, is_named: bool) -> Layout:
    """Return the layout of the head of another param. Longer ones of `markers` do not begin it."""
    return _head(param, body, is_named=is_named).after(param.open, others=markers.literals)


def next_call(call: Tag, body: MarkerSet, section_closers: tuple[str, ...], section_openers: tuple[str, ...]) -> Layout:
    """Return the layout of the end of a call and the head of another one, in the same section or in a new one."""
    head = _head(call, body, is_named=True).after(call.open)
    return head.after(section_openers, is_optional=True).after(section_closers, is_optional=True).after(call.close)


def _head(tag: Tag, body: MarkerSet, *, is_named: bool) -> Layout:
    """Return the layout of a head after its opener. If it has no end marker, one of the body's markers must follow."""
    if not tag.end:
        bodies = "|".join(map(re.escape, body.literals))
        beginning = rf"{PLAIN_SPACE}(?:{_NAME}{PLAIN_SPACE}{_prefixes(marker[:-1] for marker in body.literals)})?"
        return Layout(rf"{PLAIN_SPACE}({_NAME}){PLAIN_SPACE}(?:{bodies})", beginning)
    ends = "|".join(map(re.escape, tag.end))
    beginning = rf"[^<>\n]{{0,{MAX_HEAD_CHARS}}}+{_prefixes(end[:-1] for end in tag.end)}"
    attributes = rf"[^<>\n{''.join(re.escape(end[0]) for end in tag.end)}]{{0,64}}+"
    if not is_named:
        return Layout(rf"({attributes})(?:{ends})", beginning)
    if tag.attribute:
        names = "|".join(map(re.escape, tag.attribute))
        before = rf'{PLAIN_SPACE}(?:[\w:-]{{1,64}}+="[^"<>\n]{{0,64}}+"{PLAIN_SPACE})??'
        return Layout(rf'{before}(?:{names})="({_NAME})"{attributes}(?:{ends})', beginning)
    return Layout(rf"({_NAME})(?:{ends})", beginning)


def _prefixes(words: Iterable[str]) -> str:
    """Return a pattern for all prefixes of these words, among them the empty one."""
    by_char: dict[str, list[str]] = {}
    for word in filter(None, words):
        by_char.setdefault(word[0], []).append(word[1:])
    branches = (re.escape(char) + _prefixes(rests) for char, rests in by_char.items())
    return f"(?:{'|'.join(branches)})?" if by_char else ""
