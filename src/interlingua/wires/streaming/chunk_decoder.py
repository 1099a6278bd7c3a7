"""Lenient JSON decoder for the chunks of a stream. It accepts what can be decoded without guessing.

Some servers split a character outside the BMP: one chunk ends in a high surrogate and the next begins with the low
surrogate. The decoder joins such a pair if both parts belong to the same text. A stream has many texts; the type and
the indexes of a chunk identify the text. A lone surrogate inside a text becomes U+FFFD. A high surrogate at the end of
a text that does not continue is dropped; the caller can see it in `pending_surrogates`.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec

__all__ = ["ChunkDecoder", "DecodedChunk", "as_error_chunk", "has_lone_surrogates"]

_Path: TypeAlias = tuple[str | int, ...]

_TEXT_IDENTITY_KEYS = ("type", "index", "output_index", "content_index", "summary_index", "item_id")
"""Fields that identify the text of a chunk that has only one: the type of its event, and its block or item."""
MAX_PENDING_SURROGATES = 1000
"""Number of texts that may end in half a character at the same time. In further ones it is replaced."""
MAX_UNCHECKED_BRACKETS = 500
"""Number of brackets in a chunk below which its nesting cannot exhaust the stack and is not checked."""


class DecodedChunk(msgspec.Struct, frozen=True):
    """Decoded chunk. `exact`: its data is valid JSON with just this value, so that it may be forwarded unchanged."""

    chunk: dict[str, Any]
    exact: bool


class ChunkDecoder:
    """Decoder for one stream. `pending_surrogates`: high surrogates that wait for the next chunk, by their path."""

    __slots__ = ("pending_surrogates",)

    def __init__(self) -> None:
        self.pending_surrogates: dict[_Path, str] = {}

    def decode(self, data: str) -> DecodedChunk | None:
        """Decode one chunk; None if the data is not a JSON object."""
        try:
            chunk, exact = self._decode(data)
        except (ValueError, RecursionError):
            return None
        return DecodedChunk(chunk, exact) if isinstance(chunk, dict) else None

    def _decode(self, data: str) -> tuple[Any, bool]:
        try:
            chunk = msgspec.json.decode(data)
            if len(data) > MAX_UNCHECKED_BRACKETS and data.count("[") + data.count("{") > MAX_UNCHECKED_BRACKETS:
                _check_encodable(chunk)
        except (msgspec.MsgspecError, UnicodeError):
            # Lone surrogates, control characters in strings, NaN.
            return self.join_surrogates(json.loads(data, strict=False, parse_constant=lambda _: None)), False
        if self.pending_surrogates:
            return self.join_surrogates(chunk), False
        return chunk, "\ufffd" not in data  # it may replace bytes that were not UTF-8

    def join_surrogates(self, chunk: Any) -> Any:
        """Return the chunk with all surrogates joined, replaced or moved to `pending_surrogates`."""
        identity = [chunk.get(key) for key in _TEXT_IDENTITY_KEYS] if isinstance(chunk, dict) else []
        return self._join_value(chunk, tuple(value if isinstance(value, str | int) else "" for value in identity))

    def _join_value(self, value: Any, path: _Path) -> Any:
        if isinstance(value, dict):
            return {_pair_surrogates(key): self._join_value(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._join_value(inner, (*path, _item_index(inner, n))) for n, inner in enumerate(value)]
        return self._join_text(value, path) if isinstance(value, str) and value else value

    def _join_text(self, text: str, path: _Path) -> str:
        text = self.pending_surrogates.pop(path, "") + text
        if "\ud800" <= text[-1] <= "\udbff" and len(self.pending_surrogates) < MAX_PENDING_SURROGATES:
            self.pending_surrogates[path] = text[-1]
            text = text[:-1]
        return _pair_surrogates(text)


def as_error_chunk(decoded: DecodedChunk | None, data: str) -> DecodedChunk:
    """Return the data of an error event as a chunk that has an `error` field or the type "error"."""
    if decoded is None:
        return DecodedChunk({"error": {"message": data}}, exact=False)
    is_error = decoded.chunk.get("error") or decoded.chunk.get("type") == "error"
    return decoded if is_error else DecodedChunk({"error": decoded.chunk}, exact=False)


def has_lone_surrogates(body: Any) -> bool:
    """Return whether any string in the body has a lone surrogate."""
    try:
        msgspec.json.encode(body)
    except UnicodeError:
        return True
    return False


def _check_encodable(value: Any) -> None:
    """Raise RecursionError for a value that can be decoded here, but not encoded again from deeper in the stack."""
    for _ in range(100):
        value = [value]
    msgspec.json.encode(value)


def _item_index(item: Any, position: int) -> int:
    """Return the item's own index, else its position.

    Choices and calls have an index: a chunk with only the second one has it in first position.
    """
    index = item.get("index") if isinstance(item, dict) else None
    return index if isinstance(index, int) else position


def _pair_surrogates(text: str) -> str:
    """Join surrogate pairs into characters, and replace lone surrogates by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
