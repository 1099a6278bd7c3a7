"""A reply of the demo model as the tokens of a model that speaks this dialect, in the deltas of chat completions."""

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

__all__ = ["deltas", "native", "pieces"]

UNWRITABLE = "This dialect has no way to write what I was about to say, so I say no more than that."
_SPECIAL = (r"<\|[^\s<>]{1,40}\|>", r"<｜[^\s<>]{1,40}｜>")
_WORDS = (r" ?\w{1,8}", r" [^\w\s<\[]", r"[^\w\s]", r"\s{1,8}")


def native(reply: Reply, dialect: Dialect) -> str:
    """The text that the model would have written. What the dialect cannot write, it says in words."""
    silent = msgspec.structs.replace(reply, parts=[part for part in reply.parts if not isinstance(part, Reasoning)])
    for writable in (reply, silent):
        try:
            return render(writable, dialect)
        except RenderError:
            continue
    return render(Reply(parts=[Text(UNWRITABLE)]), dialect)


def pieces(text: str, dialect: Dialect) -> list[str]:
    """The text as a tokenizer cuts it: special tokens are one piece each, and words begin with their space."""
    return _tokens(dialect.tokens).findall(text)


def deltas(reply: Reply, dialect: Dialect) -> Iterator[dict[str, Any]]:
    """What each token adds to the message. Where there is no native text, calls and thinking have their own fields."""
    if dialect.grammar is not None:
        yield from ({"content": piece} for piece in pieces(native(reply, dialect), dialect))
        return
    index = 0
    for part in reply.parts:
        if isinstance(part, Call):
            function = {"name": part.name, "arguments": ""}
            yield {"tool_calls": [{"index": index, "id": part.id, "type": "function", "function": function}]}
            for piece in pieces(part.arguments, dialect):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            index += 1
        else:
            field = "content" if isinstance(part, Text) else "reasoning_content"
            yield from ({field: piece} for piece in pieces(part.text, dialect))


@lru_cache(maxsize=256)
def _tokens(special: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, special), key=len, reverse=True)
    return re.compile("|".join((*longest_first, *_SPECIAL, *_WORDS)))
