"""tagged_params: `[SECTION] { OPEN name END { PARAM key END value CLOSE } CLOSE } [/SECTION]`.

Each param is an element of its own, and its value is raw text. The tool's schema tells its type, or an attribute does.
Closers may be missing, and a body may be one JSON object instead. A call outside its section is one only if its tool
was offered and it comes to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Grammar, Shape, Span
from interlingua.parsing.event_sink import Header, Sink
from interlingua.parsing.markers import TOKENS, markers
from interlingua.parsing.shapes.common.json_arguments import JSON_OBJECT, JsonArgs, read_members
from interlingua.parsing.shapes.common.object_writer import Composer
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.shapes.tagged_params.nested_values import Trees
from interlingua.parsing.shapes.tagged_params.tag import Head, Tag, as_name, read_head_to, read_lost_key
from interlingua.parsing.shapes.tagged_params.unclosed_values import Frame
from interlingua.parsing.shapes.tagged_params.values import Param, Values
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["TaggedParams"]


@dataclass(frozen=True)
class TaggedParams:
    """Each marker may have several spellings. The first is how we write it."""

    NAME: ClassVar[str] = "tagged_params"

    call: Tag
    """The element of a call, and the name in its head."""
    param: Tag
    """The element of a param, and the key in its head."""
    sections: tuple[Span, ...] = ()
    """What stands around neighbouring calls."""
    value_open: tuple[str, ...] = ()
    """What stands between the end of a param's head and its value, if anything does."""
    json: Tag | None = None
    """An element that holds all arguments as JSON."""
    quote: Span | None = None
    """What a value stands in that may hold anything, such as CDATA."""
    string_when: str = ""
    """The attribute that makes a value a string, such as `string="true"`. With any other value it is JSON."""
    numbered: str = ""
    """The attribute of a call that counts the calls of the reply from 1, if there is one."""
    wrappers: tuple[str, ...] = ("arguments", "input")
    """Params that some models put all arguments into, as an object: taken out if the tool has no such param."""
    nested: bool = False
    """Whether objects and arrays are elements inside the param's. Then a closer is what stands before its name."""
    lines: bool = False
    """Whether values stand on lines of their own: one line break before and after each is no part of it."""
    call_gap: str = ""
    """What we write around calls."""
    param_gap: str = ""
    """What we write before each param and before the end of a call."""
    shared_section: bool = True
    """Whether neighbouring calls share a section when we write them."""
    inside: Shape | None = None
    """What else a section may hold, or a call where there are none: another way to write calls that the model falls
    back to."""

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
                raise UsageError(f"{field} is empty", "write the marker that the model writes there")

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return TaggedParamsGrammar(self, outside)


class TaggedParamsGrammar:
    def __init__(self, shape: TaggedParams, outside: tuple[str, ...]) -> None:
        self._shape = shape
        self._section_opens = tuple(span.open for span in shape.sections)
        self._section_closes = tuple(span.close for span in shape.sections)
        self._inside = shape.inside.grammar(outside + self._section_closes) if shape.inside else None
        inside_openers = self._inside.openers if self._inside else ()
        self.openers = (*self._section_opens, *shape.call.open, *inside_openers)
        self.strays = (*self._section_closes, *(() if shape.sections else shape.call.close))
        json = (*shape.json.open, *shape.json.close) if shape.json else ()
        self.inner = (*shape.call.close, *shape.param.open, *shape.param.close, *shape.value_open, *json)
        self._outside = frozenset(outside)
        self._in_section = markers(*self.openers, *self._section_closes, *self.inner, *outside)
        keys_end = shape.param.end if shape.value_open else ()
        self._in_call = markers(*self.openers, *self.strays, *self.inner, *keys_end, *outside)
        structure = (*self.openers, *self.strays, *self.inner)
        self._fragments = {mark for mark in outside if any(whole.startswith(mark) for whole in structure)}
        self._fragments |= set(outside) & set(shape.param.end)
        self._call_close = markers(*shape.call.close)
        self._closers = markers(*self.strays)
        self._outer_opens = markers(*(self._section_opens or shape.call.open))
        self._first = markers(*shape.call.open)
        self._after_name = self._in_call if shape.call.end else markers(*shape.param.open, *shape.call.close)
        self._after_head = markers(*self.inner)
        self._values = self._make_values()
        self._args = JsonArgs(self._in_call, markers(*shape.call.close, *(shape.json.close if shape.json else ())))

    def _make_values(self) -> Values | Trees:
        shape = self._shape
        after_call = markers(*self.openers, *self._section_closes, *self._outside)
        after_param = markers(*self.inner, *after_call.literals)
        outside = tuple(sorted(self._outside))
        tokens = tuple(marker for marker in outside if marker.startswith(TOKENS))
        frame = Frame(shape.call, self._section_opens, self._section_closes, outside, tokens, after_param, after_call)
        if shape.nested:
            return Trees(shape.param, frame)
        return Values(shape.param, shape.value_open, shape.quote, shape.lines, shape.string_when, frame)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:
        gap = self._shape.call_gap
        written = [self._write_call(call, number) for number, call in enumerate(calls, before + 1)]
        if not self._shape.sections:
            return gap.join(written)
        section = self._shape.sections[0]
        sections = [gap.join(written)] if self._shape.shared_section else written
        return gap.join(section.open + gap + body + gap + section.close for body in sections)

    def _write_call(self, call: Call, number: int) -> str:
        tag, gap = self._shape.call, self._shape.param_gap
        params = "".join(gap + self._values.write(key, value) for key, value in read_members(call).items())
        return tag.write(call.name, self._shape.numbered, str(number)) + params + gap + tag.close[0]

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        lost = (
            ()
            if self._shape.call.end
            else (f"{name}{opener}" for name in offer.names for opener in self._shape.param.open)
        )
        return (*lost, *(self._inside.first_openers(offer) if self._inside else ()))

    def name_in(self, text: str, offer: Offer) -> str:  # noqa: ARG002 (no header holds more than the name)
        return self._in_call.without(text).strip() or text

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        if opener in self._section_opens:
            yield from self._section(opener, source, sink)
        elif opener.endswith(self._shape.param.open):
            yield from self._call_without_opener(opener, source, sink)
        elif opener not in self._shape.call.open and self._inside is not None:
            yield from self._inside.read(opener, source, sink)
        elif self._shape.sections:
            yield from self._call_without_section(source, sink)
        else:
            yield from self._call(source, sink)

    def _section(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        marker = yield from source.accept(self._first)
        if marker is None:
            yield from self._odd_section(opener, source, sink)
            return
        while marker in self._shape.call.open and not sink.failed:
            if not (yield from self._call(source, sink)):
                return
            marker = yield from self._between_calls(source, sink)
            source.record(marker or "")
        if marker is None or marker not in self._section_closes:
            sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")
            source.unread(marker or "")

    def _odd_section(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        """What begins with something else: another way to write calls, the opener again, or no call at all."""
        if (yield from source.accept(self._closers)) or (yield from source.peek(self._outer_opens)):
            sink.report("stray-marker", f"{opener} with nothing in it: dropped")
            source.forget()
            return
        first = yield from source.next_char()
        if self._inside is not None and first in ("{", "["):
            yield from self._inside.read(opener, source, sink)
        else:
            self._give_back(sink)

    def _between_calls(self, source: Source, sink: Sink) -> Reading[str | None]:
        """The next marker of a section. Text before it belongs to no call, but is not lost."""
        stray = StrayText(source, sink)
        marker: str | None = ""
        while marker == "" or marker in self.inner:
            if marker:
                sink.report("stray-marker", f"{marker} without a call around it: dropped")
            marker = yield from source.copy_until(self._in_section, stray.write)
        stray.report("among the calls of a section")
        return marker

    def _call_without_section(self, source: Source, sink: Sink) -> Reading[None]:
        head = yield from read_head_to(self._after_head, self._shape.call, source, sink, self._after_name)
        if not head.name or not sink.offer.may_have(head.name) or not (yield from self._goes_on(source)):
            self._give_back(sink)
            return
        sink.try_call()
        sink.report("no-section", "a call outside a section: taken as a call, for it is all there")
        if (yield from self._named_call(head, source, sink)):
            sink.keep()
        else:
            sink.drop()

    def _call_without_opener(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        """An offered tool's name and the beginning of its first param."""
        param = next(marker for marker in self._shape.param.open if opener.endswith(marker))
        name = opener.removesuffix(param)
        sink.try_call()
        sink.report("no-opener", f"{name!r} without the marker before it: taken as a call")
        if (yield from self._params(param, name, Composer(sink.start(Header(name, None, name))), source, sink)):
            sink.keep()
        else:
            sink.drop()

    def _call(self, source: Source, sink: Sink) -> Reading[bool]:
        """One call, after its opener. False if it was none, or was not closed."""
        head = yield from read_head_to(self._after_head, self._shape.call, source, sink, self._after_name)
        if not head.name and not self._shape.call.end:
            return (yield from self._call_without_key(head.attributes, source, sink))
        if not head.name or not (self._shape.sections or (yield from self._goes_on(source))):
            self._give_back(sink)
            return False
        return (yield from self._named_call(head, source, sink))

    def _call_without_key(self, word: str, source: Source, sink: Sink) -> Reading[bool]:
        """One call whose first param lacks its opener, or its key. False if it was none, or was not closed."""
        param = self._shape.param
        name, key = yield from read_lost_key(word, param, self._values.opens, source, sink.offer)
        if not name and not word:
            yield from self._odd_section(self._shape.call.open[0], source, sink)
            return False
        if not name:
            self._give_back(sink)
            return False
        args = Composer(sink.start(Header(name, None, name)))
        marker: str | None = ""
        if key:
            sink.report("no-opener", f"the param {key!r} without {param.open[0]}: taken as one")
            marker = yield from self._value(param.open[0], name, Head(key), args, source, sink)
        return (yield from self._params(marker, name, args, source, sink))

    def _give_back(self, sink: Sink) -> None:
        if sink.not_a_call():
            sink.report("broken-header", "a call that breaks off in its head: given back as text, without its markers")

    def _goes_on(self, source: Source) -> Reading[bool]:
        """Whether a head is followed by what follows heads. Prose that quotes one goes on otherwise."""
        return bool((yield from source.peek(self._after_head))) or (yield from source.next_char()) == JSON_OBJECT

    def _named_call(self, head: Head, source: Source, sink: Sink) -> Reading[bool]:
        """One call, after its head. False if it was not closed."""
        name = head.name
        if any(key != self._shape.numbered for key in head.keys):
            sink.report("odd-header", f"the head of {name!r} has {head.attributes!r:.80} in it, which is left out")
        call = sink.start(Header(name, None, name))
        first = yield from source.next_char()
        if first == JSON_OBJECT:
            yield from self._args.read(call, source, sink)
            return True
        return (yield from self._params("", sink.offer.meant(name) or name, Composer(call), source, sink))

    def _params(self, marker: str | None, name: str, args: Composer, source: Source, sink: Sink) -> Reading[bool]:
        """All params of a call, after this marker. False if the call was not closed."""
        while marker is not None:
            if marker == "":
                marker = yield from self._next_in_call(name, args, source, sink)
            elif marker in self._shape.call.close:
                args.end()
                return True
            elif marker in self._shape.param.open:
                marker = yield from self._param(marker, name, args, source, sink)
            elif marker in self._shape.value_open:
                marker = yield from self._value_without_key(marker, name, args, source, sink)
            elif self._shape.json is not None and marker in self._shape.json.open:
                yield from source.take_until(markers(*self._shape.json.end), sink.limits.header)
                yield from self._args.read(args.call, source, sink)
                return (yield from source.accept(self._call_close)) is not None
            elif marker in self.inner or marker in self._fragments:
                sink.report("stray-marker", f"{marker} without a param around it: dropped")
                marker = ""
            else:
                sink.report("call-not-closed", f"the call of {name!r} was never closed: taken as closed here")
                args.end()
                source.unread(marker)
                return False
        return False

    def _next_in_call(self, name: str, args: Composer, source: Source, sink: Sink) -> Reading[str | None]:
        """The next marker in a call. Text before it belongs to no param, but is not lost."""
        start = source.offset
        text, marker = yield from source.take_until(self._in_call, sink.limits.held)
        if marker in self._shape.param.end and (key := as_name(text.strip())):
            sink.report("no-opener", f"the param {key!r} without {self._shape.param.open[0]}: taken as one", start)
            return (yield from self._value(self._shape.param.open[0], name, Head(key), args, source, sink))
        if marker in self._shape.param.close and isinstance(self._values, Trees):
            yield from self._values.read_closed(text, partial(sink.offer.param, name), args, source, sink)
            return ""
        if text.strip():
            sink.report("text-in-section", "text among the params of a call: kept as text", start)
            sink.text(text, source.taken_from)
        return "" if marker is None and not source.closed else marker

    def _param(self, opener: str, name: str, args: Composer, source: Source, sink: Sink) -> Reading[str | None]:
        start, channel = source.offset, source.channel
        head = yield from read_head_to(self._after_head, self._shape.param, source, sink, self._in_call)
        if head.name:
            return (yield from self._value(opener, name, head, args, source, sink))
        if source.channel is not channel:
            args.spoil()
        sink.report("broken-header", "a param that breaks off in its head: given back as text", start)
        sink.give_back(head.attributes, source.channel)
        return ""

    def _value_without_key(
        self, opener: str, name: str, args: Composer, source: Source, sink: Sink
    ) -> Reading[str | None]:
        """A value that no key stands before, after its opener: of the one param that is missing, if it is one."""
        key = sink.offer.missing(name, args.keys)
        if key is None:
            sink.report(
                "unnamed-value", f"{opener.strip()} without a key, and no one param is missing: left out of the call"
            )
            args.spoil()
            return ""
        sink.report("unnamed-value", f"{opener.strip()} without a key: taken as {key!r}, which is missing")
        source.unread(opener)
        return (yield from self._value(self._shape.param.open[0], name, Head(key), args, source, sink))

    def _value(
        self, opener: str, name: str, head: Head, args: Composer, source: Source, sink: Sink
    ) -> Reading[str | None]:
        key, offer = head.name, sink.offer
        if key in args.keys:
            sink.report("repeated-param", f"the param {key!r} again: passed on as it is, and the last one counts")
        wraps_all = key in self._shape.wrappers and offer.has(name) and not offer.declares(name, key)
        param = Param(opener, key, head.attributes, offer.param(name, key), wraps_all, name, offer, args.keys)
        return (yield from self._values.read(param, args, source, sink))
