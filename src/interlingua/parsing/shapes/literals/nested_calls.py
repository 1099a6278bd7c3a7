"""Quoted calls: calls inside a string, as agents write them into files. They are data, up to their matching end."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from enum import Enum
from typing import TypeAlias

from interlingua.parsing.lookahead import Lookahead, PatternSequence, literal_sequence
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["NestedCallEnd", "NestedCallReader", "QuotedCallSyntax"]

_WHITESPACE_PATTERN = r"\s*+"
_WHITESPACE_RUN = re.compile(_WHITESPACE_PATTERN)
_OPENING_BRACKETS, _CLOSING_BRACKETS = "{[", "}]"
_BEFORE_STRING = ":=,[{"
"""The characters after which a string can begin in the params of a call."""

Copy: TypeAlias = Callable[[MarkerSet, Callable[[str], None]], Read[str | None]]
"""Copies text up to a marker. Returns the marker (consumed); None if the text ended or a limit was exceeded."""


class NestedCallEnd(Enum):
    """Result of reading a quoted call."""

    MATCHED = "matched"
    """The quoted call has ended, and the string continues."""
    OUTER_QUOTE = "outer quote"
    """The quoted call is not closed: the quote that was just read ends the string around it."""
    OUTER_QUOTE_OR_VALUE = "outer quote or value"
    """The quote that was just read ends the string around the quoted call, or begins a value of that call."""
    END_OF_TEXT = "end of text"
    """The text ends with the quoted call, in the same way as with the call around it. Its closing quote was just
    read."""


class QuotedCallSyntax:
    """Markers and lookaheads for quoted calls of one dialect.

    Args:
        open: Marker that begins a call.
        close: Marker that ends a call.
        quote: The token before and after a string.
        prefix: Text before the name.
        end_markers: Markers that can follow the last call of a text, such as the end of the turn.
    """

    def __init__(self, open: str, close: str, quote: str, prefix: str, end_markers: tuple[str, ...]) -> None:
        self.open = open
        self.close = close
        self.quote = quote
        header = (_WHITESPACE_PATTERN, r"([^\s{}<]++)", _WHITESPACE_PATTERN, r"\{")
        self.head = Lookahead(
            (*literal_sequence(open), _WHITESPACE_PATTERN, *literal_sequence(prefix), *header),
            (*literal_sequence(open), *header),
        )
        """Lookahead for the opener, the name and the opening bracket of a call."""
        call_end: PatternSequence = (r"[}\])\s]*+", *literal_sequence(close))
        self.call_end = Lookahead(("()", *call_end))
        """Lookahead after a quote for the end of the call."""
        next_opener = (_WHITESPACE_PATTERN, *literal_sequence(open), _WHITESPACE_PATTERN, *literal_sequence(prefix))
        self.next_call = Lookahead((*call_end, *next_opener, *header))
        """Lookahead after a bracket for the end of the call and the head of the next one."""
        key = (_WHITESPACE_PATTERN, ",", _WHITESPACE_PATTERN, r"([^\W\d][\w.\-]*+)", _WHITESPACE_PATTERN, ":")
        self.next_param = Lookahead((*key, _WHITESPACE_PATTERN, *literal_sequence(quote)))
        """Lookahead after a quote for another param that is a string."""
        self.after_string = Lookahead(
            ("()", _WHITESPACE_PATTERN, r"[,}\]]"), ("()", _WHITESPACE_PATTERN, *literal_sequence(close))
        )
        self.closers = compile_markers(close)
        self.params_opener = compile_markers("{")
        self.string_markers = compile_markers(open, quote)
        self.params_markers = compile_markers(open, close, quote, *_OPENING_BRACKETS, *_CLOSING_BRACKETS)
        self.text_ends = (
            (("",),),
            (end_markers, ("",)),
            (end_markers, end_markers, ("",)),
        )
        """Word sequences for the end of the text."""


class NestedCallReader:
    """Reader for one quoted call, and for the calls that its own strings quote.

    Args:
        syntax: The syntax of the dialect.
        source: The text.
        copy: Copies text up to a marker.
        write: Receives the text of the call.
        header_limit: Maximum number of characters to look ahead.
        may_end_text: True if the text may end with this call. Then its last quote is marked in the text buffer.
    """

    def __init__(
        self,
        syntax: QuotedCallSyntax,
        source: TextBuffer,
        copy: Copy,
        write: Callable[[str], None],
        header_limit: int,
        may_end_text: bool,
    ) -> None:
        self._syntax = syntax
        self._source = source
        self._copy = copy
        self._write_text = write
        self._header_limit = header_limit
        self._may_end_text = may_end_text
        self._open_brackets: list[int] = []  # of each open call, the innermost last
        self._in_string = False  # whether the innermost call has an open string
        self._last_char = ""  # the last character of the params, except whitespace
        self._closing: list[str] | None = None  # the text since the last string, if it may be the end of the value
        self._quote_end = 0  # the offset of that text

    def read(self, outer_keys: Collection[str] | None) -> Read[NestedCallEnd | None]:
        """Copy the call, starting at its opener, which was not read yet.

        Args:
            outer_keys: The params that can follow the string around the call; None if they are not known.

        Returns:
            The reason why the call ended; None if the text ended or a limit was exceeded.
        """
        if not (yield from self._begin_call()):
            return None
        while self._open_brackets:
            if self._in_string:
                marker = yield from self._copy(self._syntax.string_markers, self._write_text)
            else:
                marker = yield from self._copy(self._syntax.params_markers, self._write_params)
            if marker is None:
                self._release_closing()
                return None
            if marker == self._syntax.open:
                if not (yield from self._read_opener()):
                    return None
            elif marker == self._syntax.quote:
                end = yield from (self._read_closing_quote() if self._in_string else self._read_quote(outer_keys))
                if end is not None:
                    return end
            elif (yield from self._read_bracket(marker)):
                return NestedCallEnd.END_OF_TEXT
        return NestedCallEnd.MATCHED

    def _begin_call(self) -> Read[bool]:
        self._release_closing()
        marker = yield from self._copy(self._syntax.params_opener, self._write_text)
        if marker is None:
            return False
        self._write_text(marker)
        self._open_brackets.append(1)
        self._in_string, self._last_char = False, marker
        return True

    def _read_opener(self) -> Read[bool]:
        """Read an opener. In a string it begins another quoted call; anywhere else, the last call was not closed."""
        syntax, source = self._syntax, self._source
        source.put_back(syntax.open)
        if (yield from source.look_ahead(syntax.head, self._header_limit)) is None:
            source.skip_data(syntax.open)
            self._release_closing()
            self._write_text(syntax.open)
            return True
        if not self._in_string:
            self._open_brackets.pop()
        return (yield from self._begin_call())

    def _read_closing_quote(self) -> Read[None]:
        syntax, source = self._syntax, self._source
        if (yield from source.look_ahead(syntax.after_string, self._header_limit)) is None:
            self._write_text(syntax.quote)
            return
        self._in_string, self._last_char = False, syntax.quote
        if self._may_end_text and len(self._open_brackets) == 1:
            source.set_mark()
            self._closing, self._quote_end = [syntax.quote], source.offset
        else:
            self._write_text(syntax.quote)

    def _read_quote(self, outer_keys: Collection[str] | None) -> Read[NestedCallEnd | None]:
        """Read a quote in the params: it begins a string, or ends the string around the call."""
        syntax, source, limit = self._syntax, self._source, self._header_limit
        self._release_closing()
        is_outermost = len(self._open_brackets) == 1
        can_begin_string = self._last_char in _BEFORE_STRING
        end: NestedCallEnd | None = None
        if (yield from source.look_ahead(syntax.next_param, limit, outer_keys if is_outermost else None)) is not None:
            end = NestedCallEnd.OUTER_QUOTE
        elif (yield from source.look_ahead(syntax.call_end, limit)) is not None:
            end = NestedCallEnd.OUTER_QUOTE_OR_VALUE if can_begin_string else NestedCallEnd.OUTER_QUOTE
        if end and is_outermost:
            return end
        self._write_text(syntax.quote)
        if end:
            self._open_brackets.pop()
            self._last_char = syntax.quote
        else:
            self._in_string = can_begin_string
        return None

    def _read_bracket(self, marker: str) -> Read[bool]:
        """Read a bracket or a closer. Return whether the text ends after it, and after a string."""
        syntax, source = self._syntax, self._source
        self._last_char = marker
        self._write_params(marker)
        if marker in _OPENING_BRACKETS:
            self._release_closing()
            self._open_brackets[-1] += 1
            return False
        if marker in _CLOSING_BRACKETS:
            self._open_brackets[-1] -= 1
            if self._open_brackets[-1]:
                return False
            if (yield from source.peek(syntax.closers)):
                self._write_params((yield from source.take_while(_WHITESPACE_RUN)))
                self._write_params((yield from source.accept_here(syntax.closers)) or "")
        self._open_brackets.pop()
        self._in_string = True
        if self._closing is not None and (yield from source.is_next(syntax.text_ends, "")):
            source.rewind_to(self._quote_end)
            source.drop_mark()
            return True
        self._release_closing()
        return False

    def _write_params(self, text: str) -> None:
        stripped = text.rstrip()
        if stripped:
            self._last_char = stripped[-1]
        if self._closing is None:
            self._write_text(text)
            return
        self._closing.append(text)
        if stripped and text[0] not in _CLOSING_BRACKETS and text != self._syntax.close:
            self._release_closing()

    def _release_closing(self) -> None:
        """Write the text since the last string: it is not the end of the value."""
        if self._closing is not None:
            pieces, self._closing = self._closing, None
            self._source.drop_mark()
            self._write_text("".join(pieces))
