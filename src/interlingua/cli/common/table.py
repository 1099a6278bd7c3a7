"""Table for the terminal: columns as wide as their content, and a last column that may be longer than the line."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.cli.common.console import printable
from interlingua.cli.common.terminal import Style, stdout_styler
from interlingua.cli.common.two_columns import display_width

__all__ = ["format_table"]

GAP = "  "


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table with a line of headings, which is bold on a terminal."""
    cells = [tuple(columns), *(tuple(map(printable, row)) for row in rows)]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    lines = (
        GAP.join(text + " " * (width - display_width(text)) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    headings, *body = lines
    return "".join(f"{line}\n" for line in (stdout_styler()(headings, Style.HEADING), *body))
