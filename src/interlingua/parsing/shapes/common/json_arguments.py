"""Reader for call arguments that are one JSON value, in any shape.

The arguments end where the JSON value ends, not at the next closer: a marker inside a JSON string is data. Text between
the value and the closer is a mistake of the model.
"""

from __future__ import annotations

import re
from typing import Any

from interlingua.common.jsontext.arguments import STREAMED_OPENERS
from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.reply import Call
from interlingua.errors import RenderError
from interlingua.parsing.call_boundary import CallBoundary
from interlingua.parsing.event_sink import CallBuilder, EventSink
from interlingua.parsing.json_copy import copy_json
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["OPENING_BRACE", "JsonArgumentsReader", "is_json", "read_members"]

JSON_FIRST_CHARS = (*STREAMED_OPENERS, '"')
OPENING_BRACE = "{"
SURPLUS_FIRST_CHARS = (OPENING_BRACE, "}", "]")
_SURPLUS_BRACKETS = re.compile(r"[}\]]*+")


class JsonArgumentsReader:
    """Reader for arguments up to and including the closer of the call.

    Any other marker also ends the arguments, but is not consumed. `fence` are markers of ordinary text that can come
    between the arguments and the closer. `boundary` are the markers that end a call in a string that is never closed.
    `params` are markers of params, if a call can have these instead of JSON: before one of them, or if any marker but
    the closer cuts the JSON short, the call is incomplete.
    """

    def __init__(
        self,
        marks: MarkerSet,
        closers: MarkerSet,
        fence: MarkerSet | None = None,
        boundary: CallBoundary | None = None,
        params: MarkerSet | None = None,
    ) -> None:
        self._all_markers = marks
        self._closers = closers
        self._fence_markers = fence
        self._boundary = boundary
        self._param_markers = params

    def check_writable(self, call: Call) -> None:
        """Raise `RenderError` if these arguments would be parsed differently."""
        if self._all_markers.search(call.arguments, 0) and not is_json(call.arguments):
            raise RenderError(f"the arguments of {call.name!r} contain a marker and are not JSON", "pass valid JSON")
        if _is_corrected(call):
            raise RenderError(f"the arguments of {call.name!r} are not JSON and would be corrected", "pass valid JSON")

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
        is_streamed = first in STREAMED_OPENERS and not call.awaits_name
        limit = sink.limits.args if is_streamed else sink.limits.held
        marker = yield from copy_json(
            source, call.scanner, self._all_markers, call.writer(first), limit, self._boundary, may_forward=is_streamed
        )
        if call.scanner.ended:
            param = (yield from source.peek(self._param_markers)) if self._param_markers else None
            if param:
                sink.report("after-arguments", f"{param} after the end of the arguments: the call is incomplete")
            call.end(complete=not param)
            yield from self._read_closer(source, sink)
        elif marker == "":
            sink.report_over_limit("the argument text of a call", limit)
            call.end(complete=False)
        elif marker and self._param_markers and marker not in self._closers.literals:
            call.end(complete=False)
            source.put_back(marker)
        elif marker is not None:
            call.end_at_marker(is_closer=marker in self._closers.literals)
            self.unread_foreign_marker(marker, source)

    def _read_non_json(self, call: CallBuilder, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read arguments that are not JSON (nothing, `null`, or prose): all text before the next marker."""
        limit = sink.limits.held
        text, marker = yield from source.take_until(self._all_markers, limit)
        call.writer("")(text)
        if len(text) > limit:
            sink.report_over_limit("the argument text of a call, which is not JSON,", limit)
            call.end(complete=False)
        elif marker is not None or not source.closed:
            call.end()
            self.unread_foreign_marker(marker, source)

    def unread_foreign_marker(self, marker: str | None, source: TextBuffer) -> None:
        """Un-read the marker that ended a call, unless it is the call's own closer."""
        if marker and marker not in self._closers.literals:
            source.put_back(marker)

    def _read_closer(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Consume the closer. More JSON before it (`}}`, the object again) is a mistake of the model and is dropped."""
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
            sink.report("after-arguments", f"{surplus!r} after the end of the arguments: dropped", start)
            yield from self._accept_closer(source)

    def _accept_closer(self, source: TextBuffer) -> Read[bool]:
        """Consume the closer and the fence before it. Either may be missing. Return whether one was there."""
        fenced = (yield from source.accept(self._fence_markers)) if self._fence_markers else None
        closed = yield from source.accept(self._closers)
        return bool(fenced or closed)

    def _read_second_object(self, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read a second object right after the arguments.

        Drop it if a marker follows; otherwise it is text of the reply.
        """
        start, channel = source.offset, source.channel
        scanner = JsonScanner()
        pieces: list[str] = []
        marker = yield from copy_json(
            source, scanner, self._all_markers, pieces.append, sink.limits.held, self._boundary
        )
        if scanner.ended:
            marker = yield from source.accept(self._all_markers)
        if marker:
            sink.report("after-arguments", f"{scanner.offset} characters after the arguments: dropped", start)
            self.unread_foreign_marker(marker, source)
        else:
            sink.emit_leftover_text("".join(pieces), channel)


def _is_corrected(call: Call) -> bool:
    """Return whether a parser corrects the arguments of this call."""
    scanner = JsonScanner(corrects=True)
    scanner.scan_all(call.arguments)
    return bool((call.complete and scanner.close_brackets()) or scanner.corrections)


def is_json(text: str) -> bool:
    scanner = JsonScanner()
    end = scanner.scan(text, 0)
    scanner.finish()
    return scanner.problem is None and not text[end:].strip()


def read_members(call: Call) -> dict[str, Any]:
    """Return the params of a call.

    Raises:
        RenderError: The arguments are not a complete JSON object.
    """
    members = read_json(call.arguments, dict)
    if members is None or not call.complete:
        raise RenderError(
            f"the arguments of {call.name!r} are not a complete JSON object", "this dialect writes params one by one"
        )
    return members
