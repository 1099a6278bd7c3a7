"""Nested values: objects and arrays are written as elements inside the element of the param, each named by its key.

The leaves do not declare a type, so the schema supplies it at every level. The items of an array are named `item`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.common.repeated_params import report_repeated
from interlingua.parsing.shapes.tagged_params.tag import HeadReader, Tag
from interlingua.parsing.shapes.tagged_params.value_end import CallMarkers, OpenParam, ValueEndRules
from interlingua.parsing.shapes.tagged_params.values import NO_LIMIT, ParamContext
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["NestedValues"]

ITEM_TAG = "item"
MAX_ELEMENT_DEPTH = 64


class NestedValues:
    """Reader and writer for nested values. `tag.close` is the part of a closing tag before the name."""

    def __init__(self, tag: Tag, around: CallMarkers) -> None:
        self._tag = tag
        self.openers = compile_markers()
        self._string_ends = ValueEndRules(tag.close, tag, around, named_closers=True)
        self._end_markers = compile_markers(*tag.open, *tag.close, *around.call.close, *around.after_call)
        self._heads = HeadReader(tag, self._end_markers)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, key: str, value: Any) -> str:
        return self._tag.write_head(key) + self._write_content(value) + f"{self._tag.close[0]}{key}{self._tag.end[0]}"

    def _write_content(self, value: Any) -> str:
        if isinstance(value, dict):
            return "".join(self.write(name, inner) for name, inner in value.items())
        if isinstance(value, list):
            return "".join(self.write(ITEM_TAG, inner) for inner in value)
        return value if isinstance(value, str) else write_json(value)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, param: ParamContext, args: ObjectWriter, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Read one value, after the head of its param.

        Returns:
            "" after its closer; the other marker that ended it; None at the end of the text.
        """
        args.begin_member(param.key)
        return self._read_element(param.open, param.coercion, 0, args, source, sink)

    def read_unopened(
        self,
        text: str,
        coercion_for: Callable[[str], ValueCoercion],
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[None]:
        """Read a value without an opening tag, after the marker of its closing tag, which contains the key."""
        head = yield from self._heads.read(source, sink.limits.header)
        if head.name:
            sink.report("no-opener", f"the param {head.name!r} without its opening tag: accepted as a param")
            args.begin_member(head.name)
            self._write_leaf(head.name, text, coercion_for(head.name), args, sink)

    def _read_element(
        self,
        param: OpenParam,
        coercion: ValueCoercion,
        depth: int,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        if coercion.is_string_only:
            return (yield from self._read_string(param, coercion, args, source, sink))
        marker = yield from source.copy_value(self._end_markers, sink.hold_value().append, sink.limits.args)
        source.trace_marker(marker or "")
        text = sink.take_value()
        if marker in self._tag.open and depth < MAX_ELEMENT_DEPTH:
            self._report_stray_text(text, source, sink)
            return (yield from self._read_children(param, coercion, depth, args, source, sink))
        if marker is not None:
            self._write_leaf(param.key, text, coercion, args, sink)
        return (yield from self._read_closing_tag(param.key, marker, args, source, sink))

    def _read_string(
        self, param: OpenParam, coercion: ValueCoercion, args: ObjectWriter, source: TextBuffer, sink: EventSink
    ) -> Read[str | None]:
        """Read a string: as it arrives, or at its end if the schema lists its values."""
        text = ""
        if coercion.has_choices:
            channel = source.channel
            marker = yield from self._string_ends.copy_element(
                sink.hold_value().append, sink.limits.args, param, args, source, sink
            )
            text = sink.take_value()
            is_too_long = marker == "" and source.channel is channel
            if not is_too_long:
                if marker is not None:
                    self._write_leaf(param.key, text, coercion, args, sink)
                return (yield from self._read_closing_tag(param.key, marker, args, source, sink))
        args.write_raw('"')
        if text:
            args.write_text(text)
        marker = yield from self._string_ends.copy_element(args.write_text, NO_LIMIT, param, args, source, sink)
        if marker is not None:
            args.write_raw('"')
        return (yield from self._read_closing_tag(param.key, marker, args, source, sink))

    def _write_leaf(self, key: str, text: str, coercion: ValueCoercion, args: ObjectWriter, sink: EventSink) -> None:
        if not text.strip() and not (text and coercion.accepts_string):
            args.write_raw(coercion.empty_value)
            return
        value = coercion.convert(text)
        if value.problem is not None:
            sink.report("bad-value", f"{key!r}: {value.problem}")
        args.write_raw(value.json)

    def _read_children(
        self,
        param: OpenParam,
        coercion: ValueCoercion,
        depth: int,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        """Read the elements of an object or array, after the opener of the first one."""
        separator, is_array = "", False
        keys: set[str] = set()
        marker: str | None = self._tag.open[0]
        while marker in self._tag.open:
            head = yield from self._heads.read(source, sink.limits.header)
            if not separator:
                is_array = coercion.kind == "array" or (head.name == ITEM_TAG and not coercion.declares(ITEM_TAG))
                separator = "[" if is_array else "{"
            args.write_raw(separator + ("" if is_array else f"{write_json(head.name)}: "))
            separator = ", "
            child_coercion = coercion.item if is_array else coercion.member(head.name)
            if head.name in keys and not is_array:
                report_repeated(head.name, map(coercion.member, keys), args, sink)
            keys.add(head.name)
            child = param._replace(key=head.name, accepts_string=child_coercion.accepts_string)
            marker = yield from self._read_element(child, child_coercion, depth + 1, args, source, sink)
            if marker == "":
                marker = yield from self._read_between_elements(source, sink)
        if marker is not None:
            args.write_raw("]" if is_array else "}")
        return (yield from self._read_closing_tag(param.key, marker, args, source, sink))

    def _read_between_elements(self, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Consume and return the next marker between elements. Text before it is emitted as text."""
        text, marker = yield from source.take_until(self._end_markers, sink.limits.held)
        self._report_stray_text(text, source, sink)
        return "" if marker is None and not source.closed else marker

    def _report_stray_text(self, text: str, source: TextBuffer, sink: EventSink) -> None:
        if text.strip():
            sink.report("text-in-section", "text between elements: kept as text")
            sink.emit_text(sink.strip_special_tokens(text), source.channel)

    def _read_closing_tag(
        self, key: str, marker: str | None, args: ObjectWriter, source: TextBuffer, sink: EventSink
    ) -> Read[str | None]:
        """Consume the rest of a closing tag. Any other marker ends the element without a closing tag."""
        if marker in self._tag.close:
            head = yield from self._heads.read(source, sink.limits.header)
            if head.name != key and head.name in args.keys:
                args.mark_incomplete()  # it may close the value before, which then quotes the head of this one
            return ""
        if marker:
            sink.report("value-not-closed", f"the value of {key!r} was never closed: closed here")
        return marker
