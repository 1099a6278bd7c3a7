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

from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Grammar, Span
from interlingua.parsing.event_sink import Header, Sink
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.common.json_arguments import JSON_OBJECT, JsonArgs, is_json
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.shapes.framed_json.header_template import compile_headers
from interlingua.parsing.shapes.json_envelope.grammar import ENVELOPE_BEGINS, JsonEnvelope
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["FramedJson"]

_NAME = re.compile(r"[\w.:\-]{1,128}")
_DIGITS = re.compile(r"[0-9]*+")
NOTHING = Span("", "")
LONE_NAME = "{name}"
"""The header that is nothing but the name."""
OBJECT = markers(JSON_OBJECT)
OBJECT_BEGINS = markers('{"', "{}", "{ ", "{\n")


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

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return FramedJsonGrammar(self, outside)


class FramedJsonGrammar:
    def __init__(self, shape: FramedJson, outside: tuple[str, ...]) -> None:
        self._shape = shape
        self._headers = compile_headers(shape.header)
        self._envelope = shape.envelope.grammar(outside) if shape.envelope else None
        self._plain = not (shape.args or shape.close)
        close = _spelled(shape.close)
        fence_opens = _spelled(span.open for span in shape.fences)
        fence_closes = _spelled(span.close for span in shape.fences)
        fenced = tuple(map("".join, product(fence_closes, close or ("",))))
        self._opens = _spelled(shape.open)
        self._section_opens = _spelled(span.open for span in shape.sections)
        self._section_closes = _spelled(span.close for span in shape.sections)
        self.openers = (*self._opens, *self._section_opens)
        in_call = (*fence_opens, *fenced)
        self.inner = in_call if self._plain else self._headers.marks
        self.strays = (*self._headers.marks, *_spelled(shape.args), *close, *self._section_closes)
        self._outside = frozenset(outside)
        self._all = markers(*self.openers, *self.strays, *outside)
        self._inside = markers(*self._all.literals, *fenced)
        around_header = (marker for marker in self._all.literals if marker not in self._headers.marks)
        self._around_header = markers(*around_header, *in_call)
        self._header_ends = markers(*self._around_header.literals, JSON_OBJECT)
        self._separators = markers(*_spelled(shape.args), *fence_opens)
        telling = self._separators.literals if shape.prompt_opens else _spelled(shape.args)
        self._behind_first_name = telling if LONE_NAME in shape.header else ()
        self._fence_opens = markers(*fence_opens)
        self._own_closers = markers(*close, *fenced)
        self._args = JsonArgs(
            self._inside, self._own_closers, markers(*fence_closes) if fence_closes and close else None
        )
        self._closers = markers(*close, *self._section_closes)
        begun = [(opener, marker) for opener in self._opens for marker in outside if marker.startswith(opener)]
        self._text_openers = tuple(marker.removeprefix(opener) for opener, marker in begun if shape.prompt_opens)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:
        written = self._shape.between.join(self._write_call(call, before + n) for n, call in enumerate(calls))
        section = (*self._shape.sections, NOTHING)[0]
        return section.open + section.inside + written + (section.inside + section.close if calls[-1].complete else "")

    def _write_call(self, call: Call, number: int) -> str:
        shape = self._shape
        header = self._headers.write(call, number)
        if self._header_ends.search(header, 0) or (self._plain and not _NAME.fullmatch(header)):
            raise RenderError(f"a call named {call.name!r} would be read back with another name", "rename the tool")
        fence = (*shape.fences, NOTHING)[0]
        close = fence.inside + fence.close + (*shape.close, "")[0]
        self._args.check(call)
        if (self._plain or not close) and call.complete and not (call.arguments[:1] == "{" and is_json(call.arguments)):
            raise RenderError(f"the arguments of {call.name!r} are not a JSON object", "make them one")
        opened = shape.open[0] + header + (*shape.args, "")[0] + fence.open + fence.inside
        return opened + call.arguments + (close if call.complete else "")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        whole = product(offer.names, self._behind_first_name)
        return (*self._headers.beginnings(offer), *self._text_openers, *map("".join, whole))

    def name_in(self, text: str, offer: Offer) -> str:
        return self._headers.read(self._around_header.without(text), offer).name or text

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        if opener in self._section_opens:
            source.forget()
            yield from self._section(source, sink)
        elif opener in self._opens:
            if self._shape.sections:
                sink.report("no-section", "a call outside a section: taken as a call")
            yield from self._call(opener, source, sink)
        elif opener in self._text_openers:
            source.forget()
            sink.report("stray-marker", f"{opener!r} without the marker before it: dropped (pass the prompt's prefill)")
        elif self._plain:
            yield from self._call_begun_by_prompt(opener, source, sink)
        else:
            yield from self._rest_of_call(opener, source, sink)

    def _section(self, source: Source, sink: Sink) -> Reading[None]:
        while not sink.failed:
            marker = yield from self._between_calls(source, sink)
            if marker in self._opens:
                source.record(marker or "")
                yield from self._call(marker or "", source, sink)
            elif marker in self._section_closes:
                return
            elif marker is None or marker in self._outside:
                if self._shape.sections[0].close:
                    sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")
                if marker is not None:
                    source.unread(marker)
                return
            elif marker:
                sink.report("stray-marker", f"{marker} means nothing here: dropped")

    def _between_calls(self, source: Source, sink: Sink) -> Reading[str | None]:
        """The next marker of a section. Text before it belongs to no call, but is not lost."""
        stray = StrayText(source, sink)
        marker = yield from source.copy_until(self._all, stray.write)
        stray.report("among the calls of a section")
        return marker

    def _call(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        if self._envelope is not None and (yield from source.peek(ENVELOPE_BEGINS)):
            yield from self._envelope.read(opener, source, sink)
            return
        limit = sink.limits.header
        start = source.offset
        text, marker = yield from source.take_until(self._header_ends, limit)
        if self._plain:
            yield from self._plain_call(opener, text, marker, source, sink)
        elif len(text) > limit:
            sink.over_limit("the header of a call", limit)
            self._give_back(None, source, sink)
        else:
            yield from self._marked_call(text, marker, start, source, sink)

    def _marked_call(self, text: str, marker: str | None, start: int, source: Source, sink: Sink) -> Reading[None]:
        """A call of special tokens: no prose holds them, so what stands before the arguments is a header."""
        header = self._headers.read(text, sink.offer)
        word = len(text.split()) == 1
        name = header.name or header.text
        if marker and name and marker not in self.openers and sink.refuses(name):
            yield from self._call_to_nothing(name, marker, source, sink)
        elif marker in self._separators.literals:
            call = sink.start(header)
            if self._shape.fences and marker not in self._fence_opens.literals:
                yield from source.accept(self._fence_opens)
            yield from self._args.read(call, source, sink)
        elif marker == JSON_OBJECT and word and (yield from self._may_lack_separator(header, source, sink)):
            yield from self._args.read(sink.start(header), source, sink)
        elif marker in self._own_closers.literals and word:
            sink.report("no-arguments", f"a call that ends after its header {text.strip()!r}: taken as one without any")
            sink.start(header).end()
        else:
            sink.report("broken-header", "a call that breaks off in its header: given back as text", start)
            self._give_back(marker, source, sink)

    def _may_lack_separator(self, header: Header, source: Source, sink: Sink) -> Reading[bool]:
        """Whether arguments may follow this header at once: the dialect knows that, or the header is telling enough.

        The brace that they begin with is put back if so.
        """
        known = sink.offer.has(header.name or "")
        if "" in self._shape.args and (known or _NAME.fullmatch(header.name or "")):
            source.unread(JSON_OBJECT)
            if (yield from source.peek(OBJECT_BEGINS)):
                return True
            yield from source.accept(OBJECT)
        elif known or header.id is not None:
            source.unread(JSON_OBJECT)
            sink.report("no-separator", f"arguments right after the header {header.text!r}: taken as such")
            return True
        return False

    def _give_back(self, marker: str | None, source: Source, sink: Sink) -> None:
        """No call: all that was read is text, but for a marker that is another reader's."""
        channel = source.taken_from
        self._args.leave(marker, source)
        sink.give_back(source.recorded(), channel)

    def _call_to_nothing(self, name: str, marker: str, source: Source, sink: Sink) -> Reading[None]:
        """A call that is none. It is text, up to its closer, and no marker in it may leak."""
        source.forget()
        sink.text(name, source.channel)
        if marker not in self._separators.literals:
            source.unread(marker)
        self._args.leave((yield from source.copy_until(self._inside, sink.text)), source)

    # ── calls of ordinary text ────────────────────────────────────────────────────────────────────────────────────

    def _plain_call(self, opener: str, text: str, marker: str | None, source: Source, sink: Sink) -> Reading[None]:
        """Prose may hold what a call consists of. So it is one only if a name and an object stand in their places."""
        name = text.lstrip(opener[0]) if opener.strip(opener[0]) == "" else text
        before = text[: len(text) - len(name)]  # of `>>>>`, the last three are the opener
        separated = marker in self._separators.literals
        if marker == JSON_OBJECT:
            source.unread(marker)
        odd = None if separated else ("no-separator", f"arguments right after the header {name!r}: taken as such")
        if (separated or (marker == JSON_OBJECT and sink.offer.has(name))) and (
            yield from self._plain_arguments(name, odd, source, sink, before)
        ):
            return
        if source.closed:
            sink.report("broken-header", "a call that breaks off in its header: given back as text")
        self._give_back(None if separated or marker == JSON_OBJECT else marker, source, sink)

    def _plain_arguments(
        self, name: str, odd: tuple[str, str] | None, source: Source, sink: Sink, before: str = ""
    ) -> Reading[bool]:
        """Reads the call, if it is one, and says what is odd about it. Nothing is read if it is not."""
        if not (_NAME.fullmatch(name) or sink.offer.has(name)):
            return False
        is_object = (yield from source.next_char()) == JSON_OBJECT
        if not is_object and not (yield from source.peek(self._own_closers)):
            return False
        if sink.refuses(name):
            return False
        if before:
            sink.text(before, source.channel)
        if odd:
            sink.report(*odd)
        yield from self._args.read(sink.start(Header(name, None, name)), source, sink)
        return True

    def _call_begun_by_prompt(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        name = self._separators.without(opener)
        odd = ("no-opener", f"{name!r} without the marker before it: taken as a call (pass the prompt's prefill)")
        if not (yield from self._plain_arguments(name, odd, source, sink)):
            sink.not_a_call()

    # ── a call whose opener was lost ──────────────────────────────────────────────────────────────────────────────

    def _rest_of_call(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        """A header whose opener was lost on the way. It is a call only if all the rest of one follows."""
        channel = source.channel
        separator = next((mark for mark in self._behind_first_name if opener.endswith(mark)), None)
        header = opener.removesuffix(separator or "")
        if separator is None:
            number = yield from source.take_while(_DIGITS)
            header += number
            separator = (yield from source.accept(self._separators)) if number else None
        if separator is None:
            sink.give_back(source.recorded(), channel)
            return
        cursor = JsonCursor()
        args: list[str] = []
        limit = min(sink.limits.held, sink.limits.args)
        marker = yield from source.copy_json(cursor, self._all, args.append, limit)
        if cursor.ended and ((yield from source.accept(self._closers)) or "" in self._shape.close):
            sink.report("no-opener", f"{header!r} without the marker before it: taken as a call")
            call = sink.start(self._headers.read(header, sink.offer))
            call.cursor.walk("".join(args), 0)
            call.writer(call.cursor.first)("".join(args))
            call.end()
            return
        sink.report("stray-marker", f"{separator} without a call around it: dropped, the rest kept as text")
        if marker:
            source.unread(marker)
        sink.give_back(source.recorded(), channel)


def _spelled(marks: Iterable[str]) -> tuple[str, ...]:
    """The markers as they are read: without the white space around them, if they are not all white space."""
    return tuple(dict.fromkeys(mark.strip() or mark for mark in marks if mark))
