"""Strings inside JSON text: their positions, and the position of each of their characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

__all__ = ["StringLiteral", "find_string", "string_literals"]

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_CHARACTER = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.|.", re.DOTALL)


class StringLiteral(msgspec.Struct, frozen=True):
    """A string in JSON text. `start` and `end` are the positions of its content, without the quotes."""

    start: int
    end: int
    raw: str
    """The content as it is written, with escapes."""

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the positions in the JSON text of the decoded characters from `first` up to `last`, exclusively."""
        if "\\" not in self.raw:
            return self.start + first, self.start + last
        return self.start + self._raw_offset(first), self.start + self._raw_offset(last)

    def _raw_offset(self, decoded_offset: int) -> int:
        position = 0
        for count, match in enumerate(_CHARACTER.finditer(self.raw)):
            if count == decoded_offset:
                return position
            position = match.end()
        return position


def find_string(data: str, text: str, start: int = 0) -> StringLiteral | None:
    """Return the first string in the JSON text, from this position on, that decodes to `text`."""
    for ensure_ascii in (False, True):
        literal = json.dumps(text, ensure_ascii=ensure_ascii)
        position = data.find(literal, start)
        if position >= 0:
            return StringLiteral(position + 1, position + len(literal) - 1, literal[1:-1])
    return next((literal for literal, decoded in string_literals(data, start) if decoded == text), None)


def string_literals(data: str, start: int = 0) -> Iterator[tuple[StringLiteral, str]]:
    """Yield each string in the JSON text with its decoded value. Text outside of strings is not checked."""
    for match in _STRING.finditer(data, start):
        try:
            decoded = json.loads(match[0], strict=False)
        except ValueError:
            continue
        yield StringLiteral(match.start(1), match.end(1), match[1]), decoded
