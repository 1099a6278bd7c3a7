"""Calls whose markers are gone: the name of a tool, and behind it arguments that fit the tool.

Servers that remove special tokens from text leave this of a call: `functions.get_weather:0{"city": "Paris"}`.
"""

from __future__ import annotations

import json
import re

from interlingua.common.jsontext.codec import write_json
from interlingua.core.tools import ToolSet
from interlingua.verification.reply_reading import ClientCall

__all__ = ["find_bare_calls"]

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
