"""channels: `{ [START role] [to=RECIPIENT] [CHANNEL name] [to=RECIPIENT] [CONSTRAIN type] MESSAGE body END }`.

A message's header says what its body is: thinking, text, or the call of the tool that it is addressed to. Models get
headers wrong more often than anything else, so every part of one may be missing, doubled or in the wrong place: the
first channel that is known and the last recipient count. What stands outside of all messages is text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from interlingua.core.reply import Call, Part, Text
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.dialect import MessageGrammar, Shape, Span
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.channels.header import HeaderParser, MessageHeader
from interlingua.parsing.shapes.common.json_arguments import OPENING_BRACE, JsonArgumentsReader
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer

__all__ = ["Channels"]


@dataclass(frozen=True)
class Channels:
    """The markers of a header, where they lead, and how we write each kind of message."""

    NAME: ClassVar[str] = "channels"

    start: str
    """What begins a message."""
    role: str
    """Who writes it: what stands right behind the start."""
    message: str
    """What ends the header. The body follows."""
    ends: tuple[str, ...]
    """What ends a message."""
    to_thinking: tuple[str, ...]
    """The channels and recipients whose messages are thinking."""
    to_text: tuple[str, ...]
    """The channels and recipients whose messages are text. Any other recipient is a tool."""
    thinking: Span
    """How we write a message of thinking."""
    text: Span
    """How we write a message of text."""
    call: Span
    """How we write a call, with `{name}` in it."""
    answer: Span | None = None
    """How text is written that ends a reply, if not as other text."""
    last_end: str = ""
    """What ends the last message of a reply, if not what ends others of its kind."""
    channel: str = ""
    """What stands before the name of the channel, if headers have one."""
    constrain: str = ""
    """What stands before the type of the body, if headers have one."""
    types: tuple[str, ...] = ()
    """What a header may say about the type of its body. It changes nothing."""
    recipient: str = "to="
    """What stands before the recipient."""
    prefix: str = ""
    """What the name of a tool has before it as a recipient."""
    body: Shape | None = None
    """How calls are written in messages to tools. Without it, such a message is the call's arguments as JSON."""

    def __post_init__(self) -> None:
        for field in ("start", "role", "message"):
            if not getattr(self, field):
                raise UsageError(f"{field} is empty", "write the marker that the model writes there")

    def grammar(self, dialect_markers: tuple[str, ...]) -> MessageGrammar:
        return ChannelsGrammar(self, dialect_markers)


class ChannelsGrammar:
    def __init__(self, shape: Channels, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        header_markers = tuple(filter(None, (shape.start, shape.channel, shape.constrain, shape.message)))
        self._body_grammar = (
            shape.body.grammar((*header_markers, *shape.ends, *dialect_markers)) if shape.body else None
        )
        self.openers = (*header_markers, *(self._body_grammar.openers if self._body_grammar else ()))
        self.strays = (*shape.ends, *(self._body_grammar.strays if self._body_grammar else ()))
        self.inner_markers = self._body_grammar.inner_markers if self._body_grammar else ()
        self._all_markers = compile_markers(*self.openers, *self.strays, *dialect_markers)
        self._header_markers = compile_markers(*header_markers)
        self._markers_in_header = compile_markers(*self._all_markers.literals, OPENING_BRACE)
        self._unmarked_starts = (shape.role, shape.recipient)
        self._continuation_markers = tuple(filter(None, (shape.channel, shape.constrain)))
        self._after_role = compile_markers(*header_markers, shape.recipient)
        self._routes = (*shape.to_thinking, *shape.to_text)
        parts = (shape.start, shape.channel, shape.constrain)
        self._header_parser = HeaderParser(parts, shape.role, shape.recipient, shape.prefix, self._routes, shape.types)
        self._arguments_reader = JsonArgumentsReader(self._all_markers, compile_markers(*shape.ends))
        self._call_channel = self._header_parser.read(shape.call.open.removesuffix(shape.message), ToolSet()).channel

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:  # noqa: ARG002 (nothing is numbered)
        return self.write_reply(calls)

    def write_reply(self, parts: Sequence[Part]) -> str:
        """The start of the first message is missing: the prompt has written it."""
        written = [self._write_message(part, n, last=n == len(parts) - 1) for n, part in enumerate(parts)]
        return (self._shape.start + self._shape.role).join(written)

    def _write_message(self, part: Part, number: int, last: bool) -> str:
        shape = self._shape
        if isinstance(part, Call):
            message = self._write_header(part) + self._write_body(part, number)
            return message + self._message_end(shape.call, last) if part.complete else message
        match = self._all_markers.search(part.text, 0)
        if match:
            raise RenderError(f"text with {match.group()} in it would be read as structure", "take the marker out")
        span = shape.thinking
        if isinstance(part, Text):
            span = shape.answer if shape.answer and last else shape.text
        return span.open + part.text + self._message_end(span, last)

    def _message_end(self, span: Span, last: bool) -> str:
        return self._shape.last_end if self._shape.last_end and last else span.close

    def _write_header(self, call: Call) -> str:
        header = self._shape.call.open.replace("{name}", "" if self._all_markers.search(call.name, 0) else call.name)
        recipient = self._header_parser.read(header.removesuffix(self._shape.message), ToolSet()).recipient
        if recipient is None or self._header_parser.tool_name(recipient, ToolSet()) != call.name:
            raise RenderError(f"a call named {call.name!r} would be read back with another name", "rename the tool")
        return header

    def _write_body(self, call: Call, number: int) -> str:
        if self._body_grammar is not None:
            return self._body_grammar.write((call,), number)
        self._arguments_reader.check_writable(call)
        return call.arguments

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:  # noqa: ARG002 (the same for any offer)
        return self._unmarked_starts

    def extract_name(self, text: str, offer: ToolSet) -> str:
        return self._header_parser.find_tool_name(text, offer)

    def unfinished_message(self, prefill: str) -> str:
        """Its text is no part of the reply, but its header is still to be read, and so are a call's arguments."""
        start = max((prefill.rfind(end) + len(end) for end in self._shape.ends if end in prefill), default=0)
        match = self._header_markers.search(prefill, start)
        header, message, body = prefill[match.start() if match else len(prefill) :].partition(self._shape.message)
        recipient = self._header_parser.read(header, ToolSet()).recipient
        if message and recipient in (None, *self._routes):
            return header + message + body[self._all_markers.partial_start(body, 0) :]
        if message or recipient or any(marker in header for marker in self._continuation_markers):
            return header + message + body
        return prefill[self._all_markers.partial_start(prefill, start) :]

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Messages, one after the other, as long as nothing else stands between them."""
        next_opener: str | None = opener
        while next_opener is not None and not sink.failed:
            if next_opener in self._header_markers.literals or next_opener in self._unmarked_starts:
                header = yield from self._read_header(next_opener, source, sink)
                if header is not None:
                    yield from self._read_message(header, source, sink)
            elif self._body_grammar is not None:
                yield from self._body_grammar.read(next_opener, source, sink)
            sink.inside_calls = False
            next_opener = yield from source.accept_word(
                self._unmarked_starts
            )  # the start of the next one may be missing
            if next_opener is not None:
                sink.inside_calls = True
                source.start_recording(next_opener)

    # ── headers ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_header(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """All of a header that stands before its body. None if it is no header: then it is given back."""
        shape, header, remaining, start = self._shape, opener, sink.limits.header, source.offset
        if opener == shape.role and not (yield from source.peek(self._after_role)):
            sink.restore_text()
            return None
        marker: str | None = opener
        while marker != shape.message:
            text, marker = yield from source.take_until(self._markers_in_header, remaining)
            header += text
            remaining -= len(text) + len(marker or "")
            if marker == OPENING_BRACE and self._is_complete(header, sink.offer):
                sink.report("no-separator", f"arguments right after the header, without {shape.message}: taken as such")
                source.put_back(marker)
                return header
            if remaining < 0 or marker not in (shape.message, OPENING_BRACE, *self._continuation_markers):
                self._handle_broken_header(header, marker, remaining < 0, start, source, sink)
                return None
            header += marker
        return header.removesuffix(shape.message)

    def _is_complete(self, header: str, offer: ToolSet) -> bool:
        """Whether a header has come to its tool, so that what stands behind it may be the arguments."""
        if OPENING_BRACE in header or not header.startswith(self._header_markers.literals):
            return False
        recipient = self._header_parser.read(header, offer).recipient
        return recipient is not None and offer.accepts(self._header_parser.tool_name(recipient, offer))

    def _handle_broken_header(
        self, header: str, marker: str | None, too_long: bool, start: int, source: TextBuffer, sink: EventSink
    ) -> None:
        """A header without a body. If it says nothing but what headers say, then nobody misses it."""
        has_marker = header.startswith(self._header_markers.literals)
        is_empty = not too_long and self._header_parser.has_only_known_words(
            header[: self._header_markers.partial_start(header, 0)]
        )
        if too_long and has_marker:
            sink.report_over_limit("the header of a message", sink.limits.header)
        elif is_empty or has_marker:
            action = f"dropped {header!r:.80}" if is_empty else "given back as text"
            sink.report("broken-header", f"a message that breaks off in its header: {action}", start)
        if marker and not (is_empty and marker in self._shape.ends):
            source.put_back(marker)
        if is_empty:
            source.discard_recording()
        else:
            sink.restore_text()

    # ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_message(self, header: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        parsed_header, shape = self._header_parser.read(header, sink.offer), self._shape
        if parsed_header.is_prose:
            sink.report("broken-header", "a header that addresses nobody: given back as text")
            sink.restore_text()
            return
        if parsed_header.is_malformed:
            sink.report("odd-header", f"the header {header!r}: read by its first known channel and its last recipient")
        recipient = parsed_header.recipient
        if recipient is not None and recipient not in self._routes:
            yield from self._read_tool_message(recipient, parsed_header.channel in shape.to_thinking, source, sink)
            return
        if self._can_be_call(parsed_header, sink.offer) and (yield from source.peek_after_space()) == OPENING_BRACE:
            call = sink.start_call(CallHeader(parsed_header.guessed_tool or "", None, parsed_header.guessed_tool))
            yield from self._arguments_reader.read(call, source, sink)
            return
        source.discard_recording()
        yield from self._read_body((recipient or parsed_header.channel) in shape.to_thinking, source, sink)

    def _can_be_call(self, parsed_header: MessageHeader, offer: ToolSet) -> bool:
        """Whether arguments may follow, although no recipient was named."""
        if self._body_grammar is not None or offer.is_empty:
            return False
        return parsed_header.guessed_tool is not None or (
            parsed_header.lacks_recipient and parsed_header.channel == self._call_channel
        )

    def _read_tool_message(self, recipient: str, thinking: bool, source: TextBuffer, sink: EventSink) -> Read[None]:
        name, offer = self._header_parser.tool_name(recipient, sink.offer), sink.offer
        if self._body_grammar is not None and not (yield from self._has_bare_arguments(source)):
            source.discard_recording()
            yield from self._read_calls_body(name, source, sink)
        elif sink.reject_call(name):
            source.discard_recording()
            yield from self._read_body(thinking, source, sink, leading_text=name)
        elif thinking and offer.is_known and not offer.has(name) and name == recipient:
            sink.report("not-a-tool", f"no tool called {name!r} was offered: what the model tells it is thinking")
            source.discard_recording()
            yield from self._read_body(thinking, source, sink)
        else:
            if self._body_grammar is not None:
                has_json = (yield from source.peek_after_space()) == OPENING_BRACE
                problem = "without the tags of a call" if has_json else "with nothing in it"
                finding_kind = "no-separator" if has_json else "no-arguments"
                sink.report(finding_kind, f"a message to {name!r} {problem}: taken as its arguments")
            yield from self._arguments_reader.read(sink.start_call(CallHeader(recipient, None, name)), source, sink)

    def _has_bare_arguments(self, source: TextBuffer) -> Read[bool]:
        """Whether a message to a tool is nothing but JSON, or nothing at all: then it is the call's arguments."""
        if (yield from source.peek_after_space()) == OPENING_BRACE:
            return True
        return (yield from source.peek(self._all_markers)) in ("", *self._shape.ends, self._shape.start)

    def _read_body(self, thinking: bool, source: TextBuffer, sink: EventSink, leading_text: str = "") -> Read[None]:
        sink.inside_calls = False
        was_thinking, sink.thinking = sink.thinking, thinking
        if leading_text:
            sink.emit_text(leading_text, source.channel)
        marker = yield from self._copy_body(source, sink, sink.emit_text)
        if marker is not None:  # or else what is held is still of this message
            sink.thinking = was_thinking

    def _read_calls_body(self, name: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        stray = StrayText(source, sink)
        yield from self._copy_body(source, sink, stray.write)
        stray.report(f"in a message to {name!r}")

    def _copy_body(
        self, source: TextBuffer, sink: EventSink, write: Callable[[str, Channel], None]
    ) -> Read[str | None]:
        """Copies a body up to what ends the message, which it returns. A call may stand in any body."""
        while True:
            marker = yield from source.copy_until(self._all_markers, write)
            if not marker or self._body_grammar is None or sink.failed:
                break
            if marker in self._body_grammar.openers:
                source.start_recording(marker)
                yield from self._body_grammar.read(marker, source, sink)
            elif marker in self._body_grammar.strays:
                sink.report("stray-marker", f"{marker} without a call around it: dropped")
            else:
                break
        self._arguments_reader.unread_foreign_marker(marker, source)
        return marker
