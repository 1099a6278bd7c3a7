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
from interlingua.core.tools import Offer
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.dialect import Router, Shape, Span
from interlingua.parsing.event_sink import Header, Sink
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.channels.header import Address, Addresses
from interlingua.parsing.shapes.common.json_arguments import JSON_OBJECT, JsonArgs
from interlingua.parsing.shapes.common.stray_text import StrayText
from interlingua.parsing.text_buffer__source import Channel, Reading, Source

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

    def grammar(self, outside: tuple[str, ...]) -> Router:
        return ChannelsGrammar(self, outside)


class ChannelsGrammar:
    def __init__(self, shape: Channels, outside: tuple[str, ...]) -> None:
        self._shape = shape
        own = tuple(filter(None, (shape.start, shape.channel, shape.constrain, shape.message)))
        self._inside = shape.body.grammar((*own, *shape.ends, *outside)) if shape.body else None
        self.openers = (*own, *(self._inside.openers if self._inside else ()))
        self.strays = (*shape.ends, *(self._inside.strays if self._inside else ()))
        self.inner = self._inside.inner if self._inside else ()
        self._all = markers(*self.openers, *self.strays, *outside)
        self._own = markers(*own)
        self._in_header = markers(*self._all.literals, JSON_OBJECT)
        self._unmarked = (shape.role, shape.recipient)
        self._goes_on = tuple(filter(None, (shape.channel, shape.constrain)))
        self._after_role = markers(*own, shape.recipient)
        self._routes = (*shape.to_thinking, *shape.to_text)
        parts = (shape.start, shape.channel, shape.constrain)
        self._to = Addresses(parts, shape.role, shape.recipient, shape.prefix, self._routes, shape.types)
        self._args = JsonArgs(self._all, markers(*shape.ends))
        self._call_channel = self._to.read(shape.call.open.removesuffix(shape.message), Offer()).channel

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:  # noqa: ARG002 (nothing is numbered)
        return self.write_reply(calls)

    def write_reply(self, parts: Sequence[Part]) -> str:
        """The start of the first message is missing: the prompt has written it."""
        written = [self._write_message(part, n, last=n == len(parts) - 1) for n, part in enumerate(parts)]
        return (self._shape.start + self._shape.role).join(written)

    def _write_message(self, part: Part, number: int, last: bool) -> str:
        shape = self._shape
        if isinstance(part, Call):
            opened = self._write_header(part) + self._write_body(part, number)
            return opened + self._end(shape.call, last) if part.complete else opened
        found = self._all.search(part.text, 0)
        if found:
            raise RenderError(f"text with {found.group()} in it would be read as structure", "take the marker out")
        span = shape.thinking
        if isinstance(part, Text):
            span = shape.answer if shape.answer and last else shape.text
        return span.open + part.text + self._end(span, last)

    def _end(self, span: Span, last: bool) -> str:
        return self._shape.last_end if self._shape.last_end and last else span.close

    def _write_header(self, call: Call) -> str:
        header = self._shape.call.open.replace("{name}", "" if self._all.search(call.name, 0) else call.name)
        recipient = self._to.read(header.removesuffix(self._shape.message), Offer()).recipient
        if recipient is None or self._to.name(recipient, Offer()) != call.name:
            raise RenderError(f"a call named {call.name!r} would be read back with another name", "rename the tool")
        return header

    def _write_body(self, call: Call, number: int) -> str:
        if self._inside is not None:
            return self._inside.write((call,), number)
        self._args.check(call)
        return call.arguments

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:  # noqa: ARG002 (the same for any offer)
        return self._unmarked

    def name_in(self, text: str, offer: Offer) -> str:
        return self._to.name_in(text, offer)

    def unfinished(self, prefill: str) -> str:
        """Its text is no part of the reply, but its header is still to be read, and so are a call's arguments."""
        at = max((prefill.rfind(end) + len(end) for end in self._shape.ends if end in prefill), default=0)
        found = self._own.search(prefill, at)
        header, message, body = prefill[found.start() if found else len(prefill) :].partition(self._shape.message)
        recipient = self._to.read(header, Offer()).recipient
        if message and recipient in (None, *self._routes):
            return header + message + body[self._all.tail(body, 0) :]
        if message or recipient or any(marker in header for marker in self._goes_on):
            return header + message + body
        return prefill[self._all.tail(prefill, at) :]

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        """Messages, one after the other, as long as nothing else stands between them."""
        next_opener: str | None = opener
        while next_opener is not None and not sink.failed:
            if next_opener in self._own.literals or next_opener in self._unmarked:
                header = yield from self._header(next_opener, source, sink)
                if header is not None:
                    yield from self._message(header, source, sink)
            elif self._inside is not None:
                yield from self._inside.read(next_opener, source, sink)
            sink.inside_calls = False
            next_opener = yield from source.accept_word(self._unmarked)  # the start of the next one may be missing
            if next_opener is not None:
                sink.inside_calls = True
                source.record(next_opener)

    # ── headers ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _header(self, opener: str, source: Source, sink: Sink) -> Reading[str | None]:
        """All of a header that stands before its body. None if it is no header: then it is given back."""
        shape, header, room, start = self._shape, opener, sink.limits.header, source.offset
        if opener == shape.role and not (yield from source.peek(self._after_role)):
            sink.not_a_call()
            return None
        marker: str | None = opener
        while marker != shape.message:
            text, marker = yield from source.take_until(self._in_header, room)
            header += text
            room -= len(text) + len(marker or "")
            if marker == JSON_OBJECT and self._is_whole(header, sink.offer):
                sink.report("no-separator", f"arguments right after the header, without {shape.message}: taken as such")
                source.unread(marker)
                return header
            if room < 0 or marker not in (shape.message, JSON_OBJECT, *self._goes_on):
                self._broken_header(header, marker, room < 0, start, source, sink)
                return None
            header += marker
        return header.removesuffix(shape.message)

    def _is_whole(self, header: str, offer: Offer) -> bool:
        """Whether a header has come to its tool, so that what stands behind it may be the arguments."""
        if JSON_OBJECT in header or not header.startswith(self._own.literals):
            return False
        recipient = self._to.read(header, offer).recipient
        return recipient is not None and offer.may_have(self._to.name(recipient, offer))

    def _broken_header(
        self, header: str, marker: str | None, too_long: bool, start: int, source: Source, sink: Sink
    ) -> None:
        """A header without a body. If it says nothing but what headers say, then nobody misses it."""
        meant = header.startswith(self._own.literals)
        empty = not too_long and self._to.says_nothing(header[: self._own.tail(header, 0)])
        if too_long and meant:
            sink.over_limit("the header of a message", sink.limits.header)
        elif empty or meant:
            what = f"dropped {header!r:.80}" if empty else "given back as text"
            sink.report("broken-header", f"a message that breaks off in its header: {what}", start)
        if marker and not (empty and marker in self._shape.ends):
            source.unread(marker)
        if empty:
            source.forget()
        else:
            sink.not_a_call()

    # ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _message(self, header: str, source: Source, sink: Sink) -> Reading[None]:
        address, shape = self._to.read(header, sink.offer), self._shape
        if address.prose:
            sink.report("broken-header", "a header that addresses nobody: given back as text")
            sink.not_a_call()
            return
        if address.odd:
            sink.report("odd-header", f"the header {header!r}: read by its first known channel and its last recipient")
        recipient = address.recipient
        if recipient is not None and recipient not in self._routes:
            yield from self._message_to_tool(recipient, address.channel in shape.to_thinking, source, sink)
            return
        if self._may_be_call(address, sink.offer) and (yield from source.next_char()) == JSON_OBJECT:
            call = sink.start(Header(address.guess or "", None, address.guess))
            yield from self._args.read(call, source, sink)
            return
        source.forget()
        yield from self._body((recipient or address.channel) in shape.to_thinking, source, sink)

    def _may_be_call(self, address: Address, offer: Offer) -> bool:
        """Whether arguments may follow, although no recipient was named."""
        if self._inside is not None or offer.empty:
            return False
        return address.guess is not None or (address.nameless and address.channel == self._call_channel)

    def _message_to_tool(self, recipient: str, thinking: bool, source: Source, sink: Sink) -> Reading[None]:
        name, offer = self._to.name(recipient, sink.offer), sink.offer
        if self._inside is not None and not (yield from self._is_bare(source)):
            source.forget()
            yield from self._body_of_calls(name, source, sink)
        elif sink.refuses(name):
            source.forget()
            yield from self._body(thinking, source, sink, begin=name)
        elif thinking and offer.known and not offer.has(name) and name == recipient:
            sink.report("not-a-tool", f"no tool called {name!r} was offered: what the model tells it is thinking")
            source.forget()
            yield from self._body(thinking, source, sink)
        else:
            if self._inside is not None:
                json = (yield from source.next_char()) == JSON_OBJECT
                found = "without the tags of a call" if json else "with nothing in it"
                kind = "no-separator" if json else "no-arguments"
                sink.report(kind, f"a message to {name!r} {found}: taken as its arguments")
            yield from self._args.read(sink.start(Header(recipient, None, name)), source, sink)

    def _is_bare(self, source: Source) -> Reading[bool]:
        """Whether a message to a tool is nothing but JSON, or nothing at all: then it is the call's arguments."""
        if (yield from source.next_char()) == JSON_OBJECT:
            return True
        return (yield from source.peek(self._all)) in ("", *self._shape.ends, self._shape.start)

    def _body(self, thinking: bool, source: Source, sink: Sink, begin: str = "") -> Reading[None]:
        sink.inside_calls = False
        before, sink.thinking = sink.thinking, thinking
        if begin:
            sink.text(begin, source.channel)
        marker = yield from self._copy(source, sink, sink.text)
        if marker is not None:  # or else what is held is still of this message
            sink.thinking = before

    def _body_of_calls(self, name: str, source: Source, sink: Sink) -> Reading[None]:
        stray = StrayText(source, sink)
        yield from self._copy(source, sink, stray.write)
        stray.report(f"in a message to {name!r}")

    def _copy(self, source: Source, sink: Sink, write: Callable[[str, Channel], None]) -> Reading[str | None]:
        """Copies a body up to what ends the message, which it returns. A call may stand in any body."""
        while True:
            marker = yield from source.copy_until(self._all, write)
            if not marker or self._inside is None or sink.failed:
                break
            if marker in self._inside.openers:
                source.record(marker)
                yield from self._inside.read(marker, source, sink)
            elif marker in self._inside.strays:
                sink.report("stray-marker", f"{marker} without a call around it: dropped")
            else:
                break
        self._args.leave(marker, source)
        return marker
