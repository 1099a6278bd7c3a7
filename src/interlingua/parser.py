"""A model's text, in pieces, to events: the text between the markers, the thinking, and the shape's calls."""

from __future__ import annotations

from interlingua import events as ev
from interlingua.dialect import Dialect, Grammar
from interlingua.limits import Limits
from interlingua.markers import markers
from interlingua.sink import Sink
from interlingua.source import Channel, Reading, Source
from interlingua.tools import Offer

__all__ = ["Parser"]


class Parser:
    """Reads one reply's text. What it emits is in order, but not yet guarded: ids may be missing or repeated, and a
    call that the text's end has cut is left open.

    `prefill` is what the prompt had already written of the reply; if it opened the thinking, the text starts inside it.
    """

    def __init__(self, dialect: Dialect, offer: Offer, prefill: str = "", limits: Limits | None = None) -> None:
        self._dialect = dialect
        self._source = Source()
        self._markers = markers(*dialect.markers)
        self._sink = Sink(self._source, self._markers, offer, limits or Limits(), dialect.special_tokens)
        self._first_openers = dialect.grammar.first_openers(offer) if dialect.grammar else ()
        self._opens = frozenset(span.open for span in dialect.thinking)
        self._closes = frozenset(span.close for span in dialect.thinking)
        self._around_text = frozenset(dialect.text_markers)
        self._sink.thinking = self._ends_thinking(prefill)
        self.inside_calls = False
        """Whether the text stands in a call or a section of calls."""
        self._source.begin_with(prefill[self._markers.tail(prefill, 0) :])
        self._reading = self._read()  # begins with the first piece, in its channel

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return self._source.held

    def feed(self, text: str, channel: Channel = Channel.TEXT) -> list[ev.Event]:
        if self._sink.failed:
            return []
        if self._source.push(text, channel):
            next(self._reading, None)
        return self._sink.drain()

    def close(self) -> list[ev.Event]:
        """The text is over. Nothing is held after this."""
        self._source.close()
        next(self._reading, None)
        self._sink.close()
        return self._sink.drain()

    def _read(self) -> Reading[None]:
        source, sink, grammar = self._source, self._sink, self._dialect.grammar
        marker: str | None = ""
        while marker is not None and not sink.failed:
            if marker == "" or marker in self._closes:  # a text begins here: its first opener may have been lost
                opener = yield from source.accept_word(self._first_openers)
                if opener is not None and grammar is not None:
                    yield from self._read_calls(opener, grammar)
            marker = yield from source.copy_until(self._markers, sink.text, self._dialect.trim)
            if marker in self._opens:
                self._open_thinking(marker)
            elif marker in self._closes and (sink.thinking or marker not in self._around_text):
                self._close_thinking(marker)
            elif marker in self._around_text:
                sink.thinking = False
            elif marker in self._dialect.noise:
                sink.report("noise", f"{marker} is not part of the reply: dropped")
            elif marker and grammar is not None and marker in grammar.strays:
                sink.report("stray-marker", f"{marker} without a call around it: dropped")
            elif marker and grammar is not None:
                yield from self._read_calls(marker, grammar)
        if source.held and not sink.calls and not sink.failed:
            sink.text(source.held, source.channel)

    def _read_calls(self, opener: str, grammar: Grammar) -> Reading[None]:
        self.inside_calls = True
        self._source.record(opener)
        yield from grammar.read(opener, self._source, self._sink)
        self.inside_calls = False

    def _open_thinking(self, marker: str) -> None:
        if self._sink.thinking or self._source.channel is Channel.REASONING:
            self._sink.report("stray-marker", f"{marker} inside thinking: dropped")
        else:
            self._sink.thinking = True

    def _close_thinking(self, marker: str) -> None:
        if self._sink.thinking:
            self._sink.thinking = False
        elif self._source.channel is Channel.TEXT:
            self._sink.report(
                "stray-marker",
                f"{marker} without {self._dialect.thinking[0].open}: dropped, and what stood before it is left as text "
                "(if the prompt opens the thinking, pass it as prefill)",
            )

    def _ends_thinking(self, prefill: str) -> bool:
        opened = max((prefill.rfind(marker) for marker in self._opens), default=-1)
        closed = max((prefill.rfind(marker) for marker in self._closes), default=-1)
        return opened > closed
