"""A recorded reply in the place of a scripted one, so that scenarios mix their faults into it.

A scenario writes the beginning of a reply, some text, a call and the end. Here each of these is the next part of the
recording: up to the middle of its text, up to the middle of the arguments of its last call, and the rest.
"""

from __future__ import annotations

from typing import Any

from interlingua.cassettes.recorded_exchange import RecordedExchange
from interlingua.client.accumulator import Accumulator
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.errors import UsageError
from interlingua.faults.upstream.reply_writers import ReplyWriter, reply_writer_for
from interlingua.faults.upstream.script import Script, send_headers, send_pieces, send_response
from interlingua.parsing.dialect import Dialect
from interlingua.translation.translator import Translator
from interlingua.wires import get_wire
from interlingua.wires.http_api import EVENT_STREAM_TYPE, JSON_TYPE
from interlingua.wires.streaming.sse import SseDecoder

__all__ = ["RecordedReplyWriter"]


class RecordedReplyWriter(ReplyWriter):
    """Writes the parts of a recorded reply.

    Args:
        exchange: The recording.
        dialect: The dialect of its model, which finds the calls in its text.
    """

    def __init__(self, exchange: RecordedExchange, dialect: Dialect) -> None:
        self._exchange = exchange
        self._dialect = dialect
        self.api = get_wire(exchange.upstream.wire).HTTP_API.path.strip("/")
        self._scripted = reply_writer_for(self.api)  # writes errors, which the recording does not have
        self._stream = self._as_stream()
        self._position = 0
        self.lacks_call = False
        """True if a scenario needed a call, and the recording has none."""

    def fresh_copy(self) -> ReplyWriter:
        copy = RecordedReplyWriter(self._exchange, self._dialect)
        copy.is_streaming, copy.upstream_key = self.is_streaming, self.upstream_key
        return copy

    def begin(self) -> bytes:
        self._position = 0
        return b""

    def text(self, *pieces: str) -> bytes:  # noqa: ARG002
        """Return the recording up to the middle of what is left of its text."""
        texts = [event for event in self._content_events() if event.end > self._position]
        return self._advance(texts[(len(texts) - 1) // 2].end) if texts else b""

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:  # noqa: ARG002
        """Return the recording up to the middle of the arguments of its last call; nothing, if it has no call."""
        inside = [event for event in self._events() if event.is_inside_call]
        if not inside:
            self.lacks_call = True
            return b""
        last_call = [event for event in inside if event.calls == inside[-1].calls]
        return self._advance(last_call[(len(last_call) - 1) // 2].end)

    def end(self) -> bytes:
        return self._advance(len(self._stream))

    def error(self, message: str, error_type: str, code: int | None = None) -> bytes:
        return self._scripted.error(message, error_type, code)

    def error_body(self, message: str, error_type: str, code: str | None = None) -> bytes:
        return self._scripted.error_body(message, error_type, code)

    def complete_reply(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:  # noqa: ARG002
        reply = self._exchange.reply
        if reply.content_type.startswith(JSON_TYPE):
            return read_full_object(reply.body.decode("utf-8", "replace")) or {}
        return self._untranslated().fold(reply.body)

    def hello_stream(self) -> bytes:
        return self._stream

    def reply_script(self, text: str = "", *calls: tuple[str, str]) -> Script:
        if not self.is_streaming:
            return [send_response("200 OK", encode_json(self.complete_reply(text, *calls)))]
        return [send_headers(), send_pieces([self._stream])]

    def _as_stream(self) -> bytes:
        """Return the recorded reply as a stream, also if it was recorded whole."""
        reply = self._exchange.reply
        if reply.status >= 400:
            raise UsageError("the recorded reply is an error, into which no fault can be mixed", "choose another one")
        if reply.content_type.startswith(EVENT_STREAM_TYPE):
            return reply.body
        return self._untranslated().stream(read_full_object(reply.body.decode("utf-8", "replace")) or {})

    def _untranslated(self) -> Translator:
        """Return a translator that keeps the text of the model as it is."""
        wire = self._exchange.upstream.wire
        return Translator(wire, wire, "standard")

    def _advance(self, position: int) -> bytes:
        start, self._position = self._position, max(position, self._position)
        return self._stream[start : self._position]

    def _content_events(self) -> list[_Event]:
        """Return the events with text; with thinking, if there is no text; the first event, if there is neither."""
        events = self._events()
        for name in ("text_chars", "reasoning_chars"):
            counts = [0, *(getattr(event, name) for event in events)]
            found = [event for event, before in zip(events, counts, strict=False) if getattr(event, name) > before]
            if found:
                return found
        return events[:1]

    def _events(self) -> list[_Event]:
        """Return the events of the stream, each with what the reply contains up to its end."""
        upstream = self._exchange.upstream
        accumulator = Accumulator(upstream.wire, dialect=self._dialect)
        events, end = [], 0
        decoder = SseDecoder()
        for message in [*decoder.feed(self._stream), *decoder.close()]:
            end += len(message.raw)
            accumulator.add(message.raw)
            calls = accumulator.calls
            is_inside = bool(calls and not calls[-1].complete and calls[-1].arguments)
            events.append(
                _Event(
                    min(end, len(self._stream)),
                    len(accumulator.text),
                    len(accumulator.reasoning),
                    len(calls),
                    is_inside,
                )
            )
        return events


class _Event:
    def __init__(self, end: int, text_chars: int, reasoning_chars: int, calls: int, is_inside_call: bool) -> None:
        self.end = end
        """Position after the event."""
        self.text_chars = text_chars
        self.reasoning_chars = reasoning_chars
        self.calls = calls
        self.is_inside_call = is_inside_call
