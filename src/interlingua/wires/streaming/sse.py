"""Server-sent events, both ways: bytes to messages (`Decoder`) and data to a frame's bytes (`encode`).

    decoder = Decoder()
    for data in reads:
        for message in decoder.feed(data): ...
    for message in decoder.close(): ...

The rules are those of https://html.spec.whatwg.org/multipage/server-sent-events.html, with three
differences that a relay needs. Every message carries its own bytes, so that it can be passed on untouched.
A block without data (a keep-alive comment, as a rule) is a message too, because somebody downstream may need
it to keep a connection open. And a last block that the stream cut short is given out instead of dropped,
marked as not closed: only the reader knows whether it can still be used.

A block is some lines and the blank line that ends them. Further blank lines, and the `\\n` of a `\\r\\n`
whose `\\r` has already ended a block, belong to the block that follows: the one before has gone out by then.
"""

from __future__ import annotations

import msgspec

from interlingua.errors import UpstreamError, UsageError

__all__ = ["SseBlock", "SseDecoder", "SseMessage", "encode_event", "event_name"]

_BOM = b"\xef\xbb\xbf"
_CR = ord("\r")
_LINE_ENDS = b"\r\n"


class SseMessage(msgspec.Struct, frozen=True, gc=False):
    """One block of a stream. All the `raw` of a stream, joined, are its bytes (without a byte order mark)."""

    data: str  # the data lines joined with "\n"; "" if there were none
    has_data: bool  # False: a comment or the like; `data:` alone is data, and empty
    event: str  # "" if absent
    id: str | None  # this block's own; remembering the last one is for those who reconnect
    raw: bytes  # the whole block, its blank line included
    closed: bool  # False: the stream ended before the blank line; raw has been given the line ends it lacked


class SseBlock(msgspec.Struct, frozen=True, gc=False):
    """The lines of one block that are not blank, and all of its bytes."""

    lines: list[bytes]
    raw: bytes
    closed: bool = True

    def message(self) -> SseMessage:
        data: list[str] = []
        event = ""
        id: str | None = None
        for line in self.lines:
            if line.startswith(b"data: "):  # nearly every line is one
                data.append(line[6:].rstrip(_LINE_ENDS).decode("utf-8", "replace"))
                continue
            # A comment is a field without a name, and a line without a colon is a field without a value.
            name, _, value = line.rstrip(_LINE_ENDS).partition(b":")
            text = value.removeprefix(b" ").decode("utf-8", "replace")
            if name == b"data":
                data.append(text)
            elif name == b"event":
                event = text
            elif name == b"id" and "\0" not in text:
                id = text
        return SseMessage(data[0] if len(data) == 1 else "\n".join(data), bool(data), event, id, self.raw, self.closed)

    @property
    def data(self) -> bytes | None:
        """The data, if that is one line and nothing stands beside it but the name of an event; None if it is more."""
        lines = self.lines
        if len(lines) == 1 or (len(lines) == 2 and lines[0].startswith(b"event: ")):
            return lines[-1][6:] if lines[-1].startswith(b"data: ") else None
        return None


class SseDecoder:
    """Bytes in, messages out. One per stream.

    Each byte is searched for a line end once, when it arrives: what waits is finished lines and the beginning
    of an unfinished one. `limit` is the most bytes that one block may have.
    """

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        self._limit = limit
        self._raw = bytearray()  # the block so far, in finished lines
        self._fields: list[bytes] = []  # those of its lines that are not blank
        self._partial_line = bytearray()  # the unfinished line after them
        self._bom = _BOM  # what to drop from the next line: nothing after the first
        self._after_cr = False

    def feed(self, data: bytes) -> list[SseMessage]:
        """The messages that these bytes complete.

        Raises UpstreamError as `blocks` does.
        """
        return [block.message() for block in self.blocks(data)]

    def blocks(self, data: bytes) -> list[SseBlock]:
        """The same, not yet taken apart.

        Raises UpstreamError if a block is over the limit, and from then on. Messages before that block are
        lost only if they came in the same call, which takes a call with more bytes than the limit.
        """
        # A "\r" at the end of a read has ended its line at once: waiting for a "\n" that may never come would
        # hold back a finished event. If the "\n" does come, it is no line of its own.
        if self._after_cr and data.startswith(b"\n"):
            self._raw += b"\n"
            self._after_cr = False
            data = data[1:]
        if not data:
            return []
        self._after_cr = data[-1] == _CR

        lines = data.splitlines(True)  # of bytes: splits after "\n", "\r\n" and "\r", and nowhere else
        partial_line = b"" if data[-1] in _LINE_ENDS else lines.pop()
        if lines and (self._partial_line or self._bom):
            line = self._finish_line(lines[0])
            data = line + data[len(lines[0]) :]
            lines[0] = line

        blocks: list[SseBlock] = []
        fields, start, end = self._fields, 0, 0  # from start to end are finished lines of one block
        for line in lines:
            end += len(line)
            if len(line) > 2 or line[0] not in _LINE_ENDS:
                fields.append(line)
            elif fields:
                blocks.append(self._take_block(data[start:end]))
                fields, start = self._fields, end
        if partial_line or start < end:
            self._raw += data[start:end]
            self._partial_line += partial_line
            self._check_limit()
        return blocks

    def close(self) -> list[SseMessage]:
        """The stream has ended: what still waits, as one message at most.

        A block without its blank line comes out not closed. Its raw gets the line ends that it lacked, so
        that what is sent after it cannot become part of it. Mere blank lines are a message without data.
        """
        return [block.message() for block in self.last_blocks()]

    def last_blocks(self) -> list[SseBlock]:
        """The same, not yet taken apart."""
        if line := self._finish_line(b""):
            self._raw += line
            self._fields.append(line)
        if not self._fields:
            return [self._take_block()] if self._raw else []
        # After "\r" it takes two: the first one only makes it "\r\n".
        missing = b"\n" if self._raw.endswith(b"\n") else b"\n\n"
        block = self._take_block()
        return [SseBlock(block.lines, block.raw + missing, closed=False)]

    def _finish_line(self, end: bytes) -> bytes:
        """The waiting line with its end. However a byte order mark was cut, it is in one piece here."""
        line = b"".join((self._partial_line, end)).removeprefix(self._bom)
        self._partial_line.clear()
        self._bom = b""
        return line

    def _take_block(self, end: bytes = b"") -> SseBlock:
        """The block that waits, with its end."""
        if self._raw or len(end) > self._limit:
            self._raw += end
            self._check_limit()
            end = bytes(self._raw)
            self._raw.clear()
        fields, self._fields = self._fields, []
        return SseBlock(fields, end)

    def _check_limit(self) -> None:
        size = len(self._raw) + len(self._partial_line)
        if size > self._limit:
            raise UpstreamError(
                f"the upstream sent a server-sent event of {size} bytes or more; the limit is {self._limit}",
                hint="if events of this size are expected, allow more with SseDecoder(limit=...)",
            )


def event_name(event_type: object) -> str:
    """The name of the event that tells a chunk of this type. What an upstream made up may be none: then it has none."""
    return event_type if isinstance(event_type, str) and "\n" not in event_type and "\r" not in event_type else ""


def encode_event(data: str | bytes, event: str = "") -> bytes:
    """One frame. Several lines become several `data:` lines, so that every line end is read back as "\\n"."""
    if "\n" in event or "\r" in event:
        raise UsageError(f"an event's name is one line, not {event!r}")
    if isinstance(data, str):
        data = data.encode()
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    head = b"event: " + event.encode() + b"\n" if event else b""
    return b"%bdata: %b\n\n" % (head, data)
