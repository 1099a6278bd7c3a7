"""Parser for incomplete JSON: returns the part of the value that is certain so far.

    parse_partial('{"path": "a.txt", "limit": 12')    {"path": "a.txt"}

An open string is returned as far as it goes. An open number is not returned, because another digit may follow. Parsing
stops at the first invalid token.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["parse_partial"]

MAX_DEPTH = 1000
"""Maximum number of open brackets. Deeper values are not parsed."""
_match_separators = re.compile(r"[ \t\n\r,:]*").match
_match_string = re.compile(r'"((?:[^"\\]+|\\[^u]|\\u[0-9A-Fa-f]{4})*)("?)', re.S).match  # excludes a partial escape
_match_scalar = re.compile(r"[A-Za-z0-9+\-._]+").match
_high_surrogate = re.compile(r"[\ud800-\udbff]$")


def parse_partial(text: str) -> Any:
    """Return the value so far, or None if nothing is certain."""
    value = _PartialValue()
    pos = 0
    while (
        (pos := _match_end(_match_separators(text, pos), pos)) < len(text)
        and not value.closed
        and value.depth < MAX_DEPTH
    ):
        char = text[pos]
        if char in "{[":
            value.open({} if char == "{" else [])
            pos += 1
        elif char in "}]":
            value.close()
            pos += 1
        elif char == '"':
            pos = _read_string(text, pos, value)
        else:
            pos = _read_scalar(text, pos, value)
    return value.root


def _read_string(text: str, pos: int, value: _PartialValue) -> int:
    match = _match_string(text, pos)
    assert match is not None  # the caller has checked the opening quote
    body, quote = match.groups()
    string = _decode_string(f'"{body}"')
    if string is None or (not quote and value.expects_key):
        return len(text)
    value.add(string if quote else _high_surrogate.sub("", string))
    return match.end() if quote else len(text)


def _read_scalar(text: str, pos: int, value: _PartialValue) -> int:
    match = _match_scalar(text, pos)
    if match is None or match.end() == len(text):
        return len(text)
    try:
        value.add(json.loads(match[0], parse_constant=_reject_constant))
    except ValueError:
        return len(text)
    return match.end()


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _decode_string(string: str) -> str | None:
    try:
        decoded: str = json.loads(string, strict=False)
    except ValueError:
        return None
    return decoded


def _match_end(match: re.Match[str] | None, pos: int) -> int:
    return match.end() if match else pos


class _PartialValue:
    """A value under construction: its open containers, and the key whose value is missing."""

    def __init__(self) -> None:
        self.root: Any = None
        self.closed = False
        self._open_containers: list[Any] = []
        self._key: str | None = None

    @property
    def depth(self) -> int:
        return len(self._open_containers)

    @property
    def expects_key(self) -> bool:
        return bool(self._open_containers) and isinstance(self._open_containers[-1], dict) and self._key is None

    def add(self, value: Any) -> None:
        if not self._open_containers:
            self.root, self.closed = value, not isinstance(value, dict | list)
        elif isinstance(self._open_containers[-1], list):
            self._open_containers[-1].append(value)
        elif self._key is not None:
            self._open_containers[-1][self._key], self._key = value, None
        elif isinstance(value, str):
            self._key = value

    def open(self, value: Any) -> None:
        self.add(value)
        self._open_containers.append(value)

    def close(self) -> None:
        self._key = None
        if self._open_containers:
            self._open_containers.pop()
        self.closed = not self._open_containers
