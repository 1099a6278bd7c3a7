"""Params that a call already has."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.shapes.common.object_writer import ObjectWriter

__all__ = ["report_repeated"]


def report_repeated(key: str, preceding: Iterable[ValueCoercion], args: ObjectWriter, sink: EventSink) -> None:
    """Report a key that an object has twice. `preceding` are the coercions of the values before it."""
    sink.report("repeated-param", f"the param {key!r} is repeated: both are forwarded, the last one counts")
    if any(coercion.accepts_string for coercion in preceding):
        args.mark_incomplete()  # a string that quotes a param looks just like this
