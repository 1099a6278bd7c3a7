"""A model's text, in pieces, to events: the text between the markers, the thinking, and the shape's calls."""

from __future__ import annotations

from interlingua import events as ev
from interlingua.dialect import Dialect
from interlingua.limits import Limits
from interlingua.sink import Sink
from interlingua.source import Channel, Reading, Source, markers
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
        self._sink = Sink(self._source, offer, limits or Limits())
        self._markers = markers(*dialect.markers)
        self._lost_openers = markers(*dialect.reader.lost_openers(offer) if dialect.reader else ())
        self._opens = frozenset(span.open for span in dialect.thinking)
        self._closes = frozenset(span.close for span in dialect.thinking)
        self._sink.thinking = self._ends_thinking(prefill)
        self._reading = self._read()
        next(self._reading)

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return self._source.held

    def feed(self, text: str, channel: Channel = Channel.TEXT) -> list[ev.Event]:
        if self._sink.failed:
            return []
        if self._source.push(text, channel):
            next(self._reading, None)
        return self._sink.take()

    def close(self) -> list[ev.Event]:
        """The text is over. Nothing is held after this."""
        self._source.close()
        next(self._reading, None)
        self._sink.close()
        return self._sink.take()

    def _read(self) -> Reading[None]:
        source, sink, reader = self._source, self._sink, self._dialect.reader
        if reader is not None and (opener := (yield from source.accept(self._lost_openers))):
            yield from reader.read(opener, source, sink)
        while not sink.failed:
            marker = yield from source.copy_until(self._markers, sink.text)
            if marker is None:
                if source.held and not sink.calls:
                    sink.text(source.held, source.channel)
                return
            if marker in self._opens:
                self._open_thinking(marker)
            elif marker in self._closes:
                self._close_thinking(marker)
            elif marker in self._dialect.noise:
                sink.find("noise", f"{marker} is not part of the reply: dropped")
            elif reader is None or marker in reader.strays:
                sink.find("stray-marker", f"{marker} without a call around it: dropped")
            else:
                yield from reader.read(marker, source, sink)

    def _open_thinking(self, marker: str) -> None:
        if self._sink.thinking or self._source.channel is Channel.REASONING:
            self._sink.find("stray-marker", f"{marker} inside thinking: dropped")
        else:
            self._sink.thinking = True

    def _close_thinking(self, marker: str) -> None:
        if self._sink.thinking:
            self._sink.thinking = False
        elif self._source.channel is Channel.TEXT:
            self._sink.find(
                "stray-marker",
                f"{marker} without {self._dialect.thinking[0].open}: dropped, and what stood before it is left as text "
                "(if the prompt opens the thinking, pass it as prefill)",
            )

    def _ends_thinking(self, prefill: str) -> bool:
        opened = max((prefill.rfind(marker) for marker in self._opens), default=-1)
        closed = max((prefill.rfind(marker) for marker in self._closes), default=-1)
        return opened > closed
