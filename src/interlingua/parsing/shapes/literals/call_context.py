"""What the readers of one call's literals share: the text, where the arguments go, the limit, and what was mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interlingua.parsing.event_sink import Sink
from interlingua.parsing.markers import Markers
from interlingua.parsing.shapes.literals.notation__notation import Notation
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["LiteralCall", "Nowhere", "Writer"]


class Writer(Protocol):
    """Where the arguments go: a composer, or nowhere."""

    def key(self, key: str) -> None: ...
    def raw(self, json: str) -> None: ...


class Nowhere:
    """Where the arguments go of what is no call. They are read to find its end."""

    def key(self, key: str) -> None: ...
    def raw(self, json: str) -> None: ...


class LiteralCall:
    """One call, from behind its opening bracket."""

    def __init__(self, notation: Notation, args: Writer, source: Source, sink: Sink, limit: int) -> None:
        self.notation = notation
        self.args = args
        self.source = source
        self.sink = sink
        self._limit = source.offset + limit
        self.odd = False
        """Whether anything had to be mended."""
        self.over = False
        """Whether the limit was passed."""

    def copy(self, marks: Markers, write: Callable[[str], None]) -> Reading[str | None]:
        """Copies up to a marker, over changes of the channel. None if the text ended, or the limit was passed."""
        while not self.passed_limit():
            marker = yield from self.source.copy_value(marks, write, self._limit - self.source.offset)
            if marker != "":
                return marker
        return None

    def passed_limit(self) -> bool:
        self.over = self.over or self.source.offset >= self._limit
        return self.over

    def report(self, kind: str, message: str) -> None:
        if not isinstance(self.args, Nowhere):
            self.sink.report(kind, message)

    def mended(self, what: str) -> None:
        self.odd = True
        self.report("mended-arguments", f"{what} in the arguments: read as meant")
