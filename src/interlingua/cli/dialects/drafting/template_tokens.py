"""Tokenizer for rendered templates: tags, control tokens and words. Repeated markers are found by comparing tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import interlingua as il
from interlingua.common.common_prefix import common_prefix_length

__all__ = [
    "TemplateFrame",
    "TemplateToken",
    "closer_length",
    "common_token_count",
    "decode_json_at",
    "find_json",
    "split_frame",
    "tokenize",
]

_TOKEN_PATTERN = re.compile(r"<[^<>\n]*>|\[(?:/?[A-Z][A-Z_]+|unused\d+)\]|<[^<>\n]*$|[^\s<\[]+|\S")
"""A tag, a control token, an unclosed tag, or a word."""


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


def common_token_count(first: Sequence[TemplateToken], second: Sequence[TemplateToken]) -> int:
    """Return the number of equal tokens at the beginning."""
    return common_prefix_length([token.text for token in first], [token.text for token in second])


@dataclass(frozen=True)
class TemplateFrame:
    """Markers around all calls (section) and around each call. Whitespace next to a call belongs to its markers."""

    section: tuple[il.Span, ...]
    open: str
    close: str
    between: str


def split_frame(before: str, between: str | None, after: str) -> TemplateFrame:
    """Separate the markers of a call, which repeat before each call, from those of the section, which do not.

    Args:
        before: Text before the first call.
        between: Text between two calls; None if there is one call only.
        after: Text after the last call.
    """
    before_tokens, after_tokens = tokenize(before), tokenize(after)
    if between is None:  # one call only: assume that the markers next to it are its own
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
    """Return the number of tokens of the first closing marker: a tag, or tag + word + tag (`<|close|>call<|sep|>`)."""
    return (
        3
        if len(ending_tokens) > 2 and not ending_tokens[1].is_tag and ending_tokens[2].is_tag
        else min(1, len(ending_tokens))
    )


def decode_json_at(text: str, index: int) -> tuple[Any, int]:
    """Decode the JSON value at `index`. Return it and its end; (None, 0) if there is no valid JSON."""
    try:
        return json.JSONDecoder().raw_decode(text, index)
    except ValueError:
        return None, 0


def find_json(text: str, value: Any, start: int) -> tuple[int, int]:
    """Return (start, end) of this object as JSON in the text; (-1, 0) if it is not found."""
    index = text.find("{", start)
    while index >= 0:
        decoded, end = decode_json_at(text, index)
        if end and decoded == value:
            return index, end
        index = text.find("{", index + 1)
    return -1, 0
