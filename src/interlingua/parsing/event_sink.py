"""Event sink: collects the events that the parser and the shapes read from one reply, in order.

A call that may turn out to be text is *tentative*: `begin_tentative` sets a mark, `commit` removes the mark, `rollback`
removes the events after it and emits the recorded text instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.arguments import STREAMED_OPENERS, ArgumentsStream
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.core.tools import ToolSet
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer
from interlingua.parsing.tracer import HeldText, ParserTracer, join_tail

if TYPE_CHECKING:  # dialects use the sink
    from interlingua.parsing.dialect import Dialect

__all__ = ["CallBuilder", "CallHeader", "DetectionState", "EventSink", "QuoteReader"]


_CALL_HEAD_PATTERN = re.compile(r"[{\[\"']|```|[\w.:-]*+(?:\s*+=\s*+[\"']?[\w.:-]*+)?[\"'/>]*\Z")
"""Text after a call's opener that a truncated reply may end with: the name, perhaps as an attribute, or JSON, perhaps
in a code block."""

CLOSING_BRACE = "}"
_REASONING = Channel.REASONING  # a constant, because attribute access on an Enum is slow


class GuidedJson(Protocol):
    """Reader for guided JSON after an opener; see `guided_json.py`."""

    def read_marked(
        self, source: TextBuffer, sink: EventSink, *, opener: str = "", only_calls: bool = False
    ) -> Read[bool]: ...


class QuoteReader(Protocol):
    """Reader for calls that begin inside a code span or a code block."""

    def is_in_code(self, marker: str) -> bool:
        """Return whether the marker that was just read is inside a code span or a code block."""
        ...

    def read(self, marker: str, *, opens_block: bool = False) -> Read[bool]:
        """Read what follows an opener in code. Return False if it is not in code: then only the opener was read.

        `opens_block`: the marker itself opens a code block.
        """
        ...


class CallHeader(msgspec.Struct, frozen=True):
    """The text before a call's arguments, and the id and the name in it, if there are any."""

    text: str
    id: str | None
    name: str | None


class DetectionState:
    """State of the detection of the dialect, for the text of a reply or for its code spans and code blocks."""

    __slots__ = ("candidates", "in_code", "work_chars")

    def __init__(self, *, in_code: bool = False) -> None:
        self.in_code = in_code
        self.work_chars = 0
        """Work of the parsers of possible dialects so far, in characters that they could have read."""
        self.candidates: dict[str, list[Dialect]] = {}
        """The possible dialects, by opener."""


class EventSink:
    """Collects events, and gives findings their location in the text."""

    __slots__ = (
        "_detection",
        "_events",
        "_markers",
        "_open_call",
        "_prose_prefixes",
        "_source",
        "_special_tokens",
        "_thinking",
        "_track_code",
        "_value_pieces",
        "arguments",
        "call_count",
        "emit",
        "failed",
        "guided_json",
        "has_ambiguous_value",
        "inner_held_back",
        "inside_calls",
        "limits",
        "offer",
        "quotes",
        "tentative",
        "thinking_closers",
        "tracer",
    )

    def __init__(
        self,
        source: TextBuffer,
        markers: MarkerSet,
        special_tokens: MarkerSet,
        offer: ToolSet,
        limits: Limits,
        prose_prefixes: tuple[str, ...] = (),
        tracer: ParserTracer | None = None,
        arguments: ArgumentsPolicy = "repair",
    ) -> None:
        """Create a sink for one reply.

        Args:
            source: the buffer that the text is read from.
            markers: all markers of the dialect.
            special_tokens: the markers that never stand in prose.
            offer: the tools that the client offered.
            limits: the limits of the reply.
            prose_prefixes: openers that are ordinary text, so that a call after them may be prose.
            tracer: the tracer of the parser, for parsers that a shape creates.
            arguments: whether arguments that are almost JSON are corrected.
        """
        self.arguments = arguments
        self.tracer = tracer
        self.offer = offer
        self.limits = limits
        self._thinking = False
        self.thinking_closers: Collection[str] = ()
        """The markers that end thinking."""
        self.call_count = 0
        self.inside_calls = False
        """True while the text is inside a call or a section of calls."""
        self.failed = False
        """True after a limit has ended the reply."""
        self.has_ambiguous_value = False
        """True after a value whose end is not certain: this call and the next ones may be parts of that value, so they
        are incomplete."""
        self._source = source
        self._track_code = source.code.add
        self.quotes: QuoteReader | None = None
        """Reads calls in code spans and code blocks; None if they are read like others."""
        self._markers = markers
        self._special_tokens = special_tokens
        self._prose_prefixes = prose_prefixes
        self._events: list[ev.Event] = []
        self.emit = self._events.append
        self._open_call: CallBuilder | None = None
        self.tentative: _TentativeCall | None = None
        """The call that may turn out to be text; None if there is none."""
        self._value_pieces: list[str] = []
        self.guided_json: GuidedJson | None = None
        """Reader for calls that the server has constrained the model to write as JSON; None if there are none."""
        self._detection: DetectionState | None = None
        self.inner_held_back: Callable[[], list[HeldText]] | None = None
        """Returns the texts that wait in a parser that a shape has created."""

    def set_markers(self, markers: MarkerSet, special_tokens: MarkerSet) -> None:
        """Replace the markers of the dialect."""
        self._markers, self._special_tokens = markers, special_tokens

    @property
    def detection(self) -> DetectionState:
        """The state of the detection of the dialect, created on first use: few replies need it."""
        if self._detection is None:
            self._detection = DetectionState()
        return self._detection

    @detection.setter
    def detection(self, state: DetectionState) -> None:
        self._detection = state

    @property
    def thinking(self) -> bool:
        """True while the text is inside a thinking span."""
        return self._thinking

    @thinking.setter
    def thinking(self, thinking: bool) -> None:
        if thinking is not self._thinking:
            self._thinking = thinking
            self._source.code.reset()

    def drain(self) -> list[ev.Event]:
        """Return and remove the events that are certain: all, or those before a tentative call."""
        if self.tentative is None:
            events = self._events[:]
            self._events.clear()
            return events
        mark, self.tentative.mark = self.tentative.mark, 0
        events = self._events[:mark]
        del self._events[:mark]
        return events

    # ── texts that wait ───────────────────────────────────────────────────────────────────────────────────────────

    def hold_value(self) -> list[str]:
        """Return a list for the pieces of a value that cannot be sent before its end is known."""
        self._value_pieces = []
        return self._value_pieces

    def take_value(self) -> str:
        """Return the value that was held back."""
        pieces, self._value_pieces = self._value_pieces, []
        return "".join(pieces)

    def held_back(self) -> list[HeldText]:
        """Return the texts that were read and wait, and the reasons, for a trace."""
        held = self.inner_held_back() if self.inner_held_back is not None else []
        if self._open_call is not None:
            held += self._open_call.held_back()
        if self._value_pieces:
            held.append((join_tail(self._value_pieces), "value"))
        return held

    # ── tentative calls ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_tentative(self) -> bool:
        return self.tentative is not None

    def begin_tentative(self) -> None:
        """Hold back the events from here on, until `commit` or `rollback`."""
        self.tentative = _TentativeCall(len(self._events), self.call_count)

    def commit(self) -> None:
        """Accept the tentative call: its events are certain."""
        if self.tentative is not None:
            self.tentative = None
            self._source.discard_recording()

    def rollback(self) -> None:
        """Reject the tentative call: remove its events, and emit its text."""
        tentative, self.tentative = self.tentative, None
        if tentative is not None:
            del self._events[tentative.mark :]
            self.call_count = tentative.call_count
            self.clear_open_call()
        self.restore_text()

    def restore_text(self) -> bool:
        """Emit the recorded text. Return whether something was removed from it: its markers."""
        recorded = self._source.take_recorded()
        text = self._strip_markers(recorded)
        if text and not self.failed:
            self.emit_text(text, self._source.recorded_channel)
            self._source.mark_as_text()
        return text != recorded

    def count_held(self, text: str) -> None:
        """Count arguments of a tentative call. Over the limit, the call is accepted as it is."""
        if self.tentative is not None:
            self.tentative.buffered_chars += len(text)
            if self.tentative.buffered_chars > self.limits.held:
                self.commit()

    def read_quoted(self, opener: str) -> Read[bool]:
        """Read an opener inside code, and what follows it. Return False if it is not inside code."""
        if self.quotes is None or not self.quotes.is_in_code(opener):
            return False
        return (yield from self.quotes.read(opener))

    # ── text and findings ─────────────────────────────────────────────────────────────────────────────────────────

    def emit_text(self, text: str, channel: Channel) -> None:
        """Emit text, if there is any: special tokens may have been all of it."""
        if not text:
            return
        self._track_code(text)
        thinking = self._thinking or channel is _REASONING
        self._events.append(ev.ReasoningDelta(text) if thinking else ev.TextDelta(text))

    def emit_untracked_text(self, text: str, channel: Channel) -> None:
        """Emit text, if there is any, whose code spans and code blocks the source has followed already."""
        if not text:
            return
        thinking = self._thinking or channel is _REASONING
        self._events.append(ev.ReasoningDelta(text) if thinking else ev.TextDelta(text))

    def emit_leftover_text(self, text: str, channel: Channel) -> None:
        """Emit text that was read as part of a call but does not belong to one."""
        text = self._strip_markers(text)
        if text.strip() and not self.failed:
            self.emit_text(text, channel)
            self._source.mark_as_text()

    def _strip_markers(self, text: str) -> str:
        """Remove special tokens. Other markers are ordinary text and stay, except those of a call that the end of the
        reply has cut off."""
        if not self._prose_prefixes or self.offer.is_empty or not self._source.closed:
            return self.strip_special_tokens(text)
        tags = compile_markers(
            *(marker for marker in self._markers.literals if any(map(str.isalpha, marker)) and "{" not in marker)
        )
        stripped = tags.remove_from(text)
        return stripped if _CALL_HEAD_PATTERN.match(stripped.strip()) else self.strip_special_tokens(text)

    def split_partial_token(self, text: str) -> tuple[str, str]:
        """Return the text before the beginning of a special token at its end, and that beginning."""
        start = self._special_tokens.partial_start(text, 1)
        return text[:start], text[start:]

    def strip_special_tokens(self, text: str) -> str:
        """Return the text without special tokens."""
        return self._special_tokens.remove_from(text) if text else text

    def report(self, kind: str, message: str, offset: int | None = None) -> None:
        position = self._source.offset if offset is None else offset
        self._events.append(ev.Finding(kind, message, f"character {max(0, position)}"))

    def report_over_limit(self, subject: str, limit: int) -> None:
        """Report that a limit was passed, or end the reply, as `limits.over` says."""
        message = f"{subject} is longer than {limit:,} characters"
        if self.limits.over == "error":
            self._events.append(ev.Failure(message))
            self.failed = True
        else:
            self.report("over-limit", f"{message}: sent as text; parsing restarts after it")

    @property
    def channel(self) -> Channel:
        """The channel that the text is in."""
        return self._source.channel

    def reject_call(self, name: str) -> bool:
        """Return whether a call of this name is text, and report it.

        It is if no tool was offered; or if this tool was not offered and the markers are ordinary text, so that prose
        may hold what looks like a call.
        """
        if self.offer.is_empty:
            self.report("no-tools-offered", f"a call of {name!r}, but no tool was offered: sent as text")
        elif not self._source.recorded_marker.startswith(self._prose_prefixes) or self.offer.accepts(name):
            return False
        else:
            self.report("not-a-tool", f"no tool called {name!r} was offered: what looks like a call is sent as text")
        self._source.recorded_is_refused = True
        return True

    def start_call(self, header: CallHeader) -> CallBuilder:
        """Start a call. Its name is known, or will be at its end."""
        leading_whitespace = self._source.leading_whitespace
        if self.tentative is None:
            self._source.discard_recording()
        self._open_call = CallBuilder(self, header, leading_whitespace)
        return self._open_call

    @property
    def has_open_call(self) -> bool:
        """True if a call is in progress. At the end of the reply, that call is truncated."""
        return self._open_call is not None

    def clear_open_call(self) -> None:
        """Forget the call in progress: it has ended."""
        if self._open_call is not None:
            self._open_call.lacks_only_brace = None  # its writer refers back to the call
            self._open_call = None

    def close(self) -> None:
        """End the text: emit what a call in progress still buffers. The guard ends that call."""
        if self._open_call is not None:
            self._open_call.truncate()


class _TentativeCall:
    """The state to return to if a tentative call is rejected."""

    def __init__(self, mark: int, call_count: int) -> None:
        self.mark = mark
        """Index of the call's first event in the sink."""
        self.call_count = call_count
        self.buffered_chars = 0


class CallBuilder:
    """Builds the events of one call whose header has been read.

    A call without a name is buffered to its end: then the name can be guessed from the offered tools whose params fit.
    """

    def __init__(self, sink: EventSink, header: CallHeader, leading_whitespace: str = "") -> None:
        self._sink = sink
        self._header = header
        self._leading_whitespace = leading_whitespace
        self._index = sink.call_count
        self._channel = sink.channel
        self._args = ArgumentsStream(sink.limits.held, sink.limits.blanks, repairs=sink.arguments == "repair")
        self._correct = self._args.correct
        self._buffered: list[str] | None = None
        self._buffered_as_written: list[str] = []
        self._text_parts: list[str] | None = None
        self._emit = sink.emit
        self.scanner = self._args.scanner
        self.lacks_only_brace: Callable[[], bool] | None = None
        """Returns whether the arguments so far are complete members, so that they only have to be closed. None: the
        scanner knows it."""
        sink.call_count += 1
        if header.name is not None:
            self._start(header.name)
        elif header.text and not sink.offer.is_known:
            self._start_unnamed(None)
        else:
            self._buffered = []

    @property
    def awaits_name(self) -> bool:
        """True if the whole call is buffered, because only its end shows its name."""
        return self._buffered is not None

    def held_back(self) -> list[HeldText]:
        """Return the arguments that wait, and the reason, for a trace."""
        if self._text_parts is not None:
            return [(join_tail(self._text_parts), "not-offered")]
        if self._buffered:
            return [(join_tail(self._buffered), "name")]
        text = join_tail(self._args.buffered_pieces)
        return [(text, "value")] if text else []

    def writer(self, first_char: str) -> Callable[[str], None]:
        """Return the function that takes arguments with this first character: objects and arrays stream, all else is
        buffered."""
        return self._write_scanned if first_char in STREAMED_OPENERS else self._buffer_arguments

    def write_whole(self, args: str) -> None:
        """Write arguments that were read before the call could start."""
        self.scanner.scan_all(args)
        self.writer(self.scanner.first_char)(args)

    def end_at_marker(self, *, is_closer: bool) -> None:
        """End a call whose arguments a marker has cut short. `is_closer`: the marker is the call's own closer.

        Before the closer, brackets that are missing are added, if no value is missing. In a string that was never
        closed, the rest of the arguments is lost: the client should not run the call.
        """
        unclosed = self.scanner.in_string
        if unclosed:
            self._sink.report("string-not-closed", "a string that is never closed: the call is marked as incomplete")
        elif is_closer and (brackets := self._args.close_brackets()):
            self._emit_arguments(brackets)
        self.end(complete=not unclosed)

    def end(self, complete: bool = True) -> None:
        """End the call: the model has closed it, or a limit has."""
        if remainder := self._args.end():
            self._emit_arguments(remainder)
        self.close(complete)

    def close(self, complete: bool = True) -> None:
        """End a call whose arguments have all been emitted."""
        self._sink.clear_open_call()
        if not self._resolve_name() or self._emit_as_text():
            return
        if self._args.notes:
            self._report_notes()
        self._sink.emit(ev.CallEnd(self._index, complete and not self._sink.has_ambiguous_value))

    def truncate(self) -> None:
        """Emit what is buffered of a call that the end of the reply has cut off.

        If only the closing brace is missing, add it: then the arguments are what the model has completed, as JSON.
        """
        if remainder := self._args.flush():
            self._emit_arguments(remainder)
        if self._resolve_name() and not self._emit_as_text():
            lacks_only_brace = self.lacks_only_brace() if self.lacks_only_brace else self.scanner.lacks_only_brace
            if lacks_only_brace:
                self._emit_arguments(CLOSING_BRACE)
            self._report_notes()

    def _report_notes(self) -> None:
        for kind, message in self._args.notes:
            self._sink.report(kind, message)

    def _emit_as_text(self) -> bool:
        """Emit a rejected call as text, without special tokens in its arguments. Return whether it was rejected."""
        if self._text_parts is None:
            return False
        self._sink.call_count -= 1
        self._sink.emit_text(self._sink.strip_special_tokens("".join(self._text_parts)), self._channel)
        return True

    def _write_scanned(self, text: str) -> None:
        """Write arguments that the scanner has just scanned."""
        scanner = self.scanner
        if self._text_parts is not None:
            self._text_parts.append(text)
        elif self._buffered is not None:
            self._buffered_as_written.append(text)
            self._buffered.append(self._correct(text))
        elif scanner.whitespace_overflow is not None:
            self._emit(ev.ArgsDelta(self._index, self._args.cut_runaway(text), runaway=True))
        elif text := text if scanner.is_settled else self._correct(text):
            self._emit(ev.ArgsDelta(self._index, text))
            if self._sink.tentative is not None:
                self._sink.count_held(text)

    def _emit_arguments(self, text: str) -> None:
        """Write arguments that need no correction."""
        if self._text_parts is not None:
            self._text_parts.append(text)
        elif self._buffered is not None:
            self._buffered_as_written.append(text)
            self._buffered.append(text)
        elif text:
            self._emit(ev.ArgsDelta(self._index, text))
            if self._sink.tentative is not None:
                self._sink.count_held(text)

    def _buffer_arguments(self, text: str) -> None:
        if overflow := self._args.buffer(text):
            self._emit_arguments(overflow)

    def _resolve_name(self) -> bool:
        """Name a buffered call and emit it. False if no tool fits, so that it is no call."""
        if self._buffered is None:
            return True
        as_written, self._buffered_as_written = "".join(self._buffered_as_written), []
        args, self._buffered = "".join(self._buffered), None
        name = self._sink.offer.match_by_arguments(args)
        if name is None and not self._header.text:
            self._sink.call_count -= 1
            self._sink.report("call-without-name", "a call without a name: its arguments are sent as text")
            self._sink.emit_leftover_text(as_written, self._channel)
            return False
        self._start_unnamed(name)
        if self._args.runaway and self._text_parts is None:
            self._emit(ev.ArgsDelta(self._index, self._args.cut_runaway(as_written), runaway=True))
        else:
            self._emit_arguments(args if self._text_parts is None else as_written)
        return True

    def _start(self, name: str) -> None:
        if self._sink.reject_call(name):
            self._text_parts = [self._leading_whitespace + name]
            self.scanner.corrects = False
        else:
            self._sink.emit(ev.CallStart(self._index, self._header.id, name))

    def _start_unnamed(self, guessed_name: str | None) -> None:
        header = self._header.text
        if guessed_name is None:
            self._sink.report(
                "header-as-name", f"{header!r} matches no tool, and no tool's params fit: used as the name"
            )
        else:
            self._sink.report("guessed-name", f"{header!r} names no tool: {guessed_name!r} is the one whose params fit")
        self._start(guessed_name or header)
