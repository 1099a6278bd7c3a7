"""State shared by the readers of one call: text, output, limit, and whether the arguments were repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.lookahead import Lookahead
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.shapes.literals.notation import Notation
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["ArgumentsWriter", "CallContext", "NullWriter"]


class ArgumentsWriter(Protocol):
    """Output for arguments: an `ObjectWriter` or a `NullWriter`."""

    def begin_member(self, key: str) -> None: ...
    def write_raw(self, json: str) -> None: ...


class NullWriter:
    """Discards the arguments of text that is not a call. They are read only to find its end."""

    def begin_member(self, key: str) -> None: ...
    def write_raw(self, json: str) -> None: ...


class CallContext:
    """State of reading one call, starting after its opening bracket."""

    def __init__(
        self, notation: Notation, args: ArgumentsWriter, source: TextBuffer, sink: EventSink, limit: int
    ) -> None:
        self.notation = notation
        self.args = args
        self.source = source
        self.sink = sink
        self._limit = source.offset + limit
        self.was_repaired = False
        """True if the arguments had to be repaired."""
        self.over_limit = False
        """True if the limit was exceeded."""
        self.has_unknown_key = False
        """True if the key after a string is not known to be one of the tool."""
        self.param = ""
        """The key of the param that is being read."""

    def copy_until(self, marks: MarkerSet, write: Callable[[str], None]) -> Read[str | None]:
        """Copy text up to a marker, across changes of the channel.

        Returns:
            The marker; None if the text ended or the limit was exceeded.
        """
        while not self.is_over_limit():
            marker = yield from self.source.copy_value(marks, write, self._limit - self.source.offset)
            if marker != "":
                return marker
        return None

    def is_next(self, lookahead: Lookahead) -> Read[bool]:
        """Return whether the lookahead matches. If it includes the name of a call, the tool must be offered."""
        limits, names = self.sink.limits, self.sink.offer.names
        return (yield from self.source.look_ahead(lookahead, limits.header, ("", *names))) is not None

    def is_over_limit(self) -> bool:
        self.over_limit = self.over_limit or self.source.offset >= self._limit
        return self.over_limit

    def report(self, finding_kind: str, message: str) -> None:
        if not isinstance(self.args, NullWriter):
            self.sink.report(finding_kind, message)

    def report_ambiguity(self, quoted_part: str = "a part of a call") -> None:
        """Report that a value quotes a part of a call, so that its end is not certain."""
        self.sink.has_ambiguous_value = True
        self.report("ambiguous-value", f"the value of {self.param!r} quotes {quoted_part}: its end is ambiguous")

    def report_unclosed_string(self) -> None:
        self.was_repaired = True
        self.report("value-not-closed", "a string without its closing quote: closed before the next call")

    def report_inner_quotes(self, count: int) -> None:
        """Report the quotes inside a string that were replaced by the character that they contain."""
        quote = self.notation.delimiter
        if count and (char := self.notation.quote_as_text(quote)) != quote:
            self.report("mended-arguments", f"{quote} inside the value of {self.param!r}: read as {char}")

    def report_repair(self, problem: str) -> None:
        self.was_repaired = True
        self.report("mended-arguments", f"{problem} in the arguments: repaired")
