"""What does JSON say that has not come to its end? All that is certain of its value by now.

    so_far('{"path": "a.txt", "limit": 12')    {"path": "a.txt"}

A text that is still open is given as far as it goes. A number is not: its next digit may follow. Behind something that
is no JSON nothing more is read.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["so_far"]

DEEPEST = 1000
"""How many brackets may be open at once. What is deeper is not read."""
_between = re.compile(r"[ \t\n\r,:]*").match
_string = re.compile(r'"((?:[^"\\]+|\\[^u]|\\u[0-9A-Fa-f]{4})*)("?)', re.S).match  # half an escape is not in it
_scalar = re.compile(r"[A-Za-z0-9+\-._]+").match
_half_pair = re.compile(r"[\ud800-\udbff]$")


def so_far(text: str) -> Any:
    """None if nothing is certain."""
    value = _Value()
    pos = 0
    while (pos := _end(_between(text, pos), pos)) < len(text) and not value.closed and value.depth < DEEPEST:
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


def _read_string(text: str, pos: int, value: _Value) -> int:
    found = _string(text, pos)
    assert found is not None  # it begins with a quotation mark
    body, quote = found.groups()
    string = _decoded(f'"{body}"')
    if string is None or (not quote and value.wants_key):
        return len(text)
    value.put(string if quote else _half_pair.sub("", string))
    return found.end() if quote else len(text)


def _read_scalar(text: str, pos: int, value: _Value) -> int:
    found = _scalar(text, pos)
    if found is None or found.end() == len(text):
        return len(text)
    try:
        value.put(json.loads(found[0], parse_constant=_refuse))
    except ValueError:
        return len(text)
    return found.end()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _decoded(string: str) -> str | None:
    try:
        decoded: str = json.loads(string, strict=False)
    except ValueError:
        return None
    return decoded


def _end(found: re.Match[str] | None, pos: int) -> int:
    return found.end() if found else pos


class _Value:
    """A value in the making: what is open of it, and the key that waits for its value."""

    def __init__(self) -> None:
        self.root: Any = None
        self.closed = False
        self._open: list[Any] = []
        self._key: str | None = None

    @property
    def depth(self) -> int:
        return len(self._open)

    @property
    def wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._key is None

    def put(self, value: Any) -> None:
        if not self._open:
            self.root, self.closed = value, not isinstance(value, dict | list)
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._key is not None:
            self._open[-1][self._key], self._key = value, None
        elif isinstance(value, str):
            self._key = value

    def open(self, value: Any) -> None:
        self.put(value)
        self._open.append(value)

    def close(self) -> None:
        self._key = None
        if self._open:
            self._open.pop()
        self.closed = not self._open
