"""Encrypted envelopes for thinking that is sent to the client and returned by it.

Upstreams require their thinking back in the next turn, exactly as they sent it. A client returns only the fields that
its own wire has: a signature, or encrypted content. So the upstream's data is written into that field as an envelope.
Without the key, an envelope can neither be read nor made. The cipher is AES-SIV (RFC 5297), which needs no random
number: the same content gives the same envelope, so that prompt caches stay valid.

An envelope contains the wire and, if known, the name of its upstream: of two upstreams on the same wire, neither
receives data that the other signed. If the client uses the upstream's wire, that wire already has a field for the
signed value. Then only this value is put into an envelope, in its original field and with the upstream's name.
Exception: values that Anthropic signs in Messages and that OpenAI encrypts in Responses are forwarded unchanged.

    il2.<content: JSON, deflated, encrypted, base64url>.

Gemini signs a call instead of its thinking. On other wires, this signature is that of the thinking before the call.

Earlier versions wrote `il1.` envelopes, which were not encrypted. They are recognised, but not read.
"""

from __future__ import annotations

import hmac
import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha512
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Reasoning
from interlingua.events import Seal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

__all__ = [
    "CALL_SIGNATURE",
    "ENVELOPE_PREFIX",
    "ENVELOPE_PREFIXES",
    "UNSIGNED_WIRE",
    "VALUE_KEY",
    "OwnershipCheck",
    "SignedValue",
    "call_extra",
    "call_seal",
    "is_envelope",
    "load_cipher",
    "read_envelope",
    "read_past_reasoning",
    "read_value_envelope",
    "unpacked_size",
    "write_envelope",
    "write_value_envelope",
]

ENVELOPE_PREFIX = "il2."
ENVELOPE_PREFIXES = (ENVELOPE_PREFIX, "il1.")
VALUE_KEY = "value"
"""Key in an envelope that contains a single value of the client's own wire and nothing else."""
UNSIGNED_WIRE = "openai-chat"
"""Wire in the envelope of thinking without a signature: the one whose upstreams send such thinking. Clients keep
envelopes, so it must not change."""
ENVELOPE_PATTERN = re.compile(r"il2\.([\w-]+)\.", re.ASCII)
ENVELOPES_PATTERN = re.compile(f"(?:{ENVELOPE_PATTERN.pattern})+", re.ASCII)
"""One envelope, or several concatenated."""
KEY_PURPOSE = b"interlingua: envelopes of thinking"
"""Separates the cipher's key from other uses of the same secret."""
MAX_ENVELOPE_BYTES = 32 * 1024 * 1024
"""Maximum size of an envelope's content after decompression."""
UNPACK_STEP_BYTES = 64 * 1024
"""Bytes that are unpacked at a time to measure an envelope."""
CALL_SIGNATURE = "thought_signature"
"""Signature of thinking that an upstream sends with a call, in `extra_content.google` of chat completions: Gemini."""
OwnershipCheck: TypeAlias = Callable[[Seal], bool]
"""Predicate: true if the data comes from the upstream that receives the request."""


class _EnvelopeContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of an envelope: the thinking, and the data that its upstream sent with it."""

    text: str
    wire: str
    data: dict[str, object] = {}
    upstream: str = ""


class SignedValue(NamedTuple):
    """A value that an upstream signed or encrypted, and the name of the upstream."""

    value: str
    upstream: str


def write_envelope(reasoning: Reasoning, wire: str, key: bytes, upstream: str = "") -> str:
    """Return an envelope with the thinking of an upstream on this wire, for the client's opaque field."""
    signature = reasoning.seal or Seal(wire, {})
    return _encode_envelope(_EnvelopeContent(reasoning.text, signature.wire, signature.data, upstream), key)


def write_value_envelope(value: str, wire: str, upstream: str, key: bytes) -> str:
    """Return an envelope with a value that an upstream signed or encrypted and the upstream's name, for a client on the
    same wire."""
    return _encode_envelope(_EnvelopeContent("", wire, {VALUE_KEY: value}, upstream), key)


def _encode_envelope(content: _EnvelopeContent, key: bytes) -> str:
    packed = zlib.compress(write_json(msgspec.to_builtins(content)).encode(), 6)
    encrypted = load_cipher()(_cipher_key(key)).encrypt(packed, None)
    return f"{ENVELOPE_PREFIX}{urlsafe_b64encode(encrypted).decode().rstrip('=')}."


def is_envelope(text: str) -> bool:
    return text.startswith(ENVELOPE_PREFIXES)


def read_envelope(text: str, key: bytes) -> Reasoning | None:
    """Return the thinking in an envelope. Clients concatenate the envelopes of a value that was streamed in pieces, so
    several in a row are joined.

    Returns:
        The thinking; None if the text is not an envelope, was made with another key, or was modified.
    """
    if not ENVELOPES_PATTERN.fullmatch(text):
        return None
    pieces = []
    for encoded in ENVELOPE_PATTERN.findall(text):
        piece = _decode_envelope(encoded, key)
        if piece is None:  # no envelope is read then: a long text of unreadable ones must not take long
            return None
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else _join_values(pieces)


def unpacked_size(text: str, key: bytes, limit: int) -> int:
    """Return the size of the content of an envelope, or of several, in bytes: no more than `limit` is unpacked.

    Returns: the size; 0 if the text cannot be read; more than the limit if the content is larger.
    """
    size = 0
    for encoded in ENVELOPE_PATTERN.findall(text):
        decompressor, data = zlib.decompressobj(), _decrypt(encoded, key)
        if data is None:  # `read_envelope` reads none of them
            break
        try:
            while data and size <= limit:
                size += len(decompressor.decompress(data, UNPACK_STEP_BYTES))
                data = decompressor.unconsumed_tail
        except zlib.error:
            break
    return size


def _decrypt(encoded: str, key: bytes) -> bytes | None:
    """Return the compressed content of an envelope; None if it cannot be read."""
    from cryptography.exceptions import InvalidTag

    try:
        encrypted = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        return load_cipher()(_cipher_key(key)).decrypt(encrypted, None)
    except (ValueError, InvalidTag):
        return None


def _decode_envelope(encoded: str, key: bytes) -> Reasoning | None:
    packed = _decrypt(encoded, key)
    if packed is None:
        return None
    try:
        unpacked = zlib.decompressobj().decompress(packed, MAX_ENVELOPE_BYTES)
        content = msgspec.convert(json.loads(unpacked), type=_EnvelopeContent)  # json accepts unpaired surrogates
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None
    return Reasoning(content.text, Seal(content.wire, content.data, content.upstream))


def _join_values(pieces: list[Reasoning]) -> Reasoning | None:
    """Join the pieces of one value. Return None if they are not all values from the same upstream and wire."""
    seals = [piece.seal for piece in pieces if piece.seal]
    values = [value for seal in seals if isinstance(value := seal.data.get(VALUE_KEY), str)]
    if len(values) < len(pieces) or len({(seal.wire, seal.upstream) for seal in seals}) > 1:
        return None
    return Reasoning("", Seal(seals[0].wire, {VALUE_KEY: "".join(values)}, seals[0].upstream))


def read_value_envelope(text: str, wire: str, key: bytes) -> SignedValue | None:
    """Return the value of this wire in an envelope, or None if the text is not a valid envelope of this wire."""
    reasoning = read_envelope(text, key)
    if reasoning is None or reasoning.seal is None or reasoning.seal.wire != wire:
        return None
    value = reasoning.seal.data.get(VALUE_KEY)
    return SignedValue(value, reasoning.seal.upstream) if isinstance(value, str) else None


def read_past_reasoning(text: str, opaque: str, native: Seal | None, key: bytes) -> Reasoning:
    """Read thinking that a client returns.

    Args:
        text: The thinking's text, as the client sent it.
        opaque: The client's opaque field. The content of a valid envelope replaces `text`.
        native: The data of the opaque field as the client's own wire has it.
        key: The key of the envelopes.
    """
    if native is not None and (signed_value := read_value_envelope(opaque, native.wire, key)):
        return Reasoning(
            text, Seal(native.wire, _replace_value(signed_value.value, opaque, native.data), signed_value.upstream)
        )
    if is_envelope(opaque):
        return read_envelope(opaque, key) or Reasoning(text)
    return Reasoning(text, native)


def _replace_value(value: str, opaque: str, node: Any) -> Any:
    """Return the node with every occurrence of the envelope `opaque` replaced by `value`."""
    match node:
        case dict():
            return {key: _replace_value(value, opaque, inner) for key, inner in node.items()}
        case list():
            return [_replace_value(value, opaque, inner) for inner in node]
    return value if node == opaque else node


def call_seal(extra: Mapping[str, Any] | None) -> Seal | None:
    """Return the signature of the thinking before a call that is among the call's own fields; None if there is none."""
    match extra:
        case {"extra_content": {"google": {"thought_signature": str(signature)}}} if signature:
            return Seal(UNSIGNED_WIRE, {CALL_SIGNATURE: signature})
    return None


def call_extra(signature: str) -> dict[str, Any]:
    """Return the fields of a call with this signature."""
    return {"extra_content": {"google": {CALL_SIGNATURE: signature}}}


def load_cipher() -> type[AESSIV]:
    """Return the cipher. It is imported on first use: the import takes longer than that of the rest of the library."""
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV


def _cipher_key(key: bytes) -> bytes:
    """Return the 64 bytes that AES-256-SIV needs, derived from a key of any length."""
    return hmac.digest(key, KEY_PURPOSE, sha512)
