"""channels: `{ [START role] [to=RECIPIENT] [CHANNEL name] [to=RECIPIENT] [CONSTRAIN type] MESSAGE body END }`.

The header of a message determines what its body is: thinking, text, or a call of the tool that is its recipient. Models
make more mistakes in headers than anywhere else, so every part of a header may be missing, duplicated or misplaced: the
first known channel and the last recipient are used. Text outside all messages is text of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from interlingua.core.reply import Call, Part, Text
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.call_boundary import CallBoundary
from interlingua.parsing.dialect import MessageGrammar, Shape, Span
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.lookahead import Lookahead, PatternSequence, literal_sequence
from interlingua.parsing.markers import assign_roles, compile_markers
from interlingua.parsing.shapes.channels.header import HeaderParser, MessageHeader
from interlingua.parsing.shapes.common.json_arguments import OPENING_BRACE, JsonArgumentsReader
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer
from interlingua.parsing.trailing_markers import drop_trailing_markers

__all__ = ["Channels", "ChannelsGrammar"]

WHITESPACE_PATTERN = r"\s*+"
MAX_RECIPIENT_CHARS = 256
"""Maximum length of a recipient and the markers around it."""


@dataclass(frozen=True)
class Channels:
    """Messages with headers: the markers of a header, the known channels, and the format of each kind of message."""

    NAME: ClassVar[str] = "channels"

    start: str
    """Marker that begins a message."""
    role: str
    """The role that follows the start marker, such as `assistant`."""
    message: str
    """Marker that ends the header. The body follows it."""
    ends: tuple[str, ...]
    """Markers that end a message."""
    to_thinking: tuple[str, ...]
    """The channels and recipients whose messages are thinking."""
    to_text: tuple[str, ...]
    """The channels and recipients whose messages are text. Any other recipient is a tool."""
    thinking: Span
    """Header and end of a thinking message, for writing."""
    text: Span
    """Header and end of a text message, for writing."""
    call: Span
    """Header and end of a call, for writing, with the placeholder `{name}`."""
    answer: Span | None = None
    """Header and end of a text message that is the last one of a reply, if different from `text`."""
    last_end: str = ""
    """Marker that ends the last message of a reply, if different from other messages of its kind."""
    channel: str = ""
    """Marker before the name of the channel, if headers have a channel."""
    constrain: str = ""
    """Marker before the content type of the body, if headers have one."""
    types: tuple[str, ...] = ()
    """Content types that a header may contain. They are accepted and ignored."""
    recipient: str = "to="
    """Text before the recipient."""
    prefix: str = ""
    """Prefix of a recipient that is a tool, before the name of the tool."""
    body: Shape | None = None
    """The shape of the calls in messages to tools. Without it, the body of such a message is the JSON arguments."""

    def __post_init__(self) -> None:
        for field in ("start", "role", "message"):
            if not getattr(self, field):
                raise UsageError(f"{field} is empty", "set it to the marker that the model writes there")

    def grammar(self, dialect_markers: tuple[str, ...]) -> MessageGrammar:
        return ChannelsGrammar(self, dialect_markers)


class ChannelsGrammar:
    def __init__(self, shape: Channels, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        header_markers = tuple(filter(None, (shape.start, shape.channel, shape.constrain, shape.message)))
        self.body_grammar = shape.body.grammar((*header_markers, *shape.ends, *dialect_markers)) if shape.body else None
        """The grammar of the calls in messages to tools, if they are not JSON arguments alone."""
        self.openers = (*header_markers, *(self.body_grammar.openers if self.body_grammar else ()))
        self.strays = (*shape.ends, *(self.body_grammar.strays if self.body_grammar else ()))
        self.inner_markers = self.body_grammar.inner_markers if self.body_grammar else ()
        self.marker_roles = {
            **(self.body_grammar.marker_roles if self.body_grammar else {}),
            **assign_roles(("opener", header_markers), ("closer", shape.ends)),
        }
        self.reads_json = False
        self.writes_back_ticks = False
        self._all_markers = compile_markers(*self.openers, *self.strays, *dialect_markers)
        self._header_markers = compile_markers(*header_markers)
        self._message_markers = compile_markers(shape.message)
        self._markers_in_header = compile_markers(*self._all_markers.literals, OPENING_BRACE)
        self._unmarked_starts = (shape.role, shape.recipient)
        # A recipient alone is a header if a channel never precedes it. Then it may follow a body that was not ended.
        self._inner_headers = () if shape.channel else (shape.recipient,)
        self._markers_in_body = compile_markers(*self._all_markers.literals, *self._inner_headers)
        inner_header = (
            *literal_sequence(shape.recipient),
            r"([^\s<|]++)",
            WHITESPACE_PATTERN,
            *literal_sequence(shape.message),
        )
        call_openers = self.body_grammar.openers if self.body_grammar else ()
        self._inner_header = Lookahead(inner_header)
        self._inner_header_and_tags = self._look_after(inner_header, call_openers)
        self._inner_header_and_call = self._look_after(inner_header, (*call_openers, OPENING_BRACE, *shape.ends))
        self.message_starts = compile_markers(
            *header_markers,
            shape.recipient,
            *(shape.role + marker for marker in (*header_markers, " " + shape.recipient)),
        )
        self._next_message = compile_markers(shape.start + shape.role)
        self._dialect_markers = dialect_markers
        self._trailing_markers = compile_markers(*shape.ends, *dialect_markers)
        self._continuation_markers = tuple(filter(None, (shape.channel, shape.constrain)))
        self._after_role = compile_markers(*header_markers, shape.recipient)
        self._routes = (*shape.to_thinking, *shape.to_text)
        parts = (shape.start, shape.channel, shape.constrain)
        self._header_parser = HeaderParser(parts, shape.role, shape.recipient, shape.prefix, self._routes, shape.types)
        self._arguments_reader = JsonArgumentsReader(
            self._all_markers,
            compile_markers(*shape.ends),
            boundary=CallBoundary(shape.ends, header_markers, (), dialect_markers, needs_closer=bool(shape.ends)),
        )
        self._call_channel = self._header_parser.read(shape.call.open.removesuffix(shape.message), ToolSet()).channel

    @staticmethod
    def _look_after(header: PatternSequence, texts: Sequence[str]) -> Lookahead:
        """Return a lookahead for a header and one of the texts after it."""
        return Lookahead(*((*header, WHITESPACE_PATTERN, *literal_sequence(text)) for text in texts))

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:  # noqa: ARG002 (calls have no numbers here)
        return self.write_reply(calls)

    def write_reply(self, parts: Sequence[Part]) -> str:
        """Write a reply. The start of the first message is left out, because the prompt already contains it."""
        written = [self._write_message(part, n, last=n == len(parts) - 1) for n, part in enumerate(parts)]
        return (self._shape.start + self._shape.role).join(written)

    def _write_message(self, part: Part, number: int, last: bool) -> str:
        shape = self._shape
        if isinstance(part, Call):
            message = self._write_header(part) + self._write_body(part, number)
            return message + self._message_end(shape.call, last) if part.complete else message
        match = self._all_markers.search(part.text, 0)
        if match:
            raise RenderError(f"text with the marker {match.group()} would be parsed as structure", "remove the marker")
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
            raise RenderError(f"a call named {call.name!r} would be parsed with a different name", "rename the tool")
        return header

    def _write_body(self, call: Call, number: int) -> str:
        if self.body_grammar is not None:
            return self.body_grammar.write((call,), number)
        self._arguments_reader.check_writable(call)
        return call.arguments

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:  # noqa: ARG002 (independent of the offered tools)
        return self._unmarked_starts

    def extract_name(self, text: str, offer: ToolSet) -> str:
        return self._header_parser.find_tool_name(text, offer)

    def unfinished_message(self, prefill: str) -> str:
        """Return the unfinished message at the end of the prefill.

        The text of its body is not part of the reply, but its header still has to be parsed, and so do the arguments of
        a call.
        """
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
        """Read consecutive messages, as long as nothing else comes between them."""
        next_opener: str | None = opener
        while next_opener is not None and not sink.failed:
            if next_opener in self._header_markers.literals or next_opener in self._unmarked_starts:
                header = yield from self._read_header(next_opener, source, sink)
                if header is not None:
                    yield from self._read_message(header, source, sink)
            elif self.body_grammar is not None:
                yield from self.body_grammar.read(next_opener, source, sink)
            source.discard_recording()
            sink.inside_calls = False
            # The start marker of the next message may be missing.
            next_opener = yield from source.accept_word(self._unmarked_starts)
            if next_opener is not None:
                sink.inside_calls = True
                source.start_recording(next_opener)

    # ── headers ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_header(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[str | None]:
        """Consume and return a header up to its body. None if it is not a header: then it is emitted as text."""
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
                sink.report("no-separator", f"arguments directly after the header, without {shape.message}: accepted")
                source.put_back(marker)
                return header
            if remaining < 0 or marker not in (shape.message, OPENING_BRACE, *self._continuation_markers):
                self._handle_broken_header(header, marker, remaining < 0, start, source, sink)
                return None
            header += marker
        return header.removesuffix(shape.message)

    def _is_complete(self, header: str, offer: ToolSet) -> bool:
        """Return whether the header already names an offered tool, so that arguments may follow it."""
        if OPENING_BRACE in header or not header.startswith(self._header_markers.literals):
            return False
        recipient = self._header_parser.read(header, offer).recipient
        return recipient is not None and offer.accepts(self._header_parser.tool_name(recipient, offer))

    def _handle_broken_header(
        self, header: str, marker: str | None, too_long: bool, start: int, source: TextBuffer, sink: EventSink
    ) -> None:
        """Handle a header without a body. Drop it if it contains only known header words; otherwise emit it as text.

        Without a marker, a header to a tool may be prose, unless the names of tools have a prefix.
        """
        has_marker = header.startswith(self._header_markers.literals)
        known_part = header[: self._header_markers.partial_start(header, 0)]
        is_header = not too_long and self._header_parser.has_only_known_words(known_part)
        is_empty = is_header and (has_marker or not self._header_parser.has_tool_without_prefix(known_part))
        if too_long and has_marker:
            sink.report_over_limit("the header of a message", sink.limits.header)
        elif is_header or has_marker:
            action = f"dropped {header!r:.80}" if is_empty else "kept as text"
            sink.report("broken-header", f"a message that is cut off in its header: {action}", start)
        if marker and not (is_header and marker in self._shape.ends):
            source.put_back(marker)
        if is_empty:
            source.discard_recording()
        else:
            sink.restore_text()

    # ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_message(self, header: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        parsed_header, shape = self._header_parser.read(header, sink.offer), self._shape
        if parsed_header.is_prose:
            sink.report("broken-header", "a header without a known channel or recipient: kept as text")
            sink.restore_text()
            return
        if parsed_header.is_malformed:
            sink.report(
                "odd-header", f"malformed header {header!r}: the first known channel and the last recipient are used"
            )
        elif not header and source.offset > len(shape.message):
            sink.report("odd-header", f"{shape.message} without a header inside the reply: dropped")
        recipient = parsed_header.recipient
        is_call = recipient is not None and recipient not in self._routes
        if sink.guided_json is not None and (is_call or (recipient or parsed_header.channel) not in shape.to_thinking):
            source.start_recording("")
            if (yield from sink.guided_json.read_marked(source, sink, only_calls=is_call)):
                return
        if recipient is not None and is_call:
            yield from self._read_tool_message(recipient, parsed_header.channel in shape.to_thinking, source, sink)
            return
        if self._can_be_call(parsed_header, sink.offer) and (yield from source.peek_after_space()) == OPENING_BRACE:
            call = sink.start_call(CallHeader(parsed_header.guessed_tool or "", None, parsed_header.guessed_tool))
            yield from self._arguments_reader.read(call, source, sink)
            return
        source.discard_recording()
        yield from self._read_body((recipient or parsed_header.channel) in shape.to_thinking, source, sink)

    def _can_be_call(self, parsed_header: MessageHeader, offer: ToolSet) -> bool:
        """Return whether the body may be the arguments of a call although the header has no recipient."""
        if self.body_grammar is not None or offer.is_empty:
            return False
        return parsed_header.guessed_tool is not None or (
            parsed_header.lacks_recipient and parsed_header.channel == self._call_channel
        )

    def _read_tool_message(self, recipient: str, thinking: bool, source: TextBuffer, sink: EventSink) -> Read[None]:
        name, offer = self._header_parser.tool_name(recipient, sink.offer), sink.offer
        if self.body_grammar is not None and not (yield from self._has_bare_arguments(source)):
            source.discard_recording()
            yield from self._read_calls_body(name, source, sink)
        elif sink.reject_call(name):
            source.discard_recording()
            yield from self._read_body(thinking, source, sink, leading_text=name)
        elif thinking and offer.is_known and not offer.has(name) and name == recipient:
            sink.report("not-a-tool", f"no tool called {name!r} was offered: the message is treated as thinking")
            source.discard_recording()
            yield from self._read_body(thinking, source, sink)
        else:
            if self.body_grammar is not None:
                has_json = (yield from source.peek_after_space()) == OPENING_BRACE
                problem = "without the tags of a call" if has_json else "with an empty body"
                finding_kind = "no-separator" if has_json else "no-arguments"
                sink.report(finding_kind, f"a message to {name!r} {problem}: its body is used as the arguments")
            yield from self._arguments_reader.read(sink.start_call(CallHeader(recipient, None, name)), source, sink)

    def _has_bare_arguments(self, source: TextBuffer) -> Read[bool]:
        """Return whether the body of a message to a tool is bare JSON or empty, so that it is the call's arguments."""
        if (yield from source.peek_after_space()) == OPENING_BRACE:
            return True
        return (yield from source.peek(self._all_markers)) in ("", *self._shape.ends, self._shape.start)

    def _read_body(self, thinking: bool, source: TextBuffer, sink: EventSink, leading_text: str = "") -> Read[None]:
        sink.inside_calls = False
        was_thinking, sink.thinking = sink.thinking, thinking
        sink.emit_text(leading_text, source.channel)
        marker = yield from self._copy_body(source, sink, sink.emit_text)
        if marker is not None:  # at the end of the text, the buffered rest still belongs to this message
            sink.thinking = was_thinking
        if marker and marker in self._shape.ends and not thinking:
            yield from self._check_message_end(marker, source, sink)

    def _check_message_end(self, marker: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Report the end of a text if more text follows it, so that it was in the middle of the text."""
        channel = source.channel
        if (yield from source.peek(self._all_markers)) is None and source.channel is channel:
            follower = yield from source.peek_after_space()
            if follower not in ("{", "[") and (yield from source.peek(self.message_starts)) is None:
                sink.report("stray-marker", f"{marker} inside a text: dropped")

    def _read_calls_body(self, name: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        stray = StrayText(source, sink)
        yield from self._copy_body(source, sink, stray.write)
        stray.report(f"in a message to {name!r}")

    def _is_inner_header(self, recipient: str, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Return whether a header that comes next begins a message, although the body before it was not ended.

        Only a call ends a text. Thinking also ends with a text, and models write JSON instead of the tags after it.
        """
        is_text, offer = not sink.thinking and not sink.inside_calls, sink.offer
        if recipient in self._routes:
            return not is_text and (recipient not in self._shape.to_thinking or not sink.thinking)
        if not offer.accepts(self._header_parser.tool_name(recipient, offer)):
            return False
        lookahead = self._inner_header_and_tags if is_text else self._inner_header_and_call
        return (yield from source.look_ahead(lookahead, MAX_RECIPIENT_CHARS)) is not None

    def _read_inner_header(
        self, marker: str, source: TextBuffer, sink: EventSink, write: Callable[[str, Channel], None]
    ) -> Read[bool]:
        """Read what may be a header inside a body. Return True if it begins a message; else it is written as text."""
        in_code = sink.quotes is not None and sink.quotes.is_in_code(marker)
        source.put_back(marker)
        recipient = yield from source.look_ahead(self._inner_header, MAX_RECIPIENT_CHARS)
        if recipient and not in_code and (yield from self._is_inner_header(recipient, source, sink)):
            return True
        source.start_recording("")
        if recipient:
            yield from source.take_until(self._message_markers, MAX_RECIPIENT_CHARS)
        else:
            source.read_again(marker)
        text = source.take_recorded()
        if recipient and source.closed and (not source.unread_text or source.ends_inside(self._all_markers)):
            text = self._message_markers.remove_from(text)
            sink.report("broken-header", "a message that ends after its header: kept as text, without its marker")
        write(text, source.recorded_channel)
        source.mark_as_text()
        return False

    def _copy_body(
        self, source: TextBuffer, sink: EventSink, write: Callable[[str, Channel], None]
    ) -> Read[str | None]:
        """Copy a body up to the marker that ends the message, and return it. Any body may contain calls."""
        while True:
            marker = yield from source.copy_until(self._markers_in_body, write)
            if marker and marker in self._inner_headers:
                if (yield from self._read_inner_header(marker, source, sink, write)):
                    sink.report("no-opener", f"a message without {self._shape.start}: accepted as a message")
                    return ""
                continue
            if marker and (yield from self._read_quoted(marker, source, sink)):
                continue
            if not marker or self.body_grammar is None or sink.failed:
                break
            if marker in self.body_grammar.openers:
                source.start_recording(marker)
                yield from self.body_grammar.read(marker, source, sink)
                source.discard_recording()
            elif marker in self.body_grammar.strays:
                sink.report("stray-marker", f"{marker} outside a call: dropped")
            else:
                break
        self._arguments_reader.unread_foreign_marker(marker, source)
        return marker

    def _read_quoted(self, marker: str, source: TextBuffer, sink: EventSink) -> Read[bool]:
        """Read a marker that a body quotes: inside code, or in a text if no tool was offered. Return False if it is the
        end of the message, because the next message or the end of the reply follows it."""
        in_code = sink.quotes is not None and sink.quotes.is_in_code(marker)
        if not in_code and (sink.thinking or not sink.offer.is_empty):
            return False
        if marker in self._trailing_markers.literals:
            ends_message = bool((yield from source.peek(self._next_message, marker)))
            if ends_message or (source.closed and self._next_message.is_partial(source.unread_text.lstrip(), 0)):
                source.code.reset()  # code does not go on in the next message
                return False
            yield from drop_trailing_markers(marker, self._trailing_markers, self._dialect_markers, source, sink)
            return True
        if in_code and sink.quotes is not None and marker in self.openers:
            return (yield from sink.quotes.read(marker))
        source.start_recording(marker)
        sink.emit_text(source.take_recorded(), source.recorded_channel)
        source.mark_as_text()
        return True
