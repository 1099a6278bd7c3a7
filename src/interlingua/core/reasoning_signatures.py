"""Thinking that travels through a client and comes back, sealed: opaque to the client, and known again as ours.

Upstreams want their thinking back in the next turn, just as they sent it. A client returns only what its own wire has a
field for: a signature, or encrypted content. So what the upstream sent is written into that field, with a sum over it
that only the key can make. It is not encrypted: the client has been shown the thinking anyway.

A seal tells the wire and the upstream that it is from, if that has a name: of two upstreams that speak one wire, none
gets what the other has signed. A client that speaks the upstream's wire has a field for what the upstream signs. There
the value alone is sealed, in its place and with the name; but what Anthropic signs in Messages and OpenAI encrypts in
Responses goes as it is.

    il1.<what was sealed: JSON, deflated, base64url>.<HMAC-SHA256 of that, base64url>
"""

from __future__ import annotations

import hmac
import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

import msgspec

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Reasoning
from interlingua.events import Seal

__all__ = [
    "PREFIX",
    "VALUE",
    "Own",
    "Value",
    "is_ours",
    "open_seal",
    "open_value",
    "past_thinking",
    "seal",
    "seal_value",
]

PREFIX = "il1."
VALUE = "value"
"""What is in a seal that stands for one value of the client's own wire, and for nothing beside it."""
SEAL = re.compile(r"il1\.([\w-]+)\.([\w-]{43})", re.ASCII)
SEALS = re.compile(f"(?:{SEAL.pattern})+", re.ASCII)
"""One, and several in a row."""
LARGEST = 64 * 1024 * 1024
"""How large a seal may grow when it is opened."""
Own: TypeAlias = Callable[[Seal], bool]
"""Whether what was sealed is from the upstream that is asked."""


class _Sealed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in a seal: the thinking, and whatever its upstream had sent beside it."""

    text: str
    wire: str
    data: dict[str, object] = {}
    upstream: str = ""


class Value(NamedTuple):
    """What an upstream had signed or encrypted, and its name."""

    value: str
    upstream: str


def seal(thinking: Reasoning, wire: str, key: bytes, upstream: str = "") -> str:
    """The thinking of an upstream that speaks this wire, as a text for the client's opaque field."""
    sent = thinking.seal or Seal(wire, {})
    return _sealed(_Sealed(thinking.text, sent.wire, sent.data, upstream), key)


def seal_value(value: str, wire: str, upstream: str, key: bytes) -> str:
    """What an upstream has signed or encrypted, for a client of its wire, with the upstream's name."""
    return _sealed(_Sealed("", wire, {VALUE: value}, upstream), key)


def _sealed(sent: _Sealed, key: bytes) -> str:
    packed = urlsafe_b64encode(zlib.compress(write_json(msgspec.to_builtins(sent)).encode(), 6)).rstrip(b"=")
    return f"{PREFIX}{packed.decode()}.{_sum(packed, key)}"


def is_ours(text: str) -> bool:
    return text.startswith(PREFIX)


def open_seal(text: str, key: bytes) -> Reasoning | None:
    """The thinking that was sealed; None if this is not ours, or of another key, or has been changed. Of a value that
    came in pieces, a client has joined the seals."""
    if not SEALS.fullmatch(text):
        return None
    pieces = [_opened(packed, sum, key) for packed, sum in SEAL.findall(text)]
    return pieces[0] if len(pieces) == 1 else _joined(pieces)


def _opened(packed: str, sum: str, key: bytes) -> Reasoning | None:
    if not hmac.compare_digest(sum, _sum(packed.encode(), key)):
        return None
    try:
        unpacked = zlib.decompressobj().decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), LARGEST)
        sent = msgspec.convert(json.loads(unpacked), type=_Sealed)  # this one reads half characters
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None
    return Reasoning(sent.text, Seal(sent.wire, sent.data, sent.upstream))


def _joined(pieces: list[Reasoning | None]) -> Reasoning | None:
    """One value, if they all are pieces of one from the same upstream."""
    seals = [piece.seal for piece in pieces if piece and piece.seal]
    values = [value for seal in seals if isinstance(value := seal.data.get(VALUE), str)]
    if len(values) < len(pieces) or len({(seal.wire, seal.upstream) for seal in seals}) > 1:
        return None
    return Reasoning("", Seal(seals[0].wire, {VALUE: "".join(values)}, seals[0].upstream))


def open_value(text: str, wire: str, key: bytes) -> Value | None:
    """The value of this wire that was sealed in its place; None if this is no such seal."""
    sent = open_seal(text, key)
    if sent is None or sent.seal is None or sent.seal.wire != wire:
        return None
    value = sent.seal.data.get(VALUE)
    return Value(value, sent.seal.upstream) if isinstance(value, str) else None


def past_thinking(shown: str, opaque: str, native: Seal | None, key: bytes) -> Reasoning:
    """Thinking as a client sends it back: what was sealed, if its opaque field is ours, else as the client says."""
    if native is not None and (sent := open_value(opaque, native.wire, key)):
        return Reasoning(shown, Seal(native.wire, _put(sent.value, opaque, native.data), sent.upstream))
    if is_ours(opaque):
        return open_seal(opaque, key) or Reasoning(shown)
    return Reasoning(shown, native)


def _put(value: str, opaque: str, node: Any) -> Any:
    """The node with the value where its seal stands."""
    match node:
        case dict():
            return {key: _put(value, opaque, inner) for key, inner in node.items()}
        case list():
            return [_put(value, opaque, inner) for inner in node]
    return value if node == opaque else node


def _sum(packed: bytes, key: bytes) -> str:
    return urlsafe_b64encode(hmac.digest(key, packed, sha256)).rstrip(b"=").decode()
