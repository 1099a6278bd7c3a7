"""Secrets that a stream spells in pieces: each server-sent event has a part of them, in the same field.

A model that repeats a key writes it token by token. No event contains it, but whoever joins the texts reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from interlingua.common.jsontext.codec import read_json, write_json
from interlingua.common.redaction import REDACTED, Redactor

__all__ = ["Replacement", "redact_split_secrets", "replace_split_secrets"]

_EVENT_DATA = re.compile(rb"^data: ?(\{.*\})\r?$", re.MULTILINE)
MAX_DEPTH = 20
"""Levels of nesting of an event in which texts are looked for."""
_Path: TypeAlias = tuple[str | int, ...]


class Replacement(NamedTuple):
    """A part of a stream that is replaced: the JSON of one event."""

    start: int
    end: int
    data: bytes


class _Text(NamedTuple):
    """A text in an event."""

    event: int
    container: Any
    """The object or array that it stands in."""
    key: str | int
    value: str


def redact_split_secrets(stream: bytes, redactor: Redactor) -> bytes:
    """Return a stream without the secrets that its events have only together."""
    parts: list[bytes] = []
    position = 0
    for start, end, data in replace_split_secrets(stream, redactor):
        parts += [stream[position:start], data]
        position = end
    return b"".join([*parts, stream[position:]])


def replace_split_secrets(stream: bytes, redactor: Redactor) -> list[Replacement]:
    """Return what has to be replaced in a stream, in order, so that its events have no secret together."""
    matches = list(_EVENT_DATA.finditer(stream))
    events = [read_json(match[1], dict[str, Any]) for match in matches]
    texts: dict[_Path, list[_Text]] = {}
    for number, event in enumerate(events):
        for path, container, key, value in _texts(event or {}):
            texts.setdefault(path, []).append(_Text(number, container, key, value))
    changed: set[int] = set()
    for pieces in texts.values():
        if len({piece.value for piece in pieces}) > 1:  # not a field that every event repeats, such as its id
            changed |= _redact(pieces, redactor)
    return [
        Replacement(*matches[number].span(1), write_json(events[number]).encode("utf-8", "replace"))
        for number in sorted(changed)
    ]


def _texts(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, dict[str, Any] | list[Any], str | int, str]]:
    """Yield the texts of an event: each with its path, and the object or array that it stands in."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, str):
            yield (*path, key), value, key, item
        elif isinstance(item, dict | list) and len(path) < MAX_DEPTH:
            yield from _texts(item, (*path, key))


def _redact(pieces: list[_Text], redactor: Redactor) -> set[int]:
    """Redact the secrets in the joined texts of one field, and return the numbers of the events that have changed."""
    encoded = [piece.value.encode("utf-8", "surrogatepass") for piece in pieces]
    spans = redactor.find_spans(b"".join(encoded))
    if not spans:
        return set()
    changed: set[int] = set()
    starts = accumulate(map(len, encoded), initial=0)
    for piece, data, start in zip(pieces, encoded, starts, strict=False):
        redacted = _without_spans(data, start, spans)
        if redacted != data:
            text = redacted.decode("utf-8", "replace")
            piece.container[piece.key] = text
            changed.add(piece.event)
    return changed


def _without_spans(data: bytes, start: int, spans: list[tuple[int, int]]) -> bytes:
    """Return a piece that begins at `start` of the joined text. A secret is replaced in the piece where it begins."""
    parts: list[bytes] = []
    position = 0
    for first, last in spans:
        begin, end = max(first - start, position), min(last - start, len(data))
        if begin >= end:
            continue
        parts += [data[position:begin], REDACTED.encode() if first >= start else b""]
        position = end
    return b"".join([*parts, data[position:]])
