"""Splitting of a reply into tokens of the dialect, as deltas of chat completions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from interlingua.core.reply import Call, Reasoning, Reply, Text
from interlingua.dialects.native_text import render
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect

__all__ = ["native_text", "structured_deltas", "text_deltas", "tokenize"]

UNWRITABLE_REPLY = "This dialect cannot express the planned reply."
_SPECIAL_TOKEN_PATTERNS = (r"<\|[^\s<>]{1,40}\|>", r"<｜[^\s<>]{1,40}｜>")
_WORD_PATTERNS = (r" ?\w{1,8}", r" [^\w\s<\[]", r"[^\w\s]", r"\s{1,8}")


def native_text(reply: Reply, dialect: Dialect) -> str:
    """Return the native text of the reply.

    If the dialect cannot express the reasoning, it is left out. If it cannot express the rest, the text states that.
    """
    without_reasoning = msgspec.structs.replace(
        reply, parts=[part for part in reply.parts if not isinstance(part, Reasoning)]
    )
    for candidate in (reply, without_reasoning):
        try:
            return render(candidate, dialect)
        except RenderError:
            continue
    return render(Reply(parts=[Text(UNWRITABLE_REPLY)]), dialect)


def tokenize(text: str, dialect: Dialect) -> list[str]:
    """Split the text like a tokenizer: each special token is one piece, and words include their leading space."""
    return _token_pattern(dialect.tokens).findall(text)


def text_deltas(text: str, dialect: Dialect) -> Iterator[dict[str, Any]]:
    """Yield one delta per token of native text."""
    yield from ({"content": piece} for piece in tokenize(text, dialect))


def structured_deltas(reply: Reply, dialect: Dialect) -> Iterator[dict[str, Any]]:
    """Yield one delta per token, with separate fields for calls and thinking."""
    index = 0
    for part in reply.parts:
        if isinstance(part, Call):
            function = {"name": part.name, "arguments": ""}
            yield {"tool_calls": [{"index": index, "id": part.id, "type": "function", "function": function}]}
            for piece in tokenize(part.arguments, dialect):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            index += 1
        else:
            field = "content" if isinstance(part, Text) else "reasoning_content"
            yield from ({field: piece} for piece in tokenize(part.text, dialect))


@lru_cache(maxsize=256)
def _token_pattern(special: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, special), key=len, reverse=True)
    return re.compile("|".join((*longest_first, *_SPECIAL_TOKEN_PATTERNS, *_WORD_PATTERNS)))
