"""The same chunk again, but for its text: most of a stream is that, and goes through without being taken apart.

From one piece of a text to the next, nothing of a reply changes but how far it has come. So the way that one of them
went is kept, and the next one takes it if its bytes differ in nothing but the text. Whatever else comes goes the
ordinary way, and ends this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.lane import Lane
from interlingua.tally import Tally, size
from interlingua.wire.chunks import Decoded
from interlingua.wire.wire import Chunk, Emitter, Reader

__all__ = ["Again"]

_Around: TypeAlias = tuple[bytes, bytes]
"""The bytes of a chunk before its text and behind it."""
_Spoken: TypeAlias = ev.TextDelta | ev.ReasoningDelta

OTHER, WRITTEN = "…", b'"\\u2026"'
"""A text, and how hardly anybody writes it: it stands in for the one in a chunk, to see where it comes out."""
TRIES = 32
"""Some streams never repeat themselves. So often is looked for what stands around a text."""

_read = msgspec.json.Decoder(str).decode
_write = msgspec.json.Encoder().encode


class Again:
    """`take` does all that would have been done on the ordinary way, or nothing, and then it returns None."""

    __slots__ = ("_around", "_limit", "_passes", "_reader", "_say", "_tally", "_tries")

    def __init__(self, reader: Reader, limit: int, tally: Tally) -> None:
        """`limit` is the most bytes that a chunk may have."""
        self._tally = tally
        self._reader = reader
        self._limit = limit
        self._tries = TRIES
        self._around: _Around = b"", b""
        self._passes: Callable[[str], bool] | None = None
        """Whether a text passes; None if no way is kept."""
        self._say: Callable[[str], bytes] | _Around | None = None
        """How it is told; where it passes as it was written, in what; if in what it came in, None."""

    def take(self, data: bytes) -> bytes | None:
        passes = self._passes
        if passes is None or type(data) is not bytes:
            return None
        head, tail = self._around
        if not data.startswith(head) or not data.endswith(tail) or len(data) > self._limit:
            return None
        written = data[len(head) : -len(tail)]
        text = _text(written)
        if not text or not passes(text):
            return None
        self._tally.size += len(text) if text.isascii() else size(text)  # as it mostly is
        say = self._say
        if say is None:
            return data
        return say[0] + written + say[1] if isinstance(say, tuple) else say(text)

    def forget(self) -> None:
        self._passes = None

    def learn(
        self,
        read: Chunk,
        like: Decoded | None,
        raw: bytes,
        said: list[ev.Event],
        lanes: Mapping[int, Lane],
        emitter: Emitter,
    ) -> None:
        """Keeps the way that this chunk went, if all it said was one text that went out as it was. `like` is the chunk
        itself, if the client speaks its wire."""
        given, event = _only(read.choices[0].events), _only(said)
        if given is None or event is None or given.text != event.text or given.text.isspace():
            return  # of blanks it is not yet known whether they are all that is said
        index = read.choices[0].index
        if not self._knows(raw, index, given):
            return
        passage = lanes[index].passage
        if like is None:
            self._say = emitter.more(index, event)
            self._passes = passage if self._say is not None else None
        elif like.exact and read.exact and given == event:
            passed = emitter.pass_on(like.chunk, WRITTEN.join(self._around)) or b""
            before, found, behind = passed.partition(WRITTEN)
            self._say = None if (before, behind) == self._around else (before, behind)
            self._passes = passage if found else None

    def _knows(self, raw: bytes, index: int, given: _Spoken) -> bool:
        """Whether it is known what stands around the text of this chunk."""
        head, tail = self._around
        if head and raw.startswith(head) and raw.endswith(tail) and _text(raw[len(head) : -len(tail)]) == given.text:
            return True
        if self._tries == 0:
            return False
        self._tries -= 1
        head, _, tail = raw.partition(_write(given.text))
        _, _, data = WRITTEN.join((head, tail)).partition(b"data: ")
        known = bool(tail) and self._reader.text_in(data) == (index, type(given)(OTHER))
        self._around = (head, tail) if known else (b"", b"")
        return known


def _only(events: list[ev.Event]) -> _Spoken | None:
    """The text, if there is no more than one."""
    event = events[0] if len(events) == 1 else None
    return event if isinstance(event, ev.TextDelta | ev.ReasoningDelta) else None


def _text(written: bytes) -> str:
    """Nothing if it is not one text, or has half a character in it, or one that may stand for what was none."""
    try:
        text = _read(written)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
    return "" if "\ufffd" in text else text
