"""Reversible encoding of call ids in characters that every wire allows.

    functions.Bash:0  ⇄  il-functions_2eBash_3a0

Legal ids stay as they are. No state is needed: the id itself shows whether it is encoded.
"""

from __future__ import annotations

import re

__all__ = ["decode_id", "encode_id"]

PREFIX = "il-"
_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
_ESCAPED = re.compile(r"[^a-zA-Z0-9-]")  # `_` too, because it starts an escape
_ENCODED = re.compile(r"(?:[a-zA-Z0-9-]|_[0-9a-f]{2})*")


def encode_id(id: str) -> str:
    """Return the id in letters, digits, `_` and `-`. A legal id that looks encoded is encoded once more."""
    return id if _LEGAL.fullmatch(id) and decode_id(id) == id else _escape(id)


def decode_id(id: str) -> str:
    """Return the original of an encoded id; any other id unchanged."""
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
    """Return whether the id is legal and does not start with the prefix of encoded ids."""
    return bool(_LEGAL.fullmatch(id)) and not id.startswith(PREFIX)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
