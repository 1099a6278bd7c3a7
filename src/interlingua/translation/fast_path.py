"""Fast path for deltas: the most common chunks, read and written by the fast codecs of the wires.

Most chunks of a stream only continue a text or a call. There are three fast ways for them:

1. `forward`: a chunk that differs from the last one only in its text is sent without decoding its JSON, if the text
   cannot begin a marker, or if it is a part of a string in arguments. The bytes around the text (its *affixes*) are
   known from the last chunk.
2. `read_repeat`: if the text has to be parsed, such as the end of a string in arguments, it is at least found without
   decoding the rest.
3. `read`: any other delta is decoded by a typed struct.

`learn` prepares the first two for the next chunk. Everything else takes the ordinary path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import msgspec

from interlingua import events as ev
from interlingua.core.reply_stats import utf8_size
from interlingua.translation.reply_decoder import ReplyDecoder
from interlingua.translation.reply_recorder import ReplyRecorder
from interlingua.wires.base import Choice, Chunk, Emitter, FastReader, StreamedDelta
from interlingua.wires.streaming.chunk_decoder import MAX_UNCHECKED_BRACKETS, DecodedChunk
from interlingua.wires.streaming.sse import SseBlock

__all__ = ["FastPath", "FastRead"]

FastRead: TypeAlias = tuple[Chunk, DecodedChunk | None, bytes]
"""The content of a chunk, its JSON if the client speaks the same wire, and its bytes."""
_Affixes: TypeAlias = tuple[bytes, bytes]
"""The bytes of a chunk before and after its text."""

ERROR_EVENT_LINE = b"event: error"
MAX_DATA_BYTES = 2 * MAX_UNCHECKED_BRACKETS
"""Longest event data that is read by a typed struct: too short for brackets that are nested too deep."""
PROBE_TEXT, PROBE_JSON = "…", b'"\\u2026"'
"""Placeholder text, escaped as no server writes it. It replaces a chunk's text to find where the text comes out."""
MAX_PROBES = 32
"""Some streams never repeat a chunk. The search for the affixes is given up after this many failed attempts."""

_decode_string = msgspec.json.Decoder(str).decode
_encode_json = msgspec.json.Encoder().encode


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
        "_affixes",
        "_decoder",
        "_emitter",
        "_known_delta",
        "_last_read",
        "_max_chunk_bytes",
        "_probes_left",
        "_reader",
        "_recorder",
        "_repeated_delta",
        "_repeats",
        "_same_wire",
        "_try_read",
        "_write_text",
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
        self._decoder = decoder
        self._emitter, self._writer = emitter, emitter.fast
        self._recorder = recorder
        self._same_wire = same_wire
        self._max_chunk_bytes = max_chunk_bytes
        self._probes_left = MAX_PROBES
        self._last_read: FastRead | None = None
        """The chunk to learn from."""
        self._affixes: _Affixes = b"", b""
        self._known_delta: tuple[int, StreamedDelta] | None = None
        """The choice, and the kind of delta, between these affixes."""
        self._repeated_delta: tuple[int, StreamedDelta] | None = None
        """The same, if the last chunk had these affixes and the client's wire is another one."""
        self._try_read: Callable[[str], bool] | None = None
        """Counts a text as read if the parser and the guard would copy it as it is, and returns whether it did. None
        while nothing can be forwarded."""
        self._write_text: Callable[[str], bytes] | _Affixes | None = None
        """How the text is written for the client: a function, other affixes, or None for the received bytes."""

    @property
    def learns_repeats(self) -> bool:
        """True if chunks of this stream can be repetitions of each other, so that `forward` is of use."""
        return self._repeats is not None

    def forward(self, data: bytes) -> bytes | None:
        """Return the bytes for the client, if this is the last chunk with another text that needs no parsing."""
        try_read = self._try_read
        if try_read is None or type(data) is not bytes:
            return None
        text = self._find_text(data)
        if not text or not try_read(text):
            return None
        recorder = self._recorder
        recorder.message_count += 1
        recorder.stats.content_bytes += len(text) if text.isascii() else utf8_size(text)
        write_text = self._write_text
        if write_text is None:
            return data
        if not isinstance(write_text, tuple):
            return write_text(text)
        prefix, suffix = self._affixes
        return data[len(prefix) : -len(suffix)].join(write_text)

    def read_repeat(self, data: bytes) -> FastRead | None:
        """Read a chunk that is the last one with another text; None for any other bytes."""
        if self._repeated_delta is None or self._repeats is None or type(data) is not bytes:
            return None
        text = self._find_text(data)
        if not text:
            return None
        index, delta = self._repeated_delta
        events: list[ev.Event] | None
        if type(delta) is ev.ArgsDelta:
            events = self._repeats.read_arguments(index, delta.index, text)
            if events is None:
                return None
        else:
            events = [ev.TextDelta(text) if type(delta) is ev.TextDelta else ev.ReasoningDelta(text)]
        self._last_read = fast_read = Chunk([Choice(index, events, exact=False)], [], exact=False), None, data
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
        self._try_read = self._repeated_delta = self._last_read = None

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
        copied = _copied_delta(choice.events, events)
        self._try_read = None
        if decoded is None:  # the client speaks another wire
            if self._repeated_delta is None and self._knows_affixes(raw, choice):
                self._repeated_delta = self._known_delta
            if self._repeated_delta is not None and copied is not None and self._writer is not None:
                self._write_text = self._writer.delta_writer(choice.index, copied)
                self._try_read = self._forwarder_for(choice, copied) if self._write_text is not None else None
        elif type(copied) is ev.ArgsDelta and type(choice.events[0]) is not ev.ArgsDelta:  # native arguments
            write_text = self._writer.delta_writer(choice.index, copied) if self._writer is not None else None
            if write_text is not None and write_text(copied.text) == sent and self._knows_affixes(raw, choice):
                self._write_text = write_text
                self._try_read = self._forwarder_for(choice, copied)
        elif choice.events == [copied] and chunk.exact and decoded.exact and self._knows_affixes(raw, choice):
            forwarded = self._emitter.forward(decoded.chunk, PROBE_JSON.join(self._affixes)) or b""
            prefix, separator, suffix = forwarded.partition(PROBE_JSON)
            self._write_text = None if (prefix, suffix) == self._affixes else (prefix, suffix)
            self._try_read = self._forwarder_for(choice, copied) if separator and copied is not None else None

    def _forwarder_for(self, choice: Choice, sent: StreamedDelta) -> Callable[[str], bool] | None:
        """Return the function that reads more text like that of this choice, which was sent as this event."""
        pipeline = self._decoder.pipelines[choice.index]
        if type(sent) is not ev.ArgsDelta:
            return pipeline.passthrough_check
        if type(choice.events[0]) is not ev.ArgsDelta:
            return pipeline.native_arguments_forwarder
        known = self._known_delta[1] if self._known_delta is not None else None
        if self._repeats is None or type(known) is not ev.ArgsDelta:
            return None
        return pipeline.arguments_forwarder(self._repeats.arguments_forwarder(choice.index, known.index))

    def _find_text(self, data: bytes) -> str:
        """Return the text between the known affixes.

        Returns "" if the chunk has other affixes, if not just one JSON string is between them, or if its text may hold
        a broken character.
        """
        prefix, suffix = self._affixes
        if not data.startswith(prefix) or not data.endswith(suffix) or len(data) > self._max_chunk_bytes:
            return ""
        try:
            text = _decode_string(data[len(prefix) : -len(suffix)])
        except (msgspec.MsgspecError, UnicodeError):
            return ""
        return "" if "\ufffd" in text else text

    def _knows_affixes(self, raw: bytes, choice: Choice) -> bool:
        """Find the bytes around the text of this chunk. Return whether they are known.

        The text is replaced by a placeholder, and the reader must find just the placeholder: then the bytes around it
        do not depend on the text.
        """
        delta, known = _single_delta(choice.events), self._known_delta
        # A whitespace-only text is no good model: the guard has not decided yet whether the reply is empty.
        if delta is None or delta.text.isspace():
            return False
        same = known is not None and known[0] == choice.index and type(known[1]) is type(delta)
        if same and self._find_text(raw) == delta.text:
            return True
        if self._repeats is None or self._probes_left == 0:
            return False
        prefix, _, suffix = raw.partition(_encode_json(delta.text))
        _, _, data = PROBE_JSON.join((prefix, suffix)).partition(b"data: ")
        probed = self._repeats.probe_delta(data) if suffix else None
        is_known = (
            probed is not None
            and probed[0] == choice.index
            and type(probed[1]) is type(delta)
            and probed[1].text == PROBE_TEXT
        )
        if not is_known:
            self._probes_left -= 1
        self._affixes, self._known_delta = ((prefix, suffix), probed) if is_known else ((b"", b""), None)
        return is_known


def _single_delta(events: list[ev.Event]) -> StreamedDelta | None:
    """Return the delta, if it is the only event."""
    if len(events) != 1:
        return None
    event = events[0]
    # `isinstance` is slow if it is false.
    is_delta = type(event) is ev.TextDelta or type(event) is ev.ReasoningDelta or type(event) is ev.ArgsDelta
    return cast("StreamedDelta", event) if is_delta else None


def _copied_delta(received: list[ev.Event], sent: list[ev.Event]) -> StreamedDelta | None:
    """Return the event that was sent, if it is all that was received: one text, perhaps of another kind."""
    delta, event = _single_delta(received), _single_delta(sent)
    if delta is None or event is None:
        return None
    if type(delta) is ev.ArgsDelta and type(event) is not ev.ArgsDelta:
        return None
    return event if delta.text == event.text else None
