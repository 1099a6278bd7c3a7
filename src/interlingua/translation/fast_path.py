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
from interlingua.core.reply_stats import Tally, size
from interlingua.parsing.choice_pipeline import Lane
from interlingua.wires.base import Choice, Chunk, Emitter, Reader
from interlingua.wires.streaming.chunk_decoder import Decoded

__all__ = ["Again"]

_Around: TypeAlias = tuple[bytes, bytes]
"""The bytes of a chunk before its text and behind it."""
_Spoken: TypeAlias = ev.TextDelta | ev.ReasoningDelta
_SPOKEN = (ev.TextDelta, ev.ReasoningDelta)
_More: TypeAlias = _Spoken | ev.ArgsDelta
_MORE = (*_SPOKEN, ev.ArgsDelta)

OTHER, WRITTEN = "…", b'"\\u2026"'
"""A text, and how hardly anybody writes it: it stands in for the one in a chunk, to see where it comes out."""
TRIES = 32
"""Some streams never repeat themselves. So often is looked for what stands around a text."""

_read = msgspec.json.Decoder(str).decode
_write = msgspec.json.Encoder().encode


class Again:
    """`take` does all that would have been done on the ordinary way, or nothing, and then it returns None."""

    __slots__ = ("_around", "_last", "_limit", "_passes", "_reader", "_say", "_seen", "_tally", "_tries")

    def __init__(self, reader: Reader, limit: int, tally: Tally) -> None:
        """`limit` is the most bytes that a chunk may have."""
        self._tally = tally
        self._reader = reader
        self._limit = limit
        self._tries = TRIES
        self._around: _Around = b"", b""
        self._seen: tuple[int, _More] | None = None
        """The choice and the kind of text that is known to stand there."""
        self._last: tuple[int, _More] | None = None
        """The same, if the last chunk was such a one, and clients are not told the chunk itself."""
        self._passes: Callable[[str], bool] | None = None
        """Whether a text passes; None if no way is kept."""
        self._say: Callable[[str], bytes] | _Around | None = None
        """How it is told; where it passes as it was written, in what; if in what it came in, None."""

    def take(self, data: bytes) -> bytes | None:
        passes = self._passes
        if passes is None or type(data) is not bytes:
            return None
        written = self._written(data)
        text = _text(written)
        if not text or not passes(text):
            return None
        self._tally.size += len(text) if text.isascii() else size(text)  # as it mostly is
        say = self._say
        if say is None:
            return data
        return say[0] + written + say[1] if isinstance(say, tuple) else say(text)

    def read(self, data: bytes) -> Chunk | None:
        """What this chunk says, if it is the last one again but for its text. None if it is not: then nothing has been
        read."""
        if self._last is None or type(data) is not bytes:
            return None
        text = _text(self._written(data))
        if not text:
            return None
        index, like = self._last
        if not isinstance(like, ev.ArgsDelta):
            return Chunk([Choice(index, [type(like)(text)], exact=False)], [], exact=False)
        events = self._reader.more(index, like.index, text)
        return None if events is None else Chunk([Choice(index, events, exact=False)], [], exact=False)

    def forget(self) -> None:
        self._passes = self._last = None

    def learn(
        self,
        read: Chunk,
        like: Decoded | None,
        raw: bytes,
        said: list[ev.Event],
        lanes: Mapping[int, Lane],
        emitter: Emitter,
    ) -> None:
        """Keeps the way that this chunk went, if all it said was one text. `like` is the chunk itself, if the client
        speaks its wire."""
        choice = read.choices[0]
        given = _only(choice.events)
        if like is not None and (not isinstance(given, _SPOKEN) or said != [given]):
            return
        if given is None or given.text.isspace() or not self._knows(raw, choice.index, given):
            return  # of blanks it is not yet known whether they are all that is said
        if like is None:
            self._last = self._seen
            self.keep(choice, said, lanes, emitter)
        elif like.exact and read.exact:
            passed = emitter.pass_on(like.chunk, WRITTEN.join(self._around)) or b""
            before, found, behind = passed.partition(WRITTEN)
            self._say = None if (before, behind) == self._around else (before, behind)
            self._passes = lanes[choice.index].passage if found else None

    def keep(self, given: Choice, said: list[ev.Event], lanes: Mapping[int, Lane], emitter: Emitter) -> None:
        """Further texts like this one pass, if it went out as it was; else none does."""
        self._passes = None
        told, event = _only(given.events), _only(said)
        if isinstance(told, _SPOKEN) and isinstance(event, _SPOKEN) and told.text == event.text:
            self._say = emitter.more(given.index, event)
            self._passes = lanes[given.index].passage if self._say is not None else None

    def _written(self, data: bytes) -> bytes:
        """How the text is written that stands where the last one stood; nothing if what is around it differs."""
        head, tail = self._around
        if not data.startswith(head) or not data.endswith(tail) or len(data) > self._limit:
            return b""
        return data[len(head) : -len(tail)]

    def _knows(self, raw: bytes, index: int, given: _More) -> bool:
        """Whether it is known what stands around the text of this chunk."""
        seen = self._seen
        same = seen is not None and seen[0] == index and type(seen[1]) is type(given)
        if same and _text(self._written(raw)) == given.text:
            return True
        if self._tries == 0:
            return False
        self._tries -= 1
        head, _, tail = raw.partition(_write(given.text))
        _, _, data = WRITTEN.join((head, tail)).partition(b"data: ")
        seen = self._reader.text_in(data) if tail else None
        known = seen is not None and seen[0] == index and type(seen[1]) is type(given) and seen[1].text == OTHER
        self._around, self._seen = ((head, tail), seen) if known else ((b"", b""), None)
        return known


def _only(events: list[ev.Event]) -> _More | None:
    """The text, if there is no more than one."""
    event = events[0] if len(events) == 1 else None
    return event if isinstance(event, _MORE) else None


def _text(written: bytes) -> str:
    """Nothing if it is not one text, or has half a character in it, or one that may stand for what was none."""
    try:
        text = _read(written)
    except (msgspec.MsgspecError, UnicodeError):
        return ""
    return "" if "\ufffd" in text else text
