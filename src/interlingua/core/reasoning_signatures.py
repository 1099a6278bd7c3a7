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
    "ENVELOPE_PREFIX",
    "VALUE_KEY",
    "OwnershipCheck",
    "SignedValue",
    "is_envelope",
    "read_envelope",
    "read_past_reasoning",
    "read_value_envelope",
    "write_envelope",
    "write_value_envelope",
]

ENVELOPE_PREFIX = "il1."
VALUE_KEY = "value"
"""What is in a seal that stands for one value of the client's own wire, and for nothing beside it."""
ENVELOPE_PATTERN = re.compile(r"il1\.([\w-]+)\.([\w-]{43})", re.ASCII)
ENVELOPES_PATTERN = re.compile(f"(?:{ENVELOPE_PATTERN.pattern})+", re.ASCII)
"""One, and several in a row."""
MAX_ENVELOPE_BYTES = 64 * 1024 * 1024
"""How large a seal may grow when it is opened."""
OwnershipCheck: TypeAlias = Callable[[Seal], bool]
"""Whether what was sealed is from the upstream that is asked."""


class _EnvelopeContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in a seal: the thinking, and whatever its upstream had sent beside it."""

    text: str
    wire: str
    data: dict[str, object] = {}
    upstream: str = ""


class SignedValue(NamedTuple):
    """What an upstream had signed or encrypted, and its name."""

    value: str
    upstream: str


def write_envelope(reasoning: Reasoning, wire: str, key: bytes, upstream: str = "") -> str:
    """The thinking of an upstream that speaks this wire, as a text for the client's opaque field."""
    signature = reasoning.seal or Seal(wire, {})
    return _encode_envelope(_EnvelopeContent(reasoning.text, signature.wire, signature.data, upstream), key)


def write_value_envelope(value: str, wire: str, upstream: str, key: bytes) -> str:
    """What an upstream has signed or encrypted, for a client of its wire, with the upstream's name."""
    return _encode_envelope(_EnvelopeContent("", wire, {VALUE_KEY: value}, upstream), key)


def _encode_envelope(content: _EnvelopeContent, key: bytes) -> str:
    packed = urlsafe_b64encode(zlib.compress(write_json(msgspec.to_builtins(content)).encode(), 6)).rstrip(b"=")
    return f"{ENVELOPE_PREFIX}{packed.decode()}.{_checksum(packed, key)}"


def is_envelope(text: str) -> bool:
    return text.startswith(ENVELOPE_PREFIX)


def read_envelope(text: str, key: bytes) -> Reasoning | None:
    """The thinking that was sealed; None if this is not ours, or of another key, or has been changed. Of a value that
    came in pieces, a client has joined the seals."""
    if not ENVELOPES_PATTERN.fullmatch(text):
        return None
    pieces = [_decode_envelope(packed, checksum, key) for packed, checksum in ENVELOPE_PATTERN.findall(text)]
    return pieces[0] if len(pieces) == 1 else _join_values(pieces)


def _decode_envelope(packed: str, checksum: str, key: bytes) -> Reasoning | None:
    if not hmac.compare_digest(checksum, _checksum(packed.encode(), key)):
        return None
    try:
        unpacked = zlib.decompressobj().decompress(
            urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), MAX_ENVELOPE_BYTES
        )
        content = msgspec.convert(json.loads(unpacked), type=_EnvelopeContent)  # this one reads half characters
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None
    return Reasoning(content.text, Seal(content.wire, content.data, content.upstream))


def _join_values(pieces: list[Reasoning | None]) -> Reasoning | None:
    """One value, if they all are pieces of one from the same upstream."""
    seals = [piece.seal for piece in pieces if piece and piece.seal]
    values = [value for seal in seals if isinstance(value := seal.data.get(VALUE_KEY), str)]
    if len(values) < len(pieces) or len({(seal.wire, seal.upstream) for seal in seals}) > 1:
        return None
    return Reasoning("", Seal(seals[0].wire, {VALUE_KEY: "".join(values)}, seals[0].upstream))


def read_value_envelope(text: str, wire: str, key: bytes) -> SignedValue | None:
    """The value of this wire that was sealed in its place; None if this is no such seal."""
    reasoning = read_envelope(text, key)
    if reasoning is None or reasoning.seal is None or reasoning.seal.wire != wire:
        return None
    value = reasoning.seal.data.get(VALUE_KEY)
    return SignedValue(value, reasoning.seal.upstream) if isinstance(value, str) else None


def read_past_reasoning(text: str, opaque: str, native: Seal | None, key: bytes) -> Reasoning:
    """Thinking as a client sends it back: what was sealed, if its opaque field is ours, else as the client says."""
    if native is not None and (signed_value := read_value_envelope(opaque, native.wire, key)):
        return Reasoning(
            text, Seal(native.wire, _replace_value(signed_value.value, opaque, native.data), signed_value.upstream)
        )
    if is_envelope(opaque):
        return read_envelope(opaque, key) or Reasoning(text)
    return Reasoning(text, native)


def _replace_value(value: str, opaque: str, node: Any) -> Any:
    """The node with the value where its seal stands."""
    match node:
        case dict():
            return {key: _replace_value(value, opaque, inner) for key, inner in node.items()}
        case list():
            return [_replace_value(value, opaque, inner) for inner in node]
    return value if node == opaque else node


def _checksum(packed: bytes, key: bytes) -> str:
    return urlsafe_b64encode(hmac.digest(key, packed, sha256)).rstrip(b"=").decode()
