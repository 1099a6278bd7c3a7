"""Values of params that are written as raw text: finds their end and converts them to their type.

A closer ends a value only if it is followed by something that can follow a param. This distinguishes most quoted
closers from the real one. A value that contains its own closer and then such a follower is ambiguous by design.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.coercion import DeclaredType, ValueCoercion
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Span
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.parsing.shapes.tagged_params.unclosed_values import (
    NEWLINE,
    TagContext,
    UnclosedValueRules,
    name_prefixes,
)
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["NO_LIMIT", "ParamContext", "TextValues"]

NO_LIMIT = 1 << 62
TYPE_ATTRIBUTE = "type"
UNKNOWN_TYPE = "any"
_EQUALS_PATTERN = re.compile(r"\s*+=\s*+")


class _Overflow(Enum):
    """Sentinel: a buffered value exceeds the limit."""

    LIMIT = "limit"


class _EndMarkers(NamedTuple):
    """Markers that can end a value: an inline value, one on separate lines, a quoted one."""

    plain: MarkerSet
    on_lines: MarkerSet
    quoted: MarkerSet


class ParamContext(NamedTuple):
    """The param whose value comes next."""

    opener: str
    key: str
    attributes: str
    coercion: ValueCoercion
    wraps_all: bool
    """True if the value may be an object with all arguments."""
    tool: str
    offer: ToolSet
    seen_keys: set[str]
    """The keys that were already read. Text that looks like one of them again is data."""


class TextValues:
    """Reader and writer for values. The parameters are explained in `TaggedParams`."""

    def __init__(
        self,
        tag: Tag,
        value_open: tuple[str, ...],
        value_type: Span | None,
        quote: Span | None,
        lines: bool,
        string_when: str,
        tag_context: TagContext,
    ) -> None:
        self._tag = tag
        self._value_open = value_open
        self._value_type = value_type
        self._type_openers = compile_markers(*((value_type.open,) if value_type else ()))
        self._type_ends = compile_markers(*((value_type.close, *value_open, *tag.close) if value_type else ()))
        self._type_rule = string_when or (f"{TYPE_ATTRIBUTE}=string" if value_type else "")
        self._quote = quote
        self._lines = lines
        self._string_when = string_when
        self._tag_context = tag_context
        self.openers = compile_markers(*value_open)
        self._quote_openers = compile_markers(*((quote.open,) if quote else ()))
        self._param_openers = (*(NEWLINE + opener for opener in tag.open), *(tag.open if value_open else ()))
        self._key_prefixes = name_prefixes(tag)
        self._unclosed_rules = UnclosedValueRules(tag, bool(value_open), tag_context)
        paired = len(tag.open) == len(tag.close)
        self._end_markers = {
            opener: self._end_markers_for(tag.close[n : n + 1] if paired else tag.close)
            for n, opener in enumerate(tag.open)
        }

    def _end_markers_for(self, closers: tuple[str, ...]) -> _EndMarkers:
        closers_on_lines = tuple(NEWLINE + close for close in closers)
        quote = self._quote.close if self._quote else ""
        return _EndMarkers(
            compile_markers(*closers, *self._unclosed_rules.anywhere, *self._param_openers),
            compile_markers(*closers, *closers_on_lines, *self._unclosed_rules.on_lines, *self._param_openers),
            compile_markers(*(quote + close for close in closers)),
        )

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, key: str, value: Any) -> str:
        """Write a param as an element."""
        text = value if isinstance(value, str) else write_json(value)
        attribute, _, when_string = self._string_when.partition("=")
        head = self._tag.write_head(key, attribute, _type_attribute(value, when_string))
        marks = self._end_markers[self._tag.open[0]]
        close = self._tag.close[0]
        if self._quote and set("<&\n") & set(text):
            self._check_writable(key, text, marks.quoted, self._quote.close + close)
            return head + self._quote.open + text + self._quote.close + close
        gap = NEWLINE if self._lines else ""
        self._check_writable(key, text + gap, marks.on_lines if gap else marks.plain, close)
        return head + "".join(self._value_open[:1]) + gap + text + gap + close

    def _check_writable(self, key: str, text: str, ends: MarkerSet, close: str) -> None:
        """Raise `RenderError` if a marker in the text would end the value."""
        complete = text + close
        for match in ends.find_all(text):
            marker, remainder = match.group(), complete[match.end() :]
            if marker.endswith(self._tag.close):
                in_line = NEWLINE + marker in ends.literals and not remainder.startswith(NEWLINE)
                would_end = not in_line and self._tag_context.after_param.match(remainder.lstrip(), 0) is not None
            elif marker in self._param_openers:
                would_end = remainder.lstrip().startswith(self._tag.attribute or "")
            else:
                would_end = self._unclosed_rules.is_end_at(complete, match.start(), marker)
            if would_end:
                raise RenderError(f"the param {key!r} contains {marker.strip()}, which would end it", "remove it")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, param: ParamContext, args: ObjectWriter, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Read one value, after the head of its param.

        Returns:
            "" after its closer; the other marker that ended it; None at the end of the text.
        """
        if self._value_type is not None and (yield from source.accept(self._type_openers)) is not None:
            param = yield from self._read_type(self._value_type.close, param, source, sink)
        if self._value_open and (yield from source.accept(self.openers)) is None:
            sink.report("no-separator", f"the value of {param.key!r} without {self._value_open[0].strip()}: accepted")
            if self._value_open[0].startswith(NEWLINE):
                yield from source.accept_char(NEWLINE)
        quoted = self._quote is not None and (yield from source.accept(self._quote_openers)) is not None
        on_lines = self._lines and (yield from source.accept_char(NEWLINE))
        marks = self._end_markers[param.opener]
        ends = marks.quoted if quoted else marks.on_lines if on_lines else marks.plain
        first = yield from source.peek_after_space()
        if not param.wraps_all and self._is_string(param, first, quoted):
            marker = yield from self._stream_string("", param, args, ends, source, sink)
        else:
            declared_type = self._declared_type(param, quoted)
            marker = yield from self._read_buffered(param, declared_type, args, ends, source, sink)
        if marker in self._tag_context.tokens:
            args.mark_incomplete()  # the model stopped here, and the value may be truncated
        return marker

    def _read_type(self, closer: str, param: ParamContext, source: TextBuffer, sink: EventSink) -> Read[ParamContext]:
        """Read the type of a value after its opener. Return the param with this type."""
        text, marker = yield from source.take_until(self._type_ends, sink.limits.header)
        if marker != closer:
            source.put_back(marker or "")
        name = text.strip()
        return param if name in ("", UNKNOWN_TYPE) else param._replace(attributes=f"{TYPE_ATTRIBUTE}={name}")

    def _is_string(self, param: ParamContext, first: str, quoted: bool) -> bool:
        """Return whether the value is certainly a string, so that it can be streamed before its end is known."""
        if param.coercion.has_choices:
            return False
        declared_type = self._declared_type(param, quoted)
        if declared_type == "string":
            return param.coercion.accepts_string
        return declared_type != "json" and not param.coercion.can_be_value(first)

    def _declared_type(self, param: ParamContext, quoted: bool) -> DeclaredType:
        """Return the type that the quotes or the attributes declare."""
        if quoted:
            return "string"
        attributes = _EQUALS_PATTERN.sub("=", param.attributes.replace('"', "").replace("'", "")).split()
        name = self._type_rule.partition("=")[0] + "="
        if not self._type_rule or not any(attribute.startswith(name) for attribute in attributes):
            return ""
        return "string" if self._type_rule in attributes else "json"

    def _stream_string(
        self,
        buffered: str,
        param: ParamContext,
        args: ObjectWriter,
        ends: MarkerSet,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        args.begin_member(param.key)
        args.write_raw('"')
        args.write_text(buffered)
        channel = source.channel
        marker = yield from self._copy_value(args.write_text, NO_LIMIT, param, ends, source, sink)
        if marker is None or marker is _Overflow.LIMIT:
            return None
        args.write_raw('"')
        if marker == "" and source.channel is not channel:
            args.mark_incomplete()
        return marker

    def _read_buffered(
        self,
        param: ParamContext,
        declared_type: DeclaredType,
        args: ObjectWriter,
        ends: MarkerSet,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        limit = sink.limits.args
        marker = yield from self._copy_value(sink.hold_value().append, limit, param, ends, source, sink)
        text = sink.take_value()
        if marker is None:
            return None
        if marker is _Overflow.LIMIT:
            sink.report("bad-value", f"{param.key!r} is longer than {limit:,} characters: treated as a string")
            return (yield from self._stream_string(text, param, args, ends, source, sink))
        value = param.coercion.convert(text, declared_type)
        if value.problem is not None:
            sink.report("bad-value", f"{param.key!r}: {value.problem}")
        if param.wraps_all and value.json.startswith("{"):
            sink.report("unwrapped-arguments", f"the arguments were inside {param.key!r}: unwrapped")
            args.write_members(value.json)
        else:
            args.begin_member(param.key)
            args.write_raw(value.json)
        return marker

    # ── end of a value ────────────────────────────────────────────────────────────────────────────────────────

    def _copy_value(
        self,
        write: Callable[[str], None],
        limit: int,
        param: ParamContext,
        ends: MarkerSet,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | _Overflow | None]:
        channel = source.channel
        while True:
            marker = yield from source.copy_value(ends, write, limit, channel)
            if marker is None:
                return None
            if marker == "" and source.channel is channel:
                return _Overflow.LIMIT
            if marker.endswith(self._tag.close):
                if (yield from self._is_closer(marker, ends, param, source)):
                    source.trace_marker(marker)
                    return ""
            elif marker == "" or (yield from self._is_unclosed_end(marker, param, source)):
                source.trace_marker(marker)
                if marker in self._tag.slips:
                    sink.report(
                        "value-not-closed", f"the value of {param.key!r} ends with {marker}: accepted as its closer"
                    )
                    return ""
                sink.report("value-not-closed", f"the value of {param.key!r} was never closed: closed here")
                return marker.removeprefix(NEWLINE)
            elif marker.startswith(NEWLINE) and marker not in self._param_openers:
                # A longer marker may begin after the line break.
                source.put_back(marker.removeprefix(NEWLINE))
                marker = NEWLINE
            write(marker)

    def _is_closer(self, marker: str, ends: MarkerSet, param: ParamContext, source: TextBuffer) -> Read[bool]:
        """Return whether this closer ends the value: only if something follows that can follow a param."""
        in_line = NEWLINE + marker in ends.literals
        if in_line and (yield from source.peek_char()) not in (NEWLINE, ""):
            return False
        if (yield from source.peek(self._tag_context.after_param)) is not None:
            return True
        return bool(self._value_open) and (yield from self._is_next_key(param, self._tag.end, source))

    def _is_unclosed_end(self, marker: str, param: ParamContext, source: TextBuffer) -> Read[bool]:
        """Return whether a value without a closer ends here.

        It does if the call, the section or the turn ends, or if another param or call begins.
        """
        if marker not in self._param_openers:
            return (
                yield from source.is_next(
                    self._unclosed_rules.end_sequences(marker, param.offer.names), last_marker=marker
                )
            )
        return (yield from self._is_next_key(param, ('"', "'", *self._tag.end), source, self._key_prefixes))

    def _is_next_key(
        self, param: ParamContext, ends: tuple[str, ...], source: TextBuffer, prefixes: tuple[str, ...] = ("",)
    ) -> Read[bool]:
        """Return whether the key of another param comes next, between one of `prefixes` and one of `ends`."""
        keys = [key for key in param.offer.param_names(param.tool) if key not in param.seen_keys]
        words = tuple(prefix + key + end for prefix in prefixes for key in keys for end in ends)
        word = yield from source.accept_word(words)
        source.put_back(word or "")
        return word is not None


def _type_attribute(value: Any, when_string: str) -> str:
    """Return the value of the attribute that distinguishes strings from JSON.

    It is "true" or "false" if the attribute is a flag for strings, else the JSON type of the value.
    """
    if when_string == "true":
        return "true" if isinstance(value, str) else "false"
    if value is None:
        return "null"
    names = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
    return names.get(type(value), "object")
