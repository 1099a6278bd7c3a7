"""Table for the terminal: columns as wide as their content, of which one can be shortened and others left out."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.cli.common.console import printable
from interlingua.cli.common.terminal import Style, stdout_styler, terminal_width
from interlingua.cli.common.two_columns import display_width
from interlingua.common.short_text import shorten

__all__ = ["format_table"]

GAP = "  "
MIN_SHORTENED_CHARS = 10


def format_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    shortened: str | None = None,
    optional: Sequence[str] = (),
) -> str:
    """Return the table with a line of headings, which is bold on a terminal.

    Args:
        columns: The headings.
        rows: The texts of each row.
        shortened: Heading of the column whose texts are shortened if the table is wider than the terminal.
        optional: Headings of columns that are left out if the table is still too wide, the first one first.
    """
    table = [list(columns), *(list(map(printable, row)) for row in rows)]
    cells = _shorten_column(table, shortened)
    for heading in optional:
        if _excess_width(cells) > 0:
            place = table[0].index(heading)
            table = [row[:place] + row[place + 1 :] for row in table]
            cells = _shorten_column(table, shortened)  # less than before: the column has more room now
    widths = _column_widths(cells)
    lines = (
        GAP.join(text + " " * (width - display_width(text)) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    headings, *body = lines
    return "".join(f"{line}\n" for line in (stdout_styler()(headings, Style.HEADING), *body))


def _shorten_column(cells: Sequence[Sequence[str]], heading: str | None) -> list[list[str]]:
    """Return the cells, with the texts of a column as short as the terminal requires."""
    headings, *rows = map(list, cells)
    if heading is not None and (excess := _excess_width(cells)) > 0:
        place = headings.index(heading)
        width = max(MIN_SHORTENED_CHARS, _column_widths(cells)[place] - excess)
        for row in rows:
            row[place] = shorten(row[place], width)
    return [headings, *rows]


def _excess_width(cells: Sequence[Sequence[str]]) -> int:
    """Return by how many columns of text the table is wider than the terminal."""
    widths = _column_widths(cells)
    return sum(widths) + len(GAP) * (len(widths) - 1) - terminal_width()


def _column_widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(*cells, strict=True)]
