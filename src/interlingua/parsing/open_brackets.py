"""Open brackets in a paragraph of text that arrives in pieces: they show whether JSON is part of other JSON."""

from __future__ import annotations

import re

__all__ = ["BracketTracker"]

_OPENERS = ("{", "[")
_CLOSERS = ("}", "]")
_NEXT_OPENER = re.compile(r"[{\[]")
_TOKENS = re.compile(r'[{}\[\]"\\\n]|[ \t\r]++|[^{}\[\]"\\\n \t\r][^{}\[\]"\\\n]*+')
_MAX_LINE_BREAKS = 1
"""Number of line breaks in whitespace inside a paragraph."""


class BracketTracker:
    """Follows a text and knows whether a bracket is open at its end.

    A blank line ends a paragraph, and with it all brackets. Between brackets, a bracket in a JSON string is data; such
    a string ends with its line at the latest.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin another text."""
        self._depth = 0
        self._in_string = False
        self._is_escaped = False  # the text ends with a backslash in a string
        self._is_line_blank = False  # the current line has only whitespace so far

    def is_open_before(self, whitespace: str) -> bool:
        """Return whether a bracket is open after the text and this whitespace. Adds nothing."""
        return self._depth > 0 and whitespace.count("\n") + self._is_line_blank <= _MAX_LINE_BREAKS

    def add(self, text: str, start: int = 0, end: int | None = None) -> None:
        """Add the next piece of the text."""
        pos, end = start, len(text) if end is None else end
        while pos < end:
            match = _TOKENS.match(text, pos, end) if self._depth else _NEXT_OPENER.search(text, pos, end)
            if match is None:
                return
            pos = match.end()
            if self._is_escaped and match[0] != "\n":
                self._is_escaped = False
                pos = match.start() + 1
            else:
                self._add_token(match[0])

    def _add_token(self, token: str) -> None:
        if token == "\n":
            if self._is_line_blank:
                self._depth = 0
            self._is_line_blank, self._in_string, self._is_escaped = self._depth > 0, False, False
            return
        if token.isspace():
            return
        self._is_line_blank = False
        if token == '"':
            self._in_string = not self._in_string
        elif self._in_string:
            self._is_escaped = token == "\\"
        elif token in _OPENERS:
            self._depth += 1
        elif token in _CLOSERS:
            self._depth -= 1
