"""literals: `OPEN call:name{key:value,…} CLOSE`, with literals for values.

The same token is before and after a string, and everything inside the string is data. Keys have no quotes. Every call
has its own markers. A closer may be missing, and so may a quote, a comma or a bracket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Grammar
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.lookahead import PatternSequence, literal_sequence
from interlingua.parsing.markers import assign_roles, compile_markers
from interlingua.parsing.shapes.common.json_arguments import read_members
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.literals.nested_calls import QuotedCallSyntax
from interlingua.parsing.shapes.literals.notation import (
    CLOSING_BRACKETS_PATTERN,
    WHITESPACE_PATTERN,
    Notation,
    QuotedMode,
)
from interlingua.parsing.shapes.literals.params_reader import LiteralParamsReader
from interlingua.parsing.shapes.literals.writer import LiteralWriter, check_reads_back
from interlingua.parsing.shapes.tagged_params.tag import valid_name
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["Literals", "LiteralsGrammar"]

PARAMS_OPENER = "{"
SURPLUS_BRACKETS = ("}", "]", ")")
_SURPLUS_BRACKETS_PATTERN = re.compile(r"[}\])]*+")
_NAME_PATTERNS = (WHITESPACE_PATTERN, r"([^\s{}<]++)")
_params_opener_markers = compile_markers(PARAMS_OPENER)


@dataclass(frozen=True)
class Literals:
    """Calls with literal values: the markers, and the format of values."""

    NAME: ClassVar[str] = "literals"

    open: str
    """Marker that begins a call."""
    close: str
    """Marker that ends a call."""
    quote: str
    """The token before and after a string."""
    prefix: str = "call:"
    """Text before the name."""
    quoted: QuotedMode = "string"
    """Meaning of a quoted value. `string`: a string; `typed`: another type if no string fits; `any`: any type."""
    words: tuple[str, str, str] = ("true", "false", "null")
    """The keywords for true, false and null, for writing."""
    in_order: bool = False
    """True if keys are written in sorted order."""

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return LiteralsGrammar(self, dialect_markers)


class LiteralsGrammar:
    def __init__(self, shape: Literals, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        self.openers: tuple[str, ...] = (shape.open,)
        self.strays: tuple[str, ...] = (shape.close, shape.quote)
        self.inner_markers: tuple[str, ...] = ()
        self.reads_json = False
        self.writes_back_ticks = False
        self.marker_roles = assign_roles(("inner", [shape.quote]), ("closer", [shape.close]), ("opener", self.openers))
        self._all_markers = compile_markers(*self.openers, *self.strays, *dialect_markers)
        self._header_ends = compile_markers(*self._all_markers.literals, PARAMS_OPENER)
        self._closers = compile_markers(shape.close)
        any_name, prefixed_name = (r"()[^\s{}<]++",), (*literal_sequence(shape.prefix), *_NAME_PATTERNS)
        self._notation = self._make_notation(dialect_markers, any_name)
        self._notation_for_offer = self._make_notation(dialect_markers, prefixed_name, _NAME_PATTERNS[1:])
        self.writer = LiteralWriter(shape.quote, shape.words, ",", ":", escapes=False, sort_keys=shape.in_order)

    def _make_notation(self, dialect_markers: tuple[str, ...], *names: PatternSequence) -> Notation:
        """Return the notation. `names` are patterns for the name of a call that follows a string."""
        shape = self._shape
        next_calls = [self._next_call_patterns(*name) for name in names]
        return Notation(
            separator=":",
            close="}",
            brackets="{[",
            quotes=('"',),
            delimiter=shape.quote,
            marks=(shape.open, shape.close, *dialect_markers),
            quoted_mode=shape.quoted,
            next_call_patterns={end: sum((calls[end] for calls in next_calls), ()) for end in next_calls[0]},
            plain_call_patterns=self._plain_call_patterns(),
            quoted_calls=QuotedCallSyntax(shape.open, shape.close, shape.quote, shape.prefix, dialect_markers),
        )

    def _next_call_patterns(self, *name: str) -> dict[str, tuple[PatternSequence, ...]]:
        """Return, for each possible end of a call, patterns from there to the params of the next call."""
        opener, closer = literal_sequence(self._shape.open), literal_sequence(self._shape.close)
        header = (WHITESPACE_PATTERN, *name, WHITESPACE_PATTERN, r"\{")
        after_call = (CLOSING_BRACKETS_PATTERN, *opener, *header)
        return {
            "}": ((CLOSING_BRACKETS_PATTERN, *closer, WHITESPACE_PATTERN, *opener, *header), after_call),
            self._shape.close: (after_call,),
        }

    def _plain_call_patterns(self) -> dict[str, tuple[PatternSequence, ...]]:
        """Return the same patterns up to the end of a call without strings.

        Only the name of an offered tool distinguishes such a call from text.
        """
        calls = self._next_call_patterns(*literal_sequence(self._shape.prefix), *_NAME_PATTERNS)
        remainder = (r"[^(){}<'\"]*+", r"\}", WHITESPACE_PATTERN, *literal_sequence(self._shape.close))
        return {end: tuple((*pattern, *remainder) for pattern in patterns) for end, patterns in calls.items()}

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:  # noqa: ARG002 (calls have no numbers here)
        return "".join(self._write_call(call) for call in calls)

    def _write_call(self, call: Call) -> str:
        shape = self._shape
        params = ",".join(self.write_param(key, value) for key, value in self.writer.ordered_items(read_members(call)))
        body = f"{shape.prefix}{call.name}{{{params}}}{shape.close}"
        check_reads_back(self, shape.open, body, [call], values_are_text=shape.quoted == "any")
        return shape.open + body

    def write_param(self, key: str, value: object) -> str:
        in_quotes = self._shape.quoted == "any" and not isinstance(value, str)
        return f"{key}:{self.writer.write_value(write_json(value) if in_quotes else value)}"

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        return tuple(f"{self._shape.prefix}{name}{PARAMS_OPENER}" for name in offer.names)

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the header contains only the name)
        header, _, _ = self._all_markers.remove_from(text).partition(PARAMS_OPENER)
        return header.strip().removeprefix(self._shape.prefix) or text

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if opener in self.openers:
            yield from self._read_call(source, sink)
        else:
            yield from self._read_call_without_opener(opener, source, sink)

    def _read_call(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        limit, start = sink.limits.header, source.offset
        text, marker = yield from source.take_until(self._header_ends, limit)
        header = text.strip()
        name = valid_name(header.removeprefix(self._shape.prefix).lstrip())
        if len(text) > limit:
            sink.report_over_limit("the header of a call", limit)
        elif marker == PARAMS_OPENER and (name or header in ("", self._shape.prefix)):
            yield from self._read_params(name, source, sink)
            return
        elif marker == self._shape.close and name and (header != name or sink.offer.has(name)):
            if not sink.reject_call(name):
                sink.report("no-arguments", f"a call that ends after its name {name!r}: accepted, no arguments")
                ObjectWriter(sink.start_call(CallHeader(name, None, name))).end()
                return
        else:
            sink.report("broken-header", "a call that is cut off in its header: kept as text", start)
        if marker and marker != self._shape.close:
            source.put_back(marker)
        sink.restore_text()

    def _read_params(self, name: str | None, source: TextBuffer, sink: EventSink) -> Read[None]:
        if sink.reject_call(name or ""):
            yield from self._read_as_text(source, sink)
            return
        call = sink.start_call(CallHeader(name or "", None, name))
        args = ObjectWriter(call)
        limit = sink.limits.held if call.awaits_name else sink.limits.args
        if (yield from source.accept(_params_opener_markers)):
            sink.report("mended-arguments", f"{PARAMS_OPENER!r} twice before the arguments: one is dropped")
        params = LiteralParamsReader(self._notation_of(sink), name or "", args, source, sink, limit)
        if (yield from params.read()):
            args.end()
            yield from self._read_closer(source, sink)
        elif params.over_limit:
            sink.report_over_limit("the argument text of a call", limit)
            call.close(complete=False)

    def _notation_of(self, sink: EventSink) -> Notation:
        """Return the notation in which only an offered tool can follow a string without its closing quote."""
        return self._notation_for_offer if sink.offer.is_known else self._notation

    def _read_as_text(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Emit a refused call as text up to its closer, without markers."""
        sink.restore_text()
        marker: str | None = self._shape.quote
        while marker == self._shape.quote or marker == "":
            marker = yield from source.copy_until(self._all_markers, sink.emit_text)
        if marker and marker != self._shape.close:
            source.put_back(marker)

    def _read_closer(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Consume the closer. Surplus brackets before it are a mistake of the model and are dropped."""
        if (yield from source.accept(self._closers)) or (yield from source.peek_after_space()) not in SURPLUS_BRACKETS:
            return
        start = source.offset
        yield from source.skip_space()
        surplus = yield from source.take_while(_SURPLUS_BRACKETS_PATTERN)
        sink.report("after-arguments", f"{surplus!r} after the end of the arguments: dropped", start)
        yield from source.accept(self._closers)

    def _read_call_without_opener(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read a call without its opener at the start of a text. It is a call only if the rest of it is complete."""
        name = opener.removeprefix(self._shape.prefix).removesuffix(PARAMS_OPENER)
        sink.begin_tentative()
        sink.report("no-opener", f"{opener!r} without its opening marker: accepted as a call")
        args = ObjectWriter(sink.start_call(CallHeader(name, None, name)))
        params = LiteralParamsReader(self._notation_of(sink), name, args, source, sink, sink.limits.args)
        ended = (yield from params.read()) and (yield from source.accept(self._closers))
        args.end(complete=bool(ended))
        if ended:
            sink.commit()
            return
        sink.rollback()
        if params.over_limit:
            sink.report_over_limit("the argument text of a call", sink.limits.args)
