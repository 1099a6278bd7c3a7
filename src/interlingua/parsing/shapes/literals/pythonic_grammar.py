"""pythonic: calls in Python syntax, `[name(key=value, …), …]`, with or without markers around them.

The values are Python or JSON literals. Without markers, a list of calls is ordinary text. At the start of a text, a
call of an offered tool is accepted immediately; anywhere else it is accepted only when it is complete.
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
from interlingua.parsing.markers import assign_roles, compile_markers
from interlingua.parsing.shapes.common.json_arguments import read_members
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.json_envelope.grammar import ENVELOPE_START_MARKERS, INLINE_CALL_STARTS, JsonEnvelope
from interlingua.parsing.shapes.literals.call_context import NullWriter
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS_PATTERN,
    WHITESPACE_PATTERN,
    Notation,
    QuotedMode,
)
from interlingua.parsing.shapes.literals.params_reader import LiteralParamsReader
from interlingua.parsing.shapes.literals.writer import LiteralWriter, check_reads_back
from interlingua.parsing.shapes.tagged_params.tag import MAX_NAME_CHARS
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer

__all__ = ["Pythonic", "PythonicGrammar"]

LIST_OPENER, LIST_CLOSER = "[", "]"
PARAMS_OPENER = "("
SURPLUS_BRACKETS = ("}", ")")
TRIPLE_QUOTES = ("'''", '"""')

_NAME_PATTERN = re.compile(r"[\w.\-]*")
_KEY_OR_END_PATTERN = re.compile(r"[^\W\d]|\)|$")
"""Matches the beginning of the params: a key, or their end."""
_SURPLUS_BRACKETS_PATTERN = re.compile(r"[})\s]*+")
_CALL_PATTERNS = (r"([^\W\d][\w.\-]*+)", r"\(")

_list_opener_markers = compile_markers(LIST_OPENER)
_list_closer_markers = compile_markers(LIST_CLOSER)
_params_opener_markers = compile_markers(PARAMS_OPENER)
_separator_markers = compile_markers(",", ";")

_CallOutcome: TypeAlias = Literal["call", "text", "none", "over"]
"""Result of reading a call.

`call`: a call. `text`: a refused call, emitted as text. `none`: not a call. `over`: a call without an end."""
_CallReader: TypeAlias = Callable[[str | None, TextBuffer, EventSink], Read[_CallOutcome]]


class _UnnamedValue(NamedTuple):
    """The first value of a call, which has no key."""

    key: str | None
    """The only param of the tool; None if the tool has several params or none."""


@dataclass(frozen=True)
class Pythonic:
    """Python calls: the markers around them, and the format of values."""

    NAME: ClassVar[str] = "pythonic"

    sections: tuple[Span, ...] = ()
    """Markers around all calls. All spans are read, the first one is written."""
    bare: bool = False
    """True if the model also writes calls without markers. If so, they are written without markers."""
    lines: bool = False
    """True if each call is written on a separate line, without list brackets."""
    quote: Literal["'", '"'] = '"'
    """The quote for writing strings."""
    words: tuple[str, str, str] = ("True", "False", "None")
    """The keywords for true, false and null, for writing."""
    escaped: bool = True
    """True if the model escapes quotes inside strings. If not, a quote ends a string only before a valid follower."""
    quoted: QuotedMode = "string"
    """Meaning of a quoted value. `string`: a string; `typed`: another type if no string fits; `any`: any type."""
    envelope: JsonEnvelope | None = None
    """Alternative content of a section or a reply: JSON objects with names and arguments. It is read, never written."""

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
        self.marker_roles = {
            **(self._envelope.marker_roles if self._envelope else {}),
            **assign_roles(("closer", self._section_closers), ("opener", self.openers)),
        }
        self.reads_json = self._envelope is not None
        self.writes_back_ticks = False
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
        self.writer = LiteralWriter(shape.quote, shape.words)

    def _next_call_patterns(self) -> tuple[PatternSequence, ...]:
        """Return patterns from the end of the params of a call to the params of the next call.

        Without a comma, the text may be code in a string, unless quotes in strings are escaped.
        """
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
            check_reads_back(self, LIST_OPENER, body.removeprefix(LIST_OPENER), list(calls))
            return body
        section = self._shape.sections[0]
        check_reads_back(self, section.open, body + section.close, list(calls))
        return section.open + body + section.close

    def _write_call(self, call: Call) -> str:
        params = (self.write_param(key, value) for key, value in read_members(call).items())
        return f"{call.name}({self.writer.comma.join(params)})"

    def write_param(self, key: str, value: object) -> str:
        return f"{key}={self.writer.write_value(value)}"

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        """Return the openers of a list without a section, if the model does not normally write it that way."""
        if not self._shape.bare:
            return tuple(f"{LIST_OPENER}{name}{PARAMS_OPENER}" for name in offer.names)
        return self._envelope.first_openers(offer) if self._envelope else ()

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the header contains only the name)
        return self._all_markers.remove_from(text).strip().lstrip(LIST_OPENER).partition(PARAMS_OPENER)[0] or text

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        at_start = source.offset == len(opener)
        if at_start and opener in INLINE_CALL_STARTS:  # a list at the start of the reply is not after other text
            source.put_back(opener.removeprefix(LIST_OPENER))
            opener = LIST_OPENER
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
            sink.report("stray-marker", f"{opener} without a call inside: dropped")
            return
        outcome: _CallOutcome = yield from self._read_call(
            (yield from self._read_name(source, sink.offer)), source, sink
        )
        if outcome == "none":
            sink.report("broken-header", f"{opener} without a call after it: kept as text", start)
        while outcome in ("call", "text") and (yield from source.peek(self._list_end_markers)) is None:
            separator = yield from source.accept(_separator_markers)
            source.start_recording(separator or "")
            if (yield from source.peek(self._list_end_markers)) is not None:
                break
            outcome = yield from self._read_call((yield from self._read_name(source, sink.offer)), source, sink)
            if outcome == "none":
                sink.report("section-not-closed", "the section of calls was never closed: closed here")
        if outcome in ("call", "text"):
            yield from self._read_section_end(outcome, source, sink)

    def _read_empty_list(self, source: TextBuffer) -> Read[bool]:
        """Consume the end of an empty list. Return whether the section is one."""
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
            sink.report("section-not-closed", "the section of calls was never closed: closed here")

    def _read_list(
        self, name: str | None, read_call: _CallReader, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        """Read a list of calls without a section. `name` is the name of the first call if it was already read."""
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
        """Read a call that is accepted immediately: in a section, or at the start of a reply if the tools are known."""
        if name is None:
            self._return_recorded_text(source, sink)
            return "none"
        unnamed = yield from self._find_unnamed_value(name, source, sink.offer)
        if unnamed and unnamed.key is None:
            sink.report("unnamed-value", f"values without keys in a call of {name!r}: kept as text")
        elif not sink.reject_call(name):
            return (yield from self._read_params(name, unnamed, source, sink))
        return (yield from self._read_as_text(name, unnamed, source, sink))

    def _read_tentative_call(self, name: str | None, source: TextBuffer, sink: EventSink) -> Read[_CallOutcome]:
        """Read a call that is accepted only if it is complete."""
        if name is not None:
            unnamed = yield from self._find_unnamed_value(name, source, sink.offer)
            if not (unnamed and unnamed.key is None) and not sink.reject_call(name):
                return (yield from self._read_tentative_params(name, unnamed, source, sink))
        self._return_recorded_text(source, sink)
        return "none"

    def _read_tentative_params(
        self, name: str, unnamed: _UnnamedValue | None, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        """Read the params of a tentative call.

        It is a call only if it needs no repair and is followed by `,` or `]`.
        """
        sink.begin_tentative()
        if not self._shape.bare:
            sink.report("no-section", "a complete call outside a section: accepted as a call")
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
            sink.report_over_limit("the argument text of a call", sink.limits.args)
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
            sink.report_over_limit("the argument text of a call", limit)
            call.close(complete=False)
        return "over"

    def _skip_surplus_brackets(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Drop surplus brackets after a call. They are a mistake of the model."""
        if (yield from source.peek_after_space()) in SURPLUS_BRACKETS:
            start = source.offset
            yield from source.skip_space()
            surplus = yield from source.take_while(_SURPLUS_BRACKETS_PATTERN)
            sink.report("after-arguments", f"{surplus.strip()!r} after the end of the arguments: dropped", start)

    def _read_name(self, source: TextBuffer, offer: ToolSet) -> Read[str | None]:
        """Read the name of a call and the bracket after it. Return None if no call follows."""
        yield from source.skip_space()
        name = yield from source.take_while(_NAME_PATTERN, MAX_NAME_CHARS)
        if not name[:1].isidentifier() or not (yield from source.accept(_params_opener_markers)):
            return None
        return name if offer.has(name) else offer.resolve_name(name) or name

    def _find_unnamed_value(self, name: str, source: TextBuffer, offer: ToolSet) -> Read[_UnnamedValue | None]:
        """Return the first value if it has no key, else None."""
        if _KEY_OR_END_PATTERN.match((yield from source.peek_after_space())):
            return None
        params = offer.param_names(name)
        return _UnnamedValue(params[0] if len(params) == 1 else None)

    def _report_unnamed_value(self, unnamed: _UnnamedValue | None, sink: EventSink) -> None:
        if unnamed:
            sink.report("unnamed-value", f"a value without a key: used as {unnamed.key!r}, the only param of the tool")

    def _read_as_text(
        self, name: str, unnamed: _UnnamedValue | None, source: TextBuffer, sink: EventSink
    ) -> Read[_CallOutcome]:
        """Emit a refused call as text up to its end, so that its content is not parsed as another call."""
        params = LiteralParamsReader(self._notation, name, NullWriter(), source, sink, sink.limits.held)
        ended = yield from params.read("" if unnamed else None)
        self._return_recorded_text(source, sink)
        return "text" if ended else "over"

    # ── output as text ───────────────────────────────────────────────────────────────────────────────────────────────

    def _return_recorded_text(self, source: TextBuffer, sink: EventSink) -> None:
        channel, text = source.recorded_channel, source.take_recorded()
        self._return_as_text(text, channel, source, sink)

    def _return_as_text(self, text: str, channel: Channel, source: TextBuffer, sink: EventSink) -> None:
        """Emit text that is not a call. If a bare bracket can open a call, the bracket is text, too."""
        if not self._shape.bare:
            sink.emit_leftover_text(text, channel)
            return
        text = self._all_markers.remove_from(text)
        if text:
            sink.emit_text(text, channel)
            source.mark_as_text()

    def _marker_as_text(self, marker: str, sink: EventSink) -> str:
        """Return the marker as text. Markers around a list that can also be bare are special tokens: return ""."""
        return "" if self._shape.bare else sink.strip_special_tokens(marker)
