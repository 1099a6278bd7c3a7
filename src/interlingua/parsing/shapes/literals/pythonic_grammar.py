"""pythonic: calls as Python writes them, `[name(key=value, …), …]`, with or without markers around them.

The values are literals, of Python or of JSON. Without markers a list of calls is ordinary text: where a text begins
with one of an offered tool it is a call at once, anywhere else only once it has come to its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.parsing.dialect import Grammar, Span
from interlingua.parsing.event_sink import Header, Sink
from interlingua.parsing.lookahead import Way, literal
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.common.json_arguments import read_members
from interlingua.parsing.shapes.common.object_writer import Composer
from interlingua.parsing.shapes.json_envelope.grammar import ENVELOPE_BEGINS, JsonEnvelope
from interlingua.parsing.shapes.literals.call_context import Nowhere
from interlingua.parsing.shapes.literals.notation__notation import BRACKETS, SPACE, Notation, Quoted
from interlingua.parsing.shapes.literals.params_reader import LiteralParams
from interlingua.parsing.shapes.literals.writer import LiteralWriter, check_read_back
from interlingua.parsing.shapes.tagged_params.tag import LONGEST_NAME
from interlingua.parsing.text_buffer__source import Channel, Reading, Source

__all__ = ["Pythonic"]

LIST, LIST_END = "[", "]"
PARAMS = "("
SLIPS = ("}", ")")
LONG_QUOTES = ("'''", '"""')

_NAME = re.compile(r"[\w.\-]*")
_KEYED = re.compile(r"[^\W\d]|\)|$")
"""What the params may begin with: a key, or their end."""
_SLIPS = re.compile(r"[})\s]*+")
_CALL = (r"([^\W\d][\w.\-]*+)", r"\(")

_list = markers(LIST)
_list_end = markers(LIST_END)
_params = markers(PARAMS)
_separators = markers(",", ";")

_Outcome: TypeAlias = Literal["call", "text", "none", "over"]
"""What was read: a call; one that is given back as text, to its end; no call; or one that did not come to its end."""
_ReadCall: TypeAlias = Callable[[str | None, Source, Sink], Reading[_Outcome]]


class _Unnamed(NamedTuple):
    """The first value of a call stands without its key."""

    key: str | None
    """The tool's only param; None if nothing tells which one it is."""


@dataclass(frozen=True)
class Pythonic:
    """What stands around the calls, and how values are written."""

    NAME: ClassVar[str] = "pythonic"

    sections: tuple[Span, ...] = ()
    """Markers around all calls. The first is how we write them."""
    bare: bool = False
    """Whether the calls are also written without any section, as we do then."""
    lines: bool = False
    """Whether we write each call on a line of its own, and no list."""
    quote: Literal["'", '"'] = '"'
    """How we write strings."""
    words: tuple[str, str, str] = ("True", "False", "None")
    """How we write true, false and null."""
    escaped: bool = True
    """Whether the model escapes the quotes inside a string. If not, a quote ends one only before what may follow it."""
    quoted: Quoted = "string"
    """What quotes say: `string`, that it is one; `typed`, a value where no string fits; `any`, nothing."""
    envelope: JsonEnvelope | None = None
    """What else a section may hold, or a reply may be: JSON objects with names and arguments. We never write it."""

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return PythonicGrammar(self, outside)


class PythonicGrammar:
    def __init__(self, shape: Pythonic, outside: tuple[str, ...]) -> None:
        self._shape = shape
        self._section_opens = tuple(span.open for span in shape.sections)
        self._section_closes = tuple(span.close for span in shape.sections)
        self._envelope = shape.envelope.grammar((*self._section_closes, *outside)) if shape.envelope else None
        own = (*self._section_opens, *((LIST,) if shape.bare else ()))
        self.openers = tuple(dict.fromkeys((*own, *(self._envelope.openers if self._envelope else ()))))
        self.strays = self._section_closes
        self.inner = self._envelope.inner if self._envelope else ()
        marks = (*self._section_opens, *self._section_closes, *outside)
        self._all = markers(*marks)
        self._closers = markers(*self._section_closes)
        self._after_calls = markers(LIST_END, *marks)
        self._after_call = markers(",", LIST_END)
        self._notation = Notation(
            separator="=",
            close=")",
            brackets="{[(",
            quotes=(*LONG_QUOTES, "'", '"'),
            marks=marks,
            escaped=shape.escaped,
            as_written=shape.quoted,
            between_calls=(",", LIST_END),
            next_call={")": self._to_next_call()},
            after_string=(
                *(("()", BRACKETS, *literal(close)) for close in self._section_closes),
                *((*way, SPACE, r"\w*+", SPACE, "[=)]") for way in self._to_next_call()),
            ),
        )
        self._writer = LiteralWriter(shape.quote, shape.words)

    def _to_next_call(self) -> tuple[Way, ...]:
        """What stands between the params of a call and those of the next one. Without a comma it may be code in a
        string, unless quotes in strings are escaped."""
        listed, on_lines = (BRACKETS, "[,;]", SPACE, *_CALL), (BRACKETS, *_CALL)
        sections = (
            (BRACKETS, *literal(close), SPACE, *literal(open), r"[\s\[]*+", *_CALL)
            for open, close in product(self._section_opens, self._section_closes)
        )
        return listed, *([on_lines] if self._shape.escaped else []), *sections

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:  # noqa: ARG002 (calls have no numbers here)
        written = [self._write_call(call) for call in calls]
        body = "\n".join(written) if self._shape.lines else LIST + ", ".join(written) + LIST_END
        if self._shape.bare:
            check_read_back(self, LIST, body.removeprefix(LIST), list(calls))
            return body
        section = self._shape.sections[0]
        check_read_back(self, section.open, body + section.close, list(calls))
        return section.open + body + section.close

    def _write_call(self, call: Call) -> str:
        params = (f"{key}={self._writer.value(value)}" for key, value in read_members(call).items())
        return f"{call.name}({', '.join(params)})"

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        """The list without its section, if the model does not write it that way."""
        if not self._shape.bare:
            return tuple(f"{LIST}{name}{PARAMS}" for name in offer.names)
        return self._envelope.first_openers(offer) if self._envelope else ()

    def name_in(self, text: str, offer: Offer) -> str:  # noqa: ARG002 (the header holds nothing but the name)
        return self._all.without(text).strip().lstrip(LIST).partition(PARAMS)[0] or text

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        at_start = source.offset == len(opener)
        if (yield from self._is_envelope(opener, at_start, source)):
            assert self._envelope is not None
            yield from self._envelope.read(opener, source, sink)
        elif opener in self._section_opens:
            yield from self._section(opener, source, sink)
        else:
            name = opener.removeprefix(LIST).removesuffix(PARAMS) or None
            certain = at_start and self._shape.bare and sink.offer.known
            if (yield from self._list(name, self._call if certain else self._try_call, source, sink)) == "call":
                yield from source.accept(_list_end)

    def _is_envelope(self, opener: str, at_start: bool, source: Source) -> Reading[bool]:
        if self._envelope is None or opener.endswith(PARAMS):
            return False
        if opener == LIST:
            return at_start and (yield from source.next_char()) == "{"
        return opener not in self._section_opens or (yield from source.peek(ENVELOPE_BEGINS)) is not None

    def _section(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        start = source.offset
        yield from source.accept(_list)
        if (yield from source.accept(self._closers)) or (yield from self._is_empty(source)):
            sink.report("stray-marker", f"{opener} with no call in it: dropped")
            return
        last: _Outcome = yield from self._call((yield from self._name(source, sink.offer)), source, sink)
        if last == "none":
            sink.report("broken-header", f"{opener} and no call after it: given back as text", start)
        while last in ("call", "text") and (yield from source.peek(self._after_calls)) is None:
            separator = yield from source.accept(_separators)
            source.record(separator or "")
            if (yield from source.peek(self._after_calls)) is not None:
                break
            last = yield from self._call((yield from self._name(source, sink.offer)), source, sink)
            if last == "none":
                sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")
        if last in ("call", "text"):
            yield from self._end_section(last, source, sink)

    def _is_empty(self, source: Source) -> Reading[bool]:
        """Whether the section is an empty list."""
        if (yield from source.peek(_list_end)) != LIST_END:
            return False
        yield from source.accept(_list_end)
        return (yield from source.accept(self._closers)) is not None or (yield from source.next_char()) == ""

    def _end_section(self, last: _Outcome, source: Source, sink: Sink) -> Reading[None]:
        bracket = yield from source.accept(_list_end)
        closer = yield from source.accept(self._closers)
        if last == "text" and (rest := (bracket or "") + self._plain(closer or "", sink)):
            sink.text(rest, source.channel)
            source.resume_text()
        if closer is None:
            sink.report("section-not-closed", "the section of calls was never closed: taken as closed here")

    def _list(self, name: str | None, read_call: _ReadCall, source: Source, sink: Sink) -> Reading[_Outcome]:
        """A list of calls without a section. The name of the first may have been read."""
        while True:
            name = name or (yield from self._name(source, sink.offer))
            last = yield from read_call(name, source, sink)
            if last in ("none", "over") or (yield from source.peek(self._after_call)) != ",":
                return last
            yield from source.accept(_separators)
            source.record(",")
            name = None
            if (yield from source.peek(_list_end)) is not None:
                if last == "text":
                    self._not_a_call(source, sink)
                source.forget()
                return last

    def _call(self, name: str | None, source: Source, sink: Sink) -> Reading[_Outcome]:
        """What is a call at once: in a section, or where the reply begins with it and the tools are known."""
        if name is None:
            self._not_a_call(source, sink)
            return "none"
        first = yield from self._first_value(name, source, sink.offer)
        if first and first.key is None:
            sink.report("unnamed-value", f"values that nothing names in a call of {name!r}: it is given out as text")
        elif not sink.refuses(name):
            return (yield from self._params(name, first, source, sink))
        return (yield from self._as_text(name, first, source, sink))

    def _try_call(self, name: str | None, source: Source, sink: Sink) -> Reading[_Outcome]:
        """What is a call only once it has come to its end."""
        if name is not None:
            first = yield from self._first_value(name, source, sink.offer)
            if not (first and first.key is None) and not sink.refuses(name):
                return (yield from self._try_params(name, first, source, sink))
        self._not_a_call(source, sink)
        return "none"

    def _try_params(self, name: str, first: _Unnamed | None, source: Source, sink: Sink) -> Reading[_Outcome]:
        """The params of what is a call only if nothing is wrong with it, and something follows that may."""
        sink.try_call()
        if not self._shape.bare:
            sink.report("no-section", "a call outside a section: taken as a call, for it is all there")
        args = Composer(sink.start(Header(name, None, name)))
        self._note(first, sink)
        params = LiteralParams(self._notation, name, args, source, sink, sink.limits.args)
        ended = (yield from params.read(first and first.key)) and not params.odd
        ended = ended and (yield from source.peek(self._after_call)) is not None
        args.end(complete=ended)
        if ended:
            sink.keep()
            return "call"
        channel, text = source.recorded_from, source.recorded()
        sink.drop()
        self._give_back(text, channel, source, sink)
        if params.over:
            sink.over_limit("a call's arguments", sink.limits.args)
        return "none"

    def _params(self, name: str, first: _Unnamed | None, source: Source, sink: Sink) -> Reading[_Outcome]:
        limit = sink.limits.args
        call = sink.start(Header(name, None, name))
        args = Composer(call)
        self._note(first, sink)
        params = LiteralParams(self._notation, name, args, source, sink, limit)
        if (yield from params.read(first and first.key)):
            args.end()
            yield from self._drop_slips(source, sink)
            return "call"
        if params.over:
            sink.over_limit("a call's arguments", limit)
            call.close(complete=False)
        return "over"

    def _drop_slips(self, source: Source, sink: Sink) -> Reading[None]:
        """More brackets after those of a call are a slip of the model."""
        if (yield from source.next_char()) in SLIPS:
            start = source.offset
            yield from source.skip_space()
            slip = yield from source.take_while(_SLIPS)
            sink.report("after-arguments", f"{slip.strip()!r} after the arguments' end: dropped", start)

    def _name(self, source: Source, offer: Offer) -> Reading[str | None]:
        """The name of a call, and the bracket behind it. None if no call comes."""
        yield from source.skip_space()
        name = yield from source.take_while(_NAME, LONGEST_NAME)
        if not name[:1].isidentifier() or not (yield from source.accept(_params)):
            return None
        return name if offer.has(name) else offer.meant(name) or name

    def _first_value(self, name: str, source: Source, offer: Offer) -> Reading[_Unnamed | None]:
        """The first value, if it stands without its key."""
        if _KEYED.match((yield from source.next_char())):
            return None
        params = offer.params(name)
        return _Unnamed(params[0] if len(params) == 1 else None)

    def _note(self, first: _Unnamed | None, sink: Sink) -> None:
        if first:
            sink.report("unnamed-value", f"a value without its key: taken as {first.key!r}, the tool's only param")

    def _as_text(self, name: str, first: _Unnamed | None, source: Source, sink: Sink) -> Reading[_Outcome]:
        """A call that is none. It is text to its end, so that what stands in it is not read as another call."""
        params = LiteralParams(self._notation, name, Nowhere(), source, sink, sink.limits.held)
        ended = yield from params.read("" if first else None)
        self._not_a_call(source, sink)
        return "text" if ended else "over"

    # ── giving back ───────────────────────────────────────────────────────────────────────────────────────────────

    def _not_a_call(self, source: Source, sink: Sink) -> None:
        channel, text = source.recorded_from, source.recorded()
        self._give_back(text, channel, source, sink)

    def _give_back(self, text: str, channel: Channel, source: Source, sink: Sink) -> None:
        """Text that is no call. Where a bracket alone may open one, it is text too."""
        if not self._shape.bare:
            sink.give_back(text, channel)
            return
        text = self._all.without(text)
        if text:
            sink.text(text, channel)
            source.resume_text()

    def _plain(self, marker: str, sink: Sink) -> str:
        """The marker as text. Those around a list that may stand without them are tokens, whatever prose may hold."""
        return "" if self._shape.bare else sink.plain(marker)
