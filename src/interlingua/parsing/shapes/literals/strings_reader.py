"""Reader for literal strings: finds their end and converts them to JSON.

Strings are streamed. Models omit quotes and write unescaped quotes inside strings. So a quote ends a string only if it
is followed by something that can follow a value, and the end of a call ends a string if another call follows. Quotes
inside a string come in pairs: after the first of a pair, the next one ends the string only if its followers cannot be
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from interlingua.common.jsontext.codec import read_json
from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.shapes.literals.call_context import CallContext
from interlingua.parsing.shapes.literals.delimited_strings import DelimitedStringReader
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS,
    CLOSING_BRACKETS_RUN,
    WHITESPACE,
    BracketContext,
    escape_json,
    read_escape,
)
from interlingua.parsing.shapes.literals.value_ends import EndDecision, ValueEnd, ValueText
from interlingua.parsing.text_buffer import Read

__all__ = ["STRING_ONLY_CHAR", "LiteralStringReader"]

_WHITESPACE_RUN = re.compile(f"[{WHITESPACE}]*+")
STRING_ONLY_CHAR = "~"
"""A character that can begin only a string, no other value."""


class LiteralStringReader:
    """Reader for strings, starting after their opening quote."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._notation = context.notation
        self._source = context.source

    # ── strings ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, quote: str, brackets: BracketContext, coercion: ValueCoercion) -> Read[ValueEnd | None]:
        """Read a string after its opening quote. A string that is converted to another type is buffered.

        Returns:
            The end of the value; None if the text ended inside the string.
        """
        is_buffered = False
        quoted_mode = self._notation.quoted_mode
        if quoted_mode != "string":
            first = (yield from self._source.peek_after_space()) if quoted_mode == "any" else STRING_ONLY_CHAR
            is_buffered = coercion.can_be_value(first)
        if is_buffered:
            end = yield from self._read_to_end(
                quote, brackets, self._context.sink.hold_value().append, is_streamed=False
            )
            text = self._context.sink.take_value()
            if end is not None:
                self._write_converted(text, coercion)
            return end
        write = self._context.args.write_raw
        write('"')
        end = yield from self._read_to_end(quote, brackets, write)
        if end is not None:
            write('"')
        return end

    def _read_to_end(
        self, quote: str, brackets: BracketContext, write: Callable[[str], None], is_streamed: bool = True
    ) -> Read[ValueEnd | None]:
        quoted_calls = self._notation.quoted_calls
        if quoted_calls and quote == self._notation.delimiter:
            reader = DelimitedStringReader(
                self._context, quoted_calls, brackets, self.classify_quote, write, is_streamed
            )
            return (yield from reader.read())
        inner_quotes = 0
        while True:
            marker = yield from self.copy_body(quote, write)
            if marker is None:
                return None
            if marker != quote:
                delimiter = yield from self._source.accept(self._notation.value_ends)
                return ValueEnd(delimiter or marker)
            quote_end = self._source.offset
            decision = yield from self.classify_quote(brackets, inner_quotes)
            if not isinstance(decision, ValueText):
                self._source.trace_marker(quote, quote_end)
                return decision
            write(escape_json(self._notation.quote_as_text(quote) + decision.text))
            inner_quotes += 1

    def _write_converted(self, json: str, coercion: ValueCoercion) -> None:
        args = self._context.args
        text = read_json(f'"{json}"', str)
        if text is None:  # an unpaired surrogate stays a string, whatever the schema requires
            args.write_raw(f'"{json}"')
            return
        value = coercion.convert(text)
        args.write_raw(value.json)
        if value.problem:
            self._context.report("bad-value", value.problem)

    def copy_body(self, quote: str, write: Callable[[str], None]) -> Read[str | None]:
        """Copy a string as JSON up to the next quote.

        Returns:
            The quote (consumed); if it is missing, the marker that ends the call (not consumed); None if the text ended
            or the limit was exceeded.
        """
        marks, unclosed = self._notation.string_markers[quote], self._notation.unclosed_strings[quote]
        while True:
            marker = yield from self._context.copy_until(marks, lambda piece: write(escape_json(piece)))
            if marker is None or marker == quote:
                return marker
            if marker not in unclosed:
                write((yield from read_escape(marker, self._source)))
                continue
            self._source.put_back(marker)
            if (yield from self._context.is_next(unclosed[marker])):
                self._context.report_unclosed_string()
                return marker
            self._source.skip_data(marker)
            # If the first bracket does not end the call, neither do the brackets after it.
            closing_brackets = yield from self._source.take_while(CLOSING_BRACKETS_RUN)
            write(escape_json(marker + closing_brackets))

    # ── end of a string ───────────────────────────────────────────────────────────────────────────────────────

    def classify_quote(self, brackets: BracketContext, inner_quotes: int, may_repair: bool = True) -> Read[EndDecision]:
        """Decide whether a quote ends the string.

        If it can close a quotation inside the string, or if the dialect does not escape quotes, the conditions are
        stricter.

        Args:
            brackets: The brackets around the string.
            inner_quotes: The number of quotes that the string already contains.
            may_repair: Whether the quote ends the string also if the delimiter after it is missing or wrong.
        """
        source, notation = self._source, self._notation
        whitespace = yield from source.take_while(_WHITESPACE_RUN)
        if (yield from self._context.is_next(notation.after_string)):
            return ValueEnd((yield from self._read_call_end(brackets)))
        delimiter = yield from source.accept(notation.value_ends)
        if delimiter is None:
            return (yield from self._classify_quote_without_comma(brackets, whitespace, may_repair))
        closes_inner = inner_quotes % 2 == 1
        if delimiter == "," and brackets.separator:
            key_reader = (
                self._classify_comma_before_bare_key(brackets, brackets.remaining_keys)
                if closes_inner
                else self.classify_comma(brackets, None, may_repair)
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
        """Return the delimiter after the last string of a call. Without a bracket, the next call follows directly."""
        delimiter = yield from self._source.accept(self._notation.value_ends)
        if (delimiter is None or delimiter == ",") and brackets.depth == 0:
            self._source.put_back(delimiter or "")
            self._context.report_repair(f"{self._notation.close!r} is missing")
            return self._notation.close
        return delimiter or ","

    def _classify_quote_without_comma(
        self, brackets: BracketContext, whitespace: str, may_repair: bool
    ) -> Read[EndDecision]:
        """Decide whether a quote ends the string if no valid follower comes next: a comma may be missing."""
        source, notation = self._source, self._notation
        if (yield from source.peek(notation.value_ends)) == "":
            return None
        if not (may_repair and brackets.separator and brackets.remaining_keys):
            return ValueText(whitespace)
        syntax = notation.key_syntax[brackets.separator, brackets.closer]
        if (
            yield from source.look_ahead(syntax.next_member, self._context.sink.limits.header, brackets.remaining_keys)
        ) is None:
            return ValueText(whitespace)
        self._context.report_repair("',' is missing")
        return ValueEnd(",")

    def classify_comma(
        self, brackets: BracketContext, allowed_keys: Collection[str] | None, may_repair: bool = True
    ) -> Read[ValueEnd | ValueText]:
        """Decide whether a comma ends the value before it: the key of the next member or the end must follow.

        `allowed_keys` are the keys that are accepted, or None for any key, because models invent keys.
        """
        syntax = self._notation.key_syntax[brackets.separator, brackets.closer]
        if (yield from self._source.peek(syntax.container_ends)) is not None or (
            yield from self._context.is_next(syntax.quoted_key)
        ):
            return ValueEnd(",")
        wrong_separator = syntax.wrong_separator if may_repair else ""
        return (yield from self._classify_comma_before_bare_key(brackets, allowed_keys, wrong_separator))

    def _classify_comma_before_bare_key(
        self, brackets: BracketContext, allowed_keys: Collection[str] | None, wrong_separator: str = ""
    ) -> Read[ValueEnd | ValueText]:
        """Decide whether a comma ends the value before it: an unquoted key and its separator must follow.

        The wrong separator is accepted only after a key that the tool has.
        """
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
            self._context.report_repair(f"{wrong_separator!r} instead of {brackets.separator!r}")
        return ValueEnd(",", word)
