"""Reader for strings between two delimiter tokens, without escapes: finds their end by what follows it.

A string may quote calls of the same dialect. So a delimiter ends the string only where the call can go on or end, and a
whole quoted call is data. If other text follows a possible end of the call, it is held back: it is data if the string
ends later; else the call ends at the possible end, and the text after it is read again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.shapes.literals.call_context import CallContext
from interlingua.parsing.shapes.literals.nested_calls import NestedCallEnd, NestedCallReader, QuotedCallSyntax
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS,
    CLOSING_BRACKETS_RUN,
    BracketContext,
    escape_json,
)
from interlingua.parsing.shapes.literals.value_ends import EndDecision, ValueEnd, ValueText
from interlingua.parsing.text_buffer import Read

__all__ = ["DelimitedStringReader", "QuoteClassifier"]

QuoteClassifier: TypeAlias = Callable[[BracketContext, int, bool], Read[EndDecision]]
"""Decides whether a quote ends a string, from the brackets around it, the number of quotes that the string already
contains, and whether missing delimiters are repaired."""

_CONTINUES = ValueText("")


class _Certainty(Enum):
    """Certainty that a call ends after a string."""

    CERTAIN = "certain"
    """The end of the text, a marker outside calls or the next call follows."""
    POSSIBLE = "possible"
    """Other text follows the closer."""
    UNLIKELY = "unlikely"
    """Other text follows, and the closer is missing."""


class _PossibleEnd(NamedTuple):
    """A possible end of the string, with other text after it."""

    offset: int
    """The offset of the text that is read again if the string ends here."""
    end: ValueEnd | None
    """The end of the value. None if the closing quote is missing: then the delimiter is read again."""
    is_ambiguous: bool
    """True if the string may also end at an earlier place."""
    inner_quotes: int
    """The number of quotes in the string up to here."""


class _StringOutput:
    """Output for the text of a string, which can hold the text back.

    Args:
        write: Receives the text as JSON.
        sink: Receives the text that is held back, for traces. None if the whole string is held back anyway.
    """

    def __init__(self, write: Callable[[str], None], sink: EventSink | None) -> None:
        self._write = write
        self._sink = sink
        self._buffered_pieces: list[str] | None = None

    def write(self, text: str) -> None:
        if self._buffered_pieces is None:
            self._write(escape_json(text))
        else:
            self._buffered_pieces.append(text)

    def hold(self) -> None:
        """Send what was held back, and hold back what follows."""
        self.release()
        self._buffered_pieces = [] if self._sink is None else self._sink.hold_value()

    def release(self) -> None:
        """Send what was held back."""
        text = self.discard()
        if text:
            self._write(escape_json(text))

    def discard(self) -> str:
        """Return what was held back, and forget it."""
        text = "".join(self._buffered_pieces or ())
        if self._sink is not None and self._buffered_pieces is not None:
            self._sink.take_value()
        self._buffered_pieces = None
        return text


class DelimitedStringReader:
    """Reader for one string, starting after its opening delimiter.

    Args:
        context: The state of the call.
        syntax: The syntax of calls that the string may quote.
        brackets: The brackets around the string.
        classify_quote: Decides whether a delimiter ends the string.
        write: Receives the string as JSON, without quotes.
        is_streamed: Whether the string is sent as it arrives.
    """

    def __init__(
        self,
        context: CallContext,
        syntax: QuotedCallSyntax,
        brackets: BracketContext,
        classify_quote: QuoteClassifier,
        write: Callable[[str], None],
        is_streamed: bool,
    ) -> None:
        self._context = context
        self._notation = context.notation
        self._source = context.source
        self._limits = context.sink.limits
        self._syntax = syntax
        self._brackets = brackets
        self._classify_quote = classify_quote
        self._output = _StringOutput(write, context.sink if is_streamed else None)
        self._possible_end: _PossibleEnd | None = None
        self._only_calls_follow = True  # whether only whole calls and text were read after the possible end
        self._inner_quotes = 0
        self._quotes_after_end = 0  # number of quotes after the possible end

    def read(self) -> Read[ValueEnd | None]:
        """Read the string and its closing delimiter.

        Returns:
            The end of the value; None if the text ended inside the string, or the limit was exceeded.
        """
        marks = self._notation.string_markers[self._syntax.quote]
        decision: EndDecision = _CONTINUES
        while isinstance(decision, ValueText):
            marker = yield from self._copy(marks, self._output.write)
            if marker is None:
                decision = None
            elif marker == self._syntax.quote:
                decision = yield from self._read_quote()
            elif marker == self._syntax.open:
                decision = yield from self._read_opener()
            else:
                decision = yield from self._read_closer(marker)
        if decision is None and self._possible_end is not None:
            return (yield from self._accept_possible_end(self._possible_end))
        return decision

    def _copy(self, marks: MarkerSet, write: Callable[[str], None]) -> Read[str | None]:
        """Copy text up to a marker.

        Returns:
            The marker; None if the text ended or a limit was exceeded. Behind a possible end, the text ends with its
            channel.
        """
        if self._possible_end is None:
            return (yield from self._context.copy_until(marks, write))
        remaining = self._possible_end.offset + self._limits.held - self._source.offset
        return (yield from self._source.copy_value(marks, write, max(0, remaining))) or None

    def _accept_possible_end(self, possible: _PossibleEnd) -> Read[ValueEnd | None]:
        """End the string at the possible end, because no later one was found, and un-read the text after it.

        Returns:
            The end of the value; None if the string is not closed anywhere.
        """
        source = self._source
        is_over_limit = source.offset - possible.offset >= self._limits.held
        if possible.end is None and not self._only_calls_follow and source.closed and not is_over_limit:
            self._output.release()
            return None
        source.searched_to, source.search_found_nothing = source.offset, not is_over_limit
        self._output.discard()
        if is_over_limit or possible.is_ambiguous:
            self._context.report_ambiguity()
        self._context.report_inner_quotes(possible.inner_quotes)
        source.rewind_to(possible.offset)
        source.drop_mark()
        if possible.end is None:
            return (yield from self._end_unclosed())
        source.skip_data(possible.end.delimiter)
        return possible.end

    # ── quotes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_quote(self, is_ambiguous: bool = False) -> Read[EndDecision]:
        """Decide whether the quote that was just read ends the string.

        Args:
            is_ambiguous: Whether the quote may also begin a value of a quoted call.
        """
        source, possible = self._source, self._possible_end
        quote_end = source.offset
        self._only_calls_follow = False
        self._quotes_after_end += 1
        if possible is None:
            source.set_mark()
        decision = yield from self._classify_quote(self._brackets, self._inner_quotes, possible is None)
        if decision is None:
            return None
        if isinstance(decision, ValueEnd) and decision.delimiter == self._syntax.open:
            source.put_back(decision.delimiter)
            if (yield from source.look_ahead(self._syntax.head, self._limits.header)) is None:
                source.rewind_to(quote_end)
                decision = _CONTINUES
            else:
                source.skip_data(decision.delimiter)
        if isinstance(decision, ValueText):
            self._inner_quotes += 1
            self._output.write(self._notation.quote_as_text(self._syntax.quote) + decision.text)
            if possible is None:
                source.drop_mark()
            return _CONTINUES
        if decision.delimiter == ",":
            is_ambiguous = is_ambiguous or (decision.key is None and (yield from self._is_unlikely_end()))
            return self._end_at(decision, quote_end, is_ambiguous)
        end_offset = source.offset - len(decision.delimiter)
        certainty = yield from self._find_certainty(decision.delimiter)
        is_certain = certainty is _Certainty.CERTAIN
        if not is_certain and decision.delimiter not in CLOSING_BRACKETS.values():
            is_ambiguous = True  # without a bracket, the marker after the quote may be quoted, too
        if is_certain or quote_end < source.searched_to:
            source.rewind_to(end_offset)
            source.skip_data(decision.delimiter)
            is_ambiguous = is_ambiguous or not (is_certain or source.search_found_nothing)
            return self._end_at(decision, quote_end, is_ambiguous)
        source.rewind_to(quote_end)
        if certainty is _Certainty.POSSIBLE or possible is None:
            self._output.hold()
            source.set_mark()
            is_ambiguous = is_ambiguous or possible is not None
            self._possible_end = _PossibleEnd(end_offset, decision, is_ambiguous, self._inner_quotes)
            self._quotes_after_end = 0
        self._output.write(self._syntax.quote)
        return _CONTINUES

    def _end_at(self, end: ValueEnd, quote_end: int, is_ambiguous: bool) -> ValueEnd:
        """End the string at a quote: what was held back before it is data."""
        self._source.drop_mark()
        self._source.trace_marker(self._syntax.quote, quote_end)
        self._output.release()
        # If the quotes after a possible end are pairs, they may be those of text after the call.
        may_end_earlier = self._possible_end is not None and self._quotes_after_end % 2 == 0
        if is_ambiguous or may_end_earlier:
            self._context.report_ambiguity()
        elif self._has_unpaired_quote(end):
            self._context.report_ambiguity("a quote that has no pair")
        self._context.report_inner_quotes(self._inner_quotes)
        return end

    def _has_unpaired_quote(self, end: ValueEnd) -> bool:
        """Return whether the string contains an unpaired quote, in a call with a key that may not be one of the tool.

        Then the quote before the key may be part of a string: `a"b", key: "c` may be one string or two.
        """
        context, known_keys = self._context, self._brackets.remaining_keys
        if end.key is not None and (known_keys is None or end.key not in known_keys):
            context.has_unknown_key = True
        return context.has_unknown_key and self._inner_quotes % 2 == 1

    def _is_unlikely_end(self) -> Read[bool]:
        """Return whether a bracket follows that does not end the call: then the string goes on, or its comma is wrong.
        Consumes nothing."""
        start = self._source.offset
        bracket = yield from self._source.accept(self._notation.value_ends)
        is_unlikely = False
        if bracket and bracket in CLOSING_BRACKETS.values():
            is_unlikely = (yield from self._find_certainty(bracket)) is _Certainty.UNLIKELY
        self._source.rewind_to(start)
        return is_unlikely

    def _find_certainty(self, delimiter: str) -> Read[_Certainty]:
        """Return the certainty that the call ends with the delimiter after a string. Consumes what follows it."""
        source, syntax = self._source, self._syntax
        has_closer = delimiter == syntax.close
        has_bracket = delimiter in CLOSING_BRACKETS.values()
        if has_bracket:
            name = yield from source.look_ahead(syntax.next_call, self._limits.header)
            if name is not None and self._context.sink.offer.accepts(name):
                return _Certainty.CERTAIN
            yield from source.take_while(CLOSING_BRACKETS_RUN)
            if self._brackets.depth and (yield from source.peek(self._notation.commas)):
                return _Certainty.CERTAIN
            has_closer = bool((yield from source.peek(syntax.closers)))
            if has_closer:
                yield from source.skip_space()
                source.skip_data(syntax.close)
        next_marker = yield from source.peek(self._notation.after_call)
        if next_marker == syntax.open:
            yield from source.skip_space()
            name = yield from source.look_ahead(syntax.head, self._limits.header)
            is_certain = has_closer and name is not None and self._context.sink.offer.accepts(name)
        else:
            is_certain = next_marker is not None and next_marker != syntax.close
        if next_marker == "" or (is_certain and has_bracket):
            return _Certainty.CERTAIN
        return _Certainty.POSSIBLE if has_closer else _Certainty.UNLIKELY

    # ── quoted calls ──────────────────────────────────────────────────────────────────────────────────────────────

    def _read_opener(self) -> Read[EndDecision]:
        """Read the opener of a call inside the string, and the call."""
        source, syntax = self._source, self._syntax
        source.put_back(syntax.open)
        if (yield from source.look_ahead(syntax.head, self._limits.header)) is None:
            source.skip_data(syntax.open)
            self._output.write(syntax.open)
            return _CONTINUES
        quoted_call = NestedCallReader(
            syntax, source, self._copy, self._output.write, self._limits.header, may_end_text=self._possible_end is None
        )
        end = yield from quoted_call.read(self._brackets.remaining_keys)
        if end is NestedCallEnd.MATCHED:
            return _CONTINUES
        self._only_calls_follow = False
        if end is None:
            return None
        if end is NestedCallEnd.END_OF_TEXT:
            self._context.report_ambiguity()
            return ValueEnd((yield from source.accept(self._notation.value_ends)) or self._notation.close)
        return (yield from self._read_quote(is_ambiguous=end is NestedCallEnd.OUTER_QUOTE_OR_VALUE))

    # ── a missing quote ───────────────────────────────────────────────────────────────────────────────────────────

    def _read_closer(self, marker: str) -> Read[EndDecision]:
        """Read a bracket or closer inside the string. If another call follows, the closing quote may be missing."""
        source = self._source
        source.put_back(marker)
        unclosed = self._notation.unclosed_strings[self._syntax.quote][marker]
        if self._possible_end is None and (yield from self._context.is_next(unclosed)):
            if source.offset < source.searched_to:
                if not source.search_found_nothing:
                    self._context.report_ambiguity()
                return (yield from self._end_unclosed())
            self._output.hold()
            source.set_mark()
            self._possible_end = _PossibleEnd(source.offset, None, False, self._inner_quotes)
            self._only_calls_follow = True
        source.skip_data(marker)
        # If the first bracket does not end the call, neither do the brackets after it.
        self._output.write(marker + (yield from source.take_while(CLOSING_BRACKETS_RUN)))
        return _CONTINUES

    def _end_unclosed(self) -> Read[ValueEnd]:
        """End the string before the delimiter that comes next."""
        self._context.report_unclosed_string()
        return ValueEnd((yield from self._source.accept(self._notation.value_ends)) or self._notation.close)
