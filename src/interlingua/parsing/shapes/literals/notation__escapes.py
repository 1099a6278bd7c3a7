"""Escapes in the strings of Python and JSON, as JSON has them."""

from __future__ import annotations

import re
from json.encoder import encode_basestring

from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["ESCAPES", "escaped", "read_escape"]

_HEX = re.compile(r"[0-9A-Fa-f]*")
_OCTAL = re.compile(r"[0-7]*")
_SHORT = {"\\\n": "", "\\\\": "\\", "\\'": "'", '\\"': '"', "\\/": "/", "\\a": "\a", "\\b": "\b"}
_SHORT |= {"\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v"}
_DIGITS = {"\\x": 2, "\\u": 4, "\\U": 8} | {f"\\{digit}": 2 for digit in range(8)}

ESCAPES = ("\\", *_SHORT, *_DIGITS)
"""What an escape begins with."""


def escaped(text: str) -> str:
    """The text as it stands in a JSON string."""
    return encode_basestring(text)[1:-1]


def read_escape(escape: str, source: Source) -> Reading[str]:
    """The JSON for an escape that begins like this. A backslash that begins none stays, as in Python."""
    if escape not in _DIGITS:
        return escaped(_SHORT.get(escape, escape))
    octal = escape[1].isdigit()
    size = _DIGITS[escape]
    digits = yield from source.take_while(_OCTAL if octal else _HEX, size)
    if octal:
        return escaped(chr(int(escape[1] + digits, 8)))
    if len(digits) < size or int(digits, 16) > 0x10FFFF:
        return escaped(escape + digits)
    return f"\\u{digits}" if escape == "\\u" else escaped(chr(int(digits, 16)))
