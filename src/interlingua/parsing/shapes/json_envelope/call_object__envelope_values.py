"""The keys, names and other values of an object that may be a call, one at a time."""

from __future__ import annotations

from collections.abc import Callable

from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.json_envelope.keys import Gate, Keys
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["EnvelopeValues"]

QUOTE = markers('"')


class EnvelopeValues:
    """Reads what stands next in the object."""

    def __init__(self, keys: Keys, gate: Gate, source: Source, sink: Sink) -> None:
        self._keys = keys
        self._gate = gate
        self._source = source
        self._sink = sink

    def _string(self) -> Reading[str]:
        """The key or name that stands next, as JSON, or what there is of it."""
        text: list[str] = []
        if (yield from self._source.next_char()) != '"':
            return ""
        if self._gate is Gate.TRIED:
            return (yield from self._plain_string())
        yield from self._copy(JsonCursor(), text.append, self._sink.limits.header)
        return "".join(text)

    def _plain_string(self) -> Reading[str]:
        """The key or name that stands next, if no marker comes before its end: what is only tried hides no marker."""
        yield from self._source.accept(QUOTE)
        limit = self._sink.limits.header
        text, end = yield from self._source.take_until(self._keys.ends_name, limit)
        if end == '"':
            return f'"{text}"'
        if end is not None:
            self._source.unread(end)
        return ""

    def _over_limit(self, what: str, limit: int) -> None:
        """What is only tried is no call if it is too long, and that is all."""
        if self._gate is not Gate.TRIED:
            self._sink.over_limit(what, limit)

    def _copy(self, cursor: JsonCursor, write: Callable[[str], None], limit: int) -> Reading[bool]:
        """Copies the value that stands next. False if it does not end."""
        marker = yield from self._source.copy_json(cursor, self._keys.cuts, write, limit)
        if marker == "":
            self._over_limit("a part of what may be a call", limit)
        elif marker:
            self._source.unread(marker)
        return cursor.ended
