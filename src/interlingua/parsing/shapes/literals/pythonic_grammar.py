"""pythonic: calls as Python writes them, `[name(key=value, …), …]`, with or without markers around them.

The values are literals, of Python or of JSON. Without markers a list of calls is ordinary text: where a text begins
with one of an offered tool it is a call at once, anywhere else only once it has come to its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Grammar, Span
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.lookahead import PatternSequence, literal_sequence
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.common.json_arguments import read_members
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.json_envelope.grammar import ENVELOPE_START_MARKERS, JsonEnvelope
from interlingua.parsing.shapes.literals.call_context import NullWriter
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS_PATTERN,
    WHITESPACE_PATTERN,
    Notation,
    QuotedMode,
)
from interlingua.parsing.shapes.literals.params_reader import LiteralParamsReader
from interlingua.parsing.shapes.literals.writer import LiteralWriter, check_round_trip
from interlingua.parsing.shapes.tagged_params.tag import MAX_NAME_CHARS
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer

__all__ = ["Pythonic"]

LIST_OPENER, LIST_CLOSER = "[", "]"
PARAMS_OPENER = "("
SURPLUS_BRACKETS = ("}", ")")
TRIPLE_QUOTES = ("'''", '"""')

_NAME_PATTERN = re.compile(r"[\w.\-]*")
_KEY_OR_END_PATTERN = re.compile(r"[^\W\d]|\)|$")
"""What the params may begin with: a key, or their end."""
_SURPLUS_BRACKETS_PATTERN = re.compile(r"[})\s]*+")
_CALL_PATTERNS = (r"([^\W\d][\w.\-]*+)", r"\(")

_list_opener_markers = compile_markers(LIST_OPENER)
_list_closer_markers = compile_markers(LIST_CLOSER)
_params_opener_markers = compile_markers(PARAMS_OPENER)
_separator_markers = compile_markers(",", ";")

_CallOutcome: TypeAlias = Literal["call", "text", "none", "over"]
"""What was read: a call; one that is given back as text, to its end; no call; or one that did not come to its end."""
_CallReader: TypeAlias = Callable[[str | None, TextBuffer, EventSink], Read[_CallOutcome]]


class _UnnamedValue(NamedTuple):
    """The first value of a call stands without its key."""

    key: str | None
    """The tool's only param; None if nothing tells which one it is."""


@dataclass(frozen=True)
class Pythonic:
    """What stands around the calls, and how values are written."""

    NAME: ClassVar[str] = "pythonic"

    sections: tuple[Span, ...] = ()
    """Markers around all calls. The first is how we write them."""
    bare: bool = False
    """Whether the calls are also written without any section, as we do then."""
    lines: bool = False
    """Whether we write each call on a line of its own, and no list."""
    quote: Literal["'", '"'] = '"'
    """How we write strings."""
    words: tuple[str, str, str] = ("True", "False", "None")
    """How we write true, false and null."""
    escaped: bool = True
    """Whether the model escapes the quotes inside a string. If not, a quote ends one only before what may follow it."""
    quoted: QuotedMode = "string"
    """What quotes say: `string`, that it is one; `typed`, a value where no string fits; `any`, nothing."""
    envelope: JsonEnvelope | None = None
    """What else a section may hold, or a reply may be: JSON objects with names and arguments. We never write it."""

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return PythonicGrammar(self, dialect_markers)


class PythonicGrammar:
    def __init__(self, shape: Pythonic, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        self._section_openers = tuple(span.open for span in shape.sections)
        self._section_closers = tuple(span.close for span in shape.sections)
        self._envelope = shape.envelope.grammar((*self._section_closers, *dialect_markers)) if shape.envelope else None
        own_openers = (*self._section_openers, *((LIST_OPENER,) if shape.bare else ()))
        self.openers = tuple(dict.fromkeys((*own_openers, *(self._envelope.openers if self._envelope else ()))))
        self.strays = self._section_closers
        self.inner_markers = self._envelope.inner_markers if self._envelope else ()
        marks = (*self._section_openers, *self._section_closers, *dialect_markers)
        self._all_markers = compile_markers(*marks)
        self._closers = compile_markers(*self._section_closers)
        self._list_end_markers = compile_markers(LIST_CLOSER, *marks)
        self._item_end_markers = compile_markers(",", LIST_CLOSER)
        self._notation = Notation(
            separator="=",
            close=")",
            brackets="{[(",
            quotes=(*TRIPLE_QUOTES, "'", '"'),
            marks=marks,
            escaped=shape.escaped,
            quoted_mode=shape.quoted,
            between_calls=(",", LIST_CLOSER),
            next_call_patterns={")": self._next_call_patterns()},
            after_string=(
                *(("()", CLOSING_BRACKETS_PATTERN, *literal_sequence(close)) for close in self._section_closers),
                *(
                    (*pattern, WHITESPACE_PATTERN, r"\w*+", WHITESPACE_PATTERN, "[=)]")
                    for pattern in self._next_call_patterns()
                ),
            ),
        )
        self._writer = LiteralWriter(shape.quote, shape.words)

    def _next_call_patterns(self) -> tuple[PatternSequence, ...]:
        """What stands between the params of a call and those of the next one. Without a comma it may be code in a
        string, unless quotes in strings are escaped."""
        in_list, on_lines = (
            (CLOSING_BRACKETS_PATTERN, "[,;]", WHITESPACE_PATTERN, *_CALL_PATTERNS),
            (CLOSING_BRACKETS_PATTERN, *_CALL_PATTERNS),
        )
        sections = (
            (
                CLOSING_BRACKETS_PATTERN,
                *literal_sequence(close),
                WHITESPACE_PATTERN,
                *literal_sequence(open),
                r"[\s\[]*+",
                *_CALL_PATTERNS,
            )
            for open, close in product(self._section_openers, self._section_closers)
        )
        return in_list, *([on_lines] if self._shape.escaped else []), *sections

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:  # noqa: ARG002 (calls have no numbers here)
        written = [self._write_call(call) for call in calls]
        body = "\n".join(written) if self._shape.lines else LIST_OPENER + ", ".join(written) + LIST_CLOSER
        if self._shape.bare:
            check_round_trip(self, LIST_OPENER, body.removeprefix(LIST_OPENER), list(calls))
            return body
        section = self._shape.sections[0]
        check_round_trip(self, section.open, body + section.close, list(calls))
        return section.open + body + section.close

    def _write_call(self, call: Call) -> str:
        params = (f"{key}={self._writer.write_value(value)}" for key, value in read_members(call).items())
        return f"{call.name}({', '.join(params)})"

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        """The list without its section, if the model does not write it that way."""
        if not self._shape.bare:
            return tuple(f"{LIST_OPENER}{name}{PARAMS_OPENER}" for name in offer.names)
        return self._envelope.first_openers(offer) if self._envelope else ()

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the header holds nothing but the name)
        return self._all_markers.remove_from(text).strip().lstrip(LIST_OPENER).partition(PARAMS_OPENER)[0] or text

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        at_start = source.offset == len(opener)
        if (yield from self._is_envelope(opener, at_start, source)):
            assert self._envelope is not None
            yield from self._envelope.read(opener, source, sink)
        elif opener in self._section_openers:
            yield from self._read_section(opener, source, sink)
        else:
            name = opener.removeprefix(LIST_OPENER).removesuffix(PARAMS_OPENER) or None
            is_certain = at_start and self._shape.bare and sink.offer.is_known
            if (
                yield from self._read_list(
                    name, self._read_call if is_certain else self._read_tentative_call, source, sink
                )
            ) == "call":
                yield from source.accept(_list_closer_markers)

    def _is_envelope(self, opener: str, at_start: bool, source: TextBuffer) -> Read[bool]:
        if self._envelope is None or opener.endswith(PARAMS_OPENER):
            return False
        if opener == LIST_OPENER:
            return at_start and (yield from source.peek_after_space()) == "{"
        return opener not in self._section_openers or (yield from source.peek(ENVELOPE_START_MARKERS)) is not None

    def _read_section(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        start = source.offset
        yield from source.accept(_list_opener_markers)
        if (yield from source.accept(self._closers)) or (yield from self._read_empty_list(source)):
            sink.report("stray-marker", f"{opener} with no call in it: dropped")
            return
        outcome: _CallOutcome = yield from self._read_call(
            (yield from self._read_name(source, sink.offer)), source, sink
        )
        if outcome == "none":
            sink.report("broken-header", f"{opener} and no call after it: given back as text", start)
        while outcome in ("call", "text") and (yield from source.peek(self._list_end_markers)) is None:
            separator = yield from source.accept(_separator_markers)
            source.start_recording(separator or "")
            if (yield from source.peek(self._list_end_markers)) is not None:
                break
            outcome = yield from self._read_call((yield from self._read_name(source, sink.offer)), source, sink)
            if outcome == "none":
                sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")
        if outcome in ("call", "text"):
            yield from self._read_section_end(outcome, source, sink)

    def _read_empty_list(self, source: TextBuffer) -> Read[bool]:
        """Whether the section is an empty list."""
        if (yield from source.peek(_list_closer_markers)) != LIST_CLOSER:
            return False
        yield from source.accept(_list_closer_markers)
        return (yield from source.accept(self._closers)) is not None or (yield from source.peek_after_space()) == ""

    def _read_section_end(self, outcome: _CallOutcome, source: TextBuffer, sink: EventSink) -> Read[None]:
        bracket = yield from source.accept(_list_closer_markers)
        closer = yield from source.accept(self._closers)
        if outcome == "text" and (remainder := (bracket or "") + self._marker_as_text(closer or "", sink)):
            sink.emit_text(remainder, source.channel)
            source.mark_as_text()
        if closer is None:
            sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")

    def _read_list(
        self, name: str | None, read_call: _CallReader, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        """A list of calls without a section. The name of the first may have been read."""
        while True:
            name = name or (yield from self._read_name(source, sink.offer))
            outcome = yield from read_call(name, source, sink)
            if outcome in ("none", "over") or (yield from source.peek(self._item_end_markers)) != ",":
                return outcome
            yield from source.accept(_separator_markers)
            source.start_recording(",")
            name = None
            if (yield from source.peek(_list_closer_markers)) is not None:
                if outcome == "text":
                    self._return_recorded_text(source, sink)
                source.discard_recording()
                return outcome

    def _read_call(self, name: str | None, source: TextBuffer, sink: EventSink) -> Read[_CallOutcome]:
        """What is a call at once: in a section, or where the reply begins with it and the tools are known."""
        if name is None:
            self._return_recorded_text(source, sink)
            return "none"
        unnamed = yield from self._find_unnamed_value(name, source, sink.offer)
        if unnamed and unnamed.key is None:
            sink.report("unnamed-value", f"values that nothing names in a call of {name!r}: it is given out as text")
        elif not sink.reject_call(name):
            return (yield from self._read_params(name, unnamed, source, sink))
        return (yield from self._read_as_text(name, unnamed, source, sink))

    def _read_tentative_call(self, name: str | None, source: TextBuffer, sink: EventSink) -> Read[_CallOutcome]:
        """What is a call only once it has come to its end."""
        if name is not None:
            unnamed = yield from self._find_unnamed_value(name, source, sink.offer)
            if not (unnamed and unnamed.key is None) and not sink.reject_call(name):
                return (yield from self._read_tentative_params(name, unnamed, source, sink))
        self._return_recorded_text(source, sink)
        return "none"

    def _read_tentative_params(
        self, name: str, unnamed: _UnnamedValue | None, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        """The params of what is a call only if nothing is wrong with it, and something follows that may."""
        sink.begin_tentative()
        if not self._shape.bare:
            sink.report("no-section", "a call outside a section: taken as a call, for it is all there")
        args = ObjectWriter(sink.start_call(CallHeader(name, None, name)))
        self._report_unnamed_value(unnamed, sink)
        params = LiteralParamsReader(self._notation, name, args, source, sink, sink.limits.args)
        ended = (yield from params.read(unnamed and unnamed.key)) and not params.was_repaired
        ended = ended and (yield from source.peek(self._item_end_markers)) is not None
        args.end(complete=ended)
        if ended:
            sink.commit()
            return "call"
        channel, text = source.recorded_channel, source.take_recorded()
        sink.rollback()
        self._return_as_text(text, channel, source, sink)
        if params.over_limit:
            sink.report_over_limit("a call's arguments", sink.limits.args)
        return "none"

    def _read_params(
        self, name: str, unnamed: _UnnamedValue | None, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        limit = sink.limits.args
        call = sink.start_call(CallHeader(name, None, name))
        args = ObjectWriter(call)
        self._report_unnamed_value(unnamed, sink)
        params = LiteralParamsReader(self._notation, name, args, source, sink, limit)
        if (yield from params.read(unnamed and unnamed.key)):
            args.end()
            yield from self._skip_surplus_brackets(source, sink)
            return "call"
        if params.over_limit:
            sink.report_over_limit("a call's arguments", limit)
            call.close(complete=False)
        return "over"

    def _skip_surplus_brackets(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """More brackets after those of a call are a slip of the model."""
        if (yield from source.peek_after_space()) in SURPLUS_BRACKETS:
            start = source.offset
            yield from source.skip_space()
            surplus = yield from source.take_while(_SURPLUS_BRACKETS_PATTERN)
            sink.report("after-arguments", f"{surplus.strip()!r} after the arguments' end: dropped", start)

    def _read_name(self, source: TextBuffer, offer: ToolSet) -> Read[str | None]:
        """The name of a call, and the bracket behind it. None if no call comes."""
        yield from source.skip_space()
        name = yield from source.take_while(_NAME_PATTERN, MAX_NAME_CHARS)
        if not name[:1].isidentifier() or not (yield from source.accept(_params_opener_markers)):
            return None
        return name if offer.has(name) else offer.resolve_name(name) or name

    def _find_unnamed_value(self, name: str, source: TextBuffer, offer: ToolSet) -> Read[_UnnamedValue | None]:
        """The first value, if it stands without its key."""
        if _KEY_OR_END_PATTERN.match((yield from source.peek_after_space())):
            return None
        params = offer.param_names(name)
        return _UnnamedValue(params[0] if len(params) == 1 else None)

    def _report_unnamed_value(self, unnamed: _UnnamedValue | None, sink: EventSink) -> None:
        if unnamed:
            sink.report("unnamed-value", f"a value without its key: taken as {unnamed.key!r}, the tool's only param")

    def _read_as_text(
        self, name: str, unnamed: _UnnamedValue | None, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        """A call that is none. It is text to its end, so that what stands in it is not read as another call."""
        params = LiteralParamsReader(self._notation, name, NullWriter(), source, sink, sink.limits.held)
        ended = yield from params.read("" if unnamed else None)
        self._return_recorded_text(source, sink)
        return "text" if ended else "over"

    # ── giving back ───────────────────────────────────────────────────────────────────────────────────────────────

    def _return_recorded_text(self, source: TextBuffer, sink: EventSink) -> None:
        channel, text = source.recorded_channel, source.take_recorded()
        self._return_as_text(text, channel, source, sink)

    def _return_as_text(self, text: str, channel: Channel, source: TextBuffer, sink: EventSink) -> None:
        """Text that is no call. Where a bracket alone may open one, it is text too."""
        if not self._shape.bare:
            sink.emit_leftover_text(text, channel)
            return
        text = self._all_markers.remove_from(text)
        if text:
            sink.emit_text(text, channel)
            source.mark_as_text()

    def _marker_as_text(self, marker: str, sink: EventSink) -> str:
        """The marker as text. Those around a list that may stand without them are tokens, whatever prose may hold."""
        return "" if self._shape.bare else sink.strip_special_tokens(marker)
