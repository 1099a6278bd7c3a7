"""Ids with characters that a wire forbids, written with those that every wire allows, and read back.

    functions.Bash:0  ⇄  il-functions_2eBash_3a0

What is legal stays as it is. No state is needed: whoever sees an id knows whether it was written here.
"""

from __future__ import annotations

import re

__all__ = ["decode_id", "encode_id"]

PREFIX = "il-"
_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
_ESCAPED = re.compile(r"[^a-zA-Z0-9-]")  # `_` too, for it begins an escape
_ENCODED = re.compile(r"(?:[a-zA-Z0-9-]|_[0-9a-f]{2})*")


def encode_id(id: str) -> str:
    """The id in letters, digits, `_` and `-`. One that merely looks as if it was written here is written once more."""
    return id if _LEGAL.fullmatch(id) and decode_id(id) == id else _escape(id)


def decode_id(id: str) -> str:
    """The id that was encoded; any other one as it is."""
    body = id.removeprefix(PREFIX)
    if body == id or not _ENCODED.fullmatch(body):
        return id
    try:
        native = re.sub("_(..)", lambda escape: chr(int(escape[1], 16)), body).encode("latin-1")
        text = native.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return id
    return text if _escape(text) == id and not _is_safe(text) else id


def _escape(id: str) -> str:
    return PREFIX + _ESCAPED.sub(lambda match: "".join(f"_{byte:02x}" for byte in _utf8(match[0])), id)


def _is_safe(id: str) -> bool:
    """Whether it never needed to be written in another way."""
    return bool(_LEGAL.fullmatch(id)) and not id.startswith(PREFIX)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
