"""Text that stands around known things, as tokens: tags, control tokens and words. What comes again is told by them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import interlingua as il

__all__ = ["Frame", "Token", "alike", "closer", "common", "find_json", "frame", "json_at", "tokens"]

_TOKEN = re.compile(r"<[^<>\n]*>|\[/?[A-Z][A-Z_]+\]|<[^<>\n]*$|[^\s<\[]+|\S")
"""A tag, a control token, a tag that has not ended, or a word."""


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int

    @property
    def is_tag(self) -> bool:
        return self.text[0] in "<["


def tokens(text: str) -> list[Token]:
    return [Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters, or parts, they begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def alike(one: Sequence[Token], other: Sequence[Token]) -> int:
    """How many tokens they begin with alike."""
    return common([token.text for token in one], [token.text for token in other])


@dataclass(frozen=True)
class Frame:
    """What stands around all calls and around each. White space between a call and its markers is with these."""

    section: tuple[il.Span, ...]
    open: str
    close: str
    between: str


def frame(before: str, between: str | None, after: str) -> Frame:
    """An opener stands before each call, a section's only before the first."""
    first, last = tokens(before), tokens(after)
    if between is None:  # one call only: the markers next to it are its own
        opens, closes, gap = min(1, len(first)), min(1, len(last)), ""
    else:
        middle = tokens(between)
        opens = alike(first[::-1], middle[::-1])
        closes = alike(last, middle[: len(middle) - opens])
        gap = between[middle[closes - 1].end if closes else 0 : middle[-opens].start if opens else len(between)]
    start = first[-opens].start if opens else len(before)
    end = last[closes - 1].end if closes else 0
    outer = before[:start]
    section = il.Span(outer.strip(), after[end:].strip(), inside=outer[len(outer.rstrip()) :])
    return Frame((section,) if section.open else (), before[start:], after[:end], gap)


def closer(ending: Sequence[Token]) -> int:
    """How many tokens the closer has that stands first: a tag, or a tag, a word and a tag (`<|close|>call<|sep|>`)."""
    return 3 if len(ending) > 2 and not ending[1].is_tag and ending[2].is_tag else min(1, len(ending))


def json_at(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins here, and its end; the end is 0 if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except ValueError:
        return None, 0


def find_json(text: str, value: Any, start: int) -> tuple[int, int]:
    """Where this object stands as JSON; (-1, 0) if nowhere."""
    at = text.find("{", start)
    while at >= 0:
        got, end = json_at(text, at)
        if end and got == value:
            return at, end
        at = text.find("{", at + 1)
    return -1, 0
