"""Where a value ends whose closer is missing: where its call, its section or the turn does, or another call begins.

All of these may be data as well, so that each counts only if what follows may follow there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlingua.parsing.lookahead import END_OF_TEXT, WordSequence, match_word_sequence
from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES, MarkerSet
from interlingua.parsing.shapes.tagged_params.tag import Tag, find_names

__all__ = ["NEWLINE", "TagContext", "UnclosedValueRules", "name_prefixes"]

NEWLINE = "\n"


class TagContext(NamedTuple):
    """What stands around params. `tokens` are special ones such as the end of a turn, and are `outside` too."""

    call: Tag
    section_openers: tuple[str, ...]
    section_closers: tuple[str, ...]
    dialect_markers: tuple[str, ...]
    tokens: tuple[str, ...]
    after_param: MarkerSet
    after_call: MarkerSet


class UnclosedValueRules:
    """What ends values of these params if no closer does."""

    def __init__(self, param: Tag, in_line: bool, tag_context: TagContext) -> None:
        """`in_line` says that calls begin anywhere. Elsewhere they begin on a line of their own."""
        call, tokens = tag_context.call, tag_context.tokens
        self._param = param
        self._tag_context = tag_context
        self._name_prefixes = name_prefixes(call)
        openers = (*tag_context.section_openers, *call.open)
        self._call_boundaries = (*openers, *tag_context.section_closers)
        inline_openers = tuple(mark for mark in openers if in_line or mark.startswith(SPECIAL_TOKEN_PREFIXES))
        closers = (*call.close, *tag_context.section_closers)
        self.on_lines = (
            *(NEWLINE + mark for mark in (*closers, *tokens, *openers)),
            *tokens,
            *inline_openers,
            *param.slips,
        )
        """Those that count where values stand on lines of their own."""
        self.anywhere = (*self.on_lines, *closers)
        self._common_end_sequences: tuple[WordSequence, ...] = (
            (call.close, (*tag_context.after_call.literals, END_OF_TEXT)),
            (tokens, (*tokens, END_OF_TEXT)),  # where nothing but another one follows, no value goes on
            (tag_context.section_closers, (*tokens, END_OF_TEXT)),
            (tag_context.section_closers, tag_context.dialect_markers, (END_OF_TEXT,)),
            (param.slips, (*param.open, *call.close)),
        )

    def end_sequences(self, marker: str, tools: Sequence[str]) -> Sequence[WordSequence]:
        """What has to stand here, from this marker on, so that it ends a value. Only a call of these tools does,
        or of any, if none is known and a section has ended before it. An opener alone does only if it is a special
        token: files quote calls, and what a file quotes must never run."""
        if marker.removeprefix(NEWLINE) not in self._call_boundaries:
            return self._common_end_sequences
        call_starts = self._call_start_sequences(tools)
        section_starts = [(self._tag_context.section_openers, *turn) for turn in call_starts]
        any_section: list[WordSequence] = [(self._tag_context.section_openers, self._tag_context.call.open)]
        starts_after_section = [
            (self._tag_context.section_closers, *turn) for turn in (section_starts if tools else any_section)
        ]
        token_starts = (
            (tuple(mark for mark in first if mark.startswith(SPECIAL_TOKEN_PREFIXES)), *remainder)
            for first, *remainder in (*call_starts, *section_starts)
        )
        return [*self._common_end_sequences, *(turn for turn in token_starts if turn[0]), *starts_after_section]

    def _call_start_sequences(self, tools: Sequence[str]) -> Sequence[WordSequence]:
        """How a call of these tools begins."""
        call = self._tag_context.call
        if call.end:
            ends = ('"', "'", *call.end)
            heads = (prefix + name + end for prefix in self._name_prefixes for name in tools for end in ends)
            return [(call.open, tuple(heads))]
        names, after = tuple(tools), (*self._tag_context.after_call.literals, END_OF_TEXT)
        return [(call.open, names, self._param.open), (call.open, names, call.close, after)]

    def is_end_at(self, text: str, start: int, marker: str) -> bool:
        """Whether this marker, which begins there, ends a value of a tool of any name."""
        names = find_names(text, start)
        return any(
            match_word_sequence(sequence, text, start, closed=True) for sequence in self.end_sequences(marker, names)
        )


def name_prefixes(tag: Tag) -> tuple[str, ...]:
    """What may stand between a tag's opener and its name."""
    return tuple(f"{key}={quote}" for key in tag.attribute for quote in ('"', "'", "")) or ("",)
