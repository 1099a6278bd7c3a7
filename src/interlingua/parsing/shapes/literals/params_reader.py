"""The params of one call where their values are literals: read as they come, and written on as JSON.

The text is walked once and nothing is evaluated. A string goes on as it comes, a number or a word once its end is
known. Models forget brackets, commas and quotes: whatever stands there is read as what was most likely meant.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as quoted

from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.literals import MAX_DEPTH, literal_to_json
from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.event_sink import EventSink
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
    ValueEnd,
    ValueText,
)
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["LiteralParamsReader"]


class LiteralParamsReader:
    """Reads the params of one call, from behind its opening bracket."""

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

    @property
    def was_repaired(self) -> bool:
        """Whether anything had to be mended."""
        return self._context.was_repaired

    @property
    def over_limit(self) -> bool:
        """Whether the limit was passed."""
        return self._context.over_limit

    def read(self, first_key: str | None = None) -> Read[bool]:
        """All params, and the closing bracket. False if the text ended before it, or the limit was passed.

        The first value may stand without its key.
        """
        offer, tool = self._offer, self._tool
        brackets = BracketContext(
            self._notation.close,
            lambda key: offer.coercion_for(tool, key),
            self._notation.separator,
            set(offer.param_names(tool)) or None,
        )
        return (yield from self._read_members(brackets, lambda key, _: self._args.begin_member(key), first_key))

    # ── brackets ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_members(
        self,
        brackets: BracketContext,
        begin_member: Callable[[str, BracketContext], None],
        first_key: str | None = None,
    ) -> Read[bool]:
        """What stands in brackets, and the closing one. False if the text ended before it, or the limit was passed."""
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
        """The key of the next member, and its separator. None if the text ended in it."""
        parts: list[str] = []
        syntax = self._notation.key_syntax[brackets.separator, brackets.closer]
        quote = yield from self._source.accept(self._notation.quote_markers)
        if quote is not None:
            if (yield from self._string_reader.copy_body(quote, parts.append)) is None:
                return None
            if (yield from self._source.accept(syntax.separators)) == syntax.wrong_separator:
                self._context.report_repair(f"{syntax.wrong_separator!r} for {brackets.separator!r}")
            json = "".join(parts)
            return read_json(f'"{json}"', str) or json
        marker = yield from self._context.copy_until(syntax.key_ends_or_wrong_separator, parts.append)
        if marker == syntax.wrong_separator:
            key = "".join(parts).strip()
            if key in (brackets.remaining_keys or ()):
                self._context.report_repair(f"{syntax.wrong_separator!r} for {brackets.separator!r}")
                return key
            parts.append(marker)
            marker = yield from self._context.copy_until(syntax.key_ends, parts.append)
        if marker is None:
            return None
        if marker != brackets.separator:
            self._source.put_back(marker)
        return _strip_single_quotes("".join(parts).strip())

    def _read_value(self, brackets: BracketContext, coercion: ValueCoercion) -> Read[ValueEnd | None]:
        """A value, up to its end. None if the text ended before."""
        opener = yield from self._source.accept(self._notation.value_openers)
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
        """Writes what stands before the value of each member, or item, of one pair of brackets."""
        separator = ""

        def begin_member(key: str, brackets: BracketContext) -> None:
            nonlocal separator
            self._args.write_raw(f"{separator}{quoted(key)}: " if brackets.separator else separator)
            separator = ", "

        return begin_member

    def _read_delimiter(self) -> Read[ValueEnd | None]:
        """What follows a value in brackets. Where nothing does that may, a comma is missing."""
        delimiter = yield from self._source.accept(self._notation.value_ends)
        if delimiter is not None:
            return ValueEnd(delimiter)
        if (yield from self._source.peek(self._notation.value_ends)) == "":
            return None
        self._context.report_repair("',' is missing")
        return ValueEnd(",")

    # ── what stands without quotes ────────────────────────────────────────────────────────────────────────────────

    def _read_bare_value(self, brackets: BracketContext, coercion: ValueCoercion) -> Read[ValueEnd | None]:
        """A number or a word, up to what ends it; or a string that lacks its quotes, or the first of them."""
        parts: list[str] = []
        open_brackets = 0  # brackets inside the text
        inner_quotes = 0  # quotes inside the text
        has_data = False  # whether anything of it was told to be data
        while True:
            marker = yield from self._context.copy_until(self._notation.bare_value_ends, parts.append)
            if marker is None:
                return None
            decision: ValueEnd | ValueText | None = ValueText(marker)
            if marker in CLOSING_BRACKETS:
                open_brackets += 1
            elif marker == self._notation.delimiter:
                decision = yield from self._string_reader.classify_quote(brackets, inner_quotes)
                if isinstance(decision, ValueText):
                    decision = ValueText(self._string_reader.quote_as_text(marker) + decision.text)
                    inner_quotes += 1
            elif open_brackets and marker in self._notation.value_ends.literals:
                open_brackets -= marker != ","
            elif marker == "," and brackets.separator and (has_data or any(map(str.strip, parts))):
                # in a number it can be nothing else; in a text it ends that, if one of the keys follows that may come
                is_literal = not has_data and literal_to_json("".join(parts)) is not None
                decision = yield from self._string_reader.classify_comma(
                    brackets, None if is_literal else brackets.remaining_keys
                )
            else:
                decision = ValueEnd(marker)
            if decision is None:
                return None
            if isinstance(decision, ValueEnd):
                self._write_bare_value("".join(parts), coercion, half_quoted=marker == self._notation.delimiter)
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
            self._context.report("no-quote", "a string without its first quote: taken as one")
        elif not word:
            self._args.write_raw("null")
            self._context.report_repair("a value is missing: taken as null")
        elif json is None:
            self._args.write_raw(coercion.convert(word).json)
            self._context.report("no-quote", f"a string without quotes, {word[:40]!r}: taken as one")
        elif coercion.is_string_only and json != "null" and json[0] != '"':
            self._args.write_raw(quoted(word))
            self._context.report("value-as-string", f"{word[:40]!r} where only a string fits: taken as one")
        else:
            self._args.write_raw(json)


def _strip_single_quotes(key: str) -> str:
    """The key without the quotes of Python, where those are no quotes."""
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] == "'" else key
