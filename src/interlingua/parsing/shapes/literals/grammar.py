"""literals: `OPEN call:name{key:value,…} CLOSE`, with literals for values.

A string stands between two of the same token, and in it everything is data. Keys stand bare. Every call has markers of
its own. A closer may be missing, as may a quote, a comma or a bracket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.parsing.dialect import Grammar
from interlingua.parsing.event_sink import Header, Sink
from interlingua.parsing.lookahead import Way, literal
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.common.json_arguments import read_members
from interlingua.parsing.shapes.common.object_writer import Composer
from interlingua.parsing.shapes.literals.notation__notation import BRACKETS, SPACE, Notation, Quoted
from interlingua.parsing.shapes.literals.params_reader import LiteralParams
from interlingua.parsing.shapes.literals.writer import LiteralWriter, check_read_back
from interlingua.parsing.shapes.tagged_params.tag import as_name
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["Literals"]

PARAMS = "{"
SLIPS = ("}", "]", ")")
_SLIPS = re.compile(r"[}\])]*+")
_params = markers(PARAMS)


@dataclass(frozen=True)
class Literals:
    """The markers, and how values are written."""

    NAME: ClassVar[str] = "literals"

    open: str
    """What begins a call."""
    close: str
    """What ends one."""
    quote: str
    """The token around a string."""
    prefix: str = "call:"
    """What stands before the name."""
    quoted: Quoted = "string"
    """What quotes say: `string`, that it is one; `typed`, a value where no string fits; `any`, nothing."""
    words: tuple[str, str, str] = ("true", "false", "null")
    """How we write true, false and null."""
    in_order: bool = False
    """Whether we sort the keys."""

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return LiteralsGrammar(self, outside)


class LiteralsGrammar:
    def __init__(self, shape: Literals, outside: tuple[str, ...]) -> None:
        self._shape = shape
        self.openers: tuple[str, ...] = (shape.open,)
        self.strays: tuple[str, ...] = (shape.close, shape.quote)
        self.inner: tuple[str, ...] = ()
        self._all = markers(*self.openers, *self.strays, *outside)
        self._header_ends = markers(*self._all.literals, PARAMS)
        self._closers = markers(shape.close)
        self._notation = Notation(
            separator=":",
            close="}",
            brackets="{[",
            quotes=('"',),
            delimiter=shape.quote,
            marks=(shape.open, shape.close, *outside),
            as_written=shape.quoted,
            next_call=self._to_next_call(r"()[^\s{}<]++"),
            plain_call=self._plain_calls(),
        )
        self._writer = LiteralWriter(shape.quote, shape.words, ",", ":", escapes=False, in_order=shape.in_order)

    def _to_next_call(self, *name: str) -> dict[str, tuple[Way, ...]]:
        """By what may end a call: what stands from there to the params of the next one."""
        opener, closer = literal(self._shape.open), literal(self._shape.close)
        header = (SPACE, *name, SPACE, r"\{")
        after = (BRACKETS, *opener, *header)
        return {
            "}": ((BRACKETS, *closer, SPACE, *opener, *header), after),
            self._shape.close: (after,),
            self._shape.open: (header,),
        }

    def _plain_calls(self) -> dict[str, tuple[Way, ...]]:
        """The same up to the end of a call that holds no string: only its name tells that it is no text."""
        calls = self._to_next_call(*literal(self._shape.prefix), r"([^\s{}<]++)")
        rest = (r"[^(){}<'\"]*+", r"\}", SPACE, *literal(self._shape.close))
        return {end: tuple((*way, *rest) for way in ways) for end, ways in calls.items()}

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:  # noqa: ARG002 (calls have no numbers here)
        return "".join(self._write_call(call) for call in calls)

    def _write_call(self, call: Call) -> str:
        shape = self._shape
        params = ",".join(f"{key}:{self._write_value(value)}" for key, value in self._writer.items(read_members(call)))
        body = f"{shape.prefix}{call.name}{{{params}}}"
        check_read_back(self, shape.open, body, [call], values_are_text=shape.quoted == "any")
        return shape.open + body + shape.close

    def _write_value(self, value: object) -> str:
        in_quotes = self._shape.quoted == "any" and not isinstance(value, str)
        return self._writer.value(write_json(value) if in_quotes else value)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        return tuple(f"{self._shape.prefix}{name}{PARAMS}" for name in offer.names)

    def name_in(self, text: str, offer: Offer) -> str:  # noqa: ARG002 (the header holds nothing but the name)
        header, _, _ = self._all.without(text).partition(PARAMS)
        return header.strip().removeprefix(self._shape.prefix) or text

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        if opener in self.openers:
            yield from self._call(source, sink)
        else:
            yield from self._call_without_opener(opener, source, sink)

    def _call(self, source: Source, sink: Sink) -> Reading[None]:
        limit, start = sink.limits.header, source.offset
        text, marker = yield from source.take_until(self._header_ends, limit)
        header = text.strip()
        name = as_name(header.removeprefix(self._shape.prefix).lstrip())
        if len(text) > limit:
            sink.over_limit("the header of a call", limit)
        elif marker == PARAMS and (name or header in ("", self._shape.prefix)):
            yield from self._params(name, source, sink)
            return
        elif marker == self._shape.close and name and (header != name or sink.offer.has(name)):
            if not sink.refuses(name):
                sink.report("no-arguments", f"a call that ends after its name {name!r}: taken as one without any")
                Composer(sink.start(Header(name, None, name))).end()
                return
        else:
            sink.report("broken-header", "a call that breaks off in its header: given back as text", start)
        if marker and marker != self._shape.close:
            source.unread(marker)
        sink.not_a_call()

    def _params(self, name: str | None, source: Source, sink: Sink) -> Reading[None]:
        if sink.refuses(name or ""):
            yield from self._as_text(source, sink)
            return
        call = sink.start(Header(name or "", None, name))
        args = Composer(call)
        limit = sink.limits.held if call.waits else sink.limits.args
        if (yield from source.accept(_params)):
            sink.report("mended-arguments", f"{PARAMS!r} twice before the arguments: read as one")
        params = LiteralParams(self._notation, name or "", args, source, sink, limit)
        if (yield from params.read()):
            args.end()
            yield from self._after_arguments(source, sink)
        elif params.over:
            sink.over_limit("a call's arguments", limit)
            call.close(complete=False)

    def _as_text(self, source: Source, sink: Sink) -> Reading[None]:
        """A call that is none. It is text, up to its closer, and no marker in it may leak."""
        sink.not_a_call()
        marker: str | None = self._shape.quote
        while marker == self._shape.quote or marker == "":
            marker = yield from source.copy_until(self._all, sink.text)
        if marker and marker != self._shape.close:
            source.unread(marker)

    def _after_arguments(self, source: Source, sink: Sink) -> Reading[None]:
        """Steps over the closer. More brackets before it are a slip of the model, and dropped."""
        if (yield from source.accept(self._closers)) or (yield from source.next_char()) not in SLIPS:
            return
        start = source.offset
        yield from source.skip_space()
        slip = yield from source.take_while(_SLIPS)
        sink.report("after-arguments", f"{slip!r} after the arguments' end: dropped", start)
        yield from source.accept(self._closers)

    def _call_without_opener(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        """The name of an offered tool where a text begins. It is a call only if all the rest of one follows."""
        name = opener.removeprefix(self._shape.prefix).removesuffix(PARAMS)
        sink.try_call()
        sink.report("no-opener", f"{opener!r} without the marker before it: taken as a call")
        args = Composer(sink.start(Header(name, None, name)))
        params = LiteralParams(self._notation, name, args, source, sink, sink.limits.args)
        ended = (yield from params.read()) and (yield from source.accept(self._closers))
        args.end(complete=bool(ended))
        if ended:
            sink.keep()
            return
        sink.drop()
        if params.over:
            sink.over_limit("a call's arguments", sink.limits.args)
