"""Reader for the params of one call with literal values: converts them to JSON as they arrive.

The text is scanned once and nothing is evaluated. Strings are streamed; a number or a keyword is written when its end
is known. Models omit brackets, commas and quotes: the text is read with its most likely meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from json.encoder import encode_basestring as quoted

from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.literals import MAX_DEPTH, literal_to_json
from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.common.repeated_params import report_repeated
from interlingua.parsing.shapes.literals.call_context import ArgumentsWriter, CallContext
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS,
    BracketContext,
    Notation,
    nested_context,
)
from interlingua.parsing.shapes.literals.strings_reader import (
    STRING_ONLY_CHAR,
    LiteralStringReader,
)
from interlingua.parsing.shapes.literals.value_ends import ValueEnd, ValueText
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["LiteralParamsReader"]


class LiteralParamsReader:
    """Reader for the params of one call, starting after its opening bracket."""

    def __init__(
        self, notation: Notation, tool: str, args: ArgumentsWriter, source: TextBuffer, sink: EventSink, limit: int
    ) -> None:
        self._notation = notation
        self._tool = tool
        self._args = args
        self._source = source
        self._offer = sink.offer
        self._context = CallContext(notation, args, source, sink, limit)
        self._string_reader = LiteralStringReader(self._context)
        self._params: set[str] = set()
        self._after_delimited_string = False  # whether the last value of a param was a string between delimiters

    @property
    def was_repaired(self) -> bool:
        """True if the arguments had to be repaired."""
        return self._context.was_repaired

    @property
    def over_limit(self) -> bool:
        """True if the limit was exceeded."""
        return self._context.over_limit

    def read(self, first_key: str | None = None) -> Read[bool]:
        """Read all params and the closing bracket.

        Args:
            first_key: The key of the first value, if that value has none in the text.

        Returns:
            False if the text ended before the closing bracket, or the limit was exceeded.
        """
        offer, tool = self._offer, self._tool
        brackets = BracketContext(
            self._notation.close,
            lambda key: offer.coercion_for(tool, key),
            self._notation.separator,
            set(offer.param_names(tool)) or None,
        )
        return (yield from self._read_members(brackets, self._begin_param, first_key))

    def _begin_param(self, key: str, _: BracketContext) -> None:
        if key in self._params and self._after_delimited_string:
            self._context.report_ambiguity(f"the param {key!r}, which the call already has")
        elif key in self._params and isinstance(self._args, ObjectWriter):
            preceding = map(partial(self._offer.coercion_for, self._tool), self._params)
            report_repeated(key, preceding, self._args, self._context.sink)
        self._params.add(key)
        self._context.param = key
        self._args.begin_member(key)

    # ── brackets ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_members(
        self,
        brackets: BracketContext,
        begin_member: Callable[[str, BracketContext], None],
        first_key: str | None = None,
    ) -> Read[bool]:
        """Read the content of brackets and the closing bracket.

        Return False if the text ended before the closing bracket, or the limit was exceeded.
        """
        source, ends = self._source, self._notation.value_ends
        pending_key = first_key
        while not self._context.is_over_limit():
            if pending_key is None:
                next_marker = yield from source.peek(ends)
                if next_marker == "":
                    return False
                if next_marker == ",":
                    yield from source.accept(ends)
                    continue
                if next_marker:
                    break
            key = (
                (yield from self._read_key(brackets))
                if brackets.separator and pending_key is None
                else _strip_single_quotes(pending_key or "")
            )
            if key is None:
                return False
            begin_member(key, brackets)
            if brackets.remaining_keys:
                brackets.remaining_keys.discard(key)
            value_brackets = brackets if first_key is None else brackets._replace(separator="")
            end = yield from self._read_value(value_brackets, brackets.coercion_for(key))
            if end is None:
                return False
            if end.delimiter == brackets.closer:
                return True
            if end.delimiter != ",":
                source.put_back(end.delimiter)
                break
            pending_key, first_key = end.key, None
        return (yield from self._read_closing_bracket(brackets))

    def _read_closing_bracket(self, brackets: BracketContext) -> Read[bool]:
        if self._context.over_limit:
            return False
        closer = yield from self._source.accept(self._notation.value_ends)
        if closer != brackets.closer:
            self._context.report_repair(f"{brackets.closer!r} is missing")
            self._source.put_back(closer or "")
        return True

    def _read_key(self, brackets: BracketContext) -> Read[str | None]:
        """Read the key of the next member, and its separator. Return None if the text ended in it."""
        parts: list[str] = []
        syntax = self._notation.key_syntax[brackets.separator, brackets.closer]
        quote = yield from self._source.accept(self._notation.quote_markers)
        if quote is not None:
            if (yield from self._string_reader.copy_body(quote, parts.append)) is None:
                return None
            self._source.trace_marker(quote)
            if (yield from self._source.accept(syntax.separators)) == syntax.wrong_separator:
                self._context.report_repair(f"{syntax.wrong_separator!r} instead of {brackets.separator!r}")
            json = "".join(parts)
            return read_json(f'"{json}"', str) or json
        marker = yield from self._context.copy_until(syntax.key_ends_or_wrong_separator, parts.append)
        if marker == syntax.wrong_separator:
            key = "".join(parts).strip()
            if key in (brackets.remaining_keys or ()):
                self._context.report_repair(f"{syntax.wrong_separator!r} instead of {brackets.separator!r}")
                return key
            parts.append(marker)
            marker = yield from self._context.copy_until(syntax.key_ends, parts.append)
        if marker is None:
            return None
        if marker != brackets.separator:
            self._source.put_back(marker)
        return _strip_single_quotes("".join(parts).strip())

    def _read_value(self, brackets: BracketContext, coercion: ValueCoercion) -> Read[ValueEnd | None]:
        """Read a value up to its end. Return None if the text ended before it."""
        opener = yield from self._source.accept(self._notation.value_openers)
        if brackets.depth == 0:
            self._after_delimited_string = opener is not None and opener == self._notation.delimiter
        if opener in self._notation.quotes:
            return (yield from self._string_reader.read(opener, brackets, coercion))
        if opener is None or brackets.depth == MAX_DEPTH:
            self._source.put_back(opener or "")
            return (yield from self._read_bare_value(brackets, coercion))
        is_object = opener == "{"
        self._args.write_raw("{" if is_object else "[")
        if not (
            yield from self._read_members(nested_context(opener, coercion, brackets.depth + 1), self._member_starter())
        ):
            return None
        self._args.write_raw("}" if is_object else "]")
        return (yield from self._read_delimiter())

    def _member_starter(self) -> Callable[[str, BracketContext], None]:
        """Return a function that writes the separator and key before each member or item of one pair of brackets."""
        separator = ""

        def begin_member(key: str, brackets: BracketContext) -> None:
            nonlocal separator
            self._args.write_raw(f"{separator}{quoted(key)}: " if brackets.separator else separator)
            separator = ", "

        return begin_member

    def _read_delimiter(self) -> Read[ValueEnd | None]:
        """Read the delimiter after a value in brackets. Without a valid one, a comma is missing."""
        delimiter = yield from self._source.accept(self._notation.value_ends)
        if delimiter is not None:
            return ValueEnd(delimiter)
        if (yield from self._source.peek(self._notation.value_ends)) == "":
            return None
        self._context.report_repair("',' is missing")
        return ValueEnd(",")

    # ── unquoted values ────────────────────────────────────────────────────────────────────────────────

    def _read_bare_value(self, brackets: BracketContext, coercion: ValueCoercion) -> Read[ValueEnd | None]:
        """Read a number or a keyword up to its delimiter; or a string without quotes, or without its opening quote."""
        sink = self._context.sink
        parts = sink.hold_value()
        open_brackets = 0  # number of open brackets inside the text
        inner_quotes = 0  # number of quotes inside the text
        has_data = False  # whether a possible delimiter turned out to be data
        while True:
            marker = yield from self._context.copy_until(self._notation.bare_value_ends, parts.append)
            if marker is None:
                sink.take_value()
                return None
            decision: ValueEnd | ValueText | None = ValueText(marker)
            if marker in CLOSING_BRACKETS:
                open_brackets += 1
            elif marker == self._notation.delimiter:
                decision = yield from self._string_reader.classify_quote(brackets, inner_quotes)
                if isinstance(decision, ValueText):
                    decision = ValueText(self._notation.quote_as_text(marker) + decision.text)
                    inner_quotes += 1
            elif open_brackets and marker in self._notation.value_ends.literals:
                open_brackets -= marker != ","
            elif marker == "," and brackets.separator and (has_data or any(map(str.strip, parts))):
                # After a literal, a comma always ends the value. In text it does only before one of the remaining keys.
                is_literal = not has_data and literal_to_json("".join(parts)) is not None
                decision = yield from self._string_reader.classify_comma(
                    brackets, None if is_literal else brackets.remaining_keys
                )
            else:
                decision = ValueEnd(marker)
            if decision is None:
                sink.take_value()
                return None
            if isinstance(decision, ValueEnd):
                self._write_bare_value(sink.take_value(), coercion, half_quoted=marker == self._notation.delimiter)
                self._context.report_inner_quotes(inner_quotes)
                return decision
            parts.append(decision.text)
            has_data = True

    def _write_bare_value(self, text: str, coercion: ValueCoercion, half_quoted: bool) -> None:
        word = text.strip()
        json = literal_to_json(word)
        self._context.was_repaired = self._context.was_repaired or half_quoted or json is None
        if half_quoted:
            self._args.write_raw(
                coercion.convert(text).json if coercion.can_be_value(STRING_ONLY_CHAR) else quoted(text)
            )
            self._context.report("no-quote", "a string without its opening quote: accepted as a string")
        elif not word:
            self._args.write_raw("null")
            self._context.report_repair("a value is missing (null is used)")
        elif json is None:
            self._args.write_raw(coercion.convert(word).json)
            self._context.report("no-quote", f"a string without quotes, {word[:40]!r}: accepted as a string")
        elif coercion.is_string_only and json != "null" and json[0] != '"':
            self._args.write_raw(quoted(word))
            self._context.report(
                "value-as-string", f"{word[:40]!r} where only a string is allowed: converted to a string"
            )
        else:
            self._args.write_raw(json)


def _strip_single_quotes(key: str) -> str:
    """Return the key without single quotes, for dialects in which these do not quote strings."""
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] == "'" else key
