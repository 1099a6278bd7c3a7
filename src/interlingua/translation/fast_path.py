"""Fast path for deltas: the most common chunks, read and written by the fast codecs of the wires.

Most chunks of a stream only continue a text or a call. There are three fast ways for them:

1. `forward`: chunks that differ from the last one only in their text are sent without reading them, if the text cannot
   begin a marker, or if it is a part of a string in arguments. The reader's codec finds the texts.
2. `read_repeat`: if the text has to be parsed, such as the end of a string in arguments, it is at least found without
   reading the rest.
3. `read`: any other delta is decoded by a typed struct.

`learn` prepares the first two for the next chunk. Everything else takes the ordinary path.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from interlingua import events as ev
from interlingua.core.reply_stats import utf8_size
from interlingua.core.text_forwarder import TextForwarder
from interlingua.translation.reply_decoder import ReplyDecoder
from interlingua.translation.reply_recorder import ReplyRecorder
from interlingua.wires.base import (
    Affixes,
    Choice,
    Chunk,
    Emitter,
    FastReader,
    Json,
    StreamedDelta,
    TextCounter,
    TextWriter,
)
from interlingua.wires.streaming.chunk_decoder import MAX_UNCHECKED_BRACKETS, DecodedChunk
from interlingua.wires.streaming.repeated_chunk import PROBE_JSON
from interlingua.wires.streaming.sse import SseBlock, first_events_size

__all__ = ["NOTHING", "FastPath", "FastRead"]

FastRead: TypeAlias = tuple[Chunk, DecodedChunk | None, bytes]
"""The content of a chunk, its JSON if the client speaks the same wire, and its bytes."""
_Kind: TypeAlias = tuple[int, type[ev.Event], int | None]
"""The kind of a delta: the index of its choice, the type of its event, and the index of its call, if any."""

ERROR_EVENT_LINE = b"event: error"
MAX_DATA_BYTES = 2 * MAX_UNCHECKED_BRACKETS
"""Longest event data that is read by a typed struct: too short for brackets that are nested too deep."""
NOTHING = b"", 0
"""Result of `FastPath.forward` if nothing was forwarded."""


class FastPath:
    """Forwards or reads the most common chunks. Each method does all that the ordinary path would do, or nothing.

    Args:
        reader: the fast codec of the upstream's wire.
        decoder: the decoder of the reply.
        emitter: the emitter of the reply. If it has no fast codec, nothing is forwarded to another wire.
        recorder: the recorder of the reply.
        same_wire: whether chunks that need no change are forwarded as they were received.
        max_chunk_bytes: the maximum size of a chunk.
    """

    __slots__ = (
        "_count_read",
        "_decoder",
        "_emitter",
        "_find_texts",
        "_forward_texts",
        "_forwarder",
        "_is_known",
        "_kind",
        "_last_learned",
        "_last_read",
        "_max_chunk_bytes",
        "_reader",
        "_recorder",
        "_repeats",
        "_same_wire",
        "_sent_affixes",
        "_track_sent",
        "_write_texts",
        "_writer",
    )

    def __init__(
        self,
        reader: FastReader,
        decoder: ReplyDecoder,
        emitter: Emitter,
        recorder: ReplyRecorder,
        *,
        same_wire: bool,
        max_chunk_bytes: int,
    ) -> None:
        self._reader, self._repeats = reader, reader.repeats
        self._find_texts = self._repeats.find_texts if self._repeats is not None else _find_nothing
        self._decoder = decoder
        self._emitter, self._writer = emitter, emitter.fast
        self._recorder = recorder
        self._same_wire = same_wire
        self._max_chunk_bytes = max_chunk_bytes
        self._last_read: FastRead | None = None
        """The chunk to learn from."""
        self._is_known = False
        """True if the codec has learned the last chunk."""
        self._last_learned = 0
        """Number of the message from which was learned last."""
        self._forward_texts: TextForwarder | None = None
        """Counts the texts as read that the parser and the guard would copy as they are. None while nothing can be
        forwarded."""
        self._kind: _Kind | None = None
        """The kind of delta that the following attributes are for."""
        self._forwarder: TextForwarder | None = None
        """The function for texts of this kind, as soon as they can be forwarded again."""
        self._count_read: TextCounter | None = None
        """Counts the texts that are forwarded, for the reader."""
        self._track_sent: TextCounter | None = None
        """Tracks the texts that are forwarded as they were received, for the emitter."""
        self._write_texts: TextWriter | None = None
        """Writes texts for the client; None if the chunks are forwarded as they were received."""
        self._sent_affixes: Affixes | None = None
        """The bytes around the text for the client, if they are not those of the received chunk."""

    @property
    def learns_repeats(self) -> bool:
        """True if chunks of this stream can be repetitions of each other, so that `forward` is of use."""
        return self._repeats is not None

    def forward_event(self, data: bytes) -> bytes | None:
        """Return the bytes for the client, if this event is the last chunk with another text that needs no parsing."""
        forward_texts = self._forward_texts
        if forward_texts is None or type(data) is not bytes or len(data) > self._max_chunk_bytes:
            return None
        texts, size = self._find_texts(data)
        if len(texts) != 1 or size != len(data) or not forward_texts(texts, texts[0]):
            return None
        return self._send(data, texts, texts[0])

    def forward(self, data: bytes) -> tuple[bytes, int]:
        """Forward the events of which the same is true, from the first event on.

        Returns: the bytes for the client, and the number of bytes of `data` that they stand for.
        """
        forward_texts = self._forward_texts
        if forward_texts is None or type(data) is not bytes or len(data) > self._max_chunk_bytes:
            return NOTHING
        texts, size = self._find_texts(data)
        if not texts:
            return NOTHING
        text = texts[0] if len(texts) == 1 else "".join(texts)
        count = forward_texts(texts, text)
        if count < len(texts):
            if count == 0:
                return NOTHING
            del texts[count:]
            text, size = "".join(texts), first_events_size(data, count)
        return self._send(data if size == len(data) else data[:size], texts, text), size

    def _send(self, data: bytes, texts: list[str], joined: str) -> bytes:
        """Return the bytes for the client for these events, whose texts were counted as read by parser and guard."""
        recorder = self._recorder
        recorder.message_count += len(texts)
        recorder.stats.content_bytes += len(joined) if joined.isascii() else utf8_size(joined)
        if self._count_read is not None:
            self._count_read(texts, joined)
        if self._write_texts is not None:
            return self._write_texts(texts, joined)
        if self._track_sent is not None:
            self._track_sent(texts, joined)
        return data if self._sent_affixes is None else self._replace_affixes(data, *self._sent_affixes)

    def read_repeat(self, data: bytes) -> FastRead | None:
        """Read a chunk that is the last one with another text; None for any other bytes."""
        if not self._is_known or self._same_wire or self._repeats is None:
            return None
        if type(data) is not bytes or len(data) > self._max_chunk_bytes:
            return None
        texts, size = self._find_texts(data)
        choice = self._repeats.read_text(texts[0]) if len(texts) == 1 and size == len(data) else None
        if choice is None:
            return None
        self._last_read = fast_read = Chunk([choice], [], exact=False), None, data
        return fast_read

    def read(self, block: SseBlock) -> FastRead | None:
        """Read a chunk that only continues what is open; None for any other block."""
        data, decoder = block.data, self._decoder
        if data is None or len(data) > MAX_DATA_BYTES or block.lines[0].startswith(ERROR_EVENT_LINE):
            return None
        if decoder.dialect is None or decoder.has_split_character:
            return None
        chunk = self._reader.read(data)
        if chunk is None:
            return None
        decoded = decoder.decode_data(data) if self._same_wire else None
        self._last_read = fast_read = chunk, decoded, block.raw
        return fast_read

    def reset(self) -> None:
        """Forget the last chunk: bytes follow that are not a repetition of it."""
        self._forward_texts = self._last_read = self._kind = None
        self._is_known = False

    def learn(self, events: list[ev.Event], sent: bytes) -> None:
        """Prepare for a repetition of the chunk that was read last, unless the ordinary path has read it.

        Args:
            events: the events that were sent to the client for this chunk.
            sent: their bytes.
        """
        fast_read, self._last_read = self._last_read, None
        if fast_read is None or self._repeats is None:
            return
        chunk, decoded, raw = fast_read
        choice = chunk.choices[0]
        received, copied = _single_delta(choice.events), _single_delta(events)
        self._forward_texts = None
        if events and (copied is None or _kind(choice.index, copied) != self._kind):
            self._kind = None
        if received is None:
            return
        if not self._is_known or self._same_wire:
            number = self._recorder.message_count
            is_next, self._last_learned = number == self._last_learned + 1, number
            self._is_known = self._repeats.learn(raw, choice.index, received, is_next=is_next)
        if not self._is_known or copied is None or not _is_copy(received, copied):
            return
        if self._kind is None:
            can_send = self._choose_output(chunk, decoded, copied, raw, sent)
            self._forwarder = self._forwarder_for(choice, copied) if can_send else None
            self._count_read = self._repeats.forwarded_counter()
            self._kind = _kind(choice.index, copied)
        self._forward_texts = self._forwarder

    def _choose_output(
        self, chunk: Chunk, decoded: DecodedChunk | None, copied: StreamedDelta, raw: bytes, sent: bytes
    ) -> bool:
        """Choose how further texts are sent. Return False if they cannot be.

        Args:
            chunk: the chunk that was read last.
            decoded: its JSON, if the client speaks the same wire.
            copied: the event that was sent for it.
            raw: its bytes.
            sent: the bytes that were sent for it.
        """
        self._write_texts = self._track_sent = self._sent_affixes = None
        choice, template = chunk.choices[0], decoded.chunk if decoded is not None else None
        if decoded is not None and _kind(0, copied) == _kind(0, choice.events[0]):
            is_unchanged = choice.events == [copied] and decoded.exact and chunk.exact
            if not is_unchanged and self._repeats is not None and self._repeats.are_affixes_exact:
                return False  # perhaps only this text had to be rewritten
            if is_unchanged and (can_forward := self._choose_forwarding(decoded.chunk, raw, sent)) is not None:
                return can_forward
        if self._writer is not None:
            self._write_texts = self._writer.delta_writer(choice.index, copied, template)
        return self._write_texts is not None

    def _choose_forwarding(self, template: Json, raw: bytes, sent: bytes) -> bool | None:
        """Choose how chunks like this one are forwarded: with the same or other bytes around the text.

        Returns: whether that is possible here; None if the emitter rewrites them.
        """
        tracker_for = self._writer.forward_tracker if self._writer is not None else None
        if tracker_for is not None:
            self._track_sent = tracker_for(template)
            return True if self._track_sent is not None and sent == raw else None
        affixes = self._repeats.affixes if self._repeats is not None else None
        if affixes is None:
            forwarded = self._emitter.forward(template, raw)
            return None if forwarded is None else forwarded == raw
        forwarded = self._emitter.forward(template, PROBE_JSON.join(affixes)) or b""
        prefix, separator, suffix = forwarded.partition(PROBE_JSON)
        self._sent_affixes = (prefix, suffix) if (prefix, suffix) != affixes else None
        return True if separator else None

    def _forwarder_for(self, choice: Choice, sent: StreamedDelta) -> TextForwarder | None:
        """Return the function that reads more text like that of this choice, which was sent as this event."""
        pipeline = self._decoder.pipelines[choice.index]
        if type(sent) is not ev.ArgsDelta:
            return pipeline.text_forwarder
        if type(choice.events[0]) is not ev.ArgsDelta:
            return pipeline.native_arguments_forwarder
        return pipeline.arguments_forwarder(self._repeats.arguments_forwarder() if self._repeats is not None else None)

    def _replace_affixes(self, data: bytes, prefix: bytes, suffix: bytes) -> bytes:
        """Return these repeated chunks with other bytes around each text."""
        affixes = self._repeats.affixes if self._repeats is not None else None
        assert affixes is not None, "the client gets other affixes"
        old_prefix, old_suffix = affixes
        texts = data[len(old_prefix) : -len(old_suffix)]
        # With its line end, what is between two texts cannot be a part of one.
        return prefix + texts.replace(old_suffix + old_prefix, suffix + prefix) + suffix


def _find_nothing(data: bytes) -> tuple[list[str], int]:  # noqa: ARG001
    return [], 0


def _single_delta(events: list[ev.Event]) -> StreamedDelta | None:
    """Return the delta, if it is the only event."""
    if len(events) != 1:
        return None
    event = events[0]
    # `isinstance` is slow if it is false.
    is_delta = type(event) is ev.TextDelta or type(event) is ev.ReasoningDelta or type(event) is ev.ArgsDelta
    return cast("StreamedDelta", event) if is_delta else None


def _kind(index: int, delta: ev.Event) -> _Kind:
    """Return the kind of a delta of this choice."""
    return index, type(delta), delta.index if type(delta) is ev.ArgsDelta else None


def _is_copy(received: StreamedDelta, sent: StreamedDelta) -> bool:
    """Return whether all that was received was sent as it is: one text, perhaps of another kind, and perhaps behind
    text that was held back."""
    return sent.text.endswith(received.text) and (type(received) is not ev.ArgsDelta or type(sent) is ev.ArgsDelta)
