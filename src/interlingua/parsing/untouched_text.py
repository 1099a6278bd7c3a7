"""Reader for a reply to a request that offered no tools: nothing in its text can be a call, so the text is not touched.

Only the structure of the model's turn is removed: the thinking at the beginning of the reply, the markers around the
whole text, and end-of-turn tokens at the end.
"""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer
from interlingua.parsing.trailing_markers import drop_trailing_markers

__all__ = ["UntouchedTextReader"]


class UntouchedTextReader:
    """Reader for the text of one reply without tools."""

    def __init__(self, dialect: Dialect, source: TextBuffer, sink: EventSink) -> None:
        self._dialect = dialect
        self._source = source
        self._sink = sink
        self._thinking_openers = compile_markers(*(span.open for span in dialect.thinking))
        self._thinking_closers = compile_markers(*(span.close for span in dialect.thinking))
        self._text_openers = compile_markers(*(span.open for span in dialect.text if span.open))
        self._text_closers = tuple(span.close for span in dialect.text if span.close)
        self._lead_markers = compile_markers(
            *self._thinking_openers.literals, *self._text_openers.literals, *dialect.noise
        )
        # A longer marker is text, and so is the part of it that is a lead marker.
        self._searched_lead_markers = compile_markers(*self._lead_markers.literals, *dialect.markers)
        strays = (stray for stray in dialect.strays if stray in dialect.tokens) if dialect.router is not None else ()
        self._set_trailing_markers((*dialect.noise, *strays))

    def _set_trailing_markers(self, markers: tuple[str, ...]) -> None:
        """Set the markers that are dropped at the end of the text."""
        self._trailing_markers = compile_markers(*markers)
        longer_markers = (
            longer for longer in self._dialect.markers if any(marker in longer for marker in markers)
        )  # they are text: the part of one that is a trailing marker is none
        self._searched_markers = compile_markers(*markers, *longer_markers)

    def read(self) -> Read[None]:
        source, sink = self._source, self._sink
        can_think = not sink.thinking
        marker: str | None = ""
        while marker is not None and not sink.failed:
            if marker == "" and source.channel is Channel.TEXT:
                yield from self._read_lead(can_think)
                can_think = False
            marker = yield from source.copy_until(self._searched_markers, sink.emit_text, self._dialect.trim)
            if marker and (yield from self._read_marker(marker)):
                return
        if source.buffered and not sink.failed:
            source.trace_release(source.buffered, source.channel)
            sink.emit_text(source.buffered, source.channel)

    def _read_marker(self, marker: str) -> Read[bool]:
        """Read a marker in the text. Return whether the reply ends with it."""
        source, sink = self._source, self._sink
        if marker in self._trailing_markers.literals:
            noise = self._dialect.noise
            return (yield from drop_trailing_markers(marker, self._trailing_markers, noise, source, sink))
        source.start_recording(marker)
        sink.emit_text(source.take_recorded(), source.recorded_channel)
        source.mark_as_text()
        return False

    def _read_lead(self, can_think: bool) -> Read[None]:
        """Read the markers and the thinking before the text.

        `can_think`: thinking may begin here.
        """
        source, sink = self._source, self._sink
        if sink.thinking:
            yield from self._read_thinking()
        while not sink.thinking:
            marker = yield from source.peek(self._searched_lead_markers)
            is_thinking = marker in self._thinking_openers.literals
            if marker not in self._lead_markers.literals or (is_thinking and not can_think):
                return
            yield from source.accept(self._searched_lead_markers)
            if is_thinking:
                can_think, sink.thinking = False, True
                yield from self._read_thinking()
            elif marker in self._text_openers.literals:
                self._set_trailing_markers((*self._trailing_markers.literals, *self._text_closers))
            else:
                sink.report("noise", f"{marker} is not part of the reply: dropped")

    def _read_thinking(self) -> Read[None]:
        """Copy the thinking up to its closer. At the end of the text or of the channel it goes on."""
        source, sink = self._source, self._sink
        if opener := (yield from source.accept(self._thinking_openers)):
            sink.report("stray-marker", f"{opener} inside thinking: dropped")
        if (yield from source.copy_until(self._thinking_closers, sink.emit_text, self._dialect.trim)):
            sink.thinking = False
