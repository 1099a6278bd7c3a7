"""Where a value ends whose closer is missing: where its call, its section or the turn does, or another call begins.

All of these may be data as well, so that each counts only if what follows may follow there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlingua.parsing.lookahead import END, Turn, in_turn
from interlingua.parsing.markers import TOKENS, Markers
from interlingua.parsing.shapes.tagged_params.tag import Tag, names_in

__all__ = ["LINE", "Ends", "Frame", "before_name"]

LINE = "\n"


class Frame(NamedTuple):
    """What stands around params. `tokens` are special ones such as the end of a turn, and are `outside` too."""

    call: Tag
    section_open: tuple[str, ...]
    section_close: tuple[str, ...]
    outside: tuple[str, ...]
    tokens: tuple[str, ...]
    after_param: Markers
    after_call: Markers


class Ends:
    """What ends values of these params if no closer does."""

    def __init__(self, param: Tag, in_line: bool, frame: Frame) -> None:
        """`in_line` says that calls begin anywhere. Elsewhere they begin on a line of their own."""
        call, tokens = frame.call, frame.tokens
        self._param = param
        self._frame = frame
        self._before_name = before_name(call)
        opens = (*frame.section_open, *call.open)
        self._before_calls = (*opens, *frame.section_close)
        opens_in_line = tuple(mark for mark in opens if in_line or mark.startswith(TOKENS))
        closes = (*call.close, *frame.section_close)
        self.on_lines = (*(LINE + mark for mark in (*closes, *tokens, *opens)), *tokens, *opens_in_line, *param.slips)
        """Those that count where values stand on lines of their own."""
        self.anywhere = (*self.on_lines, *closes)
        self._turns: tuple[Turn, ...] = (
            (call.close, (*frame.after_call.literals, END)),
            (tokens, (*tokens, END)),  # where nothing but another one follows, no value goes on
            (frame.section_close, (*tokens, END)),
            (frame.section_close, frame.outside, (END,)),
            (param.slips, (*param.open, *call.close)),
        )

    def turns(self, marker: str, tools: Sequence[str]) -> Sequence[Turn]:
        """What has to stand here, from this marker on, so that it ends a value. Only a call of these tools does,
        or of any, if none is known and a section has ended before it. An opener alone does only if it is a special
        token: files quote calls, and what a file quotes must never run."""
        if marker.removeprefix(LINE) not in self._before_calls:
            return self._turns
        begins = self._begins(tools)
        sections = [(self._frame.section_open, *turn) for turn in begins]
        any_section: list[Turn] = [(self._frame.section_open, self._frame.call.open)]
        closed = [(self._frame.section_close, *turn) for turn in (sections if tools else any_section)]
        tokens = (
            (tuple(mark for mark in first if mark.startswith(TOKENS)), *rest) for first, *rest in (*begins, *sections)
        )
        return [*self._turns, *(turn for turn in tokens if turn[0]), *closed]

    def _begins(self, tools: Sequence[str]) -> Sequence[Turn]:
        """How a call of these tools begins."""
        call = self._frame.call
        if call.end:
            ends = ('"', "'", *call.end)
            heads = (begin + name + end for begin in self._before_name for name in tools for end in ends)
            return [(call.open, tuple(heads))]
        names, after = tuple(tools), (*self._frame.after_call.literals, END)
        return [(call.open, names, self._param.open), (call.open, names, call.close, after)]

    def found_in(self, text: str, start: int, marker: str) -> bool:
        """Whether this marker, which begins there, ends a value of a tool of any name."""
        names = names_in(text, start)
        return any(in_turn(turn, text, start, closed=True) for turn in self.turns(marker, names))


def before_name(tag: Tag) -> tuple[str, ...]:
    """What may stand between a tag's opener and its name."""
    return tuple(f"{key}={quote}" for key in tag.attribute for quote in ('"', "'", "")) or ("",)
