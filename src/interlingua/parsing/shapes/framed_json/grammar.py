"""framed_json: `[SECTION] { OPEN header ARGS {json} CLOSE } [/SECTION]`.

The header contains the name, the id, or both, as its template defines. The arguments end where their JSON value ends,
not at the next closer: a marker inside a JSON string is data. Every closer may be missing, and so may the section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.call_boundary import CallBoundary
from interlingua.parsing.dialect import Grammar, Span
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.json_copy import copy_json
from interlingua.parsing.markers import assign_roles, compile_markers
from interlingua.parsing.shapes.common.json_arguments import OPENING_BRACE, JsonArgumentsReader, is_json
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.shapes.framed_json.header_template import compile_headers
from interlingua.parsing.shapes.json_envelope.grammar import ENVELOPE_START_MARKERS, JsonEnvelope
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["FramedJson"]

_NAME_PATTERN = re.compile(r"[\w.:\-]{1,128}")
_DIGITS_PATTERN = re.compile(r"[0-9]*+")
EMPTY_SPAN = Span("", "")
NAME_ONLY_HEADER = "{name}"
"""The header template that consists of the name only."""
OBJECT_OPENER_MARKERS = compile_markers(OPENING_BRACE)
OBJECT_START_MARKERS = compile_markers('{"', "{}", "{ ", "{\n")


@dataclass(frozen=True)
class FramedJson:
    """Markers around a header and JSON arguments.

    Each marker may have several spellings: all are read, the first is written. An empty spelling means that the marker
    can be omitted. Whitespace at the ends of a marker is written, but not required when reading.
    """

    NAME: ClassVar[str] = "framed_json"

    open: tuple[str, ...]
    """Markers that begin a call."""
    header: tuple[str, ...]
    """Templates for the header before the arguments: `{name}`, `{name}[CALL_ID]{id}`, `functions.{name}:{n}`."""
    args: tuple[str, ...] = ()
    """Markers between header and arguments. An empty one means that arguments can follow the header directly."""
    close: tuple[str, ...] = ()
    """Markers that end a call."""
    sections: tuple[Span, ...] = ()
    """Markers around consecutive calls."""
    fences: tuple[Span, ...] = ()
    """Ordinary text around the arguments, such as a code fence. It is recognised only inside a call. If `args` and
    `close` are both empty, prose can look like a call, so the conditions for a call are stricter."""
    between: str = ""
    """Whitespace that the model writes between two calls."""
    prompt_opens: bool = False
    """True if the prompt ends with the opener, so that a reply can begin with the text that follows it."""
    envelope: JsonEnvelope | None = None
    """Alternative content after the opener: JSON objects with names and arguments. It is read, never written."""

    def __post_init__(self) -> None:
        compile_headers(self.header)

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return FramedJsonGrammar(self, dialect_markers)


class FramedJsonGrammar:
    def __init__(self, shape: FramedJson, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        self._headers = compile_headers(shape.header)
        self._envelope = shape.envelope.grammar(dialect_markers) if shape.envelope else None
        self._is_plain_text = not (shape.args or shape.close)
        closers = _strip_markers(shape.close)
        fence_openers = _strip_markers(span.open for span in shape.fences)
        fence_closers = _strip_markers(span.close for span in shape.fences)
        fenced_closers = tuple(map("".join, product(fence_closers, closers or ("",))))
        self._call_openers = _strip_markers(shape.open)
        self._section_openers = _strip_markers(span.open for span in shape.sections)
        self._section_closers = _strip_markers(span.close for span in shape.sections)
        self.openers = (*self._call_openers, *self._section_openers)
        fence_markers = (*fence_openers, *fenced_closers)
        self.inner_markers = fence_markers if self._is_plain_text else self._headers.marks
        self.strays = (*self._headers.marks, *_strip_markers(shape.args), *closers, *self._section_closers)
        self.marker_roles = {
            **(self._envelope.marker_roles if self._envelope else {}),
            **assign_roles(
                ("inner", (*self.strays, *fence_markers)),
                ("closer", (*closers, *fenced_closers, *self._section_closers)),
                ("opener", self.openers),
            ),
        }
        self.reads_json = shape.envelope is not None
        self.writes_back_ticks = any(
            "`" in text for text in (*shape.open[:1], *(span.open for span in shape.fences[:1]))
        )
        self._dialect_markers = frozenset(dialect_markers)
        self._all_markers = compile_markers(*self.openers, *self.strays, *dialect_markers)
        self._markers_in_call = compile_markers(*self._all_markers.literals, *fenced_closers)
        header_boundaries = (marker for marker in self._all_markers.literals if marker not in self._headers.marks)
        self._header_boundaries = compile_markers(*header_boundaries, *fence_markers)
        self._header_ends = compile_markers(*self._header_boundaries.literals, OPENING_BRACE)
        self._separators = compile_markers(*_strip_markers(shape.args), *fence_openers)
        after_name = self._separators.literals if shape.prompt_opens else _strip_markers(shape.args)
        self._after_first_name = after_name if NAME_ONLY_HEADER in shape.header else ()
        self._fence_openers = compile_markers(*fence_openers)
        self._call_closers = compile_markers(*closers, *fenced_closers)
        self._boundary = self._find_boundary(closers or fenced_closers)
        self._arguments_reader = JsonArgumentsReader(
            self._markers_in_call,
            self._call_closers,
            compile_markers(*fence_closers) if fence_closers and closers else None,
            self._boundary,
        )
        self._call_or_section_closers = compile_markers(*closers, *self._section_closers)
        opened_markers = [
            (opener, marker) for opener in self._call_openers for marker in dialect_markers if marker.startswith(opener)
        ]
        self._text_openers = tuple(
            marker.removeprefix(opener) for opener, marker in opened_markers if shape.prompt_opens
        )

    def _find_boundary(self, closers: tuple[str, ...]) -> CallBoundary:
        """Return the markers that end a call in a string that is never closed."""
        return CallBoundary(
            (*closers, *self._section_closers),
            self.openers,
            (*self.strays, *self.inner_markers),
            self._dialect_markers,
            needs_closer=bool(closers) and "" not in self._shape.close,
            only_names=self._is_plain_text,
        )

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:
        written = self._shape.between.join(self._write_call(call, preceding_calls + n) for n, call in enumerate(calls))
        section = (*self._shape.sections, EMPTY_SPAN)[0]
        return section.open + section.inside + written + (section.inside + section.close if calls[-1].complete else "")

    def _write_call(self, call: Call, number: int) -> str:
        shape = self._shape
        header = self._headers.write(call, number)
        if self._header_ends.search(header, 0) or (self._is_plain_text and not _NAME_PATTERN.fullmatch(header)):
            raise RenderError(f"a call named {call.name!r} would be parsed with a different name", "rename the tool")
        fence = (*shape.fences, EMPTY_SPAN)[0]
        close = fence.inside + fence.close + (*shape.close, "")[0]
        self._arguments_reader.check_writable(call)
        if (
            (self._is_plain_text or not close)
            and call.complete
            and not (call.arguments[:1] == "{" and is_json(call.arguments))
        ):
            raise RenderError(f"the arguments of {call.name!r} are not a JSON object", "pass a JSON object")
        prefix = shape.open[0] + header + (*shape.args, "")[0] + fence.open + fence.inside
        return prefix + call.arguments + (close if call.complete else "")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        names_with_separator = product(offer.names, self._after_first_name)
        return (*self._headers.header_prefixes(offer), *self._text_openers, *map("".join, names_with_separator))

    def extract_name(self, text: str, offer: ToolSet) -> str:
        return self._headers.read(self._header_boundaries.remove_from(text), offer).name or text

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if opener in self._section_openers:
            source.discard_recording()
            yield from self._read_section(source, sink)
        elif opener in self._call_openers:
            if self._shape.sections:
                sink.report("no-section", "a call outside a section: accepted as a call")
            yield from self._read_call(opener, source, sink)
        elif opener in self._text_openers:
            source.discard_recording()
            sink.report("stray-marker", f"{opener!r} without its opening marker: dropped (pass the prompt's prefill)")
        elif self._is_plain_text:
            yield from self._read_call_begun_by_prompt(opener, source, sink)
        else:
            yield from self._read_call_without_opener(opener, source, sink)

    def _read_section(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        source.code.reset()  # the section is not inside code, whatever the text before it has left open
        while not sink.failed:
            marker = yield from self._read_between_calls(source, sink)
            if marker in self.openers and source.code.may_be_in_code and (yield from sink.read_quoted(marker or "")):
                continue
            if marker in self._call_openers:
                calls_before = sink.call_count
                source.start_recording(marker or "")
                yield from self._read_call(marker or "", source, sink)
                if sink.call_count > calls_before:
                    source.code.reset()
            elif marker in self._section_closers:
                return
            elif marker is None or marker in self._dialect_markers:
                if self._shape.sections[0].close and not sink.has_open_call:
                    sink.report("section-not-closed", "the section of calls was never closed: closed here")
                if marker is not None:
                    source.put_back(marker)
                return
            elif marker:
                sink.report("stray-marker", f"{marker} is not valid here: dropped")

    def _read_between_calls(self, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Consume and return the next marker of a section. Text before it is emitted as text."""
        stray = StrayText(source, sink)
        marker = yield from source.copy_until(self._all_markers, stray.write)
        stray.report("between the calls of a section")
        return marker

    def _read_call(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if self._envelope is not None and (yield from source.peek(ENVELOPE_START_MARKERS)):
            yield from self._envelope.read(opener, source, sink)
            return
        limit = sink.limits.header
        start = source.offset
        text, marker = yield from source.take_until(self._header_ends, limit)
        if self._is_plain_text:
            yield from self._read_plain_call(opener, text, marker, source, sink)
        elif len(text) > limit:
            sink.report_over_limit("the header of a call", limit)
            self._return_as_text(None, source, sink)
        else:
            yield from self._read_marked_call(text, marker, start, source, sink)

    def _read_marked_call(
        self, text: str, marker: str | None, start: int, source: TextBuffer, sink: EventSink
    ) -> Read[None]:
        """Read a call with special tokens. They never occur in prose, so the text before the arguments is a header."""
        header = self._headers.read(text, sink.offer)
        is_single_word = len(text.split()) == 1
        name = header.name or header.text
        if marker and name and marker not in self.openers and sink.reject_call(name):
            yield from self._read_refused_call(name, marker, source, sink)
        elif marker in self._separators.literals:
            call = sink.start_call(header)
            if self._shape.fences and marker not in self._fence_openers.literals:
                yield from source.accept(self._fence_openers)
            yield from self._arguments_reader.read(call, source, sink)
        elif marker == OPENING_BRACE and is_single_word and (yield from self._can_omit_separator(header, source, sink)):
            yield from self._arguments_reader.read(sink.start_call(header), source, sink)
        elif marker in self._call_closers.literals and is_single_word:
            sink.report("no-arguments", f"a call that ends after its header {text.strip()!r}: accepted, no arguments")
            sink.start_call(header).end()
        else:
            sink.report("broken-header", "a call that is cut off in its header: kept as text", start)
            self._return_as_text(marker, source, sink)

    def _can_omit_separator(self, header: CallHeader, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Return whether arguments can follow this header without a separator.

        They can if the dialect allows it, or if the header has an offered name or an id. If so, the brace at the start
        of the arguments is put back.
        """
        is_offered = sink.offer.has(header.name or "")
        if "" in self._shape.args and (is_offered or _NAME_PATTERN.fullmatch(header.name or "")):
            source.put_back(OPENING_BRACE)
            if (yield from source.peek(OBJECT_START_MARKERS)):
                return True
            yield from source.accept(OBJECT_OPENER_MARKERS)
        elif is_offered or header.id is not None:
            source.put_back(OPENING_BRACE)
            sink.report("no-separator", f"arguments directly after the header {header.text!r}: accepted")
            return True
        return False

    def _return_as_text(self, marker: str | None, source: TextBuffer, sink: EventSink) -> None:
        """Emit what was read as text, because it is not a call. Put back a marker that does not belong to it."""
        channel = source.taken_channel
        self._arguments_reader.unread_foreign_marker(marker, source)
        sink.emit_leftover_text(source.take_recorded(), channel)

    def _read_refused_call(self, name: str, marker: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Emit a refused call as text up to its closer, without markers."""
        source.discard_recording()
        sink.emit_text(name, source.channel)
        if marker not in self._separators.literals:
            source.put_back(marker)
        self._arguments_reader.unread_foreign_marker(
            (yield from source.copy_until(self._markers_in_call, sink.emit_text)), source
        )

    # ── calls in ordinary text ────────────────────────────────────────────────────────────────────────────────────

    def _read_plain_call(
        self, opener: str, text: str, marker: str | None, source: TextBuffer, sink: EventSink
    ) -> Read[None]:
        """Read a call whose markers are ordinary text.

        Prose can contain the same markers, so it is a call only if a name and an object follow where expected.
        """
        name = text.lstrip(opener[0]) if opener.strip(opener[0]) == "" else text
        leading_text = text[: len(text) - len(name)]  # in `>>>>`, the last three characters are the opener
        has_separator = marker in self._separators.literals
        if marker == OPENING_BRACE:
            source.put_back(marker)
        finding = None if has_separator else ("no-separator", f"arguments directly after the header {name!r}: accepted")
        if (has_separator or (marker == OPENING_BRACE and sink.offer.has(name))) and (
            yield from self._read_plain_arguments(name, finding, source, sink, leading_text)
        ):
            return
        if source.closed:
            sink.report("broken-header", "a call that is cut off in its header: kept as text")
        self._return_as_text(None if has_separator or marker == OPENING_BRACE else marker, source, sink)

    def _read_plain_arguments(
        self, name: str, finding: tuple[str, str] | None, source: TextBuffer, sink: EventSink, leading_text: str = ""
    ) -> Read[bool]:
        """Read the arguments and report the finding, if this is a call. Consume nothing and return False otherwise."""
        if not (_NAME_PATTERN.fullmatch(name) or sink.offer.has(name)):
            return False
        is_object = (yield from source.peek_after_space()) == OPENING_BRACE
        if not is_object and not (yield from source.peek(self._call_closers)):
            return False
        if sink.reject_call(name):
            return False
        sink.emit_text(leading_text, source.channel)
        if finding:
            sink.report(*finding)
        yield from self._arguments_reader.read(sink.start_call(CallHeader(name, None, name)), source, sink)
        return True

    def _read_call_begun_by_prompt(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        name = self._separators.remove_from(opener)
        finding = ("no-opener", f"{name!r} without its opening marker: accepted as a call (pass the prompt's prefill)")
        if not (yield from self._read_plain_arguments(name, finding, source, sink)):
            sink.restore_text()

    # ── calls without their opener ──────────────────────────────────────────────────────────────────────────────

    def _read_call_without_opener(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read a call whose opener was lost. It is a call only if the rest of the call is complete."""
        channel = source.channel
        separator = next((mark for mark in self._after_first_name if opener.endswith(mark)), None)
        header = opener.removesuffix(separator or "")
        if separator is None:
            number = yield from source.take_while(_DIGITS_PATTERN)
            header += number
            separator = (yield from source.accept(self._separators)) if number else None
        if separator is None:
            sink.emit_leftover_text(source.take_recorded(), channel)
            return
        scanner = JsonScanner()
        args: list[str] = []
        limit = min(sink.limits.held, sink.limits.args)
        marker = yield from copy_json(source, scanner, self._all_markers, args.append, limit, self._boundary)
        if scanner.ended and ((yield from source.accept(self._call_or_section_closers)) or "" in self._shape.close):
            sink.report("no-opener", f"{header!r} without its opening marker: accepted as a call")
            call = sink.start_call(self._headers.read(header, sink.offer))
            call.write_whole("".join(args))
            call.end()
            return
        sink.report("stray-marker", f"{separator} outside a call: dropped, the rest is kept as text")
        if marker:
            source.put_back(marker)
        sink.emit_leftover_text(source.take_recorded(), channel)


def _strip_markers(marks: Iterable[str]) -> tuple[str, ...]:
    """Return the markers for reading: without surrounding whitespace, unless a marker is only whitespace."""
    return tuple(dict.fromkeys(mark.strip() or mark for mark in marks if mark))
