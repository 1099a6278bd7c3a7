"""The params of one call where their values are literals: read as they come, and written on as JSON.

The text is walked once and nothing is evaluated. A string goes on as it comes, a number or a word once its end is
known. Models forget brackets, commas and quotes: whatever stands there is read as what was most likely meant.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as quoted

from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.literals import MAX_DEPTH, to_json
from interlingua.common.schema.coercion import Plan
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.shapes.literals.call_context import LiteralCall, Writer
from interlingua.parsing.shapes.literals.notation__notation import CLOSERS, Notation, Place, inside
from interlingua.parsing.shapes.literals.strings_reader import NO_VALUE, Data, End, LiteralStrings
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["LiteralParams"]


class LiteralParams:
    """Reads the params of one call, from behind its opening bracket."""

    def __init__(self, notation: Notation, tool: str, args: Writer, source: Source, sink: Sink, limit: int) -> None:
        self._notation = notation
        self._tool = tool
        self._args = args
        self._source = source
        self._offer = sink.offer
        self._call = LiteralCall(notation, args, source, sink, limit)
        self._strings = LiteralStrings(self._call)

    @property
    def odd(self) -> bool:
        """Whether anything had to be mended."""
        return self._call.odd

    @property
    def over(self) -> bool:
        """Whether the limit was passed."""
        return self._call.over

    def read(self, first_key: str | None = None) -> Reading[bool]:
        """All params, and the closing bracket. False if the text ended before it, or the limit was passed.

        The first value may stand without its key.
        """
        offer, tool = self._offer, self._tool
        place = Place(
            self._notation.close,
            lambda key: offer.param(tool, key),
            self._notation.separator,
            set(offer.params(tool)) or None,
        )
        return (yield from self._members(place, lambda key, _: self._args.key(key), first_key))

    # ── brackets ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _members(
        self, place: Place, begin: Callable[[str, Place], None], first_key: str | None = None
    ) -> Reading[bool]:
        """What stands in brackets, and the closing one. False if the text ended before it, or the limit was passed."""
        source, ends = self._source, self._notation.ends
        key_read = first_key
        while not self._call.passed_limit():
            if key_read is None:
                ahead = yield from source.peek(ends)
                if ahead == "":
                    return False
                if ahead == ",":
                    yield from source.accept(ends)
                    continue
                if ahead:
                    break
            key = (yield from self._key(place)) if place.separator and key_read is None else _plain(key_read or "")
            if key is None:
                return False
            begin(key, place)
            if place.keys:
                place.keys.discard(key)
            within = place if first_key is None else place._replace(separator="")
            end = yield from self._value(within, place.plan(key))
            if end is None:
                return False
            if end.delimiter == place.end:
                return True
            if end.delimiter != ",":
                source.unread(end.delimiter)
                break
            key_read, first_key = end.key, None
        return (yield from self._end(place))

    def _end(self, place: Place) -> Reading[bool]:
        if self._call.over:
            return False
        closer = yield from self._source.accept(self._notation.ends)
        if closer != place.end:
            self._call.mended(f"{place.end!r} is missing")
            self._source.unread(closer or "")
        return True

    def _key(self, place: Place) -> Reading[str | None]:
        """The key of the next member, and its separator. None if the text ended in it."""
        parts: list[str] = []
        keys = self._notation.keys[place.separator, place.end]
        quote = yield from self._source.accept(self._notation.all_quotes)
        if quote is not None:
            if (yield from self._strings.body(quote, parts.append)) is None:
                return None
            if (yield from self._source.accept(keys.separators)) == keys.slip:
                self._call.mended(f"{keys.slip!r} for {place.separator!r}")
            json = "".join(parts)
            return read_json(f'"{json}"', str) or json
        marker = yield from self._call.copy(keys.ends_or_slip, parts.append)
        if marker == keys.slip:
            key = "".join(parts).strip()
            if key in (place.keys or ()):
                self._call.mended(f"{keys.slip!r} for {place.separator!r}")
                return key
            parts.append(marker)
            marker = yield from self._call.copy(keys.ends, parts.append)
        if marker is None:
            return None
        if marker != place.separator:
            self._source.unread(marker)
        return _plain("".join(parts).strip())

    def _value(self, place: Place, plan: Plan) -> Reading[End | None]:
        """A value, up to its end. None if the text ended before."""
        opener = yield from self._source.accept(self._notation.opens)
        if opener in self._notation.quotes:
            return (yield from self._strings.read(opener, place, plan))
        if opener is None or place.depth == MAX_DEPTH:
            self._source.unread(opener or "")
            return (yield from self._bare(place, plan))
        is_object = opener == "{"
        self._args.raw("{" if is_object else "[")
        if not (yield from self._members(inside(opener, plan, place.depth + 1), self._begin_next())):
            return None
        self._args.raw("}" if is_object else "]")
        return (yield from self._after_brackets())

    def _begin_next(self) -> Callable[[str, Place], None]:
        """Writes what stands before the value of each member, or item, of one pair of brackets."""
        lead = ""

        def begin(key: str, place: Place) -> None:
            nonlocal lead
            self._args.raw(f"{lead}{quoted(key)}: " if place.separator else lead)
            lead = ", "

        return begin

    def _after_brackets(self) -> Reading[End | None]:
        """What follows a value in brackets. Where nothing does that may, a comma is missing."""
        delimiter = yield from self._source.accept(self._notation.ends)
        if delimiter is not None:
            return End(delimiter)
        if (yield from self._source.peek(self._notation.ends)) == "":
            return None
        self._call.mended("',' is missing")
        return End(",")

    # ── what stands without quotes ────────────────────────────────────────────────────────────────────────────────

    def _bare(self, place: Place, plan: Plan) -> Reading[End | None]:
        """A number or a word, up to what ends it; or a string that lacks its quotes, or the first of them."""
        parts: list[str] = []
        opened = 0  # brackets inside the text
        inner = 0  # quotes inside the text
        data = False  # whether anything of it was told to be data
        while True:
            marker = yield from self._call.copy(self._notation.bare_ends, parts.append)
            if marker is None:
                return None
            sign: End | Data | None = Data(marker)
            if marker in CLOSERS:
                opened += 1
            elif marker == self._notation.delimiter:
                sign = yield from self._strings.after_quote(place, inner)
                if isinstance(sign, Data):
                    sign = Data(self._strings.as_text(marker) + sign.text)
                    inner += 1
            elif opened and marker in self._notation.ends.literals:
                opened -= marker != ","
            elif marker == "," and place.separator and (data or any(map(str.strip, parts))):
                # in a number it can be nothing else; in a text it ends that, if one of the keys follows that may come
                is_literal = not data and to_json("".join(parts)) is not None
                sign = yield from self._strings.next_key(place, None if is_literal else place.keys)
            else:
                sign = End(marker)
            if sign is None:
                return None
            if isinstance(sign, End):
                self._write_bare("".join(parts), plan, half_quoted=marker == self._notation.delimiter)
                return sign
            parts.append(sign.text)
            data = True

    def _write_bare(self, text: str, plan: Plan, half_quoted: bool) -> None:
        word = text.strip()
        json = to_json(word)
        self._call.odd = self._call.odd or half_quoted or json is None
        if half_quoted:
            self._args.raw(plan.convert(text).json if plan.may_be_value(NO_VALUE) else quoted(text))
            self._call.report("no-quote", "a string without its first quote: taken as one")
        elif not word:
            self._args.raw("null")
            self._call.mended("a value is missing: taken as null")
        elif json is None:
            self._args.raw(plan.convert(word).json)
            self._call.report("no-quote", f"a string without quotes, {word[:40]!r}: taken as one")
        elif plan.streams and json != "null" and json[0] != '"':
            self._args.raw(quoted(word))
            self._call.report("value-as-string", f"{word[:40]!r} where only a string fits: taken as one")
        else:
            self._args.raw(json)


def _plain(key: str) -> str:
    """The key without the quotes of Python, where those are no quotes."""
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] == "'" else key
