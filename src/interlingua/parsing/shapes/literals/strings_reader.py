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
from interlingua.common.schema.coercion import Plan
from interlingua.parsing.lookahead import Ahead
from interlingua.parsing.shapes.literals.call_context import LiteralCall
from interlingua.parsing.shapes.literals.notation__escapes import escaped, read_escape
from interlingua.parsing.shapes.literals.notation__notation import BRACKETS, CLOSERS, WHITE, Place
from interlingua.parsing.text_buffer__source import Reading

__all__ = ["NO_VALUE", "Data", "End", "LiteralStrings"]

_WHITE = re.compile(f"[{WHITE}]*+")
_BRACKETS = re.compile(BRACKETS)
NO_VALUE = "~"
"""A character that no value but a string begins with."""


class End(NamedTuple):
    """A value ends here."""

    delimiter: str
    """What ends it: a comma, a closing bracket or a marker."""
    key: str | None = None
    """The key of the next member, if it was read to tell that."""


class Data(NamedTuple):
    """The value goes on."""

    text: str
    """What was read to tell that."""


_Sign: TypeAlias = End | Data | None
"""What something that may end a value is; None if the text ends before that can be told."""


class LiteralStrings:
    """Reads strings, from behind their first quote."""

    def __init__(self, call: LiteralCall) -> None:
        self._call = call
        self._notation = call.notation
        self._source = call.source

    # ── strings ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, quote: str, place: Place, plan: Plan) -> Reading[End | None]:
        """A string, from behind its quote. What is to become another type is held. None if the text ended in it."""
        held: list[str] | None = None
        as_written = self._notation.as_written
        if as_written != "string":
            first = (yield from self._source.next_char()) if as_written == "any" else NO_VALUE
            held = [] if plan.may_be_value(first) else None
        write = self._call.args.raw if held is None else held.append
        if held is None:
            write('"')
        end = yield from self._to_end(quote, place, write)
        if end is None:
            return None
        if held is None:
            write('"')
        else:
            self._convert("".join(held), plan)
        return end

    def _to_end(self, quote: str, place: Place, write: Callable[[str], None]) -> Reading[End | None]:
        inner = 0
        while True:
            mark = yield from self.body(quote, write)
            if mark is None:
                return None
            if mark != quote:
                delimiter = yield from self._source.accept(self._notation.ends)
                return End(delimiter or mark)
            sign = yield from self.after_quote(place, inner)
            if not isinstance(sign, Data):
                return sign
            write(escaped(self.as_text(quote) + sign.text))
            inner += 1

    def _convert(self, json: str, plan: Plan) -> None:
        args = self._call.args
        text = read_json(f'"{json}"', str)
        if text is None:  # half a surrogate pair: a string, whatever the schema says
            args.raw(f'"{json}"')
            return
        value = plan.convert(text)
        args.raw(value.json)
        if value.problem:
            self._call.report("bad-value", value.problem)

    def as_text(self, quote: str) -> str:
        """What a quote inside a string stands for: a token that looks like one was meant as one."""
        return '"' if '"' in quote and quote == self._notation.delimiter else quote

    def body(self, quote: str, write: Callable[[str], None]) -> Reading[str | None]:
        """Copies a string up to the next quote, as JSON. Returns the quote; or if it is missing, what ends the call,
        unread. None if the text ended before, or the limit was passed."""
        marks, unclosed = self._notation.strings[quote], self._notation.unclosed[quote]
        while True:
            marker = yield from self._call.copy(marks, lambda piece: write(escaped(piece)))
            if marker is None or marker == quote:
                return marker
            if marker not in unclosed:
                write((yield from read_escape(marker, self._source)))
                continue
            self._source.unread(marker)
            if (yield from self._stands(unclosed[marker])):
                self._call.odd = True
                self._call.report(
                    "value-not-closed", "a string without its last quote: taken as closed before the next call"
                )
                return marker
            yield from self._source.accept(self._notation.ends)
            more = yield from self._source.take_while(_BRACKETS)  # none of them ends the call if the first does not
            write(escaped(marker + more))

    def _stands(self, ahead: Ahead) -> Reading[bool]:
        """Whether this stands next. A call in it is one of an offered tool, if its name counts."""
        sink = self._call.sink
        return (yield from self._source.look(ahead, sink.limits.header, ("", *sink.offer.names))) is not None

    # ── where a string ends ───────────────────────────────────────────────────────────────────────────────────────

    def after_quote(self, place: Place, inner: int) -> Reading[_Sign]:
        """Whether this quote ends the string, which already holds so many of them. If it closes one of those, it takes
        more to tell, as it always does where quotes are not escaped."""
        source, notation = self._source, self._notation
        passed = yield from source.take_while(_WHITE)
        if (yield from self._stands(notation.after_string)):
            return End((yield from self._end_of_call(place)))
        delimiter = yield from source.accept(notation.ends)
        if delimiter is None:
            return (yield from self._without_comma(place, passed))
        closes_inner = inner % 2 == 1
        if delimiter == "," and place.separator:
            next_key = self._bare_key(place, place.keys) if closes_inner else self.next_key(place, None)
            sign = yield from next_key
            return Data(passed + sign.text) if isinstance(sign, Data) else sign
        if closes_inner or not notation.escaped:
            if delimiter in CLOSERS.values() and delimiter != place.end:
                return Data(passed + delimiter)
            if delimiter == notation.close and place.depth == 0:
                ahead = yield from source.peek(notation.after_call)
                return None if ahead == "" else End(delimiter) if ahead else Data(passed + delimiter)
        return End(delimiter)

    def _end_of_call(self, place: Place) -> Reading[str]:
        """What ends a string that is the last of its call. Where no bracket does, the next call stands there."""
        delimiter = yield from self._source.accept(self._notation.ends)
        if (delimiter is None or delimiter == ",") and place.depth == 0:
            self._source.unread(delimiter or "")
            self._call.mended(f"{self._notation.close!r} is missing")
            return self._notation.close
        return delimiter or ","

    def _without_comma(self, place: Place, passed: str) -> Reading[_Sign]:
        """Whether a quote ends the string that nothing follows that should: a comma may be missing."""
        source, notation = self._source, self._notation
        if (yield from source.peek(notation.ends)) == "":
            return None
        if not (place.separator and place.keys):
            return Data(passed)
        keys = notation.keys[place.separator, place.end]
        if (yield from source.look(keys.next_member, self._call.sink.limits.header, place.keys)) is None:
            return Data(passed)
        self._call.mended("',' is missing")
        return End(",")

    def next_key(self, place: Place, known: Collection[str] | None) -> Reading[End | Data]:
        """Whether a comma ends the value before it: the key of the next member comes, or the end. Only these keys
        count, or all: models invent some."""
        keys = self._notation.keys[place.separator, place.end]
        if (yield from self._source.peek(keys.no_more)) is not None or (yield from self._stands(keys.quoted)):
            return End(",")
        return (yield from self._bare_key(place, known, keys.slip))

    def _bare_key(self, place: Place, known: Collection[str] | None, slip: str = "") -> Reading[End | Data]:
        """Whether a comma ends the value before it: a bare key comes, and its separator; or a slip, if the key is one
        that the tool has."""
        source = self._source
        keys = self._notation.keys[place.separator, place.end]
        space = yield from source.take_while(_WHITE)
        parts: list[str] = []
        marker = yield from source.copy_value(keys.word_ends, parts.append, self._call.sink.limits.header)
        source.unread(marker or "")
        word = "".join(parts)
        separator = yield from source.peek(keys.separators)
        if separator == "":
            return End(",")
        if separator == slip:
            known = place.keys or ()
        if not word or separator not in (place.separator, slip) or (known is not None and word not in known):
            return Data("," + space + word)
        yield from source.accept(keys.separators)
        if separator == slip:
            self._call.mended(f"{slip!r} for {place.separator!r}")
        return End(",", word)
