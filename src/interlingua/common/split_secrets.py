"""Secrets that a stream spells in pieces: each server-sent event has a part of them, in the same field.

A model that repeats a key writes it token by token. No event contains it, but whoever joins the texts reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from interlingua.common.jsontext.codec import read_json, write_json
from interlingua.common.redaction import REDACTED, Redactor

__all__ = ["Replacement", "find_secrets", "redact_split_secrets", "replace_in_pieces", "replace_split_secrets"]

_EVENT_DATA = re.compile(rb"^data: ?(\{.*\})\r?$", re.MULTILINE)
MAX_DEPTH = 20
"""Levels of nesting of an event in which texts are looked for."""
_Path: TypeAlias = tuple[str | int, ...]


class Replacement(NamedTuple):
    """A part of a text, or of a stream, that is replaced."""

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
    return replace_in_pieces([stream], replace_split_secrets(stream, redactor))[0]


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


def _redact(texts: list[_Text], redactor: Redactor) -> set[int]:
    """Redact the secrets in the joined texts of one field, and return the numbers of the events that have changed."""
    encoded = [text.value.encode("utf-8", "surrogatepass") for text in texts]
    secrets = find_secrets(b"".join(encoded), redactor)
    if not secrets:
        return set()
    changed: set[int] = set()
    for text, before, after in zip(texts, encoded, replace_in_pieces(encoded, secrets), strict=True):
        if after != before:
            text.container[text.key] = after.decode("utf-8", "replace")
            changed.add(text.event)
    return changed


def find_secrets(data: bytes, redactor: Redactor) -> list[Replacement]:
    """Return what has to be replaced so that the data has no secrets, in order."""
    return [Replacement(start, end, REDACTED.encode()) for start, end in redactor.find_spans(data)]


def replace_in_pieces(pieces: Iterable[bytes], replacements: Sequence[Replacement]) -> list[bytes]:
    """Return the pieces of a text with these parts of the whole text replaced.

    The piece in which a replaced part begins has all of its replacement. The pieces after it lose their share.
    """
    changed: list[bytes] = []
    number = start = 0
    for piece in pieces:
        end = start + len(piece)
        kept: list[bytes] = []
        rest = start
        while number < len(replacements) and replacements[number].start < end:
            first, last, data = replacements[number]
            kept += [piece[rest - start : max(first, start) - start], data if first >= start else b""]
            rest = min(last, end)
            if last > end:
                break
            number += 1
        changed.append(b"".join([*kept, piece[rest - start :]]))
        start = end
    return changed
