"""Params of a call on lines: finds the end of each value and converts the value to its type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.common.repeated_params import report_repeated
from interlingua.parsing.shapes.line_params.lines import CRLF, NEWLINE, Follower, LineReader, ParamEnd
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["ParamsReader"]

NO_LIMIT = 1 << 62


class ParamsReader:
    """Reader for the params of one call. `line_break` is the one after the name of its tool."""

    def __init__(
        self,
        lines: LineReader,
        line_break: str,
        tool: str,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> None:
        self._lines = lines
        self._tool = tool
        self._args = args
        self._source = source
        self._sink = sink
        self._has_crlf = line_break == CRLF  # whether CRLF ends the lines of the call, and is not part of a value
        self._on_first_line = True
        self._opener_reported = False
        self._last_key = ""

    def read(self, first: Follower) -> Read[None]:
        """Read all params and the end of the call. `first` is the first key, or the closer."""
        next_line = first
        while isinstance(next_line, str):
            next_line = yield from self._read_value(next_line)
        if next_line in (ParamEnd.OPENER, ParamEnd.CUT):
            self._sink.report("call-not-closed", f"the call of {self._tool!r} was never closed: marked as incomplete")
            self._args.mark_incomplete()  # the model stopped here: a value may be truncated, or a param missing
        if next_line is ParamEnd.CLOSER and not self._sink.has_ambiguous_value:
            yield from self._check_closer()
        if next_line is not ParamEnd.END_OF_TEXT:
            self._args.end()

    def _check_closer(self) -> Read[None]:
        """Report if the closer that was just read may be quoted in the last value, which is a string."""
        offer, source, limit = self._sink.offer, self._source, self._sink.limits.held
        if not self._last_key or not offer.coercion_for(self._tool, self._last_key).accepts_string:
            return
        if not (yield from self._lines.is_end_certain(source, limit, offer.accepts)):
            self._sink.has_ambiguous_value = True
            self._sink.report(
                "ambiguous-value", f"the value of {self._last_key!r} may quote the end of a call: its end is ambiguous"
            )

    def _read_value(self, key: str) -> Read[Follower]:
        """Read one value, after its separator. Return what follows it."""
        coercion = self._sink.offer.coercion_for(self._tool, key)
        if key in self._args.keys:
            preceding = map(partial(self._sink.offer.coercion_for, self._tool), self._args.keys)
            report_repeated(key, preceding, self._args, self._sink)
        self._last_key = key
        self._on_first_line = True
        if not coercion.can_be_value((yield from self._source.peek_after_space())):
            return (yield from self._stream_string(key, "", coercion))
        buffered: list[str] = []
        limit = self._sink.limits.args
        end = yield from self._copy_lines(buffered.append, limit, coercion)
        text = "".join(buffered)
        if end is ParamEnd.LIMIT:
            self._sink.report("bad-value", f"{key!r} is longer than {limit:,} characters: treated as a string")
            return (yield from self._stream_string(key, text, coercion))
        if end is not ParamEnd.END_OF_TEXT:
            value = coercion.convert(text)
            if value.problem is not None:
                self._sink.report("bad-value", f"{key!r}: {value.problem}")
                if self._lines.contains_structure(text):
                    self._args.mark_incomplete()  # a part of it may belong to something else
            self._args.begin_member(key)
            self._args.write_raw(value.json)
        return end

    def _stream_string(self, key: str, buffered: str, coercion: ValueCoercion) -> Read[Follower]:
        self._args.begin_member(key)
        self._args.write_raw('"')
        self._args.write_text(buffered)
        end = yield from self._copy_lines(self._args.write_text, NO_LIMIT, coercion)
        if end is not ParamEnd.END_OF_TEXT:
            self._args.write_raw('"')
        return end

    def _copy_lines(self, write: Callable[[str], None], limit: int, coercion: ValueCoercion) -> Read[Follower]:
        """Copy the lines of a value. Return its end.

        A line break right after the separator is not part of the value. An opener ends it only if the value cannot be a
        string: files quote calls, and a quoted call must never run.
        """
        copied = 0
        copied_crlf = False

        def copy(text: str) -> None:
            nonlocal copied
            copied += len(text)
            write(text)

        def is_param(key: str) -> bool:
            return self._is_param(key, coercion)

        source, channel = self._source, self._source.channel
        while copied <= limit:
            marker = yield from source.copy_value(self._lines.ends, copy, limit - copied, channel)
            if marker is None:
                return ParamEnd.END_OF_TEXT
            if marker == "":
                return ParamEnd.LIMIT if source.channel is channel else ParamEnd.CUT
            if marker not in (NEWLINE, CRLF):
                if (yield from self._lines.ends_reply(marker, source)):
                    source.put_back(marker)
                    return ParamEnd.CUT
                copy(marker)
                continue
            line = yield from self._lines.read_start(source, is_param)
            if line.end in (ParamEnd.OPENER, ParamEnd.CLOSER_AND_OPENER) and coercion.accepts_string:
                self._report_opener()
            elif line.end is not None:
                if marker == CRLF:
                    self._expect_crlf(copied_crlf)
                return line.end
            is_data = marker == CRLF and not self._has_crlf
            copied_crlf = copied_crlf or is_data
            copy((CRLF if is_data else NEWLINE if copied or not self._on_first_line else "") + line.text)
            self._on_first_line = False
        return ParamEnd.LIMIT

    def _expect_crlf(self, copied_crlf: bool) -> None:
        """Handle CRLF after a value: from here on, it is a line break.

        If CRLF was copied to the same value, it may have been a line break there, too.
        """
        self._has_crlf = True
        if copied_crlf:
            self._args.mark_incomplete()
            self._sink.report("ambiguous-value", f"the CRLF in {self._last_key!r} may be line breaks of the call: kept")

    def _report_opener(self) -> None:
        if not self._opener_reported:
            self._opener_reported = self._sink.has_ambiguous_value = True
            self._sink.report(
                "opener-in-value",
                f"a value of {self._tool!r} has a line that begins like a call: kept as text, and the call is "
                "incomplete, because its closer may be missing",
            )

    def _is_param(self, key: str, coercion: ValueCoercion) -> bool:
        """Return whether a key at the beginning of a line ends the value of this type.

        It is text if the value can be a string and the key is unknown, or was already read.
        """
        offer = self._sink.offer
        if not coercion.accepts_string:
            return True
        return key not in self._args.keys and (not offer.has(self._tool) or offer.has_param(self._tool, key))
