"""Rules for the end of a value without a closer: the end of its call, its section or the turn, or another call.

The markers of all of these can also be data. So each one ends a value only if its followers are valid.
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
    """Markers around params.

    `tokens` are the special tokens among `dialect_markers`, such as the end of a turn.
    """

    call: Tag
    section_openers: tuple[str, ...]
    section_closers: tuple[str, ...]
    dialect_markers: tuple[str, ...]
    tokens: tuple[str, ...]
    after_param: MarkerSet
    after_call: MarkerSet


class UnclosedValueRules:
    """Markers and sequences that end a value of a param if its closer is missing."""

    def __init__(self, param: Tag, in_line: bool, tag_context: TagContext) -> None:
        """`in_line`: calls can begin anywhere. Otherwise they begin on a new line."""
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
        """Markers for values on separate lines."""
        self.anywhere = (*self.on_lines, *closers)
        self._common_end_sequences: tuple[WordSequence, ...] = (
            (call.close, (*tag_context.after_call.literals, END_OF_TEXT)),
            (tokens, (*tokens, END_OF_TEXT)),  # a token that is followed only by another one ends the value
            (tag_context.section_closers, (*tokens, END_OF_TEXT)),
            (tag_context.section_closers, tag_context.dialect_markers, (END_OF_TEXT,)),
            (param.slips, (*param.open, *call.close)),
        )

    def end_sequences(self, marker: str, tools: Sequence[str]) -> Sequence[WordSequence]:
        """Return the word sequences, beginning with this marker, that end a value.

        A following call ends a value only if it calls one of these tools, or any tool if no tool is known and a section
        has ended before it. An opener alone ends a value only if it is a special token: files quote calls, and a quoted
        call must never run.
        """
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
        """Return the word sequences that begin a call of one of these tools."""
        call = self._tag_context.call
        if call.end:
            ends = ('"', "'", *call.end)
            heads = (prefix + name + end for prefix in self._name_prefixes for name in tools for end in ends)
            return [(call.open, tuple(heads))]
        names, after = tuple(tools), (*self._tag_context.after_call.literals, END_OF_TEXT)
        return [(call.open, names, self._param.open), (call.open, names, call.close, after)]

    def is_end_at(self, text: str, start: int, marker: str) -> bool:
        """Return whether the marker at `start` ends a value, whatever the names of the tools are."""
        names = find_names(text, start)
        return any(
            match_word_sequence(sequence, text, start, closed=True) for sequence in self.end_sequences(marker, names)
        )


def name_prefixes(tag: Tag) -> tuple[str, ...]:
    """Return the texts that can come between the opener of a tag and its name."""
    return tuple(f"{key}={quote}" for key in tag.attribute for quote in ('"', "'", "")) or ("",)
