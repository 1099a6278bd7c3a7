"""The params of one call where their values are literals: read as they come, and written on as JSON.

The text is walked once and nothing is evaluated. A string goes on as it comes, a number or a word once its end is
known. Models forget brackets, commas and quotes: whatever stands there is read as what was most likely meant.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as quoted

from interlingua.json_text import read_json
from interlingua.plan import Plan
from interlingua.shapes.literal_strings import NO_VALUE, LiteralStrings
from interlingua.shapes.notation import CLOSERS, Place, inside
from interlingua.source import Reading
from interlingua.values import MAX_DEPTH, to_json

__all__ = ["LiteralParams"]


class LiteralParams(LiteralStrings):
    """Reads the params of one call, from behind its opening bracket."""

    def read(self, first_key: str | None = None) -> Reading[bool]:
        """All params, and the closing bracket. False if the text ended before it, or the limit was passed.

        The first value may stand without its key.
        """
        offer, tool = self._sink.offer, self._tool
        place = Place(
            self._notation.close, lambda key: offer.param(tool, key), self._notation.separator, offer.params(tool)
        )
        return (yield from self._members(place, lambda key, _: self._args.key(key), first_key))

    # ── brackets ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _members(
        self, place: Place, begin: Callable[[str, Place], None], first_key: str | None = None
    ) -> Reading[bool]:
        """What stands in brackets, and the closing one. False if the text ended before it, or the limit was passed."""
        source, ends = self._source, self._notation.ends
        within = place
        if first_key is not None:
            self._key_read, within = first_key, place._replace(separator="")
        while not self._passed_limit():
            if self._key_read is None:
                ahead = yield from source.peek(ends)
                if ahead == "":
                    return False
                if ahead == ",":
                    yield from source.accept(ends)
                    continue
                if ahead:
                    break
            key = (yield from self._key(place)) if place.separator else ""
            if key is None:
                return False
            begin(key, place)
            delimiter = yield from self._value(within, place.plan(key))
            within = place
            if delimiter is None:
                return False
            if delimiter == place.end:
                return True
            if delimiter != ",":
                source.unread(delimiter)
                break
        return (yield from self._end(place))

    def _end(self, place: Place) -> Reading[bool]:
        if self.over:
            return False
        closer = yield from self._source.accept(self._notation.ends)
        if closer != place.end:
            self._mended(f"{place.end!r} is missing")
            self._source.unread(closer or "")
        return True

    def _key(self, place: Place) -> Reading[str | None]:
        """The key of the next member, and its separator. None if the text ended in it."""
        if self._key_read is not None:
            key, self._key_read = self._key_read, None
            return _plain(key)
        parts: list[str] = []
        keys = self._notation.keys[place.separator, place.end]
        quote = yield from self._source.accept(self._notation.all_quotes)
        if quote is not None:
            if (yield from self._body(quote, parts.append)) is None:
                return None
            yield from self._source.accept(keys.separator)
            json = "".join(parts)
            return read_json(f'"{json}"', str) or json
        marker = yield from self._copy(keys.ends, parts.append)
        if marker is None:
            return None
        if marker != place.separator:
            self._source.unread(marker)
        return _plain("".join(parts).strip())

    def _value(self, place: Place, plan: Plan) -> Reading[str | None]:
        """A value, and what ends it: a comma, a closing bracket or a marker. None if the text ended before."""
        opener = yield from self._source.accept(self._notation.opens)
        if opener in self._notation.quotes:
            return (yield from self._string(opener, place, plan))
        if opener is None or place.depth == MAX_DEPTH:
            self._source.unread(opener or "")
            return (yield from self._bare(place, plan))
        is_object = opener == "{"
        self._args.raw("{" if is_object else "[")
        if not (yield from self._members(inside(opener, plan, place.depth + 1), self._begin_next())):
            return None
        self._args.raw("}" if is_object else "]")
        return (yield from self._delimiter())

    def _begin_next(self) -> Callable[[str, Place], None]:
        """Writes what stands before the value of each member, or item, of one pair of brackets."""
        lead = ""

        def begin(key: str, place: Place) -> None:
            nonlocal lead
            self._args.raw(f"{lead}{quoted(key)}: " if place.separator else lead)
            lead = ", "

        return begin

    def _delimiter(self) -> Reading[str | None]:
        """What follows a value in brackets. Where nothing does that may, a comma is missing."""
        delimiter = yield from self._source.accept(self._notation.ends)
        if delimiter is None and (yield from self._source.peek(self._notation.ends)) is None:
            self._mended("',' is missing")
            return ","
        return delimiter

    # ── what stands without quotes ────────────────────────────────────────────────────────────────────────────────

    def _bare(self, place: Place, plan: Plan) -> Reading[str | None]:
        """A number or a word, up to what ends it; or a string that lacks its quotes, or the first of them."""
        parts: list[str] = []
        opened = 0  # brackets inside the text
        data = False  # whether anything of it was told to be data
        while True:
            marker = yield from self._copy(self._notation.bare_ends, parts.append)
            if marker is None:
                return None
            passed, delimiter = marker, None
            if marker in CLOSERS:
                opened += 1
            elif marker == self._notation.delimiter:
                passed, delimiter = yield from self._after_quote(place)
                passed = self._as_text(marker) + passed
            elif opened and marker in self._notation.ends.literals:
                opened -= marker != ","
            elif marker == "," and place.separator and (data or any(map(str.strip, parts))):
                passed, delimiter = yield from self._after_bare(place, "" if data else "".join(parts))
            else:
                delimiter = marker
            if delimiter == "":
                return None
            if delimiter is not None:
                self._write_bare("".join(parts), plan, half_quoted=marker == self._notation.delimiter)
                return delimiter
            parts.append(passed)
            data = True

    def _after_bare(self, place: Place, word: str) -> Reading[tuple[str, str | None]]:
        """Whether a comma ends what stands without quotes. In a number it can be nothing else; in a text it may, if one
        of the keys follows that the tool has."""
        is_literal = to_json(word) is not None
        passed, key = yield from self._key_ahead(place, () if is_literal else place.keys)
        self._key_read = key or None
        return "," + passed, None if key is None else ","

    def _write_bare(self, text: str, plan: Plan, half_quoted: bool) -> None:
        word = text.strip()
        json = to_json(word)
        self.odd = self.odd or half_quoted or json is None
        if half_quoted:
            self._args.raw(plan.convert(text).json if plan.may_be_value(NO_VALUE) else quoted(text))
            self._report("no-quote", "a string without its first quote: taken as one")
        elif not word:
            self._args.raw("null")
            self._mended("a value is missing: taken as null")
        elif json is None:
            self._args.raw(plan.convert(word).json)
            self._report("no-quote", f"a string without quotes, {word[:40]!r}: taken as one")
        elif plan.streams and json != "null" and json[0] != '"':
            self._args.raw(quoted(word))
            self._report("value-as-string", f"{word[:40]!r} where only a string fits: taken as one")
        else:
            self._args.raw(json)


def _plain(key: str) -> str:
    """The key without the quotes of Python, where those are no quotes."""
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] == "'" else key
