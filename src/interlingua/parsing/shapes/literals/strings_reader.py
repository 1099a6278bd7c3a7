"""The strings of one call where its values are literals: where they end, and what they are as JSON.

A string goes on as it comes. Models forget quotes, and write them inside strings: a quote ends one only before what may
follow a value, and the end of a call does if another call follows. Quotes inside a string come in pairs: after the
first of a pair, the next one has to be followed by what follows no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias

from interlingua.common.jsontext.codec import read_json
from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.lookahead import Lookahead
from interlingua.parsing.shapes.literals.call_context import CallContext
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS,
    CLOSING_BRACKETS_PATTERN,
    WHITESPACE,
    BracketContext,
    escape_json,
    read_escape,
)
from interlingua.parsing.text_buffer import Read

__all__ = ["STRING_ONLY_CHAR", "LiteralStringReader", "ValueEnd", "ValueText"]

_WHITESPACE_RUN = re.compile(f"[{WHITESPACE}]*+")
_CLOSING_BRACKETS_RUN = re.compile(CLOSING_BRACKETS_PATTERN)
STRING_ONLY_CHAR = "~"
"""A character that no value but a string begins with."""


class ValueEnd(NamedTuple):
    """A value ends here."""

    delimiter: str
    """What ends it: a comma, a closing bracket or a marker."""
    key: str | None = None
    """The key of the next member, if it was read to tell that."""


class ValueText(NamedTuple):
    """The value goes on."""

    text: str
    """What was read to tell that."""


_EndDecision: TypeAlias = ValueEnd | ValueText | None
"""What something that may end a value is; None if the text ends before that can be told."""


class LiteralStringReader:
    """Reads strings, from behind their first quote."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._notation = context.notation
        self._source = context.source

    # ── strings ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, quote: str, brackets: BracketContext, coercion: ValueCoercion) -> Read[ValueEnd | None]:
        """A string, from behind its quote. What is to become another type is held. None if the text ended in it."""
        buffered: list[str] | None = None
        quoted_mode = self._notation.quoted_mode
        if quoted_mode != "string":
            first = (yield from self._source.peek_after_space()) if quoted_mode == "any" else STRING_ONLY_CHAR
            buffered = [] if coercion.can_be_value(first) else None
        write = self._context.args.write_raw if buffered is None else buffered.append
        if buffered is None:
            write('"')
        end = yield from self._read_to_end(quote, brackets, write)
        if end is None:
            return None
        if buffered is None:
            write('"')
        else:
            self._write_converted("".join(buffered), coercion)
        return end

    def _read_to_end(self, quote: str, brackets: BracketContext, write: Callable[[str], None]) -> Read[ValueEnd | None]:
        inner_quotes = 0
        while True:
            marker = yield from self.copy_body(quote, write)
            if marker is None:
                return None
            if marker != quote:
                delimiter = yield from self._source.accept(self._notation.value_ends)
                return ValueEnd(delimiter or marker)
            decision = yield from self.classify_quote(brackets, inner_quotes)
            if not isinstance(decision, ValueText):
                return decision
            write(escape_json(self.quote_as_text(quote) + decision.text))
            inner_quotes += 1

    def _write_converted(self, json: str, coercion: ValueCoercion) -> None:
        args = self._context.args
        text = read_json(f'"{json}"', str)
        if text is None:  # half a surrogate pair: a string, whatever the schema says
            args.write_raw(f'"{json}"')
            return
        value = coercion.convert(text)
        args.write_raw(value.json)
        if value.problem:
            self._context.report("bad-value", value.problem)

    def quote_as_text(self, quote: str) -> str:
        """What a quote inside a string stands for: a token that looks like one was meant as one."""
        return '"' if '"' in quote and quote == self._notation.delimiter else quote

    def copy_body(self, quote: str, write: Callable[[str], None]) -> Read[str | None]:
        """Copies a string up to the next quote, as JSON. Returns the quote; or if it is missing, what ends the call,
        unread. None if the text ended before, or the limit was passed."""
        marks, unclosed = self._notation.string_markers[quote], self._notation.unclosed_strings[quote]
        while True:
            marker = yield from self._context.copy_until(marks, lambda piece: write(escape_json(piece)))
            if marker is None or marker == quote:
                return marker
            if marker not in unclosed:
                write((yield from read_escape(marker, self._source)))
                continue
            self._source.put_back(marker)
            if (yield from self._is_next(unclosed[marker])):
                self._context.was_repaired = True
                self._context.report(
                    "value-not-closed", "a string without its last quote: taken as closed before the next call"
                )
                return marker
            yield from self._source.accept(self._notation.value_ends)
            closing_brackets = yield from self._source.take_while(
                _CLOSING_BRACKETS_RUN
            )  # none of them ends the call if the first does not
            write(escape_json(marker + closing_brackets))

    def _is_next(self, lookahead: Lookahead) -> Read[bool]:
        """Whether this stands next. A call in it is one of an offered tool, if its name counts."""
        sink = self._context.sink
        return (yield from self._source.look_ahead(lookahead, sink.limits.header, ("", *sink.offer.names))) is not None

    # ── where a string ends ───────────────────────────────────────────────────────────────────────────────────────

    def classify_quote(self, brackets: BracketContext, inner_quotes: int) -> Read[_EndDecision]:
        """Whether this quote ends the string, which already holds so many of them. If it closes one of those, it takes
        more to tell, as it always does where quotes are not escaped."""
        source, notation = self._source, self._notation
        whitespace = yield from source.take_while(_WHITESPACE_RUN)
        if (yield from self._is_next(notation.after_string)):
            return ValueEnd((yield from self._read_call_end(brackets)))
        delimiter = yield from source.accept(notation.value_ends)
        if delimiter is None:
            return (yield from self._classify_quote_without_comma(brackets, whitespace))
        closes_inner = inner_quotes % 2 == 1
        if delimiter == "," and brackets.separator:
            key_reader = (
                self._classify_comma_before_bare_key(brackets, brackets.remaining_keys)
                if closes_inner
                else self.classify_comma(brackets, None)
            )
            decision = yield from key_reader
            return ValueText(whitespace + decision.text) if isinstance(decision, ValueText) else decision
        if closes_inner or not notation.escaped:
            if delimiter in CLOSING_BRACKETS.values() and delimiter != brackets.closer:
                return ValueText(whitespace + delimiter)
            if delimiter == notation.close and brackets.depth == 0:
                next_marker = yield from source.peek(notation.after_call)
                return (
                    None
                    if next_marker == ""
                    else ValueEnd(delimiter)
                    if next_marker
                    else ValueText(whitespace + delimiter)
                )
        return ValueEnd(delimiter)

    def _read_call_end(self, brackets: BracketContext) -> Read[str]:
        """What ends a string that is the last of its call. Where no bracket does, the next call stands there."""
        delimiter = yield from self._source.accept(self._notation.value_ends)
        if (delimiter is None or delimiter == ",") and brackets.depth == 0:
            self._source.put_back(delimiter or "")
            self._context.report_repair(f"{self._notation.close!r} is missing")
            return self._notation.close
        return delimiter or ","

    def _classify_quote_without_comma(self, brackets: BracketContext, whitespace: str) -> Read[_EndDecision]:
        """Whether a quote ends the string that nothing follows that should: a comma may be missing."""
        source, notation = self._source, self._notation
        if (yield from source.peek(notation.value_ends)) == "":
            return None
        if not (brackets.separator and brackets.remaining_keys):
            return ValueText(whitespace)
        syntax = notation.key_syntax[brackets.separator, brackets.closer]
        if (
            yield from source.look_ahead(syntax.next_member, self._context.sink.limits.header, brackets.remaining_keys)
        ) is None:
            return ValueText(whitespace)
        self._context.report_repair("',' is missing")
        return ValueEnd(",")

    def classify_comma(
        self, brackets: BracketContext, allowed_keys: Collection[str] | None
    ) -> Read[ValueEnd | ValueText]:
        """Whether a comma ends the value before it: the key of the next member comes, or the end. Only these keys
        count, or all: models invent some."""
        syntax = self._notation.key_syntax[brackets.separator, brackets.closer]
        if (yield from self._source.peek(syntax.container_ends)) is not None or (
            yield from self._is_next(syntax.quoted_key)
        ):
            return ValueEnd(",")
        return (yield from self._classify_comma_before_bare_key(brackets, allowed_keys, syntax.wrong_separator))

    def _classify_comma_before_bare_key(
        self, brackets: BracketContext, allowed_keys: Collection[str] | None, wrong_separator: str = ""
    ) -> Read[ValueEnd | ValueText]:
        """Whether a comma ends the value before it: a bare key comes, and its separator; or a slip, if the key is one
        that the tool has."""
        source = self._source
        syntax = self._notation.key_syntax[brackets.separator, brackets.closer]
        space = yield from source.take_while(_WHITESPACE_RUN)
        parts: list[str] = []
        marker = yield from source.copy_value(syntax.word_ends, parts.append, self._context.sink.limits.header)
        source.put_back(marker or "")
        word = "".join(parts)
        separator = yield from source.peek(syntax.separators)
        if separator == "":
            return ValueEnd(",")
        if separator == wrong_separator:
            allowed_keys = brackets.remaining_keys or ()
        if (
            not word
            or separator not in (brackets.separator, wrong_separator)
            or (allowed_keys is not None and word not in allowed_keys)
        ):
            return ValueText("," + space + word)
        yield from source.accept(syntax.separators)
        if separator == wrong_separator:
            self._context.report_repair(f"{wrong_separator!r} for {brackets.separator!r}")
        return ValueEnd(",", word)
