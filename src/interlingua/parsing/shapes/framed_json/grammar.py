"""framed_json: `[SECTION] { OPEN header ARGS {json} CLOSE } [/SECTION]`.

The header holds the name, the id, or both; a template says how. The arguments end where their JSON does, not where the
next closer stands: a marker inside a JSON string is data. Every closer may be missing, and so may the section.
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
from interlingua.parsing.dialect import Grammar, Span
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.markers import compile_markers
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
"""The header that is nothing but the name."""
OBJECT_OPENER_MARKERS = compile_markers(OPENING_BRACE)
OBJECT_START_MARKERS = compile_markers('{"', "{}", "{ ", "{\n")


@dataclass(frozen=True)
class FramedJson:
    """Each marker may have several spellings. The first is how we write it; an empty one is that it is left out.

    White space at the ends of a marker is how we write it too. Reading never needs it.
    """

    NAME: ClassVar[str] = "framed_json"

    open: tuple[str, ...]
    """What begins a call."""
    header: tuple[str, ...]
    """Templates of what stands before the arguments: `{name}`, `{name}[CALL_ID]{id}`, `functions.{name}:{n}`."""
    args: tuple[str, ...] = ()
    """What stands between header and arguments. An empty one: these may follow at once."""
    close: tuple[str, ...] = ()
    """What ends one."""
    sections: tuple[Span, ...] = ()
    """What stands around neighbouring calls."""
    fences: tuple[Span, ...] = ()
    """Ordinary text around the arguments. It counts inside a call only. Where there is nothing else, in neither `args`
    nor `close`, prose may well hold all that a call consists of, so that more is asked of one."""
    between: str = ""
    """The white space that the model writes between two calls."""
    prompt_opens: bool = False
    """Whether the prompt ends in the opener, so that a reply may begin with what should follow it."""
    envelope: JsonEnvelope | None = None
    """What else the opener may begin: objects that hold names and arguments. We never write it."""

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
        self._arguments_reader = JsonArgumentsReader(
            self._markers_in_call,
            self._call_closers,
            compile_markers(*fence_closers) if fence_closers and closers else None,
        )
        self._call_or_section_closers = compile_markers(*closers, *self._section_closers)
        opened_markers = [
            (opener, marker) for opener in self._call_openers for marker in dialect_markers if marker.startswith(opener)
        ]
        self._text_openers = tuple(
            marker.removeprefix(opener) for opener, marker in opened_markers if shape.prompt_opens
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
            raise RenderError(f"a call named {call.name!r} would be read back with another name", "rename the tool")
        fence = (*shape.fences, EMPTY_SPAN)[0]
        close = fence.inside + fence.close + (*shape.close, "")[0]
        self._arguments_reader.check_writable(call)
        if (
            (self._is_plain_text or not close)
            and call.complete
            and not (call.arguments[:1] == "{" and is_json(call.arguments))
        ):
            raise RenderError(f"the arguments of {call.name!r} are not a JSON object", "make them one")
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
                sink.report("no-section", "a call outside a section: taken as a call")
            yield from self._read_call(opener, source, sink)
        elif opener in self._text_openers:
            source.discard_recording()
            sink.report("stray-marker", f"{opener!r} without the marker before it: dropped (pass the prompt's prefill)")
        elif self._is_plain_text:
            yield from self._read_call_begun_by_prompt(opener, source, sink)
        else:
            yield from self._read_call_without_opener(opener, source, sink)

    def _read_section(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        while not sink.failed:
            marker = yield from self._read_between_calls(source, sink)
            if marker in self._call_openers:
                source.start_recording(marker or "")
                yield from self._read_call(marker or "", source, sink)
            elif marker in self._section_closers:
                return
            elif marker is None or marker in self._dialect_markers:
                if self._shape.sections[0].close:
                    sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")
                if marker is not None:
                    source.put_back(marker)
                return
            elif marker:
                sink.report("stray-marker", f"{marker} means nothing here: dropped")

    def _read_between_calls(self, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """The next marker of a section. Text before it belongs to no call, but is not lost."""
        stray = StrayText(source, sink)
        marker = yield from source.copy_until(self._all_markers, stray.write)
        stray.report("among the calls of a section")
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
        """A call of special tokens: no prose holds them, so what stands before the arguments is a header."""
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
            sink.report("no-arguments", f"a call that ends after its header {text.strip()!r}: taken as one without any")
            sink.start_call(header).end()
        else:
            sink.report("broken-header", "a call that breaks off in its header: given back as text", start)
            self._return_as_text(marker, source, sink)

    def _can_omit_separator(self, header: CallHeader, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Whether arguments may follow this header at once: the dialect knows that, or the header is telling enough.

        The brace that they begin with is put back if so.
        """
        is_offered = sink.offer.has(header.name or "")
        if "" in self._shape.args and (is_offered or _NAME_PATTERN.fullmatch(header.name or "")):
            source.put_back(OPENING_BRACE)
            if (yield from source.peek(OBJECT_START_MARKERS)):
                return True
            yield from source.accept(OBJECT_OPENER_MARKERS)
        elif is_offered or header.id is not None:
            source.put_back(OPENING_BRACE)
            sink.report("no-separator", f"arguments right after the header {header.text!r}: taken as such")
            return True
        return False

    def _return_as_text(self, marker: str | None, source: TextBuffer, sink: EventSink) -> None:
        """No call: all that was read is text, but for a marker that is another reader's."""
        channel = source.taken_channel
        self._arguments_reader.unread_foreign_marker(marker, source)
        sink.emit_leftover_text(source.take_recorded(), channel)

    def _read_refused_call(self, name: str, marker: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """A call that is none. It is text, up to its closer, and no marker in it may leak."""
        source.discard_recording()
        sink.emit_text(name, source.channel)
        if marker not in self._separators.literals:
            source.put_back(marker)
        self._arguments_reader.unread_foreign_marker(
            (yield from source.copy_until(self._markers_in_call, sink.emit_text)), source
        )

    # ── calls of ordinary text ────────────────────────────────────────────────────────────────────────────────────

    def _read_plain_call(
        self, opener: str, text: str, marker: str | None, source: TextBuffer, sink: EventSink
    ) -> Read[None]:
        """Prose may hold what a call consists of. So it is one only if a name and an object stand in their places."""
        name = text.lstrip(opener[0]) if opener.strip(opener[0]) == "" else text
        leading_text = text[: len(text) - len(name)]  # of `>>>>`, the last three are the opener
        has_separator = marker in self._separators.literals
        if marker == OPENING_BRACE:
            source.put_back(marker)
        finding = (
            None if has_separator else ("no-separator", f"arguments right after the header {name!r}: taken as such")
        )
        if (has_separator or (marker == OPENING_BRACE and sink.offer.has(name))) and (
            yield from self._read_plain_arguments(name, finding, source, sink, leading_text)
        ):
            return
        if source.closed:
            sink.report("broken-header", "a call that breaks off in its header: given back as text")
        self._return_as_text(None if has_separator or marker == OPENING_BRACE else marker, source, sink)

    def _read_plain_arguments(
        self, name: str, finding: tuple[str, str] | None, source: TextBuffer, sink: EventSink, leading_text: str = ""
    ) -> Read[bool]:
        """Reads the call, if it is one, and says what is odd about it. Nothing is read if it is not."""
        if not (_NAME_PATTERN.fullmatch(name) or sink.offer.has(name)):
            return False
        is_object = (yield from source.peek_after_space()) == OPENING_BRACE
        if not is_object and not (yield from source.peek(self._call_closers)):
            return False
        if sink.reject_call(name):
            return False
        if leading_text:
            sink.emit_text(leading_text, source.channel)
        if finding:
            sink.report(*finding)
        yield from self._arguments_reader.read(sink.start_call(CallHeader(name, None, name)), source, sink)
        return True

    def _read_call_begun_by_prompt(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        name = self._separators.remove_from(opener)
        finding = ("no-opener", f"{name!r} without the marker before it: taken as a call (pass the prompt's prefill)")
        if not (yield from self._read_plain_arguments(name, finding, source, sink)):
            sink.restore_text()

    # ── a call whose opener was lost ──────────────────────────────────────────────────────────────────────────────

    def _read_call_without_opener(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """A header whose opener was lost on the way. It is a call only if all the rest of one follows."""
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
        cursor = JsonScanner()
        args: list[str] = []
        limit = min(sink.limits.held, sink.limits.args)
        marker = yield from source.copy_json(cursor, self._all_markers, args.append, limit)
        if cursor.ended and ((yield from source.accept(self._call_or_section_closers)) or "" in self._shape.close):
            sink.report("no-opener", f"{header!r} without the marker before it: taken as a call")
            call = sink.start_call(self._headers.read(header, sink.offer))
            call.scanner.scan("".join(args), 0)
            call.writer(call.scanner.first_char)("".join(args))
            call.end()
            return
        sink.report("stray-marker", f"{separator} without a call around it: dropped, the rest kept as text")
        if marker:
            source.put_back(marker)
        sink.emit_leftover_text(source.take_recorded(), channel)


def _strip_markers(marks: Iterable[str]) -> tuple[str, ...]:
    """The markers as they are read: without the white space around them, if they are not all white space."""
    return tuple(dict.fromkeys(mark.strip() or mark for mark in marks if mark))
