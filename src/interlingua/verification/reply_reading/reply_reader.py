"""Reading of a recorded response, streamed or whole, without any correction."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.common.jsontext.codec import read_full_object
from interlingua.errors import UpstreamError
from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH
from interlingua.translation.upstream_errors import error_from_response, page_text
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading.chat_reader import read_chat_body, read_chat_event
from interlingua.verification.reply_reading.client_reply import ClientReply, ReplyAssembler
from interlingua.verification.reply_reading.messages_reader import read_messages_body, read_messages_event
from interlingua.verification.reply_reading.responses_reader import read_responses_body, read_responses_event
from interlingua.wires import get_wire
from interlingua.wires.http_api import EVENT_STREAM_TYPE
from interlingua.wires.streaming.sse import SseDecoder

__all__ = ["describe_unreadable", "read_reply"]

DONE = "[DONE]"
MAX_SHOWN_BYTES, MAX_SHOWN_CHARS = 4096, 100
"""Beginning of a reply that is not JSON, and its length in a message."""
JsonReader: TypeAlias = Callable[[ReplyAssembler, Mapping[str, Any]], None]
_EVENT_READERS: dict[str, JsonReader] = {
    CHAT_PATH: read_chat_event,
    MESSAGES_PATH: read_messages_event,
    RESPONSES_PATH: read_responses_event,
}
_BODY_READERS: dict[str, JsonReader] = {
    CHAT_PATH: read_chat_body,
    MESSAGES_PATH: read_messages_body,
    RESPONSES_PATH: read_responses_body,
}
"""Readers by the path of the API, as in the fault server."""


def _api(recording: Recording) -> str:
    return get_wire(recording.wire).HTTP_API.path.removeprefix("/")


def read_reply(recording: Recording) -> ClientReply:
    """Return the reply as a plain client reads it. An error response is a reply with an error."""
    if not recording.is_success:
        return ClientReply(error=recording.error or _error_message(recording))
    if recording.content_type.lower().startswith(EVENT_STREAM_TYPE):
        return _StreamReading(recording).reply()
    assembler = ReplyAssembler()
    body = read_full_object(recording.body.decode("utf-8-sig", "replace"))
    if body is not None:
        _BODY_READERS[_api(recording)](assembler, body)
    assembler.error = assembler.error or recording.error
    seconds = recording.seconds
    return assembler.reply(
        unreadable_events=int(body is None),
        events=1,
        first_event_seconds=seconds,
        first_content_seconds=seconds if assembler.has_content else 0.0,
        first_call_seconds=seconds if assembler.call_began else 0.0,
    )


def describe_unreadable(recording: Recording, reply: ClientReply) -> str:
    """Return what is not JSON in a reply, in words: events of a stream, or a page in place of the reply."""
    if recording.content_type.lower().startswith(EVENT_STREAM_TYPE):
        what = "is not a JSON object" if reply.unreadable_events == 1 else "are not JSON objects"
        return f"{reply.unreadable_events} of {reply.events} events {what}"
    beginning = recording.body[:MAX_SHOWN_BYTES].decode("utf-8", "replace")
    text = textwrap.shorten(page_text(beginning), MAX_SHOWN_CHARS, placeholder=" …")
    content_type = recording.content_type.partition(";")[0].strip() or "no content type"
    return f"the reply is not a JSON object ({content_type}): {text}" if text else "the reply is empty"


def _error_message(recording: Recording) -> str:
    return str(error_from_response(recording.status, {}, recording.body, 0.0))


class _StreamReading:
    """Reading of one stream, with the times of its first event, first content and first call."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._read_chunk = _EVENT_READERS[_api(recording)]
        self._assembler = ReplyAssembler()
        self._unreadable_events = 0
        self._times = {"event": 0.0, "content": 0.0, "call": 0.0}

    def reply(self) -> ClientReply:
        decoder, seconds = SseDecoder(), 0.0
        try:
            for piece, seconds in self._recording.pieces():
                for message in decoder.feed(piece):
                    self._read_event(message.data.strip(), seconds)
            for message in decoder.close():
                self._read_event(message.data.strip(), seconds)
        except UpstreamError as error:
            self._assembler.error = str(error)
        assembler = self._assembler
        assembler.error = assembler.error or self._recording.error
        return assembler.reply(
            unreadable_events=self._unreadable_events,
            events=assembler.event,
            first_event_seconds=self._times["event"],
            first_content_seconds=self._times["content"],
            first_call_seconds=self._times["call"],
        )

    def _read_event(self, data: str, seconds: float) -> None:
        assembler = self._assembler
        if not data or data == DONE:
            assembler.has_ended = assembler.has_ended or data == DONE
            return
        assembler.event += 1
        chunk = read_full_object(data)
        if chunk is None:
            self._unreadable_events += 1
            return
        self._read_chunk(assembler, chunk)
        self._times["event"] = self._times["event"] or seconds
        if assembler.has_content:
            self._times["content"] = self._times["content"] or seconds
        if assembler.call_began:
            self._times["call"] = self._times["call"] or seconds
