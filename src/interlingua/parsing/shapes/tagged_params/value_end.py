"""End of a value that is raw text.

Agents write files that quote calls, so the markers of a call may be data. Three rules tell them apart:

- A closer ends a value only if the grammar can go on after it: with another param, or with the end of the call and
  then the end of the reply, another call of an offered tool, or the end of the turn.
- The head of a call inside a value begins a quoted call. All of it is data, up to its own end.
- If text follows the end of the call, either the model goes on with text, or the end was quoted, too. This is decided
  by the next closer that has no opener: with one, the end before it was data; without one, it was the end. Until then
  the text is held back.

A value without a closer ends with its call, its section or the turn, or where another param begins. What stays
ambiguous is reported, and the call is incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import msgspec

from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.tools import ToolSet
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.lookahead import Lookahead, literal_sequence
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.shapes.common.json_arguments import OPENING_BRACE
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.tagged_params.layout import next_call, next_param
from interlingua.parsing.shapes.tagged_params.tag import (
    MAX_HEAD_CHARS,
    MAX_NAME_CHARS,
    NAME_PATTERN,
    HeadLookahead,
    Tag,
    name_prefixes,
)
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["NEWLINE", "CallMarkers", "CutReason", "OpenParam", "ValueEndRules"]

NEWLINE = "\n"
_SPACE = r"\s*+"
_STRING_MARKERS = compile_markers('"', "\\")
_AFTER_JSON_STRING = (",", ":", "}", "]")


class CallMarkers(NamedTuple):
    """The markers around the params of a call."""

    call: Tag
    section_openers: tuple[str, ...]
    section_closers: tuple[str, ...]
    param_starts: tuple[str, ...]
    """Markers that can follow a param: they begin another one."""
    body_starts: tuple[str, ...]
    """Markers that can follow the head of a call."""
    dialect_markers: tuple[str, ...]
    """Markers outside the shape."""
    tokens: tuple[str, ...]
    """The special tokens among them, such as the end of a turn."""
    next_message: tuple[str, ...]
    """Markers that begin another message after the calls."""
    has_fallback: bool
    """True if a section may contain JSON instead."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (*self.section_openers, *self.call.open)

    @property
    def after_call(self) -> tuple[str, ...]:
        return (*self.openers, *self.section_closers, *self.dialect_markers)


class OpenParam(NamedTuple):
    """The param whose value is being read."""

    key: str
    tool: str
    offer: ToolSet
    seen_keys: set[str]
    """The keys that were already read. Text that looks like one of them again is data."""
    accepts_string: bool
    """False if the value cannot be a string, so that it cannot quote anything."""
    json_pieces: list[str] | None = None
    """The pieces of the value so far, if it is a JSON object or array. Markers in its strings are data."""


class CutReason(Enum):
    """Reason why a value ends without a marker."""

    LIMIT = "it is longer than the limit"
    CHANNEL = "the channel changed"
    END_OF_TEXT = "the text ended"


class _Role(Enum):
    """Role of a marker inside a value."""

    CLOSER = "closer of the value"
    PARAM = "opener of a param"
    SECTION = "opener of a section"
    CALL = "opener of a call"
    CALL_CLOSER = "closer of a call"
    SECTION_CLOSER = "closer of a section"
    TOKEN = "special token outside calls"


class _Verdict(Enum):
    """Decision about a marker."""

    DATA = "part of the value"
    END = "end of the value"
    AMBIGUOUS = "taken as the end of the value, but it may be data"


class ValueEndRules:
    """The markers that matter inside one kind of value, and their roles.

    Args:
        closers: The markers that close the value.
        param: The tag of a param.
        around: The markers around params.
        on_lines: True if the value is on separate lines: one line break before its closer is not part of it.
        inline_params: True if a param may begin anywhere. Otherwise it begins on a new line.
        named_closers: True if the key and the end of a tag follow each closer.
        keyless_params: True if the head of a param may lack its key.
    """

    def __init__(
        self,
        closers: tuple[str, ...],
        param: Tag,
        around: CallMarkers,
        *,
        on_lines: bool = False,
        inline_params: bool = False,
        named_closers: bool = False,
        keyless_params: bool = False,
    ) -> None:
        self.param = param
        self.around = around
        self.on_lines = on_lines
        self.inline_params = inline_params
        self.named_closers = named_closers
        call = around.call
        self.roles = {
            **dict.fromkeys(around.tokens, _Role.TOKEN),
            **dict.fromkeys(around.section_openers, _Role.SECTION),
            **dict.fromkeys(around.section_closers, _Role.SECTION_CLOSER),
            **dict.fromkeys(call.close, _Role.CALL_CLOSER),
            **dict.fromkeys(call.open, _Role.CALL),
            **dict.fromkeys(param.open, _Role.PARAM),
            **dict.fromkeys((*closers, *param.slips), _Role.CLOSER),
        }
        self.bare_markers = compile_markers(*self.roles)
        before_layout = {_Role.TOKEN, _Role.SECTION_CLOSER, _Role.CALL_CLOSER, _Role.PARAM}
        before_layout |= {_Role.CLOSER} if on_lines else set()
        after_newline = (NEWLINE + marker for marker, role in self.roles.items() if role in before_layout)
        self.markers = compile_markers(*self.roles, *after_newline)
        self.markers_ahead = compile_markers(*self.markers.literals, *around.dialect_markers)
        self.followers = compile_markers(*self.roles, *around.dialect_markers, *around.param_starts)
        self.closers = compile_markers(*closers)
        self.call_closers = compile_markers(*call.close)
        self.section_closers = compile_markers(*around.section_closers)
        self.dialect_markers = compile_markers(*around.dialect_markers)
        call_openers, section_openers = compile_markers(*call.open), compile_markers(*around.section_openers)
        body = compile_markers(*around.body_starts, *call.close, OPENING_BRACE)
        self.call_head = HeadLookahead(call, body)
        self.next_call = HeadLookahead(call, None if call.end else body, call_openers, section_openers)
        self.param_head = HeadLookahead(param, is_named=not keyless_params)
        self.next_param = HeadLookahead(param, openers=compile_markers(*param.open), is_named=not keyless_params)
        fallback_openers = around.section_openers if around.has_fallback else ()
        self.next_fallback = Lookahead(
            *((_SPACE, *literal_sequence(opener), _SPACE, r"([{\[])") for opener in fallback_openers)
        )
        self.key_prefixes = name_prefixes(param)
        param_layout = next_param(param, body, self.followers, is_named=not keyless_params)
        call_layout = next_call(call, body, around.section_closers, around.section_openers)
        self.plain_param = re.compile(param_layout.pattern)
        self.unfinished_param = re.compile(param_layout.beginning)
        self.plain_next = re.compile(f"{param_layout.pattern}|{call_layout.pattern}")
        self.unfinished_next = re.compile(f"{param_layout.beginning}|{call_layout.beginning}")
        self.head_ends = compile_markers(*param.end)

    def copy_value(
        self,
        write: Callable[[str], None],
        limit: int,
        param: OpenParam,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | CutReason]:
        """Copy a value to `write` up to its end.

        Returns:
            "" after its closer; the other marker that ended it (consumed), without a line break before it; or the
            reason why it ends without a marker.
        """
        return _ValueCopy(self, write, limit, param, args, source, sink).copy()

    def copy_element(
        self,
        write: Callable[[str], None],
        limit: int,
        param: OpenParam,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> Read[str | None]:
        """Copy the text of an element to `write` up to its end.

        Returns:
            The closer, or the other marker that ended it (consumed); "" if the limit was reached or the channel
            changed; None at the end of the text.
        """
        end = yield from self.copy_value(write, limit, param, args, source, sink)
        if end is CutReason.END_OF_TEXT:
            return None
        return "" if isinstance(end, CutReason) else end or self.closers.literals[0]


class _ValueCopy:
    """Copies one value up to its end. The parameters are those of `ValueEndRules.copy_value`."""

    def __init__(
        self,
        rules: ValueEndRules,
        write: Callable[[str], None],
        limit: int,
        param: OpenParam,
        args: ObjectWriter,
        source: TextBuffer,
        sink: EventSink,
    ) -> None:
        self._rules = rules
        self._write = write
        self._limit = limit
        self._param = param
        self._args = args
        self._source = source
        self._sink = sink
        self._channel = source.channel
        self._quoted_params = 0  # openers of params in the value that are not closed
        self._open_calls = self._open_params = 0  # openers after the value that are not closed
        self._json: JsonScanner | None = None  # created at the first marker in a value that is JSON
        self._scanned_pieces = 0
        self._is_ambiguous = False
        self._quote_offset = -1  # offset of the next quote that may close a JSON string
        self._quote_closes = False

    def copy(self) -> Read[str | CutReason]:
        while True:
            lead, marker = yield from self._copy_to_marker(self._rules.markers, self._write, self._limit)
            if not marker:
                return self._cut_reason(marker)
            role = self._rules.roles[marker]
            if self._param.json_pieces is not None and (yield from self._is_in_json_string(marker)):
                self._write(lead + marker)
            elif role is _Role.CALL:
                end = yield from self._copy_call_opener(lead + marker)
                if end is not None:
                    return end
            elif role is _Role.PARAM:
                if (yield from self._begins_next_param(lead)):
                    self._source.trace_marker(marker)
                    return marker
                self._write(lead + marker)
                self._quoted_params += bool((yield from self._find_name(self._rules.param_head)))
            elif role is _Role.CLOSER:
                source = self._source
                source.set_mark(marker)
                offset = source.offset
                verdict = yield from self._judge_closer(marker, bool(lead))
                if verdict is not _Verdict.DATA:
                    source.rewind_to(offset)
                    source.drop_mark()
                    return self._end_at_closer(lead, marker, verdict)
                self._write(lead + source.take_marked())
                if not self._param.accepts_string and not self._is_ambiguous:
                    self._report_ambiguous()  # it quotes nothing: it may itself be quoted in the value before it
                self._quoted_params = max(0, self._quoted_params - 1)
            else:
                self._source.set_mark(marker)
                verdict = yield from self._judge(role, bool(lead))
                if verdict is not _Verdict.DATA:
                    self._source.rewind_to_mark()
                    self._source.read_again(marker)
                    self._end_at(marker, verdict)
                    return marker
                self._write(lead + self._source.take_marked())

    def _copy_to_marker(
        self, markers: MarkerSet, write: Callable[[str], None], limit: int
    ) -> Read[tuple[str, str | None]]:
        """Copy text up to the next marker. Return the line break before it that may be layout, and the marker."""
        while True:
            marker = yield from self._source.copy_value(markers, write, limit, self._channel)
            if not marker or not marker.startswith(NEWLINE) or marker in self._rules.roles:
                return "", marker
            self._source.put_back(marker.removeprefix(NEWLINE))
            # A longer marker may begin after the line break.
            bare_marker = yield from self._source.accept_here(self._rules.bare_markers)
            if bare_marker is not None:
                return NEWLINE, bare_marker
            write(NEWLINE)

    def _cut_reason(self, marker: str | None) -> CutReason:
        if marker is None:
            return CutReason.END_OF_TEXT
        return CutReason.LIMIT if self._source.channel is self._channel else CutReason.CHANNEL

    def _end_at(self, marker: str, verdict: _Verdict) -> None:
        """End the value at a marker."""
        self._source.trace_marker(marker)
        if verdict is _Verdict.AMBIGUOUS:
            self._report_ambiguous()

    def _end_at_closer(self, lead: str, marker: str, verdict: _Verdict) -> str:
        self._end_at(marker, verdict)
        if marker in self._rules.param.slips:
            self._sink.report(
                "value-not-closed", f"the value of {self._param.key!r} ends with {marker}: accepted as its closer"
            )
        if lead and not self._rules.on_lines:
            self._write(lead)
        return ""

    def _report_ambiguous(self) -> None:
        self._is_ambiguous = True
        self._sink.report(
            "ambiguous-value",
            f"the value of {self._param.key!r} quotes part of a call: its end is ambiguous, and the call is incomplete",
        )
        self._args.mark_incomplete()

    # ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_in_json_string(self, marker: str) -> Read[bool]:
        """Return whether the marker that was just read is in a JSON string that is closed later."""
        pieces = self._param.json_pieces or []
        text = "".join(pieces[self._scanned_pieces :])
        self._scanned_pieces = len(pieces)
        if self._json is None:
            if read_json(text, msgspec.Raw) is not None:
                self._param = self._param._replace(json_pieces=None)  # it has ended: no string follows
                return False
            self._json = JsonScanner()
        if not self._json.ended:
            self._json.scan_all(text)
        return self._json.in_string and (yield from self._is_string_closed_after(marker))

    def _is_string_closed_after(self, marker: str) -> Read[bool]:
        """Return whether the next unescaped quote closes the JSON string in which this marker was just read.

        If it does not, the model never closed the string, and the marker is no data.
        """
        source = self._source
        if source.offset <= self._quote_offset:
            return self._quote_closes
        source.set_mark(marker)
        remaining = self._sink.limits.held
        while True:
            start = source.offset
            char = yield from source.copy_value(_STRING_MARKERS, _ignore, remaining, self._channel)
            remaining -= source.offset - start
            if char != "\\":
                break
            yield from source.take_char()
        self._quote_offset = source.offset
        self._quote_closes = char == '"' and (yield from source.peek_after_space()) in _AFTER_JSON_STRING
        source.rewind_to_mark()
        source.read_again(marker)
        return self._quote_closes

    # ── quoted calls ──────────────────────────────────────────────────────────────────────────────────────────────

    def _copy_call_opener(self, opener: str) -> Read[str | CutReason | None]:
        """Copy the opener of a call and the quoted call after it, if there is one.

        Return None if the value goes on.
        """
        self._write(opener)
        if not (yield from self._find_name(self._rules.call_head)):
            return None
        end = yield from self._copy_quoted_call()
        if isinstance(end, CutReason):
            return end
        if end is _Verdict.AMBIGUOUS:
            self._report_ambiguous()
            return ""
        return None

    def _copy_quoted_call(self) -> Read[_Verdict | CutReason]:
        """Copy a quoted call after its opener.

        Returns:
            `DATA` after its end; `AMBIGUOUS` if the reply ends with it, so that its closers may be the real ones: then
            only the closer of the value is consumed; or the reason why the text ends before.
        """
        rules, source, depth = self._rules, self._source, 1
        while True:
            lead, marker = yield from self._copy_to_marker(rules.markers, self._write, self._limit)
            if not marker:
                return self._cut_reason(marker)
            role = rules.roles[marker]
            source.set_mark()
            if role is _Role.CALL:
                depth += bool((yield from self._find_name(rules.call_head)))
            elif role is _Role.CALL_CLOSER:
                depth -= 1
            elif role is _Role.CLOSER and depth == 1:
                yield from self._skip_closing_name()
                depth -= yield from self._accepts(rules.call_closers)
            if depth == 0:
                yield from self._accepts(rules.section_closers)
                if role is _Role.CLOSER and (yield from self._ends_reply()):
                    source.rewind_to_mark()
                    if lead and not rules.on_lines:
                        self._write(lead)
                    return _Verdict.AMBIGUOUS
            self._write(lead + marker + source.take_marked())
            if depth == 0:
                return _Verdict.DATA

    def _find_name(self, head: HeadLookahead) -> Read[str]:
        """Return the name in the head that comes next, without consuming it; "" if there is no head."""
        if self._source.channel is not self._channel:
            return ""
        return (yield from self._source.look_ahead(head, MAX_HEAD_CHARS)) or ""

    # ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _judge(self, role: _Role, after_newline: bool) -> Read[_Verdict]:
        """Decide whether a marker that was just read, and is no closer of a value, ends the value.

        The text after it decides, and is read. The caller has set a mark before it.
        """
        if role is _Role.TOKEN:
            return (yield from self._judge_token())
        if role is _Role.SECTION or (self._rules.on_lines and not after_newline):
            return _Verdict.DATA
        section_closed = role is _Role.CALL_CLOSER and (yield from self._accepts(self._rules.section_closers))
        return (yield from self._judge_call_end(value_closed=False, call_closed=False, section_closed=section_closed))

    def _judge_token(self) -> Read[_Verdict]:
        if (yield from self._skip_dialect_markers()) in self._rules.around.next_message:
            return (yield from self._await_stray_closer())
        return _Verdict.END if (yield from self._follower()) == "" else _Verdict.DATA

    def _judge_closer(self, marker: str, after_newline: bool) -> Read[_Verdict]:
        """Decide whether a closer that was just read ends the value, as `_judge` does."""
        rules, source, param = self._rules, self._source, self._param
        is_inline = rules.on_lines and not after_newline
        if is_inline and (yield from source.peek_char()) not in (NEWLINE, ""):
            return _Verdict.DATA
        if rules.named_closers and not (yield from self._accept_key()):
            return (yield from self._judge_misnamed_closer())
        if param.accepts_string and not is_inline and not self._quoted_params:
            # The most frequent case: another param, or another call, follows as templates write it.
            match = yield from source.match_when_complete(rules.plain_next, rules.unfinished_next)
            if match is not None and (match[2] is None or param.offer.accepts(match[2])):
                return _Verdict.END
        return (yield from self._judge_text_after(marker))

    def _judge_text_after(self, marker: str) -> Read[_Verdict]:
        """Decide whether a closer ends the value, from the markers after it."""
        rules, source = self._rules, self._source
        is_slip = marker in rules.param.slips
        follower = yield from self._follower()
        if self._quoted_params and self._param.accepts_string and follower in rules.closers.literals and not is_slip:
            return _Verdict.DATA  # it closes a quoted param
        while follower in rules.closers.literals and not is_slip:
            yield from source.accept(rules.closers)
            yield from self._skip_closing_name()
            follower = yield from self._follower()
        if is_slip and follower not in (*rules.param.open, *rules.around.call.close):
            return _Verdict.DATA
        if follower is None:
            is_next = rules.inline_params and (yield from self._is_next_key(rules.param.end))
            return _Verdict.END if is_next else _Verdict.DATA
        if follower == "" or not self._param.accepts_string:
            return _Verdict.END
        if follower in rules.around.param_starts:
            if follower in rules.param.open and not (yield from self._is_next_param()):
                return _Verdict.DATA
            if is_slip or not self._quoted_params:
                return _Verdict.END
            return (yield from self._await_stray_closer(in_call=True))
        call_closed = yield from self._accepts(rules.call_closers)
        section_closed = yield from self._accepts(rules.section_closers)
        verdict = self._judge_call_end(value_closed=True, call_closed=call_closed, section_closed=section_closed)
        return (yield from verdict)

    def _judge_misnamed_closer(self) -> Read[_Verdict]:
        """Decide about a closing tag with another key: a misspelled one, or data."""
        yield from self._skip_closing_name()
        if not (yield from self._accepts(self._rules.call_closers)):
            return _Verdict.DATA
        section_closed = yield from self._accepts(self._rules.section_closers)
        verdict = yield from self._judge_call_end(value_closed=True, call_closed=True, section_closed=section_closed)
        return verdict if verdict is _Verdict.DATA else _Verdict.AMBIGUOUS

    def _judge_call_end(self, *, value_closed: bool, call_closed: bool, section_closed: bool) -> Read[_Verdict]:
        """Decide whether the call has ended here, from the text after it.

        Another call can follow only if the value was closed. If the call was not closed, that is ambiguous: the value
        may quote the beginning of a call. Text can follow only if the call or the section was closed.
        """
        around = self._rules.around
        follower = yield from self._follower()
        is_adjacent = follower not in around.dialect_markers
        if not is_adjacent:
            if self._sink.thinking and follower in self._sink.thinking_closers:
                return _Verdict.END
            last_marker = yield from self._skip_dialect_markers()
            follower = yield from self._follower()
            if last_marker in around.next_message and not follower:
                return _Verdict.END if value_closed else (yield from self._await_stray_closer())
        if follower == "":
            return _Verdict.END
        # A closer with another key cannot close this value, so that a call after it is not quoted.
        value_ended = value_closed or self._rules.named_closers
        is_next_call = value_ended and follower in around.openers and (yield from self._is_next_call())
        if is_next_call and value_closed and call_closed and is_adjacent:
            return _Verdict.END
        if not (is_next_call or call_closed or section_closed):
            return _Verdict.DATA
        verdict = yield from self._await_stray_closer(value_closed=value_closed)
        is_unclosed = is_next_call and value_closed and not call_closed
        return _Verdict.AMBIGUOUS if is_unclosed and verdict is _Verdict.END else verdict

    def _await_stray_closer(self, *, in_call: bool = False, value_closed: bool = True) -> Read[_Verdict]:
        """Read on, until a closer of a value that has no opener shows that the markers before it were data.

        Without one they were not data.

        Args:
            in_call: Only this call is read, up to its end.
            value_closed: The value was closed. Otherwise another call may be quoted in the value: then the markers were
                data. If closers are named, only a later closer with its key can be the end of the value.
        """
        rules, source, sink = self._rules, self._source, self._sink
        if source.offset < source.searched_to:
            return _Verdict.END if source.search_found_nothing else _Verdict.AMBIGUOUS
        remaining = sink.limits.held
        self._open_calls = self._open_params = 0
        is_ambiguous = False
        while True:
            start = source.offset
            lead, marker = yield from self._copy_to_marker(rules.markers_ahead, _ignore, remaining)
            remaining -= source.offset - start
            if not marker or (sink.thinking and marker in sink.thinking_closers):
                break
            role = rules.roles.get(marker)
            if in_call and role is _Role.CALL_CLOSER and not self._open_calls:
                break
            start = source.offset - len(lead + marker)
            if not value_closed and rules.named_closers:
                is_ambiguous = is_ambiguous or (role is _Role.CLOSER and (yield from self._accept_key()))
            elif not value_closed and role is _Role.CALL and (yield from self._find_name(rules.call_head)):
                source.rewind_to(start)
                return _Verdict.DATA
            if (yield from self._is_stray_closer(role)):
                verdict = yield from self._judge_stray_closer()
                if verdict is _Verdict.END:
                    source.rewind_to(start)
                    return _Verdict.DATA
                is_ambiguous = is_ambiguous or verdict is _Verdict.AMBIGUOUS
        is_over_limit = marker == "" and source.channel is self._channel
        is_ambiguous = is_ambiguous or is_over_limit
        source.searched_to, source.search_found_nothing = source.offset, not is_ambiguous
        return _Verdict.AMBIGUOUS if is_ambiguous else _Verdict.END

    def _judge_stray_closer(self) -> Read[_Verdict]:
        """Decide whether the call can end with a closer that has no opener, from the text after it.

        If text follows there, too, the text may as well mention the closer: that is ambiguous.
        """
        rules = self._rules
        if rules.named_closers and not (yield from self._accept_key()):
            yield from self._skip_closing_name()
            return _Verdict.AMBIGUOUS if (yield from self._follower()) else _Verdict.DATA
        follower = yield from self._follower()
        if follower is None:
            return _Verdict.DATA
        if follower in self._rules.around.param_starts:
            return _Verdict.END
        is_closed = yield from self._accepts(self._rules.call_closers)
        is_closed = (yield from self._accepts(self._rules.section_closers)) or is_closed
        last_marker = yield from self._skip_dialect_markers()
        follower = yield from self._follower()
        goes_on = follower in ("", *self._rules.around.openers) or last_marker in self._rules.around.next_message
        return _Verdict.END if is_closed and goes_on else _Verdict.AMBIGUOUS

    def _is_stray_closer(self, role: _Role | None) -> Read[bool]:
        """Count the openers and closers after the value. Return whether this is a closer of a value without opener."""
        if role is _Role.CALL:
            name = yield from self._find_name(self._rules.call_head)
            self._open_calls += bool(name) and self._param.offer.accepts(name)
        elif role is _Role.CALL_CLOSER:
            self._open_calls = max(0, self._open_calls - 1)
        elif role is _Role.PARAM and not self._open_calls:
            self._open_params += bool((yield from self._find_name(self._rules.param_head)))
        elif role is _Role.CLOSER and not self._open_calls:
            self._open_params -= 1
        if self._open_params >= 0:
            return False
        self._open_params = 0
        return True

    # ── text after a marker ──────────────────────────────────────────────────────────────────────────────────────

    def _follower(self) -> Read[str | None]:
        """Return the marker that comes next; "" if the text ends before or in it; None if other text comes next.

        Where the channel changes, the text of the call ends.
        """
        source = self._source
        if source.channel is not self._channel:
            return ""
        marker = yield from source.peek(self._rules.followers)
        ends_here = source.channel is not self._channel or source.ends_inside(self._rules.followers)
        return "" if marker is None and ends_here else marker

    def _accept_key(self) -> Read[bool]:
        """Consume the key and the end of a closing tag. Return whether they came next."""
        word = yield from self._source.accept_word(tuple(self._param.key + end for end in self._rules.param.end))
        return word is not None

    def _skip_closing_name(self) -> Read[None]:
        """Consume the name and the end of a closing tag whose closer was just read."""
        if self._rules.named_closers:
            yield from self._source.take_while(NAME_PATTERN, MAX_NAME_CHARS)
            yield from self._source.accept_here(self._rules.head_ends)

    def _accepts(self, markers: MarkerSet) -> Read[bool]:
        """Consume one of these markers if it comes next. Return whether it did."""
        if (yield from self._follower()) not in markers.literals:
            return False
        return (yield from self._source.accept(markers)) is not None

    def _skip_dialect_markers(self) -> Read[str]:
        """Consume the markers outside the shape that come next, such as the end of the turn. Return the last one."""
        last_marker = ""
        while (marker := (yield from self._follower())) and marker in self._rules.around.dialect_markers:
            yield from self._source.accept(self._rules.dialect_markers)
            last_marker = marker
        return last_marker

    def _ends_reply(self) -> Read[bool]:
        """Return whether only markers outside the shape follow. They are consumed."""
        yield from self._skip_dialect_markers()
        return (yield from self._follower()) == ""

    def _begins_next_param(self, lead: str) -> Read[bool]:
        """Return whether another param of the tool begins after this opener, so that the value was never closed."""
        if not lead and not self._rules.inline_params:
            return False
        return (yield from self._is_next_key(('"', "'", *self._rules.param.end), self._rules.key_prefixes))

    def _is_next_key(self, ends: tuple[str, ...], prefixes: tuple[str, ...] = ("",)) -> Read[bool]:
        """Return whether the key of another param comes next, between one of `prefixes` and one of `ends`."""
        param = self._param
        keys = [key for key in param.offer.param_names(param.tool) if key not in param.seen_keys]
        words = tuple(prefix + key + end for prefix in prefixes for key in keys for end in ends)
        word = yield from self._source.accept_word(words)
        self._source.put_back(word or "")
        return word is not None

    def _is_next_param(self) -> Read[bool]:
        """Return whether the head of a param comes next, or the beginning of one at the end of the text."""
        rules, source = self._rules, self._source
        if (yield from source.match_when_complete(rules.plain_param, rules.unfinished_param)) is not None:
            return True
        if (yield from self._find_name(rules.next_param)):
            return True
        return source.closed and rules.next_param.find_word(source.unread_text, 0, MAX_HEAD_CHARS, None)[1]

    def _is_next_call(self) -> Read[bool]:
        """Return whether a call of an offered tool comes next, in a section or alone."""
        if (yield from self._source.look_ahead(self._rules.next_fallback, MAX_HEAD_CHARS)) is not None:
            return True
        name = yield from self._find_name(self._rules.next_call)
        return bool(name) and self._param.offer.accepts(name)


def _ignore(text: str) -> None:
    """Drop a piece of text: the buffer keeps it after its mark."""
