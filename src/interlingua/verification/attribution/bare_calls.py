"""Calls whose markers are gone, because the server removes special tokens from text.

`functions.get_weather:0{"city": "Paris"}` remains of a call of Kimi K2. A name with JSON behind it is found in any
text. `call:get_weather{city:Paris}` remains of a call of Gemma 4. It is found if the call is the expected one.
"""

from __future__ import annotations

import json
import re

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Reply
from interlingua.core.tools import ToolSet
from interlingua.dialects.native_text import render
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect
from interlingua.verification.reply_reading import ClientCall

__all__ = ["contains_bare_reply", "find_bare_calls"]

MAX_GAP_CHARS = 40
"""Longest text between a name and its arguments: an index, a label, a code fence."""
MAX_SEARCHED_CHARS = 100_000
_DECODER = json.JSONDecoder()


def find_bare_calls(text: str, tools: ToolSet) -> list[ClientCall]:
    """Return the calls in this text, in order."""
    names = sorted(map(re.escape, tools.names), key=len, reverse=True)
    if not names:
        return []
    pattern = re.compile(rf"(?<![\w.-])(?:functions\.)?({'|'.join(names)})(?![\w-])[^{{}}]{{0,{MAX_GAP_CHARS}}}(?={{)")
    calls, position, searched = [], 0, text[:MAX_SEARCHED_CHARS]
    while match := pattern.search(searched, position):
        position = match.end()
        try:
            arguments, position = _DECODER.raw_decode(searched, match.end())
        except (ValueError, RecursionError):
            continue
        calls.append(ClientCall("", match[1], write_json(arguments)))
    return calls


def contains_bare_reply(text: str, expected: Reply, dialect: Dialect) -> bool:
    """Return whether a text contains the calls of a reply as the model writes them, but without its special tokens.

    Whitespace does not count, and neither do ids, because those of the model are unknown.
    """
    remains = _remains_of_calls(expected, dialect)
    text = _without_whitespace(text[:MAX_SEARCHED_CHARS])
    position = 0
    for piece in remains:
        start = text.find(piece, position)
        if start < 0:
            return False
        position = start + len(piece)
    return bool(remains) and all(call.name in text for call in expected.calls)


def _remains_of_calls(reply: Reply, dialect: Dialect) -> list[str]:
    """Return what is left of the native text of these calls if a server removes the special tokens."""
    if not reply.calls or dialect.shape is None or not dialect.tokens:
        return []
    try:
        native = render(reply, dialect)
    except RenderError:
        return []
    tokens = "|".join(map(re.escape, sorted(dialect.tokens, key=len, reverse=True)))
    ids = {call.id for call in reply.calls}
    pieces = map(_without_whitespace, re.split(tokens, native))
    return [piece for piece in pieces if piece and piece not in ids]


def _without_whitespace(text: str) -> str:
    return "".join(text.split())
