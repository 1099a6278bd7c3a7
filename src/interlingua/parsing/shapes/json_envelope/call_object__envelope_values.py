"""The keys, names and other values of an object that may be a call, one at a time."""

from __future__ import annotations

from collections.abc import Callable

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.json_envelope.keys import CallEvidence, EnvelopeKeys
from interlingua.parsing.text_buffer__source import Read, TextBuffer

__all__ = ["ObjectValueReader"]

QUOTE_MARKERS = compile_markers('"')


class ObjectValueReader:
    """Reads what stands next in the object."""

    def __init__(self, keys: EnvelopeKeys, evidence: CallEvidence, source: TextBuffer, sink: EventSink) -> None:
        self._keys = keys
        self._evidence = evidence
        self._source = source
        self._sink = sink

    def _read_string(self) -> Read[str]:
        """The key or name that stands next, as JSON, or what there is of it."""
        text: list[str] = []
        if (yield from self._source.peek_after_space()) != '"':
            return ""
        if self._evidence is CallEvidence.TENTATIVE:
            return (yield from self._read_unmarked_string())
        yield from self._copy_value(JsonScanner(), text.append, self._sink.limits.header)
        return "".join(text)

    def _read_unmarked_string(self) -> Read[str]:
        """The key or name that stands next, if no marker comes before its end: what is only tried hides no marker."""
        yield from self._source.accept(QUOTE_MARKERS)
        limit = self._sink.limits.header
        text, end = yield from self._source.take_until(self._keys.name_end_markers, limit)
        if end == '"':
            return f'"{text}"'
        if end is not None:
            self._source.put_back(end)
        return ""

    def _report_over_limit(self, subject: str, limit: int) -> None:
        """What is only tried is no call if it is too long, and that is all."""
        if self._evidence is not CallEvidence.TENTATIVE:
            self._sink.report_over_limit(subject, limit)

    def _copy_value(self, cursor: JsonScanner, write: Callable[[str], None], limit: int) -> Read[bool]:
        """Copies the value that stands next. False if it does not end."""
        marker = yield from self._source.copy_json(cursor, self._keys.cut_markers, write, limit)
        if marker == "":
            self._report_over_limit("a part of what may be a call", limit)
        elif marker:
            self._source.put_back(marker)
        return cursor.ended
