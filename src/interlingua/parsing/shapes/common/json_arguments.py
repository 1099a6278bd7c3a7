"""The arguments of a call where they are one JSON value, in any shape.

They end where their JSON does, not where the next closer stands: a marker inside a JSON string is data. What stands
behind the value and before the closer is a slip of the model.
"""

from __future__ import annotations

import re
from typing import Any

from interlingua.common.jsontext.arguments import STREAMED_OPENERS
from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.reply import Call
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import CallBuilder, EventSink
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["OPENING_BRACE", "JsonArgumentsReader", "is_json", "read_members"]

JSON_FIRST_CHARS = (*STREAMED_OPENERS, '"')
OPENING_BRACE = "{"
SURPLUS_FIRST_CHARS = (OPENING_BRACE, "}", "]")
_SURPLUS_BRACKETS = re.compile(r"[}\]]*+")


class JsonArgumentsReader:
    """Reads arguments up to the call's closer and steps over it. Any other marker ends them too, and stays unread.

    A `fence` is ordinary text that may stand between the arguments and the closer.
    """

    def __init__(self, marks: MarkerSet, closers: MarkerSet, fence: MarkerSet | None = None) -> None:
        self._all_markers = marks
        self._closers = closers
        self._fence_markers = fence

    def check_writable(self, call: Call) -> None:
        """Raises if these arguments would be read back otherwise."""
        if self._all_markers.search(call.arguments, 0) and not is_json(call.arguments):
            raise RenderError(f"the arguments of {call.name!r} hold a marker and are not JSON", "make them JSON")

    def read(self, call: CallBuilder, source: TextBuffer, sink: EventSink) -> Read[None]:
        channel = source.channel
        first = yield from source.skip_space()
        if first not in JSON_FIRST_CHARS and source.channel is not channel:
            call.end()
            return
        if first not in JSON_FIRST_CHARS or (
            self._all_markers.starts_like_json and (yield from source.peek(self._all_markers))
        ):
            yield from self._read_non_json(call, source, sink)
            return
        limit = sink.limits.args if first in STREAMED_OPENERS and not call.awaits_name else sink.limits.held
        marker = yield from source.copy_json(call.scanner, self._all_markers, call.writer(first), limit)
        if call.scanner.ended:
            call.end()
            yield from self._read_closer(source, sink)
        elif marker == "":
            sink.report_over_limit("a call's arguments", limit)
            call.end(complete=False)
        elif marker is not None:
            call.end()
            self.unread_foreign_marker(marker, source)

    def _read_non_json(self, call: CallBuilder, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Nothing, `null`, or prose: all that stands before the next marker."""
        limit = sink.limits.held
        text, marker = yield from source.take_until(self._all_markers, limit)
        call.writer("")(text)
        if len(text) > limit:
            sink.report_over_limit("a call's arguments, which are not JSON,", limit)
            call.end(complete=False)
        elif marker is not None or not source.closed:
            call.end()
            self.unread_foreign_marker(marker, source)

    def unread_foreign_marker(self, marker: str | None, source: TextBuffer) -> None:
        """A call is over at this marker. What is not its own closer is for another reader."""
        if marker and marker not in self._closers.literals:
            source.put_back(marker)

    def _read_closer(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Steps over the closer. More JSON before it is a slip of the model (`}}`, the object again) and dropped."""
        start, channel = source.offset, source.channel
        if (yield from self._accept_closer(source)):
            return
        first = yield from source.peek_after_space()
        if source.channel is not channel or first not in SURPLUS_FIRST_CHARS:
            return
        yield from source.skip_space()
        if first == OPENING_BRACE:
            yield from self._read_second_object(source, sink)
        else:
            surplus = yield from source.take_while(_SURPLUS_BRACKETS)
            sink.report("after-arguments", f"{surplus!r} after the arguments' end: dropped", start)
            yield from self._accept_closer(source)

    def _accept_closer(self, source: TextBuffer) -> Read[bool]:
        """Steps over the closer and the fence before it. Either may be missing."""
        fenced = (yield from source.accept(self._fence_markers)) if self._fence_markers else None
        closed = yield from source.accept(self._closers)
        return bool(fenced or closed)

    def _read_second_object(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """A second object right after the arguments. It is dropped if a marker follows, else it begins the answer."""
        start, channel = source.offset, source.channel
        cursor = JsonScanner()
        pieces: list[str] = []
        marker = yield from source.copy_json(cursor, self._all_markers, pieces.append, sink.limits.held)
        if cursor.ended:
            marker = yield from source.accept(self._all_markers)
        if marker:
            sink.report("after-arguments", f"{cursor.offset} characters after the arguments' end: dropped", start)
            self.unread_foreign_marker(marker, source)
        else:
            sink.emit_leftover_text("".join(pieces), channel)


def is_json(text: str) -> bool:
    cursor = JsonScanner()
    end = cursor.scan(text, 0)
    cursor.finish()
    return cursor.problem is None and not text[end:].strip()


def read_members(call: Call) -> dict[str, Any]:
    """The params of a call, to be written one by one."""
    members = read_json(call.arguments, dict)
    if members is None or not call.complete:
        raise RenderError(
            f"the arguments of {call.name!r} are not a whole JSON object", "this dialect writes each param by itself"
        )
    return members
