"""Thinking that travels through a client and comes back, sealed: opaque to the client, and known again as ours.

Upstreams want their thinking back in the next turn, just as they sent it. A client returns only what its own wire has a
field for: a signature, or encrypted content. So what the upstream sent is written into that field, with a sum over it
that only the key can make. It is not encrypted: the client has been shown the thinking anyway.

A seal tells the wire that it is from, and not the upstream: of two upstreams that speak one wire, each gets what the
other has sealed. Where they check signatures, such as Anthropic and a cloud that also has Claude, that may be refused.

    il1.<what was sealed: JSON, deflated, base64url>.<HMAC-SHA256 of that, base64url>
"""

from __future__ import annotations

import hmac
import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import msgspec

from interlingua.events import Seal
from interlingua.json_text import write_json
from interlingua.reply import Reasoning

__all__ = ["LOST", "PREFIX", "is_ours", "open_seal", "past_thinking", "seal"]

PREFIX = "il1."
LOST = "sealed"
"""No wire's name: of a seal that is ours and cannot be opened. No upstream wants it."""
LARGEST = 64 * 1024 * 1024
"""How large a seal may grow when it is opened."""


class _Sealed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in a seal: the thinking, and whatever its upstream had sent beside it."""

    text: str
    wire: str
    data: dict[str, object] = {}


def seal(thinking: Reasoning, wire: str, key: bytes) -> str:
    """The thinking of an upstream that speaks this wire, as a text for the client's opaque field."""
    sent = _Sealed(
        thinking.text, thinking.seal.wire if thinking.seal else wire, thinking.seal.data if thinking.seal else {}
    )
    packed = urlsafe_b64encode(zlib.compress(write_json(msgspec.to_builtins(sent)).encode(), 6)).rstrip(b"=")
    return f"{PREFIX}{packed.decode()}.{_sum(packed, key)}"


def is_ours(text: str) -> bool:
    return text.startswith(PREFIX)


def open_seal(text: str, key: bytes) -> Reasoning | None:
    """The thinking that was sealed; None if this is not ours, or of another key, or has been changed."""
    packed, _, sum = text.removeprefix(PREFIX).partition(".")
    if not is_ours(text) or not hmac.compare_digest(sum.encode(), _sum(packed.encode(), key).encode()):
        return None
    try:
        unpacked = zlib.decompressobj().decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), LARGEST)
        sent = msgspec.convert(json.loads(unpacked), type=_Sealed)  # this one reads half characters
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None
    return Reasoning(sent.text, Seal(sent.wire, sent.data))


def past_thinking(shown: str, opaque: str, native: Seal | None, key: bytes) -> Reasoning:
    """Thinking as a client sends it back: what was sealed, if its opaque field is ours, else as the client says."""
    if is_ours(opaque):
        return open_seal(opaque, key) or Reasoning(shown, Seal(LOST, {}))
    return Reasoning(shown, native)


def _sum(packed: bytes, key: bytes) -> str:
    return urlsafe_b64encode(hmac.digest(key, packed, sha256)).rstrip(b"=").decode()
