"""Values that are trees: objects and arrays are written as elements inside the param's own, each named by its key.

The leaves have no types of their own, so the schema is asked at every level. An array's elements are called `item`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.coercion import Plan
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.common.object_writer import Composer
from interlingua.parsing.shapes.tagged_params.tag import Tag, read_head
from interlingua.parsing.shapes.tagged_params.unclosed_values import Frame
from interlingua.parsing.shapes.tagged_params.values import Param
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["Trees"]

ITEM = "item"
MAX_DEPTH = 64
EMPTY = {"string": '""', "array": "[]"}
"""What an empty element is, by the kind of its plan: an object, but for these."""


class Trees:
    """Reads and writes values. The tag's closer is what stands before the name in a closing tag."""

    def __init__(self, tag: Tag, frame: Frame) -> None:
        self._tag = tag
        self.opens = markers()
        self._ends = markers(*tag.open, *tag.close, *frame.call.close, *frame.after_call.literals)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, key: str, value: Any) -> str:
        return self._tag.write(key) + self._write_inner(key, value) + f"{self._tag.close[0]}{key}{self._tag.end[0]}"

    def _write_inner(self, key: str, value: Any) -> str:
        if isinstance(value, dict):
            return "".join(self.write(name, inner) for name, inner in value.items())
        if isinstance(value, list):
            return "".join(self.write(ITEM, inner) for inner in value)
        text = value if isinstance(value, str) else write_json(value)
        if self._ends.search(text, 0):
            raise RenderError(f"the param {key!r} holds a marker, which would end it", "take it out")
        return text

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, param: Param, args: Composer, source: Source, sink: Sink) -> Reading[str | None]:
        """Reads one value after the head of its param. Returns "" behind its closer, another marker that has ended it,
        None where the text ends."""
        args.key(param.key)
        return (yield from self._element(param.key, param.plan, 0, args, source, sink))

    def read_closed(
        self, text: str, plan_of: Callable[[str], Plan], args: Composer, source: Source, sink: Sink
    ) -> Reading[None]:
        """A value whose opener was left out, after the marker of its closer: only there stands the key."""
        head = yield from read_head(self._tag, source, sink.limits.header, self._ends)
        if head.name:
            sink.report("no-opener", f"the param {head.name!r} without its opening tag: taken as one")
            args.key(head.name)
            self._leaf(head.name, text, plan_of(head.name), args, sink)

    def _element(
        self, key: str, plan: Plan, depth: int, args: Composer, source: Source, sink: Sink
    ) -> Reading[str | None]:
        if plan.streams and (yield from source.peek(self._ends)) not in self._tag.open:
            args.raw('"')
            marker = yield from self._copy(args, source)
            if marker is not None:
                args.raw('"')
            return (yield from self._close(key, marker, source, sink))
        held: list[str] = []
        marker = yield from source.copy_value(self._ends, held.append, sink.limits.args)
        text = "".join(held)
        if marker in self._tag.open and depth < MAX_DEPTH:
            self._say(text, source, sink)
            return (yield from self._children(key, plan, depth, args, source, sink))
        if marker is not None:
            self._leaf(key, text, plan, args, sink)
        return (yield from self._close(key, marker, source, sink))

    def _copy(self, args: Composer, source: Source) -> Reading[str | None]:
        """A string. What opens an element in it is data."""
        while True:
            marker = yield from source.copy_value(self._ends, args.text, 1 << 62)
            if not marker or marker not in self._tag.open:
                return marker
            args.text(marker)

    def _leaf(self, key: str, text: str, plan: Plan, args: Composer, sink: Sink) -> None:
        if not text.strip() and not (text and plan.takes_string):
            args.raw(EMPTY.get(plan.kind, "{}"))
            return
        value = plan.convert(text)
        if value.problem is not None:
            sink.report("bad-value", f"{key!r}: {value.problem}")
        args.raw(value.json)

    def _children(
        self, key: str, plan: Plan, depth: int, args: Composer, source: Source, sink: Sink
    ) -> Reading[str | None]:
        """The elements of an object or array, after the opener of the first one."""
        lead, array = "", False
        marker: str | None = self._tag.open[0]
        while marker in self._tag.open:
            head = yield from read_head(self._tag, source, sink.limits.header, self._ends)
            if not lead:
                array = plan.kind == "array" or (head.name == ITEM and not plan.declares(ITEM))
                lead = "[" if array else "{"
            args.raw(lead + ("" if array else f"{write_json(head.name)}: "))
            lead = ", "
            inner = plan.item if array else plan.member(head.name)
            marker = yield from self._element(head.name, inner, depth + 1, args, source, sink)
            if marker == "":
                marker = yield from self._between(source, sink)
        if marker is not None:
            args.raw("]" if array else "}")
        return (yield from self._close(key, marker, source, sink))

    def _between(self, source: Source, sink: Sink) -> Reading[str | None]:
        """The next marker among elements. Text before it belongs to none, but is not lost."""
        text, marker = yield from source.take_until(self._ends, sink.limits.held)
        self._say(text, source, sink)
        return "" if marker is None and not source.closed else marker

    def _say(self, text: str, source: Source, sink: Sink) -> None:
        if text.strip():
            sink.report("text-in-section", "text beside elements: kept as text")
            sink.text(text, source.channel)

    def _close(self, key: str, marker: str | None, source: Source, sink: Sink) -> Reading[str | None]:
        """Steps over the rest of a closing tag. Any other marker has ended the element without one."""
        if marker in self._tag.close:
            yield from read_head(self._tag, source, sink.limits.header, self._ends)
            return ""
        if marker:
            sink.report("value-not-closed", f"the value of {key!r} was never closed: taken as closed here")
        return marker
