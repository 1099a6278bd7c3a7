"""Typed elements: each value is an element with an attribute for its type, and objects and arrays contain elements.

The members of an object are elements with a key, the items of an array are elements without one. Strings are raw text,
numbers, booleans and null are JSON. A type in the text decides, unless the schema excludes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.common.schema.coercion import ConvertedValue, ValueCoercion
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.json_copy import copy_json
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.common.repeated_params import report_repeated
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.parsing.shapes.tagged_params.value_end import (
    NEWLINE,
    CallMarkers,
    OpenParam,
    ValueEndRules,
)
from interlingua.parsing.shapes.tagged_params.values import NO_LIMIT, ParamContext
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["TypedElements"]

MAX_ELEMENT_DEPTH = 64
JSON_TYPE = "json"


class TypedElements:
    """Reader and writer for typed elements.

    Args:
        tag: The tag of all elements.
        string_when: The attribute of strings, such as `type=raw`.
        object_type: The value of this attribute for objects.
        array_type: The value of this attribute for arrays.
        around: The markers around params.
    """

    def __init__(self, tag: Tag, string_when: str, object_type: str, array_type: str, around: CallMarkers) -> None:
        self._tag = tag
        self._type_attribute, _, self._string_type = string_when.partition("=")
        self._object_type = object_type
        self._array_type = array_type
        self._empty_values = {object_type: "{}", array_type: "[]"}
        self.openers = compile_markers()
        self._openers = compile_markers(*tag.open)
        self._head_ends = compile_markers(*tag.end, "<", NEWLINE)
        self._tokens = around.tokens
        self._type_pattern = _attribute_pattern((self._type_attribute,))
        self._key_pattern = _attribute_pattern(tag.attribute)
        self._end_rules = ValueEndRules(tag.close, tag, around, keyless_params=True)
        self._element_markers = compile_markers(*tag.open, *tag.close, *around.call.close, *around.after_call)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, key: str, value: Any) -> str:
        """Write a param as an element."""
        return self._tag.write_head(key, self._type_attribute, self._type_of(value)) + self._write_content(key, value)

    def _write_content(self, key: str, value: Any) -> str:
        if isinstance(value, dict):
            content = "".join(self._write_member(name, inner) for name, inner in value.items())
        elif isinstance(value, list):
            content = "".join(self._write_child("", key, inner) for inner in value)
        else:
            content = value if isinstance(value, str) else write_json(value)
        return content + self._tag.close[0]

    def _write_member(self, key: str, value: Any) -> str:
        if not key or not key.isprintable() or set("<>") & set(key) or self._element_markers.search(key, 0):
            raise RenderError(f"the key {key!r} cannot be written in a tag", "use letters, digits, '-' and '_'")
        escaped = key.replace("&", "&amp;").replace('"', "&quot;")
        return self._write_child(f'{self._tag.attribute[0]}="{escaped}" ', key, value)

    def _write_child(self, key_attribute: str, key: str, value: Any) -> str:
        head = f'{self._tag.open[0]}{key_attribute}{self._type_attribute}="{self._type_of(value)}"{self._tag.end[0]}'
        return head + self._write_content(key, value)

    def _type_of(self, value: Any) -> str:
        types: dict[type, str] = {str: self._string_type, dict: self._object_type, list: self._array_type}
        return types.get(type(value), JSON_TYPE)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, param: ParamContext, args: ObjectWriter, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Read one value, after the head of its param.

        Returns:
            "" after its closer; the other marker that ended it; None at the end of the text.
        """
        args.begin_member(param.key)
        declared = _find_value(self._type_pattern, param.attributes) or ""
        return self._read_element(param.open, declared, param.coercion, 0, args, source, sink)

    def _read_element(
        self,
        param: OpenParam,
        declared: str,
        coercion: ValueCoercion,
        depth: int,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        is_leaf = declared in (self._string_type, JSON_TYPE) or depth == MAX_ELEMENT_DEPTH
        if not is_leaf and (yield from source.peek(self._openers)):
            return (yield from self._read_children(param, declared, coercion, depth, args, source, sink))
        if is_leaf or declared not in self._empty_values or (yield from source.peek_after_space()) in ("{", "["):
            return (yield from self._read_leaf(param, declared, coercion, args, source, sink))
        marker = yield from self._read_between_elements(source, sink)
        if marker in self._tag.open:
            source.put_back(marker)
            return (yield from self._read_children(param, declared, coercion, depth, args, source, sink))
        args.write_raw(self._empty_values[declared] if marker is not None else "")
        return self._finish(param.key, marker, args, sink)

    def _read_leaf(
        self,
        param: OpenParam,
        declared: str,
        coercion: ValueCoercion,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        if coercion.has_choices:
            is_string = False
        elif declared == self._string_type:
            is_string = coercion.accepts_string
        else:
            is_string = not declared and not coercion.can_be_value((yield from source.peek_after_space()))
        if is_string:
            args.write_raw('"')
            marker = yield from self._end_rules.copy_element(args.write_text, NO_LIMIT, param, args, source, sink)
            args.write_raw("" if marker is None else '"')
        else:
            copy = self._end_rules.copy_element if declared in ("", self._string_type) else self._copy_json
            marker = yield from copy(sink.hold_value().append, sink.limits.args, param, args, source, sink)
            text = sink.take_value()
            if marker is not None:
                value = self._convert(text, declared, coercion)
                if value.problem is not None:
                    sink.report("bad-value", f"{param.key!r}: {value.problem}")
                args.write_raw(value.json)
        return self._finish(param.key, marker, args, sink)

    def _convert(self, text: str, declared: str, coercion: ValueCoercion) -> ConvertedValue:
        if not declared:
            return coercion.convert(text)
        if declared == self._string_type:
            return coercion.convert(text, "string")
        return coercion.convert(text if text.strip() or not coercion.is_untyped else "null", "json")

    def _copy_json(
        self,
        write: Callable[[str], None],
        limit: int,
        param: OpenParam,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        """Copy a JSON value up to the end of its element, as `ValueEndRules.copy_element` does.

        A marker in a JSON string is data.
        """
        scanner = JsonScanner()
        marker = yield from copy_json(source, scanner, self._element_markers, write, limit)
        if marker is None and scanner.ended:
            marker = yield from source.accept(self._element_markers)
            if marker is None:
                marker = yield from self._end_rules.copy_element(write, limit, param, args, source, sink)
        return marker

    def _read_children(
        self,
        param: OpenParam,
        declared: str,
        coercion: ValueCoercion,
        depth: int,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        """Read the elements of an object or array."""
        separator, is_array = "", False
        keys: set[str] = set()
        marker: str | None = yield from source.accept(self._openers)
        while marker in self._tag.open:
            attributes, marker = yield from source.take_until(self._head_ends, sink.limits.header)
            if marker not in self._tag.end:
                sink.report("broken-header", f"an element of {param.key!r} that is cut off in its head: dropped")
                args.mark_incomplete()
                break  # the caller un-reads the marker
            child_key = _find_value(self._key_pattern, attributes)
            if not separator:
                is_array = declared == self._array_type or (declared != self._object_type and child_key is None)
                separator = "[" if is_array else "{"
            if child_key is None and not is_array:
                sink.report("unnamed-value", f"an element of {param.key!r} without a key")
                args.mark_incomplete()
            child_key = child_key or ""
            args.write_raw(separator + ("" if is_array else f"{write_json(child_key)}: "))
            separator = ", "
            child_coercion = coercion.item if is_array else coercion.member(child_key)
            if child_key in keys and not is_array:
                report_repeated(child_key, map(coercion.member, keys), args, sink)
            keys.add(child_key)
            child_type = _find_value(self._type_pattern, attributes) or ""
            marker = yield from self._read_element(
                param._replace(key=child_key or param.key, accepts_string=child_coercion.accepts_string),
                child_type,
                child_coercion,
                depth + 1,
                args,
                source,
                sink,
            )
            if marker == "":
                marker = yield from self._read_between_elements(source, sink)
        if separator and marker is not None:
            args.write_raw("]" if is_array else "}")
        if marker not in self._tag.close:
            args.mark_incomplete()  # the closers of its elements may be quoted
        return self._finish(param.key, marker, args, sink)

    def _read_between_elements(self, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Consume and return the next marker between elements. Text before it is emitted as text."""
        text, marker = yield from source.take_until(self._element_markers, sink.limits.held)
        if text.strip():
            sink.report("text-in-section", "text between elements: kept as text")
            sink.emit_text(sink.strip_special_tokens(text), source.taken_channel)
        return "" if marker is None and not source.closed else marker

    def _finish(self, key: str, marker: str | None, args: ObjectWriter, sink: EventSink) -> str | None:
        """Return "" after the closer of an element. Any other marker ends it without a closer and is returned."""
        if marker in self._tag.close:
            return ""
        if marker == "" or marker in self._tokens:
            args.mark_incomplete()  # the text was cut there, or the model stopped
        if marker:
            sink.report("value-not-closed", f"the value of {key!r} was never closed: closed here")
        return marker


def _attribute_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for the value of the first of these attributes, with or without quotes."""
    alternatives = "|".join(map(re.escape, names))
    return re.compile(rf"""(?<![\w:.-])(?:{alternatives})\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'/]++))""")


def _find_value(pattern: re.Pattern[str], attributes: str) -> str | None:
    match = pattern.search(attributes)
    if match is None:
        return None
    value: str = next(group for group in match.groups() if group is not None)
    return value.replace("&quot;", '"').replace("&amp;", "&")
