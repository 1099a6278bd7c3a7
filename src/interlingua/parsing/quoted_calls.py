"""Calls that are quoted in a code span or a code block of Markdown.

A model that shows a file or explains its format quotes calls. It must not start a tool with them. But some models wrap
their real calls in a code block. A call that begins inside code is therefore held back until it is decided. It is a
call if its code contains only complete calls of offered tools, and nothing but further code of this kind follows to the
end of the reply. In any other case it is text, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from interlingua import events as ev
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import MarkerSets
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer
from interlingua.parsing.trailing_markers import strip_trailing_markers

__all__ = ["QuotedCallReader", "TrialParser"]

MAX_PIECE_CHARS = 4096
"""Number of characters in which markers are searched at a time."""
_INFO_LINE = re.compile(r"[ \t]*[\w+.#-]*[ \t\r]*\n")
"""Rest of the line that opens a code block: the name of a language."""
_BLANK_LINES = re.compile(r"\n\s*\n")
_NO_MARKERS = compile_markers()


class TrialParser(Protocol):
    """Parser that reads the content of one code span or code block as a reply of its own."""

    @property
    def buffered(self) -> str: ...

    @property
    def inside_calls(self) -> bool: ...

    def feed(self, text: str, channel: Channel) -> list[ev.Event]: ...

    def close(self) -> list[ev.Event]: ...


class _BlockEnd(Enum):
    """The reason why a code span or code block was read no further."""

    CLOSED = "closed"
    NO_CALL = "no call"
    """It does not begin with a call of an offered tool."""
    NO_CODE = "no code"
    """It is a span that was not closed in its paragraph."""
    OVER_LIMIT = "over limit"
    END = "end of the text"
    BOUNDARY = "end of the channel or of the thinking"


_ENDS_OF_CODE = (_BlockEnd.CLOSED, _BlockEnd.END, _BlockEnd.BOUNDARY)


class _CodeContent:
    """Content of one code span or code block, read by a trial parser."""

    def __init__(self, trial: TrialParser, channel: Channel, offer: ToolSet) -> None:
        self._trial = trial
        self._channel = channel
        self._offer = offer
        self._unfed: list[str] = []
        self.events: list[ev.Event] = []
        self.call_name = ""
        """The name of the first call of an offered tool."""
        self.is_text = False
        """True if something else comes before the first call."""

    def add(self, text: str) -> None:
        self._unfed.append(text)

    def feed(self, suspect_chars: int) -> None:
        """Feed the trial parser, except the characters at the end that may belong to the closing delimiter."""
        text = "".join(self._unfed)
        fed = len(text) - suspect_chars
        if fed <= 0:
            return
        self._unfed = [text[fed:]]
        self._record(self._trial.feed(text[:fed], self._channel))

    def close(self, suspect_chars: int = 0, *, skip_info: bool = False) -> None:
        """Feed the rest, except the closing delimiter, and end the trial.

        Args:
            suspect_chars: The length of the closing delimiter.
            skip_info: The text begins with the rest of the line that opens the block.
        """
        text = "".join(self._unfed)
        self._unfed = []
        if skip_info and (info := _INFO_LINE.match(text)):
            text = text[info.end() :]
        self._record(self._trial.feed(text[: len(text) - suspect_chars], self._channel) + self._trial.close())

    def _record(self, events: list[ev.Event]) -> None:
        self.events += events
        if self.call_name or self.is_text:
            return
        first = next((event for event in events if not isinstance(event, ev.Finding) and not _is_blank(event)), None)
        if isinstance(first, ev.CallStart) and self._offer.accepts(first.name):
            self.call_name = first.name
        elif first is not None:
            self.is_text = True

    @property
    def is_undecided(self) -> bool:
        return not self.call_name and not self.is_text

    @property
    def has_only_calls(self) -> bool:
        """True if it consists of complete calls of offered tools."""
        contents = [event for event in self.events if not isinstance(event, ev.Finding) and not _is_blank(event)]
        starts = [event for event in contents if isinstance(event, ev.CallStart)]
        ends = [event for event in contents if isinstance(event, ev.CallEnd) and event.complete]
        return (
            0 < len(starts) == len(ends)
            and all(isinstance(event, ev.CallStart | ev.ArgsDelta | ev.CallEnd) for event in contents)
            and all(self._offer.accepts(start.name) for start in starts)
        )


def _is_blank(event: ev.Event) -> bool:
    return isinstance(event, ev.TextDelta | ev.ReasoningDelta) and not event.text.strip()


class QuotedCallReader:
    """Reader for the calls of one reply that begin inside code.

    Args:
        source: the buffer that the text is read from.
        sink: receives the events.
        start_trial: returns a parser for the text from this position on, which reads quoted calls like others. The
            second argument says whether the text is the start of a message.
        markers: the markers of the dialect.
        has_back_ticks: calls contain back-ticks in the notation of the dialect.
    """

    __slots__ = ("_has_back_ticks", "_held_chars", "_markers", "_sink", "_source", "_spans_from", "_start_trial")

    def __init__(
        self,
        source: TextBuffer,
        sink: EventSink,
        start_trial: Callable[[int, bool], TrialParser],
        markers: MarkerSets,
        *,
        has_back_ticks: bool,
    ) -> None:
        self._source = source
        self._sink = sink
        self._start_trial = start_trial
        self._markers = markers
        self._has_back_ticks = has_back_ticks
        self._spans_from = 0  # no code span begins before this position of the reply
        self._held_chars = 0

    def is_in_code(self, marker: str) -> bool:
        source, whitespace = self._source, self._whitespace_before(marker)
        if not source.code.is_in_code_before(whitespace):
            return False
        if self._has_back_ticks and source.code.follows_older_span(whitespace):
            return False  # the back-ticks of the call itself would close the span
        return not source.code.in_span or source.offset > self._spans_from

    def _whitespace_before(self, marker: str) -> str:
        """Return the whitespace before the text of the marker that was just read."""
        return self._source.trimmed_whitespace + marker[: len(marker) - len(marker.lstrip())]

    def read(self, marker: str, *, opens_block: bool = False) -> Read[bool]:
        code = self._source.code
        code.keeps_span = self._has_back_ticks and code.is_in_span_before(self._whitespace_before(marker))
        is_read = yield from self._read(marker, opens_block=opens_block)
        code.keeps_span = False
        return is_read

    def _read(self, marker: str, *, opens_block: bool) -> Read[bool]:
        source, sink, code = self._source, self._sink, self._source.code
        start = source.offset - len(marker)
        source.start_recording(marker)
        if not opens_block and not (yield from self._can_begin_call(marker)):
            sink.emit_text(source.take_recorded(), source.recorded_channel)
            source.mark_as_text()
            return True
        whitespace = source.leading_whitespace + marker[: len(marker) - len(marker.lstrip())]
        has_text_before = not opens_block and code.has_text_before(whitespace)
        code.scan(whitespace + _BLANK_LINES.sub("\n", marker.lstrip()))
        if not code.in_code and not opens_block:  # the marker itself closes the code
            source.unread_recorded()
            return False
        self._held_chars = len(marker)
        content = self._new_content(source.offset if opens_block else start, at_start=opens_block or not code.in_span)
        content.add("" if opens_block else marker)
        end = yield from self._read_block(content, sink.limits.header)
        if end is _BlockEnd.NO_CODE or (code.in_span and end in (_BlockEnd.END, _BlockEnd.BOUNDARY)):
            # A run of back-ticks that is not closed in its paragraph opens no span.
            code.reset()
            if source.channel is not source.recorded_channel:
                self._accept([content], [])
                return True
            self._spans_from = source.offset
            source.unread_recorded()
            return False
        contents, gaps = [content], list[str]()
        while end in _ENDS_OF_CODE and contents[-1].has_only_calls and not has_text_before:
            gap, end = yield from self._read_gap(end)
            gaps.append(gap)
            if end is _BlockEnd.END:
                self._accept(contents, [] if opens_block else gaps)
                if not opens_block:  # else it is a notation of the dialect, which has a finding of its own
                    self._report_accepted(contents, start)
                return True
            if end is not _BlockEnd.CLOSED:
                break
            contents.append(self._new_content(source.offset))
            end = yield from self._read_block(contents[-1], 0)
        self._return_as_text(content, end, start)
        return True

    def _can_begin_call(self, marker: str) -> Read[bool]:
        """Return whether the next character can follow this opener. Code is full of brackets, so that this check saves
        most trials."""
        if any(map(str.isalpha, marker)):
            return True
        first = yield from self._source.peek_after_space()
        return first.isalpha() or first in "_{"

    def _new_content(self, start: int, *, at_start: bool = True) -> _CodeContent:
        return _CodeContent(self._start_trial(start, at_start), self._source.recorded_channel, self._sink.offer)

    def _read_block(self, content: _CodeContent, decide_chars: int) -> Read[_BlockEnd]:
        """Read to the end of a code span or code block, and close its content.

        Args:
            content: receives the text.
            decide_chars: The number of characters after each of which the reader checks whether this is no call; 0 for
                the code after the first one.
        """
        source, sink, code = self._source, self._sink, self._source.code
        is_later = decide_chars == 0
        if not is_later:
            content.feed(0)
        while not content.is_text:
            is_undecided = decide_chars > 0 and content.is_undecided
            piece = yield from self._take_text(1 if is_undecided else MAX_PIECE_CHARS)
            if piece == "":
                return self._end_block(content, is_later)
            end = code.scan(piece)
            source.put_back(piece[end:])
            content.add(piece[:end])
            self._held_chars += end
            decide_chars -= end
            if not code.in_code:
                if code.is_broken:
                    return _BlockEnd.NO_CODE
                content.close(code.suspect_chars, skip_info=is_later)
                return _BlockEnd.CLOSED
            if self._held_chars > sink.limits.held:
                sink.report_over_limit("a call in a code block", sink.limits.held)
                return _BlockEnd.OVER_LIMIT
            if is_undecided:
                content.feed(code.suspect_chars)
        return _BlockEnd.NO_CALL

    def _take_text(self, limit: int) -> Read[str]:
        """Consume and return text inside code, at most `limit` characters.

        Returns:
            The text; "" at the end of the text, of the channel or of the thinking, and before an end-of-turn token that
            follows the closing delimiter.
        """
        source, sink = self._source, self._sink
        if source.channel is not source.recorded_channel:
            return ""
        boundaries = self._markers.thinking_boundaries if sink.thinking else self._markers.noise
        window = min(limit, sink.limits.held + 1 - self._held_chars)
        text = yield from source.take_piece(boundaries, window)
        if text == "" and source.channel is source.recorded_channel and source.code.is_in_code_before(""):
            return (yield from source.accept_here(self._markers.noise)) or ""
        return text

    def _end_block(self, content: _CodeContent, is_later: bool) -> _BlockEnd:
        """End code whose text goes no further, although no text after its closing delimiter was read."""
        source, code = self._source, self._source.code
        is_closed = not code.is_in_code_before("")
        if is_closed:
            code.end()
        content.close(code.suspect_chars if is_closed else 0, skip_info=is_later)
        if source.closed and not source.unread_text and source.channel is source.recorded_channel:
            return _BlockEnd.END
        return _BlockEnd.CLOSED if is_closed else _BlockEnd.BOUNDARY

    def _read_gap(self, end: _BlockEnd) -> Read[tuple[str, _BlockEnd]]:
        """Read what follows a code span or code block, up to the beginning of the next one.

        Returns:
            The delimiters and the whitespace that were read; and `CLOSED` if another one begins, `END` if the reply
            ends, or the reason why there is no call.
        """
        source, sink, code = self._source, self._sink, self._source.code
        gap: list[str] = []
        if end is _BlockEnd.BOUNDARY:
            code.reset()
        while end is not _BlockEnd.END:
            if self._held_chars > sink.limits.held:
                sink.report_over_limit("a call in a code block", sink.limits.held)
                return "", _BlockEnd.OVER_LIMIT
            char = yield from source.peek_char()
            if source.channel is not source.recorded_channel and char:
                return "", _BlockEnd.NO_CALL
            run = code.end_run(char)
            if code.in_code:
                return "".join(gap), _BlockEnd.CLOSED
            if run == "~":
                return "", _BlockEnd.NO_CALL
            if char == "":
                break
            if char.isspace() or char in "`~":
                gap.append((yield from source.take_char()))
                code.scan(char)
                self._held_chars += 1
            elif closer := (yield from self._accept_closer()):
                self._held_chars += len(closer)
            else:
                return "", _BlockEnd.NO_CALL
        return "".join(gap), _BlockEnd.END

    def _accept_closer(self) -> Read[str | None]:
        """Consume and return a marker that may follow the last call; the end of the thinking only if nothing follows
        it."""
        source = self._source
        closer = (yield from source.accept_here(self._markers.thinking_closers)) if self._sink.thinking else None
        if closer is None:
            return (yield from source.accept_here(self._markers.reply_closers))
        if (yield from source.peek(_NO_MARKERS, closer)) != "":
            source.put_back(closer)
            return None
        return closer

    def _accept(self, contents: list[_CodeContent], gaps: list[str]) -> None:
        """Emit the events of the calls, and the delimiters of their code as text."""
        source, sink = self._source, self._sink
        channel = source.recorded_channel
        source.discard_recording()
        for n, content in enumerate(contents):
            first_index = sink.call_count
            for event in content.events:
                if isinstance(event, ev.CallStart | ev.ArgsDelta | ev.CallEnd):
                    sink.call_count += isinstance(event, ev.CallStart)
                    sink.emit(msgspec.structs.replace(event, index=first_index + event.index))
                else:
                    sink.emit(event)
            if gap := (gaps[n].strip() if n < len(gaps) else ""):
                sink.emit_untracked_text(gap, channel)
        source.code.reset()

    def _report_accepted(self, contents: list[_CodeContent], start: int) -> None:
        for content in contents:
            self._sink.report(
                "call-in-code", f"a call of {content.call_name!r} in a code block that ends the reply: accepted", start
            )

    def _return_as_text(self, content: _CodeContent, end: _BlockEnd, start: int) -> None:
        source, sink = self._source, self._sink
        text = source.take_recorded()
        if source.closed and not source.unread_text:
            text = strip_trailing_markers(text, self._markers.noise)
        if sink.failed:
            return
        sink.emit_untracked_text(text, source.recorded_channel)
        source.mark_as_text()
        for finding in content.events:
            if isinstance(finding, ev.Finding) and finding.kind in ("not-a-tool", "over-limit"):
                sink.emit(finding)
        if content.call_name and end is not _BlockEnd.OVER_LIMIT:
            sink.report("quoted-call", f"a call of {content.call_name!r} that is quoted as code: kept as text", start)
