"""The same chunk again, but for its text: most of a stream is that, and goes through without being taken apart.

From one piece of a text to the next, nothing of a reply changes but how far it has come. So the way that one of them
went is kept, and the next one takes it if its bytes differ in nothing but the text. Of one whose text does not pass as
it is, such as the arguments of a call, at least the bytes around it need not be read again. Whatever else comes goes
the ordinary way, and ends this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.core.reply_stats import ReplyStats, utf8_size
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.wires.base import Choice, Chunk, Emitter, Reader
from interlingua.wires.streaming.chunk_decoder import DecodedChunk

__all__ = ["FastPath"]

_Affixes: TypeAlias = tuple[bytes, bytes]
"""The bytes of a chunk before its text and behind it."""
_ContentDelta: TypeAlias = ev.TextDelta | ev.ReasoningDelta
_CONTENT_DELTAS = (ev.TextDelta, ev.ReasoningDelta)
_StreamedDelta: TypeAlias = _ContentDelta | ev.ArgsDelta
_STREAMED_DELTAS = (*_CONTENT_DELTAS, ev.ArgsDelta)

PROBE_TEXT, PROBE_JSON = "…", b'"\\u2026"'
"""A text, and how hardly anybody writes it: it stands in for the one in a chunk, to see where it comes out."""
MAX_PROBES = 32
"""Some streams never repeat themselves. So often is looked for what stands around a text."""

_decode_string = msgspec.json.Decoder(str).decode
_encode_json = msgspec.json.Encoder().encode


class FastPath:
    """`take` does all that would have been done on the ordinary way, or nothing, and then it returns None."""

    __slots__ = (
        "_affixes",
        "_can_forward",
        "_known_delta",
        "_last_delta",
        "_max_chunk_bytes",
        "_probes_left",
        "_reader",
        "_stats",
        "_writer",
    )

    def __init__(self, reader: Reader, max_chunk_bytes: int, stats: ReplyStats) -> None:
        """`limit` is the most bytes that a chunk may have."""
        self._stats = stats
        self._reader = reader
        self._max_chunk_bytes = max_chunk_bytes
        self._probes_left = MAX_PROBES
        self._affixes: _Affixes = b"", b""
        self._known_delta: tuple[int, _StreamedDelta] | None = None
        """The choice and the kind of text that is known to stand there."""
        self._last_delta: tuple[int, _StreamedDelta] | None = None
        """The same, if the last chunk was such a one, and clients are not told the chunk itself."""
        self._can_forward: Callable[[str], bool] | None = None
        """Whether a text passes; None if no way is kept."""
        self._writer: Callable[[str], bytes] | _Affixes | None = None
        """How it is told; where it passes as it was written, in what; if in what it came in, None."""

    def forward(self, data: bytes) -> bytes | None:
        can_forward = self._can_forward
        if can_forward is None or type(data) is not bytes:
            return None
        text_bytes = self._text_bytes(data)
        text = _decode_text(text_bytes)
        if not text or not can_forward(text):
            return None
        self._stats.content_bytes += len(text) if text.isascii() else utf8_size(text)  # as it mostly is
        writer = self._writer
        if writer is None:
            return data
        return writer[0] + text_bytes + writer[1] if isinstance(writer, tuple) else writer(text)

    def decode(self, data: bytes) -> Chunk | None:
        """What this chunk says, if it is the last one again but for its text. None if it is not: then nothing has been
        read."""
        if self._last_delta is None or type(data) is not bytes:
            return None
        text = _decode_text(self._text_bytes(data))
        if not text:
            return None
        index, delta = self._last_delta
        if not isinstance(delta, ev.ArgsDelta):
            return Chunk([Choice(index, [type(delta)(text)], exact=False)], [], exact=False)
        events = self._reader.read_arguments(index, delta.index, text)
        return None if events is None else Chunk([Choice(index, events, exact=False)], [], exact=False)

    def reset(self) -> None:
        self._can_forward = self._last_delta = None

    def learn(
        self,
        chunk: Chunk,
        template: DecodedChunk | None,
        raw: bytes,
        events: list[ev.Event],
        pipelines: Mapping[int, ChoicePipeline],
        emitter: Emitter,
    ) -> None:
        """Keeps the way that this chunk went, if all it said was one text. `like` is the chunk itself, if the client
        speaks its wire."""
        choice = chunk.choices[0]
        delta = _single_delta(choice.events)
        if template is not None and (not isinstance(delta, _CONTENT_DELTAS) or events != [delta]):
            return
        if delta is None or delta.text.isspace() or not self._knows_affixes(raw, choice.index, delta):
            return  # of blanks it is not yet known whether they are all that is said
        if template is None:
            self._last_delta = self._known_delta
            self.refresh(choice, events, pipelines, emitter)
        elif template.exact and chunk.exact:
            forwarded = emitter.forward(template.chunk, PROBE_JSON.join(self._affixes)) or b""
            prefix, separator, suffix = forwarded.partition(PROBE_JSON)
            self._writer = None if (prefix, suffix) == self._affixes else (prefix, suffix)
            self._can_forward = pipelines[choice.index].passthrough_check if separator else None

    def refresh(
        self, choice: Choice, events: list[ev.Event], pipelines: Mapping[int, ChoicePipeline], emitter: Emitter
    ) -> None:
        """Further texts like this one pass, if it went out as it was; else none does."""
        self._can_forward = None
        delta, event = _single_delta(choice.events), _single_delta(events)
        if isinstance(delta, _CONTENT_DELTAS) and isinstance(event, _CONTENT_DELTAS) and delta.text == event.text:
            self._writer = emitter.delta_writer(choice.index, event)
            self._can_forward = pipelines[choice.index].passthrough_check if self._writer is not None else None

    def _text_bytes(self, data: bytes) -> bytes:
        """How the text is written that stands where the last one stood; nothing if what is around it differs."""
        prefix, suffix = self._affixes
        if not data.startswith(prefix) or not data.endswith(suffix) or len(data) > self._max_chunk_bytes:
            return b""
        return data[len(prefix) : -len(suffix)]

    def _knows_affixes(self, raw: bytes, index: int, delta: _StreamedDelta) -> bool:
        """Whether it is known what stands around the text of this chunk."""
        probed = self._known_delta
        same = probed is not None and probed[0] == index and type(probed[1]) is type(delta)
        if same and _decode_text(self._text_bytes(raw)) == delta.text:
            return True
        if self._probes_left == 0:
            return False
        self._probes_left -= 1
        prefix, _, suffix = raw.partition(_encode_json(delta.text))
        _, _, data = PROBE_JSON.join((prefix, suffix)).partition(b"data: ")
        probed = self._reader.probe_delta(data) if suffix else None
        is_known = (
            probed is not None
            and probed[0] == index
            and type(probed[1]) is type(delta)
            and probed[1].text == PROBE_TEXT
        )
        self._affixes, self._known_delta = ((prefix, suffix), probed) if is_known else ((b"", b""), None)
        return is_known


def _single_delta(events: list[ev.Event]) -> _StreamedDelta | None:
    """The text, if there is no more than one."""
    event = events[0] if len(events) == 1 else None
    return event if isinstance(event, _STREAMED_DELTAS) else None


def _decode_text(data: bytes) -> str:
    """Nothing if it is not one text, or has half a character in it, or one that may stand for what was none."""
    try:
        text = _decode_string(data)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
    return "" if "\ufffd" in text else text
