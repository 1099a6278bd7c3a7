"""Beginnings of lines in a call: the closer, the key of a param, or text that continues a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from interlingua.parsing.lookahead import END_OF_TEXT, Lookahead, WordSequence, literal_sequence
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.tagged_params.tag import MAX_NAME_CHARS
from interlingua.parsing.text_buffer import MAX_BUFFERED_WHITESPACE_CHARS, Read, TextBuffer

__all__ = ["BLANKS_PATTERN", "CRLF", "NEWLINE", "Follower", "LineReader", "LineStart", "ParamEnd", "is_key"]

NEWLINE, CRLF = "\n", "\r\n"
_KEY = r"[\w.$-]++"
_KEY_PATTERN = re.compile(_KEY)
BLANKS_PATTERN = re.compile(r"[ \t\r]*+")


class ParamEnd(Enum):
    """The end of a value, except the key of the next param."""

    CLOSER = "closer"
    CLOSER_AND_OPENER = "closer, and the opener of the next call on the same line"
    OPENER = "opener of the next call"
    CUT = "special token or change of the channel"
    LIMIT = "limit"
    END_OF_TEXT = "end of text"


Follower: TypeAlias = str | ParamEnd
"""Text that follows a value: the key of the next param, or another end."""


class LineStart(NamedTuple):
    """The beginning of a line: `end` is a key, the closer, or an opener, which is not consumed.

    If the line continues a value, `text` is what was read of it.
    """

    end: Follower | None
    text: str = ""


class LineReader:
    """Reader for the beginnings of lines. The parameters are explained in `LineParams`."""

    def __init__(
        self,
        openers: tuple[str, ...],
        closers: tuple[str, ...],
        separators: tuple[str, ...],
        indent: str,
        dialect_markers: tuple[str, ...],
        tokens: tuple[str, ...],
    ) -> None:
        """`tokens` are the special tokens among `dialect_markers`, such as the end of a turn."""
        self.ends = compile_markers(NEWLINE, CRLF, *tokens)
        """Markers that end a line."""
        self._line_breaks = compile_markers(NEWLINE)
        self._last_token: tuple[WordSequence, ...] = ((tokens, (*tokens, END_OF_TEXT)),)
        self._openers = compile_markers(*openers)
        self._closers = compile_markers(*closers)
        self._separators = compile_markers(*separators)
        self._indent = compile_markers(*((indent,) if indent else ()))
        self._after_closer = compile_markers(*dialect_markers)
        self._after_call = compile_markers(*openers, *dialect_markers)
        self._call_line = Lookahead(
            *((*literal_sequence(opener), r"[ \t]*+", r"([\w.:-]++)", r"[^\w.:-]") for opener in openers)
        )
        self._markers = compile_markers(*openers, *closers)
        key_lines = [(f"({_KEY})", *literal_sequence(separator)) for separator in sorted(separators, key=len)]
        self._key_line = Lookahead(*key_lines)
        self._key_line_after_space = Lookahead(*((r"\s*+", *key_line) for key_line in key_lines))
        self._max_key_line_chars = MAX_NAME_CHARS + self._separators.max_length

    def is_structure(self, line: str) -> bool:
        """Return whether a line of a value would be read as a closer, or as a param of some tool."""
        end = self._closers.match(line, 0)
        if end is not None:
            remainder = line[end.end() :].lstrip(" \t\r")
            return not remainder or self._after_closer.match(remainder, 0) is not None
        key = _KEY_PATTERN.match(line)
        return key is not None and self._separators.match(line, key.end()) is not None

    def read_first_line(self, source: TextBuffer) -> Read[Follower | None]:
        """Read the beginning of the first line after the name. Return the key or the closer.

        None if the line begins with neither. Then nothing is consumed, except a closer that has text after it.
        """
        is_closer_next = yield from source.peek(self._closers)
        limit = MAX_BUFFERED_WHITESPACE_CHARS + self._max_key_line_chars
        if not is_closer_next and (yield from source.look_ahead(self._key_line_after_space, limit)) is None:
            return None
        yield from source.skip_space()
        return (yield from self.read_start(source)).end

    def read_start(self, source: TextBuffer, is_param: Callable[[str], bool] | None = None) -> Read[LineStart]:
        """Read the beginning of a line.

        Args:
            source: The text.
            is_param: Returns whether a key begins another param; by default every key does.
        """
        if (yield from source.accept_here(self._indent)) is not None:
            return LineStart(None)
        closer = yield from source.accept_here(self._closers)
        if closer is not None:
            return (yield from self._read_after_closer(closer, source))
        opener = yield from source.accept_here(self._openers)
        if opener is not None:
            source.put_back(opener)
            return LineStart(ParamEnd.OPENER)
        key = yield from source.look_ahead(self._key_line, self._max_key_line_chars)
        if key is None or not (is_param is None or is_param(key)):
            return LineStart(None)
        yield from source.take_while(_KEY_PATTERN, MAX_NAME_CHARS)
        yield from source.accept_here(self._separators)
        return LineStart(key)

    def is_end_certain(self, source: TextBuffer, limit: int, is_tool: Callable[[str], bool]) -> Read[bool]:
        """Return whether the closer that was just read ends the call, and is not quoted in its last value.

        It may be quoted if another closer follows that belongs to no call of a tool, or if more text than the limit
        follows. With indented values, no closer can be quoted. Consumes nothing.
        """
        was_searched = source.offset < source.searched_to and source.search_found_nothing
        if self._indent.literals or was_searched or (yield from source.peek(self._after_call)) is not None:
            return True
        channel, end, open_calls = source.channel, source.offset + limit, 0
        is_certain = True
        source.set_mark()
        while is_certain and source.channel is channel:
            newline = yield from source.copy_value(self._line_breaks, _ignore, max(0, end - source.offset), channel)
            if not newline:
                is_certain = newline is None or source.channel is not channel
                break
            line_end = (yield from self.read_start(source, lambda _: False)).end
            if line_end in (ParamEnd.CLOSER, ParamEnd.CLOSER_AND_OPENER):
                is_certain = open_calls > 0
                open_calls -= 1
            if line_end in (ParamEnd.OPENER, ParamEnd.CLOSER_AND_OPENER):
                name = yield from source.look_ahead(self._call_line, self._max_key_line_chars)
                open_calls += name is not None and is_tool(name)
        source.searched_to, source.search_found_nothing = source.offset, is_certain
        source.rewind_to_mark()
        return is_certain

    def contains_structure(self, text: str) -> bool:
        """Return whether a value contains several lines, or a marker of a call."""
        return NEWLINE in text or self._markers.search(text, 0) is not None

    def ends_reply(self, token: str, source: TextBuffer) -> Read[bool]:
        """Return whether only another token, or nothing, follows the token that was just read. Consumes nothing."""
        return (yield from source.is_next(self._last_token, last_marker=token))

    def _read_after_closer(self, closer: str, source: TextBuffer) -> Read[LineStart]:
        """Read up to the end of the line. Only a marker may follow the closer there."""
        channel = source.channel
        blanks = yield from source.take_while(BLANKS_PATTERN)
        at_end = (yield from source.peek_char()) in (NEWLINE, "") or source.channel is not channel
        if at_end or (yield from source.peek(self._after_closer)):
            return LineStart(ParamEnd.CLOSER)
        if not (yield from source.peek(self._openers)):
            return LineStart(None, closer + blanks)
        is_certain = bool(self._indent.literals)  # with indented values, no closer can be quoted
        return LineStart(ParamEnd.CLOSER) if is_certain else LineStart(ParamEnd.CLOSER_AND_OPENER, closer + blanks)


def _ignore(text: str) -> None:
    """Ignore text that is only searched."""


def is_key(text: str) -> bool:
    """Return whether the text can be a key."""
    return len(text) <= MAX_NAME_CHARS and _KEY_PATTERN.fullmatch(text) is not None
