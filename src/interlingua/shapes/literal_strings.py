"""The strings of one call where its values are literals: where they end, and what they are as JSON.

A string goes on as it comes. Models forget quotes, and write them inside strings: a quote ends one only before what may
follow a value, and the end of a call does if another call follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from interlingua.ahead import Ahead
from interlingua.json_text import read_json
from interlingua.markers import Markers
from interlingua.plan import Plan
from interlingua.shapes.escapes import escaped, read_escape
from interlingua.shapes.notation import BRACKETS, CLOSERS, WHITE, Notation, Place
from interlingua.sink import Sink
from interlingua.source import Reading, Source

__all__ = ["NO_VALUE", "LiteralStrings", "Nowhere", "Writer"]

_WHITE = re.compile(f"[{WHITE}]*+")
_BRACKETS = re.compile(BRACKETS)
NO_VALUE = "~"
"""A character that no value but a string begins with."""


class Writer(Protocol):
    """Where the arguments go: a composer, or nowhere."""

    def key(self, key: str) -> None: ...
    def raw(self, json: str) -> None: ...


class Nowhere:
    """Where the arguments go of what is no call. They are read to find its end."""

    def key(self, key: str) -> None: ...
    def raw(self, json: str) -> None: ...


class LiteralStrings:
    """Reads strings, from behind their first quote."""

    def __init__(self, notation: Notation, tool: str, args: Writer, source: Source, sink: Sink, limit: int) -> None:
        self._notation = notation
        self._tool = tool
        self._args = args
        self._source = source
        self._sink = sink
        self._limit = source.offset + limit
        self._key_read: str | None = None  # the key of the next member, if it was read to tell where the last one ends
        self.odd = False
        """Whether anything had to be mended."""
        self.over = False
        """Whether the limit was passed."""

    # ── strings ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _string(self, quote: str, place: Place, plan: Plan) -> Reading[str | None]:
        """A string, from behind its quote. What is to become another type is held."""
        held: list[str] | None = None
        as_written = self._notation.as_written
        if as_written != "string":
            first = (yield from self._source.next_char()) if as_written == "any" else NO_VALUE
            held = [] if plan.may_be_value(first) else None
        write = self._args.raw if held is None else held.append
        if held is None:
            write('"')
        while True:
            end = yield from self._body(quote, write)
            if end is None:
                return None
            if end != quote:
                delimiter = yield from self._source.accept(self._notation.ends)
                break
            passed, delimiter = yield from self._after_quote(place)
            if delimiter == "":
                return None
            if delimiter is not None:
                break
            write(escaped(self._as_text(quote) + passed))
        if held is None:
            write('"')
        else:
            self._convert("".join(held), plan)
        return delimiter

    def _convert(self, json: str, plan: Plan) -> None:
        text = read_json(f'"{json}"', str)
        if text is None:  # half a surrogate pair: a string, whatever the schema says
            self._args.raw(f'"{json}"')
            return
        value = plan.convert(text)
        self._args.raw(value.json)
        if value.problem:
            self._report("bad-value", value.problem)

    def _as_text(self, quote: str) -> str:
        """What a quote inside a string stands for: a token that looks like one was meant as one."""
        return '"' if '"' in quote and quote == self._notation.delimiter else quote

    def _body(self, quote: str, write: Callable[[str], None]) -> Reading[str | None]:
        """Copies a string up to the next quote, as JSON. Returns the quote; or if it is missing, what ends the call,
        unread. None if the text ended before, or the limit was passed."""
        marks, unclosed = self._notation.strings[quote], self._notation.unclosed[quote]
        while True:
            marker = yield from self._copy(marks, lambda piece: write(escaped(piece)))
            if marker is None or marker == quote:
                return marker
            if marker not in unclosed:
                write((yield from read_escape(marker, self._source)))
                continue
            self._source.unread(marker)
            if (yield from self._is_next_call(unclosed[marker])):
                self.odd = True
                self._report(
                    "value-not-closed", "a string without its last quote: taken as closed before the next call"
                )
                return marker
            yield from self._source.accept(self._notation.ends)
            more = yield from self._source.take_while(_BRACKETS)  # none of them ends the call if the first does not
            write(escaped(marker + more))

    def _is_next_call(self, ahead: Ahead) -> Reading[bool]:
        """Whether the call ends here, and another follows. Where markers do not tell calls from text, tools do."""
        names = None if self._notation.delimiter else self._sink.offer.names
        return (yield from self._source.look(ahead, self._sink.limits.header, names)) is not None

    # ── where a string ends ───────────────────────────────────────────────────────────────────────────────────────

    def _after_quote(self, place: Place) -> Reading[tuple[str, str | None]]:
        """What ends the string, if this quote does: "" where the text ends. None if it stands inside the string; then
        what was read to tell that belongs to it too."""
        source, notation = self._source, self._notation
        passed = yield from source.take_while(_WHITE)
        names = ("", *self._sink.offer.names)
        if (yield from source.look(notation.after_string, self._sink.limits.header, names)) is not None:
            return "", (yield from self._end_of_call(place))
        delimiter = yield from source.accept(notation.ends)
        if delimiter is None:
            return passed, (yield from self._without_comma(place))
        loose = not notation.escaped
        if delimiter == "," and place.separator:
            more, key = yield from self._key_ahead(place, ())
            self._key_read = key or None
            return passed + "," + more, None if key is None else ","
        if loose and delimiter in CLOSERS.values() and delimiter != place.end:
            return passed + delimiter, None
        if loose and delimiter == notation.close and place.separator == notation.separator:
            ahead = yield from source.peek(notation.after_call)
            return passed + delimiter, ahead if not ahead else delimiter
        return passed, delimiter

    def _end_of_call(self, place: Place) -> Reading[str]:
        """What ends a string that is the last of its call. Where no bracket does, the next call stands there."""
        delimiter = yield from self._source.accept(self._notation.ends)
        if (delimiter is None or delimiter == ",") and place.depth == 0:
            self._source.unread(delimiter or "")
            self._mended(f"{self._notation.close!r} is missing")
            return self._notation.close
        return delimiter or ","

    def _without_comma(self, place: Place) -> Reading[str | None]:
        """What ends a string whose quote nothing follows that should: the text does, or a comma that is missing."""
        source, notation = self._source, self._notation
        if (yield from source.peek(notation.ends)) == "":
            return ""
        if not (place.separator and place.keys):
            return None
        keys = notation.keys[place.separator, place.end]
        if (yield from source.look(keys.next_member, self._sink.limits.header, place.keys)) is None:
            return None
        self._mended("',' is missing")
        return ","

    def _key_ahead(self, place: Place, known: tuple[str, ...]) -> Reading[tuple[str, str | None]]:
        """After a comma: the key of the next member; "" if it is yet to be read, or the text ends. None if no key
        comes, and so the comma was data; then what was read to tell that is data too."""
        source = self._source
        keys = self._notation.keys[place.separator, place.end]
        space = yield from source.take_while(_WHITE)
        if (yield from source.peek(keys.begins)) is not None:
            return "", ""
        parts: list[str] = []
        marker = yield from source.copy_value(keys.word_ends, parts.append, self._sink.limits.header)
        source.unread(marker or "")
        word = "".join(parts)
        may_be_key = bool(word) and (not known or word in known)
        if may_be_key and (yield from source.accept(keys.separator)):
            return "", word
        if (yield from source.peek(keys.separator)) == "":
            return "", ""
        return space + word, None

    # ── limits and findings ───────────────────────────────────────────────────────────────────────────────────────

    def _copy(self, marks: Markers, write: Callable[[str], None]) -> Reading[str | None]:
        """Copies up to a marker, over changes of the channel. None if the text ended, or the limit was passed."""
        while not self._passed_limit():
            marker = yield from self._source.copy_value(marks, write, self._limit - self._source.offset)
            if marker != "":
                return marker
        return None

    def _passed_limit(self) -> bool:
        self.over = self.over or self._source.offset >= self._limit
        return self.over

    def _report(self, kind: str, message: str) -> None:
        if not isinstance(self._args, Nowhere):
            self._sink.report(kind, message)

    def _mended(self, what: str) -> None:
        self.odd = True
        self._report("mended-arguments", f"{what} in the arguments: read as meant")
