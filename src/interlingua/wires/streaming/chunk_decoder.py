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

__all__ = ["ChunkDecoder", "Decoded", "as_error", "has_halves"]

_Path: TypeAlias = tuple[str | int, ...]

_WHICH = ("type", "index", "output_index", "content_index", "summary_index", "item_id")
"""What says of which text a chunk tells, where a chunk tells of one: its event's type, and its block or item."""
DEEP = 500
"""How many brackets may be open at once without a thought about the stack."""


class Decoded(msgspec.Struct, frozen=True):
    """A chunk, and whether its data is plain JSON that says just this: only then may it be passed on as it came."""

    chunk: dict[str, Any]
    exact: bool


class ChunkDecoder:
    """Decodes the chunks of one stream. `halves` is what waits: first halves of characters, by where they stood."""

    def __init__(self) -> None:
        self.halves: dict[_Path, str] = {}

    def decode(self, data: str) -> Decoded | None:
        """The chunk; None if this is not a JSON object."""
        try:
            chunk, exact = self._read(data)
        except (ValueError, RecursionError):
            return None
        return Decoded(chunk, exact) if isinstance(chunk, dict) else None

    def _read(self, data: str) -> tuple[Any, bool]:
        try:
            chunk = msgspec.json.decode(data)
            if len(data) > DEEP and data.count("[") + data.count("{") > DEEP:
                _try_to_write(chunk)
        except (msgspec.MsgspecError, UnicodeError):
            # Half characters, control characters in strings, NaN.
            return self.join(json.loads(data, strict=False, parse_constant=lambda _: None)), False
        if self.halves:
            return self.join(chunk), False
        return chunk, "\ufffd" not in data  # it may stand for bytes that were no UTF-8

    def join(self, chunk: Any) -> Any:
        """The chunk with whole characters only."""
        which = [chunk.get(key) for key in _WHICH] if isinstance(chunk, dict) else []
        return self._join(chunk, tuple(one if isinstance(one, str | int) else "" for one in which))

    def _join(self, value: Any, path: _Path) -> Any:
        if isinstance(value, dict):
            return {_whole(key): self._join(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._join(inner, (*path, _place(inner, n))) for n, inner in enumerate(value)]
        return self._join_text(value, path) if isinstance(value, str) and value else value

    def _join_text(self, text: str, path: _Path) -> str:
        text = self.halves.pop(path, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            self.halves[path] = text[-1]
            text = text[:-1]
        return _whole(text)


def as_error(decoded: Decoded | None, data: str) -> Decoded:
    """The data of an event that is an error, in a form that says so."""
    if decoded is None:
        return Decoded({"error": {"message": data}}, exact=False)
    says_so = decoded.chunk.get("error") or decoded.chunk.get("type") == "error"
    return decoded if says_so else Decoded({"error": decoded.chunk}, exact=False)


def has_halves(body: Any) -> bool:
    """Whether half a character stands somewhere in it."""
    try:
        msgspec.json.encode(body)
    except UnicodeError:
        return True
    return False


def _try_to_write(value: Any) -> None:
    """Raises RecursionError for what can be read but, from further down the stack, not be written again."""
    for _ in range(100):
        value = [value]
    msgspec.json.encode(value)


def _place(item: Any, position: int) -> int:
    """Choices and calls are numbered: a chunk that holds only the second of them has it in first place."""
    index = item.get("index") if isinstance(item, dict) else None
    return index if isinstance(index, int) else position


def _whole(text: str) -> str:
    """Pairs of halves as one character, and U+FFFD for a half that is alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
