"""Two columns where there is room for them, one below the other where there is not."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import zip_longest
from typing import TypeAlias

__all__ = ["Layout", "Line", "Paint", "Row", "Tone", "coloured", "paint_for", "plain", "shorten"]

ROOM = 100
"""From this width on, two columns are easier to read than one."""
NUMBER = 4
MOST_LINES = 4


class Tone(Enum):
    """What a line is about. The value is its colour on a terminal."""

    PLAIN = "0"
    FAINT = "2"
    SENT = "32"
    MARKER = "36"
    FINDING = "33"
    FAILED = "31"
    HEADING = "1"


@dataclass(frozen=True)
class Line:
    text: str
    tone: Tone = Tone.PLAIN
    sign: str = ""
    """What stands before it, such as an arrow."""


@dataclass(frozen=True)
class Row:
    number: str
    left: list[Line] = field(default_factory=list)
    right: list[Line] = field(default_factory=list)


Paint: TypeAlias = Callable[[str, Tone], str]


def plain(text: str, _: Tone) -> str:
    return text


def coloured(text: str, tone: Tone) -> str:
    return f"\x1b[{tone.value}m{text}\x1b[0m" if text and tone is not Tone.PLAIN else text


def paint_for(terminal: bool) -> Paint:
    return coloured if terminal and not os.environ.get("NO_COLOR") else plain


class Layout:
    """Rows as text of a given width. The number of a row stands before its left side."""

    def __init__(self, width: int, paint: Paint = plain) -> None:
        self._paint = paint
        self._width = width
        room = width - NUMBER - 5  # for the two columns, without what stands before and between them
        self._left = room * 41 // 100  # what goes out takes more words than what came
        self._right = room - self._left

    def head(self, left: str, right: str) -> str:
        if self._width < ROOM:
            return self.row(Row("", [Line(left, Tone.HEADING)], [Line(right, Tone.HEADING, "→")])) + "\n"
        rule = f"{'─' * (NUMBER + 2 + self._left)}─┼─{'─' * self._right}"
        return self.row(Row("", [Line(left, Tone.HEADING)], [Line(right, Tone.HEADING)])) + f"{rule}\n"

    def row(self, row: Row) -> str:
        return "".join(
            f"{line.rstrip()}\n" for line in (self._beside(row) if self._width >= ROOM else self._below(row))
        )

    def note(self, text: str) -> str:
        """Text across both columns."""
        return "".join(f"{line.rstrip()}\n" for line in _wrap(text, self._width))

    def _beside(self, row: Row) -> Iterator[str]:
        number, nothing = row.number, ("", Tone.PLAIN)
        sides = zip_longest(_wrapped(row.left, self._left), _wrapped(row.right, self._right), fillvalue=nothing)
        for (left, tone), (right, right_tone) in sides:
            padding = " " * (self._left - _cells(left))
            yield f"{number:>{NUMBER}}  {self._paint(left, tone)}{padding} │ {self._paint(right, right_tone)}"
            number = ""

    def _below(self, row: Row) -> Iterator[str]:
        number, indent = row.number, ""
        for lines in (row.left, row.right):
            for text, tone in _wrapped(lines, self._width - NUMBER - 4):
                yield f"{number:>{NUMBER}}  {indent}{self._paint(text, tone)}"
                number = ""
            indent = "  "


def _wrapped(lines: list[Line], width: int) -> Iterator[tuple[str, Tone]]:
    for line in lines:
        sign = f"{line.sign} " if line.sign else ""
        room = width - len(sign)
        for piece in _wrap(shorten(line.text, MOST_LINES * room), room):
            yield sign + piece, line.tone
            sign = " " * len(sign)


def _wrap(text: str, width: int) -> Iterator[str]:
    """Pieces that fit, cut after a space or comma where one is near. All of them, joined, are the text."""
    start = end = used = 0
    while end < len(text):
        used += _cells(text[end])
        if used > width:
            near = start + (end - start) * 2 // 3
            end = max(text.rfind(" ", near, end), text.rfind(",", near, end)) + 1 or end
            yield text[start:end]
            start, used = end, 0
        else:
            end += 1
    yield text[start:]


def _cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def shorten(text: str, limit: int) -> str:
    """Long text without its middle."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"
