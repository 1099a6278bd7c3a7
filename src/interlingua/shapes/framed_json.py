"""framed_json: `[SECTION] { OPEN header ARGS {json} CLOSE } [/SECTION]`.

The header holds the name, the id, or both; the dialect says how. The arguments end where their JSON does, not where the
next closer stands: a marker inside a JSON string is data. Every closer may be missing, and so may the section.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from interlingua.cursor import JsonCursor
from interlingua.dialect import Grammar, Span
from interlingua.errors import RenderError
from interlingua.markers import markers
from interlingua.reply import Call
from interlingua.shapes.json_args import JSON_OBJECT, JsonArgs
from interlingua.sink import Header, Sink
from interlingua.source import Channel, Reading, Source
from interlingua.tools import Offer

__all__ = ["FramedJson"]


@dataclass(frozen=True)
class FramedJson:
    """Each marker may have several spellings. The first is how we write it."""

    open: tuple[str, ...]
    args: tuple[str, ...]
    close: tuple[str, ...]
    sections: tuple[Span, ...]
    read_header: Callable[[str, Offer], Header]
    write_header: Callable[[Call, int], str]
    """The header of a call, given how many calls stand before it in the reply."""
    first_openers: Callable[[Offer], tuple[str, ...]] = lambda _: ()
    """What the header of a call to an offered tool begins with, up to its number."""

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return FramedJsonGrammar(self, outside)


class FramedJsonGrammar:
    def __init__(self, shape: FramedJson, outside: tuple[str, ...]) -> None:
        self._shape = shape
        self._section_opens = tuple(span.open for span in shape.sections)
        self._section_closes = tuple(span.close for span in shape.sections)
        self.openers = (*shape.open, *self._section_opens)
        self.inner: tuple[str, ...] = ()
        self.strays = (*shape.args, *shape.close, *self._section_closes)
        self._all = markers(*self.openers, *self.strays, *outside)
        self._outside = frozenset(outside)
        self._header_ends = markers(*self._all.literals, JSON_OBJECT)
        self._args = JsonArgs(self._all, markers(*shape.close))
        self._separators = markers(*shape.args)
        self._closers = markers(*shape.close, *self._section_closes)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:
        written = "".join(self._write_call(call, before + n) for n, call in enumerate(calls))
        section = self._shape.sections[0]
        return section.open + written + (section.close if calls[-1].complete else "")

    def _write_call(self, call: Call, number: int) -> str:
        shape = self._shape
        header = shape.write_header(call, number)
        if shape.read_header(header, Offer()).name != call.name or self._all.search(header, 0):
            raise RenderError(f"a call named {call.name!r} would be read back with another name", "rename the tool")
        self._args.check(call)
        return shape.open[0] + header + shape.args[0] + call.arguments + (shape.close[0] if call.complete else "")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        return self._shape.first_openers(offer)

    def name_in(self, text: str, offer: Offer) -> str:
        return self._shape.read_header(self._all.without(text), offer).name or text

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        if opener in self._section_opens:
            yield from self._section(source, sink)
        elif opener in self._shape.open:
            sink.report("no-section", "a call outside a section: taken as a call")
            yield from self._call(source, sink)
        else:
            yield from self._rest_of_call(opener, source, sink)

    def _section(self, source: Source, sink: Sink) -> Reading[None]:
        while not sink.failed:
            marker = yield from self._between_calls(source, sink)
            if marker in self._shape.open:
                yield from self._call(source, sink)
            elif marker in self._section_closes:
                return
            elif marker is None or marker in self._outside:
                sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")
                if marker is not None:
                    source.unread(marker)
                return
            elif marker:
                sink.report("stray-marker", f"{marker} means nothing here: dropped")

    def _between_calls(self, source: Source, sink: Sink) -> Reading[str | None]:
        """The next marker of a section. Text before it belongs to no call, but is not lost."""
        said: list[int] = []

        def text(text: str, channel: Channel) -> None:
            said.append(source.offset)
            sink.text(text, channel)

        marker = yield from source.copy_until(self._all, text)
        if said:
            sink.report("text-in-section", "text among the calls of a section: kept as text", said[0])
        return marker

    def _call(self, source: Source, sink: Sink) -> Reading[None]:
        limit = sink.limits.header
        start = source.offset
        text, marker = yield from source.take_until(self._header_ends, limit)
        channel = source.taken_from
        if len(text) > limit:
            sink.over_limit("the header of a call", limit)
            sink.give_back(text, channel)
        elif marker and text.strip() and marker not in self.openers and self._refuses(text, sink):
            yield from self._call_to_nothing(text, marker, source, sink)
        elif marker in self._shape.args:
            yield from self._arguments(self._shape.read_header(text, sink.offer), source, sink)
        elif marker == JSON_OBJECT and self._is_header(text, sink.offer):
            sink.report("no-separator", f"arguments right after the header {text.strip()!r}: taken as such")
            source.unread(marker)
            yield from self._arguments(self._shape.read_header(text, sink.offer), source, sink)
        elif marker in self._shape.close and len(text.split()) == 1:
            sink.report("no-arguments", f"a call that ends after its header {text.strip()!r}: taken as one without any")
            sink.start(self._shape.read_header(text, sink.offer)).end()
        else:
            sink.report("broken-header", "a call that breaks off in its header: given back as text", start)
            sink.give_back(text, channel)
            self._args.leave(marker, source)

    def _is_header(self, text: str, offer: Offer) -> bool:
        """Whether this is a header even without the marker that should follow it: of a tool on offer, or with an id."""
        header = self._shape.read_header(text, offer)
        return len(text.split()) == 1 and (header.id is not None or offer.has(header.name or ""))

    def _refuses(self, header: str, sink: Sink) -> bool:
        return sink.refuses(self._shape.read_header(header, sink.offer).name or header.strip())

    def _call_to_nothing(self, header: str, marker: str, source: Source, sink: Sink) -> Reading[None]:
        """A call that is none. It is text, up to its closer, and no marker in it may leak."""
        sink.text(self._shape.read_header(header, sink.offer).name or header.strip(), source.channel)
        if marker not in self._shape.args:
            source.unread(marker)
        self._args.leave((yield from source.copy_until(self._all, sink.text)), source)

    def _arguments(self, header: Header, source: Source, sink: Sink) -> Reading[None]:
        yield from self._args.read(sink.start(header), source, sink)

    def _rest_of_call(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        """A header whose opener was lost on the way. It is a call only if all the rest of one follows."""
        channel = source.channel
        number = yield from source.take_run("0123456789")
        separator = (yield from source.accept(self._separators)) if number else None
        if separator is None:
            sink.text(opener + number, channel)
            return
        cursor = JsonCursor()
        args: list[str] = []
        marker = yield from source.copy_json(cursor, self._all, args.append, sink.limits.held)
        if cursor.ended and (yield from source.accept(self._closers)):
            sink.report("no-opener", f"{opener + number!r} without the marker before it: taken as a call")
            call = sink.start(self._shape.read_header(opener + number, sink.offer))
            call.cursor.walk("".join(args), 0)
            call.writer(call.cursor.first)("".join(args))
            call.end()
            return
        sink.report("stray-marker", f"{separator} without a call around it: dropped, the rest kept as text")
        sink.give_back(opener + number + "".join(args), channel)
        if marker:
            source.unread(marker)
