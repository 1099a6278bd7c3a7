"""The arguments of a call where they are one JSON value, in any shape.

They end where their JSON does, not where the next closer stands: a marker inside a JSON string is data. What stands
behind the value and before the closer is a slip of the model.
"""

from __future__ import annotations

import re
from typing import Any

from interlingua.common.jsontext.arguments import STREAMED
from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.core.reply import Call
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import OpenCall, Sink
from interlingua.parsing.markers import Markers
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["JSON_OBJECT", "JsonArgs", "is_json", "read_members"]

JSON_BEGINS = (*STREAMED, '"')
JSON_OBJECT = "{"
AFTER_JSON = (JSON_OBJECT, "}", "]")
_SLIPS = re.compile(r"[}\]]*+")


class JsonArgs:
    """Reads arguments up to the call's closer and steps over it. Any other marker ends them too, and stays unread.

    A `fence` is ordinary text that may stand between the arguments and the closer.
    """

    def __init__(self, marks: Markers, close: Markers, fence: Markers | None = None) -> None:
        self._all = marks
        self._close = close
        self._fence = fence

    def check(self, call: Call) -> None:
        """Raises if these arguments would be read back otherwise."""
        if self._all.search(call.arguments, 0) and not is_json(call.arguments):
            raise RenderError(f"the arguments of {call.name!r} hold a marker and are not JSON", "make them JSON")

    def read(self, call: OpenCall, source: Source, sink: Sink) -> Reading[None]:
        channel = source.channel
        first = yield from source.skip_space()
        if first not in JSON_BEGINS and source.channel is not channel:
            call.end()
            return
        if first not in JSON_BEGINS or (self._all.like_json and (yield from source.peek(self._all))):
            yield from self._plain_arguments(call, source, sink)
            return
        limit = sink.limits.args if first in STREAMED and not call.waits else sink.limits.held
        marker = yield from source.copy_json(call.cursor, self._all, call.writer(first), limit)
        if call.cursor.ended:
            call.end()
            yield from self._after_arguments(source, sink)
        elif marker == "":
            sink.over_limit("a call's arguments", limit)
            call.end(complete=False)
        elif marker is not None:
            call.end()
            self.leave(marker, source)

    def _plain_arguments(self, call: OpenCall, source: Source, sink: Sink) -> Reading[None]:
        """Nothing, `null`, or prose: all that stands before the next marker."""
        limit = sink.limits.held
        text, marker = yield from source.take_until(self._all, limit)
        call.writer("")(text)
        if len(text) > limit:
            sink.over_limit("a call's arguments, which are not JSON,", limit)
            call.end(complete=False)
        elif marker is not None or not source.closed:
            call.end()
            self.leave(marker, source)

    def leave(self, marker: str | None, source: Source) -> None:
        """A call is over at this marker. What is not its own closer is for another reader."""
        if marker and marker not in self._close.literals:
            source.unread(marker)

    def _after_arguments(self, source: Source, sink: Sink) -> Reading[None]:
        """Steps over the closer. More JSON before it is a slip of the model (`}}`, the object again) and dropped."""
        start, channel = source.offset, source.channel
        if (yield from self._accept_close(source)):
            return
        first = yield from source.next_char()
        if source.channel is not channel or first not in AFTER_JSON:
            return
        yield from source.skip_space()
        if first == JSON_OBJECT:
            yield from self._object_again(source, sink)
        else:
            rest = yield from source.take_while(_SLIPS)
            sink.report("after-arguments", f"{rest!r} after the arguments' end: dropped", start)
            yield from self._accept_close(source)

    def _accept_close(self, source: Source) -> Reading[bool]:
        """Steps over the closer and the fence before it. Either may be missing."""
        fenced = (yield from source.accept(self._fence)) if self._fence else None
        closed = yield from source.accept(self._close)
        return bool(fenced or closed)

    def _object_again(self, source: Source, sink: Sink) -> Reading[None]:
        """A second object right after the arguments. It is dropped if a marker follows, else it begins the answer."""
        start, channel = source.offset, source.channel
        cursor = JsonCursor()
        again: list[str] = []
        marker = yield from source.copy_json(cursor, self._all, again.append, sink.limits.held)
        if cursor.ended:
            marker = yield from source.accept(self._all)
        if marker:
            sink.report("after-arguments", f"{cursor.offset} characters after the arguments' end: dropped", start)
            self.leave(marker, source)
        else:
            sink.give_back("".join(again), channel)


def is_json(text: str) -> bool:
    cursor = JsonCursor()
    end = cursor.walk(text, 0)
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
