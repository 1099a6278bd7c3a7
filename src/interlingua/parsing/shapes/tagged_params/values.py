"""Values of params that are written as raw text: reads them to their end and converts them to their type."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.coercion import DeclaredType, ValueCoercion
from interlingua.parsing.dialect import Span
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.parsing.shapes.tagged_params.value_end import (
    NEWLINE,
    CallMarkers,
    CutReason,
    OpenParam,
    ValueEndRules,
)
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["NO_LIMIT", "ParamContext", "TextValues"]

NO_LIMIT = 1 << 62
TYPE_ATTRIBUTE = "type"
UNKNOWN_TYPE = "any"
_FIRST_CHARS_BY_TYPE = {
    "number": "-0123456789",
    "integer": "-0123456789",
    "boolean": "tf",
    "object": "{",
    "array": "[",
    "null": "n",
}
"""First characters of JSON, by the type that a text may declare."""
_EQUALS_PATTERN = re.compile(r"\s*+=\s*+")


class ParamContext(NamedTuple):
    """The param whose value comes next."""

    opener: str
    open: OpenParam
    attributes: str
    coercion: ValueCoercion
    wraps_all: bool
    """True if the value may be an object with all arguments."""

    @property
    def key(self) -> str:
        return self.open.key


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
        around: CallMarkers,
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
        self._around = around
        self.openers = compile_markers(*value_open)
        self._quote_openers = compile_markers(*((quote.open,) if quote else ()))
        self._end_rules: dict[tuple[str, bool, bool], ValueEndRules] = {}

    def _end_rules_for(self, opener: str, *, quoted: bool, on_lines: bool) -> ValueEndRules:
        """Return the rules for the end of a value. They are compiled when they are needed: a reply needs few of them,
        and to compile all takes up to 0.2 s."""
        key = (opener, quoted, on_lines)
        rules = self._end_rules.get(key)
        if rules is None:
            tag = self._tag
            closers = tag.close
            if len(tag.open) == len(closers):  # the closers belong to the openers
                closers = (closers[tag.open.index(opener)],)
            if quoted and self._quote:
                closers = tuple(self._quote.close + close for close in closers)
            rules = self._end_rules[key] = ValueEndRules(
                closers, tag, self._around, on_lines=on_lines and not quoted, inline_params=bool(self._value_open)
            )
        return rules

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, key: str, value: Any) -> str:
        """Write a param as an element."""
        text = value if isinstance(value, str) else write_json(value)
        attribute, _, when_string = self._string_when.partition("=")
        head = self._tag.write_head(key, attribute, _type_attribute(value, when_string))
        close = self._tag.close[0]
        if self._quote and set("<&\n") & set(text):
            return head + self._quote.open + text + self._quote.close + close
        gap = NEWLINE if self._lines else ""
        return head + "".join(self._value_open[:1]) + gap + text + gap + close

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
        ends = self._end_rules_for(param.opener, quoted=quoted, on_lines=on_lines)
        first = yield from source.peek_after_space()
        if not param.wraps_all and self._is_string(param, first, quoted):
            marker = yield from self._stream_string("", param, args, ends, source, sink)
        else:
            declared_type = self._declared_type(param, quoted)
            is_json = param.wraps_all or declared_type == "json" or not param.open.accepts_string
            is_container = is_json and first in ("{", "[")
            marker = yield from self._read_buffered(param, declared_type, is_container, args, ends, source, sink)
        if marker in self._around.tokens:
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

    def _expected_first_chars(self, param: ParamContext, default: str) -> str:
        """Return the first characters of JSON of the type that the attributes name; the default if they name none."""
        prefix = self._type_rule.partition("=")[0] + "="
        names = (attribute.removeprefix(prefix) for attribute in _attributes(param) if attribute.startswith(prefix))
        return _FIRST_CHARS_BY_TYPE.get(next(names, ""), default) if self._type_rule else default

    def _declared_type(self, param: ParamContext, quoted: bool) -> DeclaredType:
        """Return the type that the quotes or the attributes declare."""
        if quoted:
            return "string"
        attributes = _attributes(param)
        name = self._type_rule.partition("=")[0] + "="
        if not self._type_rule or not any(attribute.startswith(name) for attribute in attributes):
            return ""
        return "string" if self._type_rule in attributes else "json"

    def _stream_string(
        self,
        buffered: str,
        param: ParamContext,
        args: ObjectWriter,
        ends: ValueEndRules,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        args.begin_member(param.key)
        args.write_raw('"')
        args.write_text(buffered)
        marker = yield from ends.copy_value(args.write_text, NO_LIMIT, param.open, args, source, sink)
        if marker is CutReason.END_OF_TEXT or marker is CutReason.LIMIT:
            return None
        args.write_raw('"')
        if marker:
            self._report_unclosed(param, sink)
        if marker is CutReason.CHANNEL:
            args.mark_incomplete()
            return ""
        return marker

    def _read_buffered(
        self,
        param: ParamContext,
        declared_type: DeclaredType,
        is_container: bool,
        args: ObjectWriter,
        ends: ValueEndRules,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        limit = sink.limits.args
        pieces = sink.hold_value()
        open_param = param.open._replace(json_pieces=pieces) if is_container else param.open
        marker = yield from ends.copy_value(pieces.append, limit, open_param, args, source, sink)
        text = sink.take_value()
        if marker is CutReason.END_OF_TEXT:
            return None
        if marker is CutReason.LIMIT:
            sink.report("bad-value", f"{param.key!r} is longer than {limit:,} characters: treated as a string")
            return (yield from self._stream_string(text, param, args, ends, source, sink))
        if marker:
            self._report_unclosed(param, sink)
        value = param.coercion.convert(text, declared_type)
        if value.problem is not None:
            sink.report("bad-value", f"{param.key!r}: {value.problem}")
        elif value.json[0] not in self._expected_first_chars(param, value.json[0]):
            sink.report("bad-value", f"{param.key!r}: {text[:40]!r} is not of the type that the text declares: kept")
        elif is_container and value.json != text.strip():
            sink.report("repaired-arguments", f"{param.key!r} is not valid JSON: repaired")
        if param.wraps_all and value.json.startswith("{"):
            sink.report("unwrapped-arguments", f"the arguments were inside {param.key!r}: unwrapped")
            args.write_members(value.json)
        else:
            args.begin_member(param.key)
            args.write_raw(value.json)
        return "" if marker is CutReason.CHANNEL else marker

    def _report_unclosed(self, param: ParamContext, sink: EventSink) -> None:
        sink.report("value-not-closed", f"the value of {param.key!r} was never closed: closed here")


def _attributes(param: ParamContext) -> list[str]:
    """Return the attributes of a param without quotes, such as `type=number`."""
    return _EQUALS_PATTERN.sub("=", param.attributes.replace('"', "").replace("'", "")).split()


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
