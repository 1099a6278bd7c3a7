"""Code spans and code blocks of Markdown in a text that arrives in pieces.

The rules are those of CommonMark, as far as they matter here. A line that begins with at least three back-ticks or
tildes, after at most three spaces, opens a code block; a line of at least as many of them closes it. Elsewhere a run of
back-ticks opens a code span, and a run of the same length closes it. A blank line ends a paragraph, and a run that was
not closed in its paragraph is ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from interlingua.parsing.open_brackets import BracketTracker

__all__ = ["CodeTracker"]

_TOKENS = re.compile(r"`++|~++|\n|[ \t\r]++|[^`~\n \t\r][^`~\n]*+")
_DELIMITERS = re.compile(r"[`~]")
_MIN_FENCE_LENGTH = 3
_LANGUAGE = re.compile(r"\s*+[\w+.#-]*+\s*+")
"""The name of a language after an opening delimiter."""
_MAX_INFO_CHARS = 100
_MAX_FENCE_INDENT = 3
_INDENTED = -1
"""Indent of a line that cannot begin or end a code block: it is indented too far, or has other text."""


class _Mode(Enum):
    TEXT = "text"
    SPAN = "span"
    FENCE_LINE = "fence line"
    """Behind the back-ticks or tildes at the beginning of a line that opens a code block, if it has no more of them."""
    BLOCK = "block"


# Module constants, because these are compared often and attribute access on an Enum is slow.
_TEXT, _SPAN, _FENCE_LINE, _BLOCK = _Mode.TEXT, _Mode.SPAN, _Mode.FENCE_LINE, _Mode.BLOCK

_State: TypeAlias = tuple[_Mode, str, int, int, bool, str, int, bool, bool, int, bool, str, bool, bool]


class CodeTracker:
    """Follows a text and knows whether its end is inside a code span or a code block.

    `add` is called for each piece of text, so it only stores the piece. The pieces are scanned when the state is asked
    for, and by `scan_added`, which the owner calls before they become many.
    """

    __slots__ = (
        "_added",
        "_brackets",
        "_closes_block",
        "_delimiter",
        "_has_later_text",
        "_in_first_line",
        "_indent",
        "_info",
        "_is_blank",
        "_is_fresh",
        "_length",
        "_mode",
        "_run",
        "_run_begins_line",
        "_run_length",
        "add",
        "is_broken",
        "keeps_span",
        "suspect_chars",
    )

    def __init__(self) -> None:
        self._added: list[str] = []
        self._brackets: tuple[BracketTracker, BracketTracker] | None = None  # outside code, inside the current code
        self.add = self._added.append
        """Add the next piece of the text."""
        self.keeps_span = False
        """True while the text is a call that has a code block in its notation: that block does not end a code span."""
        self._start()

    def track_brackets(self) -> None:
        """Also follow the brackets, outside code and inside it. Only few dialects need it."""
        self._brackets = self._brackets or (BracketTracker(), BracketTracker())

    def _start(self) -> None:
        if self._brackets is not None:
            for brackets in self._brackets:
                brackets.reset()
        self._is_fresh = True  # nothing was scanned since the start
        self._mode = _TEXT
        self._delimiter = ""  # the character that opened the span or the block
        self._length = 0  # the length of the run that opened it
        self._indent = 0  # spaces at the beginning of the current line, if it has nothing else
        self._is_blank = True  # the current line has only whitespace so far
        self._run = ""  # the character of a run at the end of the text, which may still grow
        self._run_length = 0
        self._run_begins_line = False
        self._closes_block = False  # the current line closes the block, if only whitespace follows
        self._in_first_line = False  # the text ends in the line of the delimiter that opened the code
        self._info = ""  # the text of the code in that line, or the beginning of it
        self._has_later_text = False  # the code has text in another line
        self.suspect_chars = 0
        """Number of characters at the end of the scanned text that may belong to the closing delimiter."""
        self.is_broken = False
        """True if the last code span was not closed in its paragraph, so that it is none."""

    def reset(self) -> None:
        """Begin another text."""
        self._added.clear()
        if not self._is_fresh:
            self._start()

    @property
    def in_code(self) -> bool:
        """True if the text ends inside a code span or a code block. Text that was added but not scanned is scanned."""
        if self._added:
            self.scan_added()
        return self._mode is not _TEXT

    @property
    def in_span(self) -> bool:
        """True if the text ends inside a code span, and not inside a code block."""
        return self.in_code and self._mode is _SPAN

    def is_in_brackets_before(self, whitespace: str) -> bool:
        """Return whether a marker after this whitespace is between brackets of its paragraph. Adds nothing."""
        if self._added:
            self.scan_added()
        if self._brackets is None:
            return False
        return any(brackets.is_open_before(whitespace) for brackets in self._brackets)

    @property
    def may_be_in_code(self) -> bool:
        """True if the text ends inside code, or with a delimiter that may open or close code. Cheaper than
        `is_in_code_before`."""
        if self._added:
            self.scan_added()
        return self._mode is not _TEXT or self._run != ""

    def is_in_code_before(self, whitespace: str) -> bool:
        """Return whether a marker after this whitespace is inside code. Adds nothing.

        Unlike other text, a marker may follow the delimiter that closes a block: models forget the line break.
        """
        return self._look_before(whitespace) is not None

    def has_text_before(self, whitespace: str) -> bool:
        """Return whether the code around a marker after this whitespace has other text before the marker. Adds nothing.

        The line that opens a block may name a language.
        """
        return bool(self._look_before(whitespace))

    def _look_before(self, whitespace: str) -> bool | None:
        """Return whether the code around a marker after this whitespace has other text before it; None if the marker is
        not inside code."""
        if not self.may_be_in_code:
            return None
        state = self._state
        self._scan(whitespace, 0, stop=False)
        self.end()
        has_text = None if self._mode is _TEXT else self._has_text
        self._state = state
        return has_text

    @property
    def _has_text(self) -> bool:
        """True if the current code has text, except the name of a language in the line that opens a block."""
        if self._has_later_text or self._mode is _BLOCK:
            return self._has_later_text
        if self._mode is _SPAN and (self._in_first_line or self._length < _MIN_FENCE_LENGTH):
            return bool(self._info.strip())
        return _LANGUAGE.fullmatch(self._info) is None

    def is_in_span_before(self, whitespace: str) -> bool:
        """Return whether a marker after this whitespace is inside a code span."""
        return self._would_hold_after(whitespace, lambda: self._mode is _SPAN)

    def follows_older_span(self, whitespace: str) -> bool:
        """Return whether a marker after this whitespace begins a line, and only a span from an earlier line is open."""
        return self._would_hold_after(
            whitespace, lambda: self._mode is _SPAN and not self._in_first_line and self._is_blank
        )

    def _would_hold_after(self, whitespace: str, condition: Callable[[], bool]) -> bool:
        """Return whether a code span is open and the condition would hold after this whitespace. Adds nothing."""
        if not self.in_span:
            return False
        state = self._state
        self._scan(whitespace, 0, stop=False)
        self.end()
        holds = condition()
        self._state = state
        return holds

    def scan(self, text: str, start: int = 0) -> int:
        """Add the text from `start` to the closing delimiter of the current code, or to its end.

        Returns:
            The end of what was added. The code was closed if `in_code` is false.
        """
        if self._added:
            self.scan_added()
        return self._scan(text, start, stop=True)

    def end_run(self, next_char: str) -> str:
        """End the run of back-ticks or tildes at the end of the text, unless the next character continues it.

        Return the character of the run that was ended, or "".
        """
        if not self._run or self._run == next_char:
            return ""
        char = self._run
        self._end_run()
        return char

    def end(self) -> None:
        """End the text: a delimiter at its end is complete."""
        self._end_run()
        if self._closes_block:
            self._mode, self._closes_block = _TEXT, False

    @property
    def _state(self) -> _State:
        return (
            self._mode,
            self._delimiter,
            self._length,
            self._indent,
            self._is_blank,
            self._run,
            self._run_length,
            self._run_begins_line,
            self._closes_block,
            self.suspect_chars,
            self._in_first_line,
            self._info,
            self._has_later_text,
            self.is_broken,
        )

    @_state.setter
    def _state(self, state: _State) -> None:
        (
            self._mode,
            self._delimiter,
            self._length,
            self._indent,
            self._is_blank,
            self._run,
            self._run_length,
            self._run_begins_line,
            self._closes_block,
            self.suspect_chars,
            self._in_first_line,
            self._info,
            self._has_later_text,
            self.is_broken,
        ) = state

    def scan_added(self) -> None:
        """Scan the pieces that were added."""
        text = "".join(self._added)
        self._added.clear()
        if (
            self._mode is not _TEXT
            or self._run
            or "`" in text
            or "~" in text
            or not text[text.rfind("\n") + 1 :].strip()
        ):
            self._scan(text, 0, stop=False)
            return
        # Text outside code, without a delimiter, that ends in a line with text.
        self._is_fresh = self._is_blank = self._closes_block = False
        self._indent, self.suspect_chars = _INDENTED, 0
        if self._brackets is not None:
            self._add_to_brackets(text, 0, len(text))

    def _scan(self, text: str, start: int, *, stop: bool) -> int:
        """Scan the text; up to the end of the current code if `stop` is set. Return the end of what was scanned."""
        self._is_fresh = False
        pos = self._skip_lines(text, start)
        while pos < len(text):
            match = _TOKENS.match(text, pos)
            assert match is not None, "the tokens cover every character"
            first, token_end = text[pos], match.end()
            if first != self._run and self._run and self._end_run() and stop:
                return pos
            if first == "\n":
                if self._end_line() and stop:
                    return pos
                self._indent, self._is_blank, self.suspect_chars = 0, True, 0
                self._add_to_brackets(text, pos, token_end)
                self._in_first_line = False
                token_end = self._skip_lines(text, token_end)
            elif first in "`~":
                self._add_run(first, token_end - pos)
            elif first in " \t\r":
                self._add_whitespace(text, pos, token_end)
                self._add_to_brackets(text, pos, token_end)
                self._add_content(text, pos, token_end)
            else:
                self._add_content(text, pos, token_end)
                self._indent, self._is_blank, self._closes_block, self.suspect_chars = _INDENTED, False, False, 0
                self._add_to_brackets(text, pos, token_end)
            pos = token_end
        return pos

    def _add_to_brackets(self, text: str, start: int, end: int) -> None:
        if self._brackets is None:
            return
        outer_brackets, code_brackets = self._brackets
        if self._mode is _TEXT:
            outer_brackets.add(text, start, end)
            code_brackets.reset()
        else:
            code_brackets.add(text, start, end)

    def _skip_lines(self, text: str, pos: int) -> int:
        """Return the start of the next line that has a delimiter, or of the last line. In a paragraph with an open
        span, every line counts."""
        if self._run or self._closes_block or self._mode is _SPAN or self._mode is _FENCE_LINE:
            return pos
        if self._mode is _TEXT:
            match = _DELIMITERS.search(text, pos)
            found = match.start() if match else len(text)
        else:
            found = text.find(self._delimiter * self._length, pos)
            found = found if found >= 0 else len(text)
        line_start = text.rfind("\n", pos, found) + 1
        if not line_start:
            return pos
        if self._mode is _BLOCK and not self._has_later_text:
            self._has_later_text = not text[pos:line_start].isspace()
        self._indent, self._is_blank, self.suspect_chars = 0, True, 0
        self._add_to_brackets(text, pos, line_start)
        return line_start

    def _add_content(self, text: str, start: int, end: int) -> None:
        """Note text inside the current code."""
        if self._mode is _TEXT or self._has_later_text:
            return
        if self._in_first_line:
            self._info += text[start : min(end, start + _MAX_INFO_CHARS - len(self._info))]
        else:
            self._has_later_text = text[start] not in " \t\r"

    def _add_run(self, char: str, length: int) -> None:
        if self._run:
            self._run_length += length
        else:
            self._run, self._run_length = char, length
            self._run_begins_line = self._indent != _INDENTED
        self._closes_block = False
        self._indent, self._is_blank = _INDENTED, False
        may_close = char == self._delimiter and (self._run_begins_line or self._mode is not _BLOCK)
        self.suspect_chars = self.suspect_chars + length if may_close else 0

    def _add_whitespace(self, text: str, start: int, end: int) -> None:
        if self._indent != _INDENTED:
            is_indent = text.count(" ", start, end) == end - start and self._indent + end - start <= _MAX_FENCE_INDENT
            self._indent = self._indent + end - start if is_indent else _INDENTED
        may_close = self._mode is _BLOCK and (self._closes_block or self._indent != _INDENTED)
        self.suspect_chars = self.suspect_chars + end - start if may_close else 0

    def _end_run(self) -> bool:
        """Handle a run that is complete. Return whether it ends a code span."""
        char, length, begins_line = self._run, self._run_length, self._run_begins_line
        self._run, self._run_length, self._run_begins_line = "", 0, False
        if not char:
            return False
        if self._mode is _BLOCK:
            self._closes_block = char == self._delimiter and begins_line and length >= self._length
            self._has_later_text |= not self._closes_block
            self.suspect_chars = self.suspect_chars if self._closes_block else 0
            return False
        if self._mode is _FENCE_LINE and char != self._delimiter:
            self._add_content(char, 0, 1)
            return False
        if self._mode is not _TEXT and char == self._delimiter == "`" and length == self._length:
            self._mode, self.is_broken = _TEXT, False
            return True
        self.suspect_chars = 0
        if begins_line and length >= _MIN_FENCE_LENGTH and not (self.keeps_span and self._mode is _SPAN):
            self._open(_FENCE_LINE, char, length)
        elif self._mode is _TEXT and char == "`":
            self._open(_SPAN, char, length)
        elif self._mode is _FENCE_LINE and char == "`":
            self._mode = _SPAN  # the line has back-ticks after those at its beginning: they opened a span
            self._add_content(char, 0, 1)
        else:
            self._add_content(char, 0, 1)
        return False

    def _open(self, mode: _Mode, char: str, length: int) -> None:
        """Begin a code span or a code block."""
        self._mode, self._delimiter, self._length = mode, char, length
        self._in_first_line, self._info, self._has_later_text = True, "", False

    def _end_line(self) -> bool:
        """Handle the end of a line. Return whether it ends the code."""
        if self._mode is _FENCE_LINE:
            self._mode = _BLOCK
        elif self._mode is _BLOCK and self._closes_block:
            self._mode, self._closes_block, self.is_broken = _TEXT, False, False
            return True
        elif self._mode is _SPAN and self._is_blank:
            self._mode, self.is_broken = _TEXT, True
            if self._brackets is not None:
                self._brackets[0].reset()
            return True
        return False
