"""Terminal output: width, colours, wrapped lines, and a progress line for work that takes long.

Output that is no terminal gets no colours, no wrapped lines and no line that is overwritten: programs read it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from interlingua.common.ansi import Style, Styler, ansi_style, no_style, uses_color

__all__ = [
    "Style",
    "gap_end",
    "is_terminal",
    "progress",
    "stderr_styler",
    "stderr_width",
    "stdout_styler",
    "terminal_width",
    "wrap",
    "wrap_line",
]

DEFAULT_WIDTH, MIN_WIDTH = 120, 40
PROGRESS_DELAY_SECONDS = 2.0
"""Work that takes less than this shows no progress."""
PROGRESS_INTERVAL_SECONDS = 1.0
MIN_COLUMN_CHARS = 24
"""Minimum width of a column that is wrapped on its own."""
HANGING_INDENT = "  "
_GAP = re.compile(r" *\S.*? {2,}(?=\S)")
_CLEAR_LINE = "\r\x1b[K"


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def stdout_styler() -> Styler:
    return _styler(sys.stdout)


def stderr_styler() -> Styler:
    return _styler(sys.stderr)


def _styler(stream: TextIO | None) -> Styler:
    return ansi_style if uses_color(os.environ, is_terminal=is_terminal(stream)) else no_style


def terminal_width() -> int:
    """Return $COLUMNS, or the width of the terminal on standard output, or 120."""
    return max(MIN_WIDTH, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns)


def stderr_width() -> int:
    """Return the width of the terminal on standard error, which is there also if standard output goes to a file."""
    if os.environ.get("COLUMNS") or sys.stderr is None:
        return terminal_width()
    try:
        return max(MIN_WIDTH, os.get_terminal_size(sys.stderr.fileno()).columns)
    except (OSError, ValueError):  # not a terminal, or not a real file
        return terminal_width()


def wrap(text: str, indent: str = "", next_indent: str | None = None, width: int | None = None) -> list[str]:
    """Return the text as lines that fit the terminal, split between words only."""
    return textwrap.wrap(
        text,
        width or terminal_width(),
        initial_indent=indent,
        subsequent_indent=indent if next_indent is None else next_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap_line(line: str, width: int | None = None) -> list[str]:
    """Wrap a line that has a layout: its indent stays, and what stands behind a gap continues below itself.

    If there is no room for a second column, what stands behind the gap begins on the next line.
    """
    width = width or terminal_width()
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    gap = _GAP.match(line)
    if gap is None or len(gap[0].rstrip()) > width:
        return wrap(line.strip(), indent, indent + HANGING_INDENT, width)
    if len(gap[0]) <= width - MIN_COLUMN_CHARS:
        return wrap(line[gap.end() :], gap[0], " " * len(gap[0]), width)
    below = indent + 2 * HANGING_INDENT
    return [gap[0].rstrip(), *wrap(line[gap.end() :], below, below, width)]


def gap_end(line: str) -> int | None:
    """Return where the second column of a line begins, or None if it has one column."""
    gap = _GAP.match(line)
    return None if gap is None else gap.end()


@contextmanager
def progress(description: str) -> Iterator[None]:
    """Show on a terminal that the block is still running, once it has taken two seconds, and for how long.

    The line on standard error is overwritten each second, and removed at the end.
    """
    stream = sys.stderr
    if stream is None or not is_terminal(stream):
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show_progress, args=(description, stream, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show_progress(description: str, stream: TextIO, ended: threading.Event) -> None:
    started, delay, is_shown = time.monotonic(), PROGRESS_DELAY_SECONDS, False
    with suppress(OSError, ValueError):  # the stream is closed
        while not ended.wait(delay):
            stream.write(f"{_CLEAR_LINE}{description}: {time.monotonic() - started:.0f} s")
            stream.flush()
            is_shown, delay = True, PROGRESS_INTERVAL_SECONDS
        if is_shown:
            stream.write(_CLEAR_LINE)
            stream.flush()
