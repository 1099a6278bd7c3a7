"""tagged_params: `[SECTION] { OPEN name END { PARAM key END value CLOSE } CLOSE } [/SECTION]`.

Each param is an element, and its value is raw text. The type of the value comes from the tool's schema or from an
attribute. Closers may be missing, and the body may be one JSON object instead. A call outside a section is accepted
only if its tool was offered and the call is complete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Grammar, Shape, Span
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES, assign_roles, compile_markers
from interlingua.parsing.shapes.common.json_arguments import OPENING_BRACE, JsonArgumentsReader, read_members
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.common.repeated_params import report_repeated
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.shapes.tagged_params.nested_values import NestedValues
from interlingua.parsing.shapes.tagged_params.tag import (
    HeadReader,
    Tag,
    TagHead,
    plain_marker,
    read_unopened_key,
    valid_name,
)
from interlingua.parsing.shapes.tagged_params.typed_elements import TypedElements
from interlingua.parsing.shapes.tagged_params.value_end import CallMarkers, OpenParam
from interlingua.parsing.shapes.tagged_params.values import ParamContext, TextValues
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["TaggedParams", "TaggedParamsGrammar"]


@dataclass(frozen=True)
class TaggedParams:
    """One XML-like element per param. Each marker may have several spellings: all are read, the first is written."""

    NAME: ClassVar[str] = "tagged_params"

    call: Tag
    """The element of a call. Its head contains the name."""
    param: Tag
    """The element of a param. Its head contains the key."""
    sections: tuple[Span, ...] = ()
    """Markers around consecutive calls."""
    value_open: tuple[str, ...] = ()
    """Markers between the head of a param and its value, if there are any."""
    value_type: Span | None = None
    """Markers around the type of a value, between its key and the value. They are read, never written."""
    json: Tag | None = None
    """An element that contains all arguments as JSON."""
    quote: Span | None = None
    """Markers around a value that may contain any text, such as CDATA."""
    string_when: str = ""
    """The attribute that marks a value as a string, such as `string="true"`. With another value of it, it is JSON."""
    numbered: str = ""
    """The attribute of a call that contains its number in the reply, if there is one."""
    first_number: int = 1
    """The number of the first call."""
    number_first: bool = False
    """True if this attribute is written before the name."""
    wrappers: tuple[str, ...] = ("arguments", "input")
    """Params into which some models put all arguments as an object. Unwrapped if the tool has no such param."""
    nested: bool = False
    """True if objects and arrays are nested elements. Then `close` is the part of a closing tag before the name."""
    nested_types: tuple[str, str] | None = None
    """The types of objects and of arrays, such as `dict` and `list`, if these contain elements of the same tag. They
    are values of the attribute in `string_when`, and `json` is the one of all other values."""
    lines: bool = False
    """True if values are on separate lines: one line break before and after each value is not part of it."""
    call_gap: str = ""
    """Text that is written around calls."""
    param_gap: str = ""
    """Text that is written before each param and before the end of a call."""
    shared_section: bool = True
    """True if consecutive calls are written into one section."""
    next_message: str = ""
    """The marker that begins another message after the calls, if a reply consists of messages."""
    inside: Shape | None = None
    """Fallback shape inside a section, or inside a call if there are no sections: another format of calls that the
    model sometimes uses."""

    def __post_init__(self) -> None:
        needed = {
            "call.open": self.call.open,
            "call.close": self.call.close,
            "param.open": self.param.open,
            "param.end": self.param.end,
            "param.close": self.param.close,
        }
        for field, spellings in needed.items():
            if not all(spellings) or not spellings:
                raise UsageError(f"{field} is empty", "set it to the marker that the model writes there")
        if self.nested_types and not (self.string_when and self.param.attribute):
            hint = "set string_when and param.attribute to the attributes of the type and of the key"
            raise UsageError("nested_types is set, but string_when or param.attribute is not", hint)

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return TaggedParamsGrammar(self, dialect_markers)


class TaggedParamsGrammar:
    def __init__(self, shape: TaggedParams, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        self._section_openers = tuple(span.open for span in shape.sections)
        self._section_closers = tuple(span.close for span in shape.sections)
        self._fallback_grammar = shape.inside.grammar(dialect_markers + self._section_closers) if shape.inside else None
        fallback_openers = self._fallback_grammar.openers if self._fallback_grammar else ()
        self.openers = (*self._section_openers, *shape.call.open, *fallback_openers)
        self.strays = (*self._section_closers, *(() if shape.sections else shape.call.close))
        json = (*shape.json.open, *shape.json.close) if shape.json else ()
        types = (shape.value_type.open, shape.value_type.close) if shape.value_type else ()
        self.inner_markers = (
            *shape.call.close,
            *shape.param.open,
            *shape.param.close,
            *shape.value_open,
            *types,
            *json,
        )
        self.marker_roles = {
            **(self._fallback_grammar.marker_roles if self._fallback_grammar else {}),
            **assign_roles(
                ("inner", (*self.inner_markers, *shape.param.slips, *filter(_has_letter, shape.param.end))),
                ("closer", (*self._section_closers, *shape.call.close)),
                ("opener", self.openers),
            ),
        }
        outer_openers = self._section_openers or shape.call.open
        self.writes_back_ticks = False
        self.reads_json = (
            self._fallback_grammar is not None
            and self._fallback_grammar.reads_json
            and set(outer_openers) <= set(fallback_openers)
        )
        self._dialect_markers = frozenset(dialect_markers)
        self._markers_in_section = compile_markers(
            *self.openers, *self._section_closers, *self.inner_markers, *dialect_markers
        )
        key_ends = shape.param.end if shape.value_open else ()
        self._markers_in_call = compile_markers(
            *self.openers, *self.strays, *self.inner_markers, *key_ends, *dialect_markers
        )
        structure = (*self.openers, *self.strays, *self.inner_markers)
        self._fragments = {mark for mark in dialect_markers if any(marker.startswith(mark) for marker in structure)}
        self._fragments |= set(dialect_markers) & set(shape.param.end)
        self._call_closers = compile_markers(*shape.call.close)
        self._plain_call_closer = re.compile(plain_marker(shape.call.close, self._markers_in_call))
        self._stray_closers = compile_markers(*self.strays)
        self._outer_openers = compile_markers(*(self._section_openers or shape.call.open))
        self._call_openers = compile_markers(*shape.call.open)
        after_name = self._markers_in_call if shape.call.end else compile_markers(*shape.param.open, *shape.call.close)
        self._call_heads = HeadReader(shape.call, after_name)
        self._param_heads = HeadReader(shape.param, self._markers_in_call)
        self._after_head = compile_markers(*self.inner_markers)
        self._values = self._make_values()
        self._arguments_reader = JsonArgumentsReader(
            self._markers_in_call,
            compile_markers(*shape.call.close, *(shape.json.close if shape.json else ())),
            params=compile_markers(*shape.param.open),
        )

    def _make_values(self) -> TextValues | NestedValues | TypedElements:
        shape = self._shape
        dialect_markers = tuple(sorted(self._dialect_markers))
        param_starts = (*shape.param.open, *shape.value_open)
        around = CallMarkers(
            shape.call,
            self._section_openers,
            self._section_closers,
            param_starts=param_starts,
            body_starts=(*param_starts, *(shape.json.open if shape.json else ())),
            dialect_markers=dialect_markers,
            tokens=tuple(marker for marker in dialect_markers if marker.startswith(SPECIAL_TOKEN_PREFIXES)),
            next_message=(shape.next_message,) if shape.next_message else (),
            has_fallback=self._fallback_grammar is not None,
        )
        if shape.nested:
            return NestedValues(shape.param, around)
        if shape.nested_types:
            object_type, array_type = shape.nested_types
            return TypedElements(shape.param, shape.string_when, object_type, array_type, around)
        return TextValues(
            shape.param, shape.value_open, shape.value_type, shape.quote, shape.lines, shape.string_when, around
        )

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:
        gap = self._shape.call_gap
        first_number = preceding_calls + self._shape.first_number
        written = [self._write_call(call, number) for number, call in enumerate(calls, first_number)]
        if not self._shape.sections:
            return gap.join(written)
        section = self._shape.sections[0]
        sections = [gap.join(written)] if self._shape.shared_section else written
        return gap.join(section.open + gap + body + gap + section.close for body in sections)

    def _write_call(self, call: Call, number: int) -> str:
        tag, gap = self._shape.call, self._shape.param_gap
        params = "".join(gap + self.write_param(key, value) for key, value in read_members(call).items())
        head = tag.write_head(call.name, self._shape.numbered, str(number), self._shape.number_first)
        return head + params + gap + tag.close[0]

    def write_param(self, key: str, value: Any) -> str:
        return self._values.write(key, value)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        names_with_param_opener = (
            ()
            if self._shape.call.end
            else (f"{name}{opener}" for name in offer.names for opener in self._shape.param.open)
        )
        return (
            *names_with_param_opener,
            *(self._fallback_grammar.first_openers(offer) if self._fallback_grammar else ()),
        )

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the header contains only the name)
        return self._markers_in_call.remove_from(text).strip() or text

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if opener in self._section_openers:
            yield from self._read_section(opener, source, sink)
        elif opener.endswith(self._shape.param.open):
            yield from self._read_call_without_opener(opener, source, sink)
        elif opener not in self._shape.call.open and self._fallback_grammar is not None:
            yield from self._fallback_grammar.read(opener, source, sink)
        elif self._shape.sections:
            yield from self._read_call_without_section(source, sink)
        else:
            yield from self._read_call(source, sink)

    def _read_section(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        marker = yield from source.accept(self._call_openers)
        if marker is None:
            yield from self._read_malformed_section(opener, source, sink)
            return
        while marker in self._shape.call.open and not sink.failed:
            if not (yield from self._read_call(source, sink)):
                return
            source.code.reset()
            marker = yield from self._read_between_calls(source, sink)
            source.start_recording(marker or "")
        if (marker is None or marker not in self._section_closers) and not sink.has_open_call:
            sink.report("section-not-closed", "the section of calls was never closed: closed here")
            source.put_back(marker or "")

    def _read_malformed_section(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Read a section or call that does not begin as it should: the fallback shape, a repeated opener, or no call.

        Return whether it was in the fallback shape.
        """
        if (yield from source.accept(self._stray_closers)) or (yield from source.peek(self._outer_openers)):
            sink.report("stray-marker", f"empty {opener}: dropped")
            source.discard_recording()
            return False
        if (yield from self._read_fallback(opener, source, sink)):
            return True
        self._return_as_text(sink)
        return False

    def _read_fallback(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Read calls in the fallback shape after an opener, if JSON comes next. Return whether it does."""
        if self._fallback_grammar is None or (yield from source.peek_after_space()) not in ("{", "["):
            return False
        yield from self._fallback_grammar.read(opener, source, sink)
        return True

    def _read_between_calls(self, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Consume and return the next marker of a section. Text before it is emitted as text."""
        stray = StrayText(source, sink)
        while True:
            marker = yield from source.copy_until(self._markers_in_section, stray.write)
            if marker and marker in self.inner_markers:
                sink.report("stray-marker", f"{marker} outside a call: dropped")
            elif marker not in self.openers or not (yield from sink.read_quoted(marker or "")):
                break
        stray.report("between the calls of a section")
        return marker

    def _read_call_without_section(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        head = yield from self._call_heads.read_before(self._after_head, source, sink)
        if head == TagHead("") and (yield from self._read_fallback(self._shape.call.open[0], source, sink)):
            return
        if not head.name or not sink.offer.accepts(head.name) or not (yield from self._is_body_next(source)):
            self._return_as_text(sink)
            return
        sink.begin_tentative()
        sink.report("no-section", "a complete call outside a section: accepted as a call")
        if (yield from self._read_named_call(head, source, sink)):
            sink.commit()
        else:
            sink.rollback()

    def _read_call_without_opener(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read a call without its opener, from the name of an offered tool and the opener of its first param on."""
        param = next(marker for marker in self._shape.param.open if opener.endswith(marker))
        name = opener.removesuffix(param)
        sink.begin_tentative()
        sink.report("no-opener", f"{name!r} without its opening marker: accepted as a call")
        if (
            yield from self._read_params(
                param, name, ObjectWriter(sink.start_call(CallHeader(name, None, name))), source, sink
            )
        ):
            sink.commit()
        else:
            sink.rollback()

    def _read_call(self, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Read one call after its opener. Return False if it is not a call, or was not closed."""
        head = yield from self._call_heads.read_before(self._after_head, source, sink)
        if not head.name and not self._shape.call.end:
            return (yield from self._read_call_without_key(head.attributes, source, sink))
        if not head.name or not (self._shape.sections or (yield from self._is_body_next(source))):
            self._return_as_text(sink)
            return False
        return (yield from self._read_named_call(head, source, sink))

    def _read_call_without_key(self, word: str, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Read one call whose first param lacks its opener or its key.

        Return False if it is not a call, or was not closed.
        """
        param = self._shape.param
        name, key = yield from read_unopened_key(word, param, self._values.openers, source, sink.offer)
        if not name and not word:
            return (yield from self._read_malformed_section(self._shape.call.open[0], source, sink))
        if not name:
            self._return_as_text(sink)
            return False
        args = ObjectWriter(sink.start_call(CallHeader(name, None, name)))
        marker: str | None = ""
        if key:
            sink.report("no-opener", f"the param {key!r} without {param.open[0]}: accepted as a param")
            marker = yield from self._read_value(param.open[0], TagHead(key), name, args, source, sink)
        return (yield from self._read_params(marker, name, args, source, sink))

    def _return_as_text(self, sink: EventSink) -> None:
        if sink.restore_text():
            sink.report("broken-header", "a call that is cut off in its head: kept as text, without its markers")

    def _is_body_next(self, source: TextBuffer) -> Read[bool]:
        """Return whether the body of a call follows the head. In prose that quotes a head, other text follows."""
        return (
            bool((yield from source.peek(self._after_head))) or (yield from source.peek_after_space()) == OPENING_BRACE
        )

    def _read_named_call(self, head: TagHead, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Read one call after its head. Return False if it was not closed."""
        name = head.name
        if any(key != self._shape.numbered for key in head.attribute_names):
            sink.report("odd-header", f"the head of {name!r} has extra attributes: dropped {head.attributes!r:.80}")
        call = sink.start_call(CallHeader(name, None, name))
        first = yield from source.peek_after_space()
        if first == OPENING_BRACE:
            yield from self._arguments_reader.read(call, source, sink)
            return True
        return (
            yield from self._read_params("", sink.offer.resolve_name(name) or name, ObjectWriter(call), source, sink)
        )

    def _read_params(
        self, marker: str | None, name: str, args: ObjectWriter, source: TextBuffer, sink: EventSink
    ) -> Read[bool]:
        """Read all params of a call, starting after `marker`. Return False if the call was not closed."""
        while marker is not None:
            if marker == "":
                limit = min(sink.limits.header, sink.limits.held)
                element = self._param_heads.take_element(source, limit)
                if element is not None:
                    marker = yield from self._read_value(*element, name, args, source, sink)
                else:
                    marker = source.take_marker(self._plain_call_closer, limit)
                    marker = marker or (yield from self._read_next_marker(name, args, source, sink))
            elif marker in self._shape.call.close:
                args.end()
                return True
            elif marker in self._shape.param.open:
                marker = yield from self._read_param(marker, name, args, source, sink)
            elif marker in self._shape.value_open:
                marker = yield from self._read_value_without_key(marker, name, args, source, sink)
            elif self._shape.json is not None and marker in self._shape.json.open and not args.keys:
                yield from source.take_until(compile_markers(*self._shape.json.end), sink.limits.header)
                yield from self._arguments_reader.read(args.call, source, sink)
                return (yield from source.accept(self._call_closers)) is not None
            elif marker in self.inner_markers or marker in self._fragments:
                sink.report("stray-marker", f"{marker} outside a param: dropped")
                is_json = self._shape.json is not None and marker in self._shape.json.open
                if is_json or (args.has_unclosed_value and marker in self._shape.param.close):
                    args.mark_incomplete()  # the closer may belong to that value, which then quotes a param
                marker = ""
            else:
                sink.report("call-not-closed", f"the call of {name!r} was never closed: closed here")
                args.end()
                source.put_back(marker)
                return False
        return False

    def _read_next_marker(self, name: str, args: ObjectWriter, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Consume and return the next marker in a call. Text before it is emitted as text."""
        start = source.offset
        text, marker = yield from source.take_until(self._markers_in_call, sink.limits.held)
        if marker in self._shape.param.end and (key := valid_name(text.strip())):
            sink.report("no-opener", f"the param {key!r} without {self._shape.param.open[0]}: accepted", start)
            return (yield from self._read_value(self._shape.param.open[0], TagHead(key), name, args, source, sink))
        if marker in self._shape.param.close and isinstance(self._values, NestedValues):
            if args.has_unclosed_value:
                args.mark_incomplete()
            yield from self._values.read_unopened(text, partial(sink.offer.coercion_for, name), args, source, sink)
            return ""
        is_cut_marker = marker is None and source.closed and self._markers_in_call.is_partial(text.lstrip(), 0)
        if text.strip() and not is_cut_marker:
            sink.report("text-in-section", "text between the params of a call: kept as text", start)
            sink.emit_text(text, source.taken_channel)
            if marker in self._shape.param.close:
                args.mark_incomplete()  # the text may be the rest of a value that quotes a param
        return "" if marker is None and not source.closed else marker

    def _read_param(
        self, opener: str, name: str, args: ObjectWriter, source: TextBuffer, sink: EventSink
    ) -> Read[str | None]:
        start = source.offset
        head = yield from self._param_heads.read_before(self._after_head, source, sink)
        if not head.name or not (head.is_ended or (yield from source.peek(self._values.openers))):
            args.mark_incomplete()  # the head is truncated, and the value may be lost
        if head.name:
            return (yield from self._read_value(opener, head, name, args, source, sink))
        sink.report("broken-header", "a param that is cut off in its head: kept as text", start)
        sink.emit_leftover_text(head.attributes, source.channel)
        return ""

    def _read_value_without_key(
        self, opener: str, name: str, args: ObjectWriter, source: TextBuffer, sink: EventSink
    ) -> Read[str | None]:
        """Read a value without a key, after its opener. It belongs to the missing param, if exactly one is missing."""
        key = sink.offer.only_missing_param(name, args.keys)
        if key is None:
            sink.report(
                "unnamed-value", f"{opener.strip()} without a key, and its param is ambiguous: dropped from the call"
            )
            args.mark_incomplete()
            return ""
        sink.report("unnamed-value", f"{opener.strip()} without a key: used as {key!r}, the only missing param")
        if args.keys:
            args.mark_incomplete()  # a value that quotes these markers looks just like this
        source.put_back(opener)
        return (yield from self._read_value(self._shape.param.open[0], TagHead(key), name, args, source, sink))

    def _read_value(
        self, opener: str, head: TagHead, name: str, args: ObjectWriter, source: TextBuffer, sink: EventSink
    ) -> Read[str | None]:
        key, offer = head.name, sink.offer
        coercion = offer.coercion_for(name, key)
        if key in args.keys:
            report_repeated(key, map(partial(offer.coercion_for, name), args.keys), args, sink)
        wraps_all = key in self._shape.wrappers and offer.has(name) and not offer.has_param(name, key)
        open_param = OpenParam(key, name, offer, args.keys, coercion.accepts_string or wraps_all)
        param = ParamContext(opener, open_param, head.attributes, coercion, wraps_all)
        marker = yield from self._values.read(param, args, source, sink)
        args.has_unclosed_value |= marker in self._shape.param.open
        return marker


def _has_letter(marker: str) -> bool:
    """Return whether the end of a head is a marker of its own, and not just a bracket."""
    return any(map(str.isalpha, marker))
