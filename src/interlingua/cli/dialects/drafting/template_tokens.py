"""Text that stands around known things, as tokens: tags, control tokens and words. What comes again is told by them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import interlingua as il

__all__ = [
    "TemplateFrame",
    "TemplateToken",
    "closer_length",
    "common_prefix_length",
    "common_token_count",
    "decode_json_at",
    "find_json",
    "split_frame",
    "tokenize",
]

_TOKEN_PATTERN = re.compile(r"<[^<>\n]*>|\[/?[A-Z][A-Z_]+\]|<[^<>\n]*$|[^\s<\[]+|\S")
"""A tag, a control token, a tag that has not ended, or a word."""


@dataclass(frozen=True)
class TemplateToken:
    text: str
    start: int
    end: int

    @property
    def is_tag(self) -> bool:
        return self.text[0] in "<["


def tokenize(text: str) -> list[TemplateToken]:
    return [TemplateToken(match.group(), match.start(), match.end()) for match in _TOKEN_PATTERN.finditer(text)]


def common_prefix_length(first: Sequence[str], second: Sequence[str]) -> int:
    """How many characters, or parts, they begin with alike."""
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def common_token_count(first: Sequence[TemplateToken], second: Sequence[TemplateToken]) -> int:
    """How many tokens they begin with alike."""
    return common_prefix_length([token.text for token in first], [token.text for token in second])


@dataclass(frozen=True)
class TemplateFrame:
    """What stands around all calls and around each. White space between a call and its markers is with these."""

    section: tuple[il.Span, ...]
    open: str
    close: str
    between: str


def split_frame(before: str, between: str | None, after: str) -> TemplateFrame:
    """An opener stands before each call, a section's only before the first."""
    before_tokens, after_tokens = tokenize(before), tokenize(after)
    if between is None:  # one call only: the markers next to it are its own
        opener_count, closer_count, gap = min(1, len(before_tokens)), min(1, len(after_tokens)), ""
    else:
        between_tokens = tokenize(between)
        opener_count = common_token_count(before_tokens[::-1], between_tokens[::-1])
        closer_count = common_token_count(after_tokens, between_tokens[: len(between_tokens) - opener_count])
        gap = between[
            between_tokens[closer_count - 1].end if closer_count else 0 : between_tokens[-opener_count].start
            if opener_count
            else len(between)
        ]
    start = before_tokens[-opener_count].start if opener_count else len(before)
    end = after_tokens[closer_count - 1].end if closer_count else 0
    section_text = before[:start]
    section = il.Span(section_text.strip(), after[end:].strip(), inside=section_text[len(section_text.rstrip()) :])
    return TemplateFrame((section,) if section.open else (), before[start:], after[:end], gap)


def closer_length(ending_tokens: Sequence[TemplateToken]) -> int:
    """How many tokens the closer has that stands first: a tag, or a tag, a word and a tag (`<|close|>call<|sep|>`)."""
    return (
        3
        if len(ending_tokens) > 2 and not ending_tokens[1].is_tag and ending_tokens[2].is_tag
        else min(1, len(ending_tokens))
    )


def decode_json_at(text: str, index: int) -> tuple[Any, int]:
    """The JSON value that begins here, and its end; the end is 0 if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, index)
    except ValueError:
        return None, 0


def find_json(text: str, value: Any, start: int) -> tuple[int, int]:
    """Where this object stands as JSON; (-1, 0) if nowhere."""
    index = text.find("{", start)
    while index >= 0:
        decoded, end = decode_json_at(text, index)
        if end and decoded == value:
            return index, end
        index = text.find("{", index + 1)
    return -1, 0
