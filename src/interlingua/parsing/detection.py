"""Which dialect a model speaks, told by the text itself: for proxies in front of models that they do not know.

Every dialect's openers count. Where one stands, all dialects that have it read on, each for itself. The first that
comes to a call of an offered tool reads the rest of the reply. If none does, what was read is text again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from interlingua import events as ev
from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect, Grammar
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.parser import Parser
from interlingua.parsing.text_buffer__source import Channel, Reading, Source

__all__ = ["Detect", "detecting"]

LOOK_AGAIN = 64
"""What led nowhere is looked through for other openers only if it is this short: no text is read again and again."""


def detecting(dialects: Sequence[Dialect]) -> Dialect:
    """A dialect that is any of these, to be told by the text."""
    native = tuple(dialect for dialect in dialects if dialect.shape is not None)
    return Dialect(
        name="detect",
        summary="told by the text: the first call of an offered tool, in any dialect",
        shape=Detect(native),
        thinking=tuple(dict.fromkeys(span for dialect in native for span in dialect.thinking)),
        text=tuple(span for dialect in native if dialect.special_tokens for span in dialect.text),
        noise=tuple(dict.fromkeys(marker for dialect in native for marker in dialect.noise)),
        special_tokens=False,
        trim="\n",
        caveats="Functionary 3.2 is told only where a reply begins with a call's name, without the `>>>` before it; "
        "else its calls stay in the text. What may be a call is followed for `Limits.header` characters.",
    )


@dataclass(frozen=True)
class Detect:
    """The shape of a reply whose dialect is not known yet."""

    NAME: ClassVar[str] = "detect"

    dialects: tuple[Dialect, ...]

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return DetectGrammar(self.dialects, outside)


class DetectGrammar:
    strays: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()

    def __init__(self, dialects: tuple[Dialect, ...], outside: tuple[str, ...]) -> None:
        self._dialects = dialects
        self._having: dict[str, list[Dialect]] = {}
        grammars = [dialect.grammar for dialect in dialects if dialect.grammar]
        openers = dict.fromkeys(opener for grammar in grammars for opener in grammar.openers)
        for opener in openers:
            if opener not in outside and _is_telling(opener):
                self._having[opener] = _ranked(opener, [(d, d.grammar.openers) for d in dialects if d.grammar])
        self.openers = tuple(self._having)

    def write(self, calls: Sequence[Call], before: int) -> str:  # noqa: ARG002 (nobody writes it)
        raise RenderError("'detect' only reads", "pick the model's own dialect")

    def name_in(self, text: str, offer: Offer) -> str:  # noqa: ARG002 (not known in which dialect)
        return text

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        firsts = (dialect.grammar.first_openers(offer) for dialect in self._dialects if dialect.grammar)
        return tuple(dict.fromkeys(opener for openers in firsts for opener in openers))

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        start = source.offset - len(opener)
        readers = [_Reader(dialect, start, source, sink) for dialect in self._candidates(opener, sink.offer)]
        winner = yield from self._compete(opener, readers, source, sink)
        if winner is None:
            if source.offset - start <= LOOK_AGAIN and source.channel is source.recorded_from:
                source.rewind(opener)
            sink.text(source.recorded(), source.recorded_from)
            source.resume_text()
            return
        source.forget()
        sink.report("detected", f"the text is in the dialect {winner.name!r}: read as that from here on", start)
        yield from self._follow(winner, source, sink)

    def _candidates(self, opener: str, offer: Offer) -> list[Dialect]:
        if opener in self._having:
            return self._having[opener]
        return _ranked(opener, [(d, d.grammar.first_openers(offer)) for d in self._dialects if d.grammar])

    def _compete(self, opener: str, readers: list[_Reader], source: Source, sink: Sink) -> Reading[_Reader | None]:
        """Lets all read on until one has a call, or none can have one: character by character, so that it is the same
        one however the text is cut."""
        text = opener
        for _ in range(sink.limits.header):
            for reader in readers:
                reader.feed(text)
            winner = next((reader for reader in readers if reader.won), None)
            readers = [reader for reader in readers if not reader.lost]
            if winner is not None or not readers:
                return winner
            text = yield from source.take_char()
            if text == "":
                return next((reader for reader in readers if source.closed and reader.closes()), None)
        return next((reader for reader in readers if reader.calls), None)

    def _follow(self, winner: _Reader, source: Source, sink: Sink) -> Reading[None]:
        """The rest of the reply is the winner's."""
        for event in winner.events:
            sink.add(event)
        while not winner.closed and not source.closed:
            text = yield from source.take_all()
            for event in winner.parser.feed(text, source.taken_from):
                sink.add(event)
            sink.inside_calls = winner.parser.inside_calls
        if not winner.closed:
            for event in winner.parser.close():
                sink.add(event)


def _is_telling(opener: str) -> bool:
    """Whether an opener says enough to look on wherever it stands. A mere bracket does not: prose is full of them."""
    return any(map(str.isalpha, opener))


def _ranked(opener: str, having: Iterable[tuple[Dialect, tuple[str, ...]]]) -> list[Dialect]:
    """The dialects that have this opener, those first that it is most typical of, and one for each shape."""
    places = [(openers.index(opener), dialect) for dialect, openers in having if opener in openers]
    by_shape: dict[object, Dialect] = {}
    for _, dialect in sorted(places, key=lambda place: place[0]):
        by_shape.setdefault(dialect.shape, dialect)
    return list(by_shape.values())


class _Reader:
    """One dialect's reading of the text, while it is not known which dialect's it is."""

    def __init__(self, dialect: Dialect, start: int, source: Source, sink: Sink) -> None:
        self.name = dialect.name
        self.parser = Parser(dialect, sink.offer, limits=sink.limits, thinking=sink.thinking, offset=start)
        self.events: list[ev.Event] = []
        self._telling: list[ev.Event] = []
        self.closed = False
        self._channel = source.channel
        self._begins_thinking = bool(dialect.router) and not sink.thinking and source.channel is Channel.TEXT
        self._offer = sink.offer

    def feed(self, text: str) -> None:
        self._take(self.parser.feed(text, self._channel))

    def closes(self) -> bool:
        """The text is over: whether this was a call."""
        self._take(self.parser.close())
        self.closed = True
        return self.won or self.calls

    def _take(self, events: list[ev.Event]) -> None:
        if events:
            self.events += events
            self._telling += (event for event in events if not isinstance(event, ev.Finding))

    @property
    def calls(self) -> bool:
        """Whether the first thing that it read is a call that may be one."""
        first = self._telling[0] if self._telling else None
        return isinstance(first, ev.CallStart) and self._offer.may_have(first.name)

    @property
    def won(self) -> bool:
        """Whether it has read a call that goes on after its header, for several dialects may write that alike; or
        thinking in a message of its own."""
        if not self._telling:
            return False
        return (len(self._telling) > 1 and self.calls) or self._thought

    @property
    def _thought(self) -> bool:
        return self._begins_thinking and isinstance(self._telling[0], ev.ReasoningDelta)

    @property
    def lost(self) -> bool:
        """Whether what it read is no call: it is something else, or it is over."""
        if self._telling:
            return not (self.calls or self._thought)
        begins_thinking = self._begins_thinking and self.parser.thinking
        return not (self.parser.inside_calls or self.parser.held or begins_thinking)
