"""Call ids for wires that allow only letters, digits, `_` and `-` in them: legal ones stay, others are encoded.

functions.Bash:0 → il-MZ2W4Y3UNFXW44ZOIJQXG2B2GA → functions.Bash:0
"""

from __future__ import annotations

import re
from base64 import b32decode, b32encode

__all__ = ["decode", "encode"]

PREFIX = "il-"
_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")


def encode(id: str) -> str:
    """A legal id that `decode` makes this one of again."""
    if _LEGAL.fullmatch(id) and not id.startswith(PREFIX):
        return id
    return PREFIX + b32encode(id.encode("utf-8", "surrogatepass")).rstrip(b"=").decode()


def decode(id: str) -> str:
    """The id that was encoded; any other as it is."""
    packed = id.removeprefix(PREFIX)
    if packed == id:
        return id
    try:
        return b32decode(packed + "=" * (-len(packed) % 8)).decode("utf-8", "surrogatepass")
    except ValueError:
        return id
