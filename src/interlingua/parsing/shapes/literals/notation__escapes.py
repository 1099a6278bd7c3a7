"""Escapes in the strings of Python and JSON, as JSON has them."""

from __future__ import annotations

import re
from json.encoder import encode_basestring

from interlingua.parsing.text_buffer__source import Read, TextBuffer

__all__ = ["ESCAPE_STARTS", "escape_json", "read_escape"]

_HEX_PATTERN = re.compile(r"[0-9A-Fa-f]*")
_OCTAL_PATTERN = re.compile(r"[0-7]*")
_SIMPLE_ESCAPES = {"\\\n": "", "\\\\": "\\", "\\'": "'", '\\"': '"', "\\/": "/", "\\a": "\a", "\\b": "\b"}
_SIMPLE_ESCAPES |= {"\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v"}
_DIGIT_COUNTS = {"\\x": 2, "\\u": 4, "\\U": 8} | {f"\\{digit}": 2 for digit in range(8)}

ESCAPE_STARTS = ("\\", *_SIMPLE_ESCAPES, *_DIGIT_COUNTS)
"""What an escape begins with."""


def escape_json(text: str) -> str:
    """The text as it stands in a JSON string."""
    return encode_basestring(text)[1:-1]


def read_escape(escape: str, source: TextBuffer) -> Read[str]:
    """The JSON for an escape that begins like this. A backslash that begins none stays, as in Python."""
    if escape not in _DIGIT_COUNTS:
        return escape_json(_SIMPLE_ESCAPES.get(escape, escape))
    octal = escape[1].isdigit()
    size = _DIGIT_COUNTS[escape]
    digits = yield from source.take_while(_OCTAL_PATTERN if octal else _HEX_PATTERN, size)
    if octal:
        return escape_json(chr(int(escape[1] + digits, 8)))
    if len(digits) < size or int(digits, 16) > 0x10FFFF:
        return escape_json(escape + digits)
    return f"\\u{digits}" if escape == "\\u" else escape_json(chr(int(digits, 16)))
