"""The value of one param that is written as raw text: where it ends, and what type it has.

A closer ends a value only where something follows that may follow a param, so that most text which quotes a closer is
told from the real one. A value that holds its own closer and then what may follow it is ambiguous by design.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from interlingua.common.jsontext.codec import write_json
from interlingua.common.jsontext.literals import to_json
from interlingua.common.schema.coercion import Plan, Value
from interlingua.core.tools import Offer
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Span
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.markers import Markers, markers
from interlingua.parsing.shapes.common.object_writer import Composer
from interlingua.parsing.shapes.tagged_params.tag import Tag
from interlingua.parsing.shapes.tagged_params.unclosed_values import LINE, Ends, Frame, before_name
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["Param", "Values"]

NO_LIMIT = 1 << 62
_AROUND_EQUALS = re.compile(r"\s*+=\s*+")


class _Over(Enum):
    """A value that is held has grown too long for that."""

    LIMIT = "limit"


class _Marks(NamedTuple):
    """What may end a value: one in line, one that stands on lines of its own, one that is quoted."""

    plain: Markers
    on_lines: Markers
    quoted: Markers


class Param(NamedTuple):
    """A param whose value comes next."""

    opener: str
    key: str
    attributes: str
    plan: Plan
    wraps_all: bool
    """Whether it may hold all arguments as an object."""
    tool: str
    offer: Offer
    given: set[str]
    """Those that have come already. What looks like another of these is data."""


class Values:
    """Reads and writes values. See TaggedParams for what the arguments mean."""

    def __init__(
        self, tag: Tag, value_open: tuple[str, ...], quote: Span | None, lines: bool, string_when: str, frame: Frame
    ) -> None:
        self._tag = tag
        self._value_open = value_open
        self._quote = quote
        self._lines = lines
        self._string_when = string_when
        self._frame = frame
        self.opens = markers(*value_open)
        self._quotes = markers(*((quote.open,) if quote else ()))
        self._param_opens = (*(LINE + opener for opener in tag.open), *(tag.open if value_open else ()))
        self._before_key = before_name(tag)
        self._unclosed = Ends(tag, bool(value_open), frame)
        paired = len(tag.open) == len(tag.close)
        self._marks = {
            opener: self._marks_of(tag.close[n : n + 1] if paired else tag.close) for n, opener in enumerate(tag.open)
        }

    def _marks_of(self, closes: tuple[str, ...]) -> _Marks:
        closes_on_lines = tuple(LINE + close for close in closes)
        quote = self._quote.close if self._quote else ""
        return _Marks(
            markers(*closes, *self._unclosed.anywhere, *self._param_opens),
            markers(*closes, *closes_on_lines, *self._unclosed.on_lines, *self._param_opens),
            markers(*(quote + close for close in closes)),
        )

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, key: str, value: Any) -> str:
        """The param as an element."""
        text = value if isinstance(value, str) else write_json(value)
        attribute, _, when_string = self._string_when.partition("=")
        head = self._tag.write(key, attribute, _attribute(value, when_string))
        marks = self._marks[self._tag.open[0]]
        close = self._tag.close[0]
        if self._quote and set("<&\n") & set(text):
            self._check(key, text, marks.quoted, self._quote.close + close)
            return head + self._quote.open + text + self._quote.close + close
        gap = LINE if self._lines else ""
        self._check(key, text + gap, marks.on_lines if gap else marks.plain, close)
        return head + "".join(self._value_open[:1]) + gap + text + gap + close

    def _check(self, key: str, text: str, ends: Markers, close: str) -> None:
        """Raises if something in the text would end it."""
        whole = text + close
        for found in ends.all(text):
            marker, rest = found.group(), whole[found.end() :]
            if marker.endswith(self._tag.close):
                in_line = LINE + marker in ends.literals and not rest.startswith(LINE)
                would_end = not in_line and self._frame.after_param.match(rest.lstrip(), 0) is not None
            elif marker in self._param_opens:
                would_end = rest.lstrip().startswith(self._tag.attribute or "")
            else:
                would_end = self._unclosed.found_in(whole, found.start(), marker)
            if would_end:
                raise RenderError(f"the param {key!r} holds {marker.strip()}, which would end it", "take it out")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, param: Param, args: Composer, source: Source, sink: Sink) -> Reading[str | None]:
        """Reads one value after the head of its param. Returns "" behind its closer, another marker that has ended it,
        None where the text ends."""
        if self._value_open and (yield from source.accept(self.opens)) is None:
            sink.report(
                "no-separator", f"the value of {param.key!r} without {self._value_open[0].strip()}: taken as such"
            )
            if self._value_open[0].startswith(LINE):
                yield from source.accept_char(LINE)
        quoted = self._quote is not None and (yield from source.accept(self._quotes)) is not None
        on_lines = self._lines and (yield from source.accept_char(LINE))
        marks = self._marks[param.opener]
        ends = marks.quoted if quoted else marks.on_lines if on_lines else marks.plain
        first = yield from source.next_char()
        if not param.wraps_all and self._is_string(param, first, quoted):
            marker = yield from self._stream("", param, args, ends, source, sink)
        else:
            marker = yield from self._hold(param, args, ends, source, sink)
        if marker in self._frame.tokens:
            args.spoil()  # the model broke off, and nothing says that the value was all there
        return marker

    def _is_string(self, param: Param, first: str, quoted: bool) -> bool:
        """Whether this value is a string before all of it is known."""
        said = self._said(param)
        if said == "string" or quoted:
            return param.plan.takes_string
        return said != "json" and not param.plan.may_be_value(first)

    def _said(self, param: Param) -> str:
        """What the model says about a value's type: `string`, `json`, or nothing."""
        attributes = _AROUND_EQUALS.sub("=", param.attributes.replace('"', "").replace("'", "")).split()
        name = self._string_when.partition("=")[0] + "="
        if not self._string_when or not any(attribute.startswith(name) for attribute in attributes):
            return ""
        return "string" if self._string_when in attributes else "json"

    def _stream(
        self, held: str, param: Param, args: Composer, ends: Markers, source: Source, sink: Sink
    ) -> Reading[str | None]:
        args.key(param.key)
        args.raw('"')
        args.text(held)
        channel = source.channel
        marker = yield from self._copy(args.text, NO_LIMIT, param, ends, source, sink)
        if marker is None or marker is _Over.LIMIT:
            return None
        args.raw('"')
        if marker == "" and source.channel is not channel:
            args.spoil()
        return marker

    def _hold(self, param: Param, args: Composer, ends: Markers, source: Source, sink: Sink) -> Reading[str | None]:
        held: list[str] = []
        limit = sink.limits.args
        marker = yield from self._copy(held.append, limit, param, ends, source, sink)
        text = "".join(held)
        if marker is None:
            return None
        if marker is _Over.LIMIT:
            sink.report("bad-value", f"{param.key!r} is longer than {limit:,} characters: taken as a string")
            return (yield from self._stream(text, param, args, ends, source, sink))
        value = self._convert(text, param)
        if value.problem is not None:
            sink.report("bad-value", f"{param.key!r}: {value.problem}")
        if param.wraps_all and value.json.startswith("{"):
            sink.report("unwrapped-arguments", f"the arguments stood in {param.key!r}: taken out of it")
            args.members(value.json)
        else:
            args.key(param.key)
            args.raw(value.json)
        return marker

    def _convert(self, text: str, param: Param) -> Value:
        json = to_json(text) if self._said(param) == "json" else None
        if json is not None and (param.plan.guess or (param.plan.takes_string and json.startswith('"'))):
            return Value(json)
        return param.plan.convert(text)

    # ── where a value ends ────────────────────────────────────────────────────────────────────────────────────────

    def _copy(
        self, write: Callable[[str], None], limit: int, param: Param, ends: Markers, source: Source, sink: Sink
    ) -> Reading[str | _Over | None]:
        channel = source.channel
        while True:
            marker = yield from source.copy_value(ends, write, limit, channel)
            if marker is None:
                return None
            if marker == "" and source.channel is channel:
                return _Over.LIMIT
            if marker.endswith(self._tag.close):
                if (yield from self._closes(marker, ends, param, source)):
                    return ""
            elif marker == "" or (yield from self._ends_unclosed(marker, param, source)):
                if marker in self._tag.slips:
                    sink.report(
                        "value-not-closed", f"the value of {param.key!r} ends with {marker}: taken as its closer"
                    )
                    return ""
                sink.report("value-not-closed", f"the value of {param.key!r} was never closed: taken as closed here")
                return marker.removeprefix(LINE)
            elif marker.startswith(LINE) and marker not in self._param_opens:  # a longer one may begin behind the line
                source.unread(marker.removeprefix(LINE))
                marker = LINE
            write(marker)

    def _closes(self, marker: str, ends: Markers, param: Param, source: Source) -> Reading[bool]:
        """Whether this closer is the end of the value: only if something follows that may."""
        in_line = LINE + marker in ends.literals
        if in_line and (yield from source.ahead()) not in (LINE, ""):
            return False
        if (yield from source.peek(self._frame.after_param)) is not None:
            return True
        return bool(self._value_open) and (yield from self._stands_next(param, self._tag.end, source))

    def _ends_unclosed(self, marker: str, param: Param, source: Source) -> Reading[bool]:
        """Whether a value without its closer ends here: where more than it ends, or another param or call begins."""
        if marker not in self._param_opens:
            return (yield from source.stands_next(self._unclosed.turns(marker, param.offer.names), behind=marker))
        return (yield from self._stands_next(param, ('"', "'", *self._tag.end), source, self._before_key))

    def _stands_next(
        self, param: Param, ends: tuple[str, ...], source: Source, begins: tuple[str, ...] = ("",)
    ) -> Reading[bool]:
        """Whether the key of another param comes next, between what begins a key and what ends one."""
        keys = [key for key in param.offer.params(param.tool) if key not in param.given]
        words = tuple(begin + key + end for begin in begins for key in keys for end in ends)
        word = yield from source.accept_word(words)
        source.unread(word or "")
        return word is not None


def _attribute(value: Any, when_string: str) -> str:
    """What the attribute says that tells strings from JSON: whether it is one, or which JSON type it has."""
    if when_string == "true":
        return "true" if isinstance(value, str) else "false"
    if value is None:
        return "null"
    names = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
    return names.get(type(value), "object")
