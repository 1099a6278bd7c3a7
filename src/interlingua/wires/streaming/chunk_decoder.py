"""The JSON object in a message's data, read as leniently as can be done without guessing.

Some servers cut a character outside the BMP in two, so that one chunk ends in the first half of a surrogate pair and
the next begins with the second. Such halves are joined here, if they are of the same text: chunks of one stream tell
of many texts, and say of which by their type and numbers. A half that is alone inside a text becomes U+FFFD; a first
half at the end of a text that does not go on is dropped, and the caller can tell from `halves`.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec

__all__ = ["ChunkDecoder", "DecodedChunk", "as_error_chunk", "has_lone_surrogates"]

_Path: TypeAlias = tuple[str | int, ...]

_TEXT_IDENTITY_KEYS = ("type", "index", "output_index", "content_index", "summary_index", "item_id")
"""What says of which text a chunk tells, where a chunk tells of one: its event's type, and its block or item."""
MAX_UNCHECKED_BRACKETS = 500
"""How many brackets may be open at once without a thought about the stack."""


class DecodedChunk(msgspec.Struct, frozen=True):
    """A chunk, and whether its data is plain JSON that says just this: only then may it be passed on as it came."""

    chunk: dict[str, Any]
    exact: bool


class ChunkDecoder:
    """Decodes the chunks of one stream. `halves` is what waits: first halves of characters, by where they stood."""

    def __init__(self) -> None:
        self.pending_surrogates: dict[_Path, str] = {}

    def decode(self, data: str) -> DecodedChunk | None:
        """The chunk; None if this is not a JSON object."""
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
            # Half characters, control characters in strings, NaN.
            return self.join_surrogates(json.loads(data, strict=False, parse_constant=lambda _: None)), False
        if self.pending_surrogates:
            return self.join_surrogates(chunk), False
        return chunk, "\ufffd" not in data  # it may stand for bytes that were no UTF-8

    def join_surrogates(self, chunk: Any) -> Any:
        """The chunk with whole characters only."""
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
        if "\ud800" <= text[-1] <= "\udbff":
            self.pending_surrogates[path] = text[-1]
            text = text[:-1]
        return _pair_surrogates(text)


def as_error_chunk(decoded: DecodedChunk | None, data: str) -> DecodedChunk:
    """The data of an event that is an error, in a form that says so."""
    if decoded is None:
        return DecodedChunk({"error": {"message": data}}, exact=False)
    is_error = decoded.chunk.get("error") or decoded.chunk.get("type") == "error"
    return decoded if is_error else DecodedChunk({"error": decoded.chunk}, exact=False)


def has_lone_surrogates(body: Any) -> bool:
    """Whether half a character stands somewhere in it."""
    try:
        msgspec.json.encode(body)
    except UnicodeError:
        return True
    return False


def _check_encodable(value: Any) -> None:
    """Raises RecursionError for what can be read but, from further down the stack, not be written again."""
    for _ in range(100):
        value = [value]
    msgspec.json.encode(value)


def _item_index(item: Any, position: int) -> int:
    """Choices and calls are numbered: a chunk that holds only the second of them has it in first place."""
    index = item.get("index") if isinstance(item, dict) else None
    return index if isinstance(index, int) else position


def _pair_surrogates(text: str) -> str:
    """Pairs of halves as one character, and U+FFFD for a half that is alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
