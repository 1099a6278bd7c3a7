"""Two-column layout for the terminal. On a narrow terminal the right column goes below the left one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from interlingua.common.ansi import Style, Styler, no_style
from interlingua.common.short_text import shorten

__all__ = [
    "ColumnLayout",
    "ColumnLine",
    "ColumnRow",
    "display_width",
]

MIN_TWO_COLUMN_WIDTH = 100
"""Terminals narrower than this get the stacked layout."""
ROW_NUMBER_WIDTH = 4
MAX_WRAPPED_LINES = 4


@dataclass(frozen=True)
class ColumnLine:
    text: str
    style: Style = Style.PLAIN
    prefix: str = ""
    """Symbol before the text, such as an arrow."""


@dataclass(frozen=True)
class ColumnRow:
    number: str
    left: list[ColumnLine] = field(default_factory=list)
    right: list[ColumnLine] = field(default_factory=list)


class ColumnLayout:
    """Formatter of rows for a given width. The row number is printed before the left column."""

    def __init__(self, width: int, styler: Styler = no_style) -> None:
        self._styler = styler
        self._width = width
        available = width - ROW_NUMBER_WIDTH - 5  # without row number and separator
        self._left_width = available * 41 // 100  # the right column has the explanations, so it is wider
        self._right_width = available - self._left_width

    def format_header(self, left: str, right: str) -> str:
        if self._width < MIN_TWO_COLUMN_WIDTH:
            return (
                self.format_row(
                    ColumnRow("", [ColumnLine(left, Style.HEADING)], [ColumnLine(right, Style.HEADING, "→")])
                )
                + "\n"
            )
        rule = f"{'─' * (ROW_NUMBER_WIDTH + 2 + self._left_width)}─┼─{'─' * self._right_width}"
        return (
            self.format_row(ColumnRow("", [ColumnLine(left, Style.HEADING)], [ColumnLine(right, Style.HEADING)]))
            + f"{rule}\n"
        )

    def format_row(self, row: ColumnRow) -> str:
        return "".join(
            f"{line.rstrip()}\n"
            for line in (self._side_by_side(row) if self._width >= MIN_TWO_COLUMN_WIDTH else self._stacked(row))
        )

    def format_note(self, text: str) -> str:
        """Format text that spans both columns."""
        return "".join(f"{line.rstrip()}\n" for line in _wrap_text(text, self._width))

    def _side_by_side(self, row: ColumnRow) -> Iterator[str]:
        number, blank = row.number, ("", Style.PLAIN)
        line_pairs = zip_longest(
            _wrap_lines(row.left, self._left_width), _wrap_lines(row.right, self._right_width), fillvalue=blank
        )
        for (left, left_style), (right, right_style) in line_pairs:
            padding = " " * (self._left_width - display_width(left))
            styled_left, styled_right = self._styler(left, left_style), self._styler(right, right_style)
            yield f"{number:>{ROW_NUMBER_WIDTH}}  {styled_left}{padding} │ {styled_right}"
            number = ""

    def _stacked(self, row: ColumnRow) -> Iterator[str]:
        number, indent = row.number, ""
        for lines in (row.left, row.right):
            for text, style in _wrap_lines(lines, self._width - ROW_NUMBER_WIDTH - 4):
                yield f"{number:>{ROW_NUMBER_WIDTH}}  {indent}{self._styler(text, style)}"
                number = ""
            indent = "  "


def _wrap_lines(lines: list[ColumnLine], width: int) -> Iterator[tuple[str, Style]]:
    for line in lines:
        prefix = f"{line.prefix} " if line.prefix else ""
        available = width - len(prefix)
        for piece in _wrap_text(shorten(line.text, MAX_WRAPPED_LINES * available), available):
            yield prefix + piece, line.style
            prefix = " " * len(prefix)


def _wrap_text(text: str, width: int) -> Iterator[str]:
    """Yield pieces that fit into `width`, split after a space or comma if one is near. Joined, they are the text."""
    start = end = used_width = 0
    while end < len(text):
        used_width += display_width(text[end])
        if used_width > width:
            earliest_break = start + (end - start) * 2 // 3
            end = max(text.rfind(" ", earliest_break, end), text.rfind(",", earliest_break, end)) + 1 or end
            yield text[start:end]
            start, used_width = end, 0
        else:
            end += 1
    yield text[start:]


def display_width(text: str) -> int:
    """Return the number of terminal cells that the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
