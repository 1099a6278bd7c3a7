"""Text between the calls of a section, where only calls are expected. It is emitted as text."""

from __future__ import annotations

from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.text_buffer import Channel, TextBuffer

__all__ = ["StrayText"]


class StrayText:
    """Stray text of one section: emits it and remembers where it began."""

    def __init__(self, source: TextBuffer, sink: EventSink) -> None:
        self._source = source
        self._sink = sink
        self._start: int | None = None

    def write(self, text: str, channel: Channel) -> None:
        if text:
            self._start = self._source.offset if self._start is None else self._start
            self._sink.emit_text(text, channel)

    def report(self, location: str) -> None:
        """Report a finding if there was stray text."""
        if self._start is not None:
            self._sink.report("text-in-section", f"text {location}: kept as text", self._start)
