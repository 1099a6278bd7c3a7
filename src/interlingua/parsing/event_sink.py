"""Where a shape puts what it has read: the events of one reply, in order."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.arguments import STREAMED_OPENERS, ArgumentsStream
from interlingua.core.options import Limits
from interlingua.core.tools import ToolSet
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.text_buffer import Channel, TextBuffer

__all__ = ["CallBuilder", "CallHeader", "EventSink"]


_CALL_HEAD_PATTERN = re.compile(r"[{\[\"']|```|[\w.:-]*+(?:\s*+=\s*+[\"']?[\w.:-]*+)?[\"'/>]*\Z")
"""What may stand behind a call's opener where the text ends in its head: the name, maybe as an attribute, or JSON,
maybe in a code block."""


class CallHeader(msgspec.Struct, frozen=True):
    """What stood before a call's arguments: the text, and the id and name that it holds, if it holds any."""

    text: str
    id: str | None
    name: str | None


class EventSink:
    """Collects events. Knows the channel that the text is in now, and gives findings their place."""

    def __init__(
        self,
        source: TextBuffer,
        markers: MarkerSet,
        special_tokens: MarkerSet,
        offer: ToolSet,
        limits: Limits,
        prose_prefixes: tuple[str, ...] = (),
    ) -> None:
        """`tokens` are the markers that no prose holds. Calls that begin with what is `in_prose` may be prose."""
        self.offer = offer
        self.limits = limits
        self.thinking = False
        self.call_count = 0
        self.inside_calls = False
        self.failed = False
        self._source = source
        self._markers = markers
        self._special_tokens = special_tokens
        self._prose_prefixes = prose_prefixes
        self._events: list[ev.Event] = []
        self.emit = self._events.append
        self._open_call: CallBuilder | None = None
        self._tentative: _TentativeCall | None = None

    def drain(self) -> list[ev.Event]:
        """What was collected since the last time."""
        settled = self._tentative.earlier_events if self._tentative else self._events
        events = settled[:]
        settled.clear()
        return events

    # ── what may yet turn out to be no call ───────────────────────────────────────────────────────────────────────

    def begin_tentative(self) -> None:
        """From here on events wait: what is read is a call only if `keep` follows. `drop` undoes it."""
        self._tentative = _TentativeCall(self._events, self.call_count)
        self._events = []
        self.emit = self._events.append

    def commit(self) -> None:
        """What was tried is a call."""
        tentative, self._tentative = self._tentative, None
        if tentative is not None:
            self._events[:0] = tentative.earlier_events
            self._source.discard_recording()

    def rollback(self) -> None:
        """What was tried is no call: all that was read of it is text."""
        tentative, self._tentative = self._tentative, None
        if tentative is not None:
            self._events, self.call_count, self._open_call = tentative.earlier_events, tentative.call_count, None
            self.emit = self._events.append
        self.restore_text()

    def restore_text(self) -> bool:
        """Gives back what the source has recorded. True if that is not all of it, because its markers are gone."""
        recorded = self._source.take_recorded()
        text = self._strip_markers(recorded)
        if text and not self.failed:
            self.emit_text(text, self._source.recorded_channel)
            self._source.mark_as_text()
        return text != recorded

    def count_held(self, text: str) -> None:
        """Arguments of a call that is tried. When they are too many to wait, the call is kept as it is."""
        if self._tentative is not None:
            self._tentative.buffered_chars += len(text)
            if self._tentative.buffered_chars > self.limits.held:
                self.commit()

    def emit_text(self, text: str, channel: Channel) -> None:
        thinking = self.thinking or channel is Channel.REASONING
        self._events.append(ev.ReasoningDelta(text) if thinking else ev.TextDelta(text))

    def emit_leftover_text(self, text: str, channel: Channel) -> None:
        """Text that was read as part of a call and is none."""
        text = self._strip_markers(text)
        if text.strip() and not self.failed:
            self.emit_text(text, channel)
            self._source.mark_as_text()

    def _strip_markers(self, text: str) -> str:
        """Special tokens go. Other markers are ordinary text, but for those of a call that the end has cut."""
        if not self._prose_prefixes or self.offer.is_empty or not self._source.closed:
            return self.strip_special_tokens(text)
        tags = compile_markers(
            *(marker for marker in self._markers.literals if any(map(str.isalpha, marker)) and "{" not in marker)
        )
        stripped = tags.remove_from(text)
        return stripped if _CALL_HEAD_PATTERN.match(stripped.strip()) else self.strip_special_tokens(text)

    def strip_special_tokens(self, text: str) -> str:
        """The text without special tokens."""
        return self._special_tokens.remove_from(text) if text else text

    def report(self, kind: str, message: str, offset: int | None = None) -> None:
        position = self._source.offset if offset is None else offset
        self._events.append(ev.Finding(kind, message, f"character {max(0, position)}"))

    def report_over_limit(self, subject: str, limit: int) -> None:
        """A limit was passed: a finding, or the end of the reply."""
        message = f"{subject} is longer than {limit:,} characters"
        if self.limits.over == "error":
            self._events.append(ev.Failure(message))
            self.failed = True
        else:
            self.report("over-limit", f"{message}: given out as it came, and read on afresh")

    @property
    def channel(self) -> Channel:
        """The channel that the source is in."""
        return self._source.channel

    def reject_call(self, name: str) -> bool:
        """Whether a call of this name is text: because no tool was offered, or not this one and prose may hold what
        looks like a call. Says so if it is."""
        if self.offer.is_empty:
            self.report("no-tools-offered", f"a call of {name!r}, but no tool was offered: given out as text")
        elif not self._source.recorded_marker.startswith(self._prose_prefixes) or self.offer.accepts(name):
            return False
        else:
            self.report(
                "not-a-tool", f"no tool called {name!r} was offered: what looks like a call is given out as text"
            )
        return True

    def start_call(self, header: CallHeader) -> CallBuilder:
        """A call begins: its name is known, or will be at its end."""
        leading_whitespace = self._source.leading_whitespace
        if self._tentative is None:
            self._source.discard_recording()
        self._open_call = CallBuilder(self, header, leading_whitespace)
        return self._open_call

    def clear_open_call(self) -> None:
        """The call in progress is over."""
        self._open_call = None

    def close(self) -> None:
        """The text is over: gives out what a call in progress still holds. Ending that call is the guard's."""
        if self._open_call is not None:
            self._open_call.truncate()


class _TentativeCall:
    """A call that is tried: the events before it, and how much of its arguments waits."""

    def __init__(self, earlier_events: list[ev.Event], call_count: int) -> None:
        self.earlier_events = earlier_events
        self.call_count = call_count
        self.buffered_chars = 0


class CallBuilder:
    """A call whose header has been read.

    One without a name waits for its end if it can be guessed then from the offered tools whose params fit.
    """

    def __init__(self, sink: EventSink, header: CallHeader, leading_whitespace: str = "") -> None:
        self._sink = sink
        self._header = header
        self._leading_whitespace = leading_whitespace
        self._index = sink.call_count
        self._channel = sink.channel
        self._args = ArgumentsStream(sink.limits.held)
        self._buffered: list[str] | None = None
        self._text_parts: list[str] | None = None
        self._emit = sink.emit
        self.scanner = self._args.scanner
        sink.call_count += 1
        if header.name is not None:
            self._start(header.name)
        elif header.text and not sink.offer.is_known:
            self._start_unnamed(None)
        else:
            self._buffered = []

    @property
    def awaits_name(self) -> bool:
        """Whether all of the call is held until its end tells its name."""
        return self._buffered is not None

    def writer(self, first_char: str) -> Callable[[str], None]:
        """Where arguments go that begin with this character: an object or array straight on, all else waits."""
        return self._emit_arguments if first_char in STREAMED_OPENERS else self._buffer_arguments

    def end(self, complete: bool = True) -> None:
        """The model has closed the call, or a limit has."""
        if remainder := self._args.end():
            self._emit_arguments(remainder)
        self.close(complete)

    def close(self, complete: bool = True) -> None:
        """Ends a call whose arguments have all been sent."""
        self._sink.clear_open_call()
        if not self._resolve_name() or self._emit_as_text():
            return
        for kind, message in self._args.notes:
            self._sink.report(kind, message)
        self._sink.emit(ev.CallEnd(self._index, complete))

    def truncate(self) -> None:
        """The reply ended inside the call."""
        if remainder := self._args.flush():
            self._emit_arguments(remainder)
        if self._resolve_name():
            self._emit_as_text()

    def _emit_as_text(self) -> bool:
        """Gives out a refused call as text, without any special tokens that its arguments quote."""
        if self._text_parts is None:
            return False
        self._sink.call_count -= 1
        self._sink.emit_text(self._sink.strip_special_tokens("".join(self._text_parts)), self._channel)
        return True

    def _emit_arguments(self, text: str) -> None:
        if self._text_parts is not None:
            self._text_parts.append(text)
        elif self._buffered is None:
            self._emit(ev.ArgsDelta(self._index, text))
            self._sink.count_held(text)
        else:
            self._buffered.append(text)

    def _buffer_arguments(self, text: str) -> None:
        if overflow := self._args.buffer(text):
            self._emit_arguments(overflow)

    def _resolve_name(self) -> bool:
        """Names a call that waits, and lets it go. False if nothing names it, so that it is none."""
        if self._buffered is None:
            return True
        args, self._buffered = "".join(self._buffered), None
        name = self._sink.offer.match_by_arguments(args)
        if name is None and not self._header.text:
            self._sink.call_count -= 1
            self._sink.report("call-without-name", "nothing names this call: its arguments are given back as text")
            self._sink.emit_leftover_text(args, self._channel)
            return False
        self._start_unnamed(name)
        self._emit_arguments(args)
        return True

    def _start(self, name: str) -> None:
        if self._sink.reject_call(name):
            self._text_parts = [self._leading_whitespace + name]
        else:
            self._sink.emit(ev.CallStart(self._index, self._header.id, name))

    def _start_unnamed(self, guessed_name: str | None) -> None:
        header = self._header.text
        if guessed_name is None:
            self._sink.report("header-as-name", f"{header!r} names no tool and no tool's params fit: taken as the name")
        else:
            self._sink.report("guessed-name", f"{header!r} names no tool: {guessed_name!r} is the one whose params fit")
        self._start(guessed_name or header)
