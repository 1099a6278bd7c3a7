"""Fast path for deltas: chunks that differ from the chunk before only in the text that they carry.

Most chunks of a stream are of this kind. `FastPath` remembers the bytes around the text of the last chunk. If the next
chunk has the same prefix and suffix, and its text cannot begin a marker, it is forwarded without decoding its JSON. A
text that has to be parsed, such as the arguments of a call, is at least found without decoding the rest. Everything
else takes the ordinary path, which resets the fast path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.core.reply_stats import utf8_size
from interlingua.translation.reply_decoder import ReplyDecoder
from interlingua.translation.reply_recorder import ReplyRecorder
from interlingua.wires.base import Choice, Chunk, Emitter
from interlingua.wires.streaming.chunk_decoder import DecodedChunk

__all__ = ["FastPath"]

_Affixes: TypeAlias = tuple[bytes, bytes]
"""The bytes of a chunk before and after its text."""
_ContentDelta: TypeAlias = ev.TextDelta | ev.ReasoningDelta
_CONTENT_DELTAS = (ev.TextDelta, ev.ReasoningDelta)
_StreamedDelta: TypeAlias = _ContentDelta | ev.ArgsDelta
_STREAMED_DELTAS = (*_CONTENT_DELTAS, ev.ArgsDelta)

PROBE_TEXT, PROBE_JSON = "…", b'"\\u2026"'
"""Placeholder text, escaped as no server writes it. It replaces a chunk's text to find where the text comes out."""
MAX_PROBES = 32
"""Some streams never repeat a chunk. The search for the bytes around a text is given up after this many attempts."""

_decode_string = msgspec.json.Decoder(str).decode
_encode_json = msgspec.json.Encoder().encode


class FastPath:
    """Forwards or decodes repeated chunks. Every method does either all that the ordinary path would do, or nothing."""

    __slots__ = (
        "_affixes",
        "_can_forward",
        "_decoder",
        "_emitter",
        "_known_delta",
        "_last_delta",
        "_max_chunk_bytes",
        "_probes_left",
        "_recorder",
        "_writer",
    )

    def __init__(self, decoder: ReplyDecoder, emitter: Emitter, recorder: ReplyRecorder, max_chunk_bytes: int) -> None:
        self._decoder = decoder
        self._emitter = emitter
        self._recorder = recorder
        self._max_chunk_bytes = max_chunk_bytes
        self._probes_left = MAX_PROBES
        self._affixes: _Affixes = b"", b""
        self._known_delta: tuple[int, _StreamedDelta] | None = None
        """The choice, and the kind of delta, between these affixes."""
        self._last_delta: tuple[int, _StreamedDelta] | None = None
        """The same, if the last chunk had these affixes and the client's wire is another one."""
        self._can_forward: Callable[[str], bool] | None = None
        """Predicate of the parser: true if it would copy this text as it is. None while nothing can be forwarded."""
        self._writer: Callable[[str], bytes] | _Affixes | None = None
        """How the text is written for the client: a function, other affixes, or None for the received bytes."""

    def forward(self, data: bytes) -> bytes | None:
        """Return the bytes for the client, if this is the last chunk with another text that needs no parsing."""
        can_forward = self._can_forward
        if can_forward is None or type(data) is not bytes:
            return None
        text_bytes = self._text_bytes(data)
        text = _decode_text(text_bytes)
        if not text or not can_forward(text):
            return None
        recorder = self._recorder
        recorder.message_count += 1
        recorder.stats.content_bytes += len(text) if text.isascii() else utf8_size(text)
        writer = self._writer
        if writer is None:
            return data
        return writer[0] + text_bytes + writer[1] if isinstance(writer, tuple) else writer(text)

    def decode(self, data: bytes) -> Chunk | None:
        """Return the content of a chunk, if it is the last chunk with another text."""
        if self._last_delta is None or type(data) is not bytes:
            return None
        text = _decode_text(self._text_bytes(data))
        if not text:
            return None
        index, delta = self._last_delta
        if not isinstance(delta, ev.ArgsDelta):
            return Chunk([Choice(index, [type(delta)(text)], exact=False)], [], exact=False)
        events = self._decoder.reader.read_arguments(index, delta.index, text)
        return None if events is None else Chunk([Choice(index, events, exact=False)], [], exact=False)

    def reset(self) -> None:
        """Forget the last chunk: the next one takes the ordinary path."""
        self._can_forward = self._last_delta = None

    def learn(self, chunk: Chunk, template: DecodedChunk | None, raw: bytes, events: list[ev.Event]) -> None:
        """Remember a chunk that took the ordinary path, if its only content was one text.

        Args:
            chunk: its content.
            template: its JSON, if the client speaks the same wire.
            raw: its bytes.
            events: the events that were sent to the client for it.
        """
        choice = chunk.choices[0]
        delta = _single_delta(choice.events)
        if template is not None and (not isinstance(delta, _CONTENT_DELTAS) or events != [delta]):
            return
        # A whitespace-only text is no good model: the guard has not decided yet whether the reply is empty.
        if delta is None or delta.text.isspace() or not self._knows_affixes(raw, choice.index, delta):
            return
        if template is None:
            self._last_delta = self._known_delta
            self.refresh(choice, events)
        elif template.exact and chunk.exact:
            forwarded = self._emitter.forward(template.chunk, PROBE_JSON.join(self._affixes)) or b""
            prefix, separator, suffix = forwarded.partition(PROBE_JSON)
            self._writer = None if (prefix, suffix) == self._affixes else (prefix, suffix)
            self._can_forward = self._passthrough_check(choice.index) if separator else None

    def refresh(self, choice: Choice, events: list[ev.Event]) -> None:
        """Forward further texts of this kind, if this one was sent to the client unchanged."""
        self._can_forward = None
        delta, event = _single_delta(choice.events), _single_delta(events)
        if isinstance(delta, _CONTENT_DELTAS) and isinstance(event, _CONTENT_DELTAS) and delta.text == event.text:
            self._writer = self._emitter.delta_writer(choice.index, event)
            self._can_forward = self._passthrough_check(choice.index) if self._writer is not None else None

    def _passthrough_check(self, index: int) -> Callable[[str], bool] | None:
        return self._decoder.pipelines[index].passthrough_check

    def _text_bytes(self, data: bytes) -> bytes:
        """Return the JSON string between the known affixes; empty if the chunk has other affixes."""
        prefix, suffix = self._affixes
        if not data.startswith(prefix) or not data.endswith(suffix) or len(data) > self._max_chunk_bytes:
            return b""
        return data[len(prefix) : -len(suffix)]

    def _knows_affixes(self, raw: bytes, index: int, delta: _StreamedDelta) -> bool:
        """Find the bytes around the text of this chunk. Return whether they are known.

        The text is replaced by a placeholder, and the reader must find just the placeholder: then the bytes around it
        do not depend on the text.
        """
        probed = self._known_delta
        same = probed is not None and probed[0] == index and type(probed[1]) is type(delta)
        if same and _decode_text(self._text_bytes(raw)) == delta.text:
            return True
        if self._probes_left == 0:
            return False
        self._probes_left -= 1
        prefix, _, suffix = raw.partition(_encode_json(delta.text))
        _, _, data = PROBE_JSON.join((prefix, suffix)).partition(b"data: ")
        probed = self._decoder.reader.probe_delta(data) if suffix else None
        is_known = (
            probed is not None
            and probed[0] == index
            and type(probed[1]) is type(delta)
            and probed[1].text == PROBE_TEXT
        )
        self._affixes, self._known_delta = ((prefix, suffix), probed) if is_known else ((b"", b""), None)
        return is_known


def _single_delta(events: list[ev.Event]) -> _StreamedDelta | None:
    """Return the delta, if it is the only event."""
    event = events[0] if len(events) == 1 else None
    return event if isinstance(event, _STREAMED_DELTAS) else None


def _decode_text(data: bytes) -> str:
    """Return the text of a JSON string; empty if it is not one string, or may hold a broken character."""
    try:
        text = _decode_string(data)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
    return "" if "\ufffd" in text else text
