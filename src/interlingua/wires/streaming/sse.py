"""Server-sent events: decoder from bytes to messages (`SseDecoder`), encoder from data to bytes (`encode_event`).

    decoder = SseDecoder()
    for data in reads:
        for message in decoder.feed(data): ...
    for message in decoder.close(): ...

The decoder follows https://html.spec.whatwg.org/multipage/server-sent-events.html, with three differences that
a relay needs. Every message has its raw bytes, so that it can be forwarded unchanged. A block without data
(usually a keep-alive comment) is a message too, because the client may need it to keep its connection open. A
last block that is truncated is returned instead of dropped, with `closed=False`: only the wire's reader can
decide whether to use it.

A block is a sequence of lines and the blank line that ends them. Further blank lines, and the `\\n` of a
`\\r\\n` whose `\\r` has already ended a block, belong to the next block: the previous one is already returned.
"""

from __future__ import annotations

import msgspec

from interlingua.errors import UpstreamError, UsageError

__all__ = [
    "EVENT_END",
    "MAX_BLOCK_LINES",
    "SseBlock",
    "SseDecoder",
    "SseMessage",
    "encode_event",
    "event_name",
    "first_events_size",
]

MAX_BLOCK_LINES = 8192
"""Lines of a block that are not blank. A server writes one to three; each takes `LINE_BYTES` besides its text."""
LINE_BYTES = 64

EVENT_END = b"\n\n"
"""End of an event, as nearly all servers write it."""
_BOM = b"\xef\xbb\xbf"
_CR = ord("\r")
_LINE_ENDS = b"\r\n"


class SseMessage(msgspec.Struct, frozen=True, gc=False):
    """One block of a stream. The `raw` of all messages, joined, are the bytes of the stream (without the BOM)."""

    data: str  # the data lines joined with "\n"; "" if there were none
    has_data: bool  # False: for example only a comment; `data:` alone is data, and empty
    event: str  # "" if absent
    id: str | None  # of this block only; clients that reconnect have to remember the last one
    raw: bytes  # the whole block, its blank line included
    closed: bool  # False: the stream ended before the blank line; the missing line ends were added to raw


class SseBlock(msgspec.Struct, frozen=True, gc=False):
    """Unparsed block: its lines that are not blank, and all of its bytes."""

    lines: list[bytes]
    raw: bytes
    closed: bool = True

    def message(self) -> SseMessage:
        data: list[str] = []
        event = ""
        id: str | None = None
        for line in self.lines:
            if line.startswith(b"data: "):  # fast path: nearly every line
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
        """The data of a block with one data line and at most an event name before it; None for any other block."""
        lines = self.lines
        if len(lines) == 1 or (len(lines) == 2 and lines[0].startswith(b"event: ")):
            return lines[-1][6:] if lines[-1].startswith(b"data: ") else None
        return None


class SseDecoder:
    """Incremental decoder for one stream.

    Each byte is searched for a line end once, when it arrives: the buffer holds complete lines and one partial
    line. `limit` is the maximum size of a block in bytes, without the blank line that ends it: whether its `\\r\\n` is
    split across reads must not matter. A block of more than `MAX_BLOCK_LINES` lines is over the limit, too.
    """

    __slots__ = ("_after_cr", "_begins_with_split_end", "_bom", "_fields", "_limit", "_partial_line", "_raw")

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        self._limit = limit
        self._raw = bytearray()  # the complete lines of the current block
        self._fields: list[bytes] = []  # those of them that are not blank
        self._partial_line = bytearray()  # the partial line after them
        self._bom = _BOM  # the prefix to drop from the next line: empty after the first line
        self._after_cr = False
        self._begins_with_split_end = False  # the block begins with the "\n" of the blank line before it

    def feed(self, data: bytes) -> list[SseMessage]:
        """Return the messages that these bytes complete.

        Raises UpstreamError as `blocks` does.
        """
        return [block.message() for block in self.blocks(data)]

    def blocks(self, data: bytes) -> list[SseBlock]:
        """Return the blocks that these bytes complete, unparsed.

        Raises UpstreamError if a block exceeds the limit, and on every later call. Blocks before it are lost only
        if they arrived in the same call, which requires a call with more bytes or lines than a block may have.
        """
        # A "\r" at the end of a read ends its line at once: waiting for a "\n" that may never come would delay a
        # complete event. If the "\n" does come, it is not a line of its own.
        if self._after_cr and data.startswith(b"\n"):
            if not self._raw:
                self._begins_with_split_end = True
            self._raw += b"\n"
            self._after_cr = False
            data = data[1:]
        if not data:
            return []
        self._after_cr = data[-1] == _CR

        lines = data.splitlines(True)  # bytes.splitlines() splits after "\n", "\r\n" and "\r" only
        partial_line = b"" if data[-1] in _LINE_ENDS else lines.pop()
        if lines and (self._partial_line or self._bom):
            line = self._finish_line(lines[0])
            data = line + data[len(lines[0]) :]
            lines[0] = line

        blocks: list[SseBlock] = []
        fields, start, end = self._fields, 0, 0  # data[start:end]: complete lines of the current block
        for line in lines:
            end += len(line)
            if len(line) > 2 or line[0] not in _LINE_ENDS:
                fields.append(line)
            elif fields:
                blocks.append(self._take_block(data[start:end], len(line)))
                fields, start = self._fields, end
        if partial_line or start < end:
            self._raw += data[start:end]
            self._partial_line += partial_line
            self._check_limit()
        return blocks

    def close(self) -> list[SseMessage]:
        """End the stream and return what is still buffered, as one message at most.

        A block without its blank line has `closed=False`. The missing line ends are added to its raw, so that
        what is sent after it cannot become part of it. Blank lines alone are a message without data.
        """
        return [block.message() for block in self.last_blocks()]

    def last_blocks(self) -> list[SseBlock]:
        """End the stream as `close` does, and return the block unparsed."""
        if line := self._finish_line(b""):
            self._raw += line
            self._fields.append(line)
        if not self._fields:
            return [self._take_block()] if self._raw else []
        # After "\r" two are needed: the first one only completes a "\r\n".
        missing = b"\n" if self._raw.endswith(b"\n") else b"\n\n"
        block = self._take_block()
        return [SseBlock(block.lines, block.raw + missing, closed=False)]

    @property
    def pending_bytes(self) -> int:
        """Number of buffered bytes of the current block."""
        return len(self._raw) + len(self._partial_line)

    @property
    def held_bytes(self) -> int:
        """Memory of the current block: its bytes, and its lines, which are kept once more."""
        return 2 * len(self._raw) + len(self._partial_line) + LINE_BYTES * len(self._fields)

    def _finish_line(self, end: bytes) -> bytes:
        """Return the complete line. A byte order mark that was split across reads is whole here, and removed."""
        line = b"".join((self._partial_line, end)).removeprefix(self._bom)
        self._partial_line.clear()
        self._bom = b""
        return line

    def _take_block(self, end: bytes = b"", blank_line: int = 0) -> SseBlock:
        """Return the current block, with these last bytes added, and start a new one.

        `blank_line`: number of the last bytes that are the blank line at the end.
        """
        if self._raw or len(end) > self._limit or len(self._fields) > MAX_BLOCK_LINES:
            self._raw += end
            self._check_limit(blank_line)
            end = bytes(self._raw)
            self._raw.clear()
            self._begins_with_split_end = False
        fields, self._fields = self._fields, []
        return SseBlock(fields, end)

    def _check_limit(self, blank_line: int = 0) -> None:
        size = self.pending_bytes - self._begins_with_split_end - blank_line
        if self._bom and (self._partial_line.startswith(self._bom) or self._bom.startswith(self._partial_line)):
            size -= min(len(self._bom), len(self._partial_line))
        if size > self._limit:
            raise UpstreamError(
                f"the upstream sent a server-sent event of {size} bytes or more; the limit is {self._limit}",
                hint="if events of this size are expected, raise the limit with SseDecoder(limit=...)",
            )
        if len(self._fields) > MAX_BLOCK_LINES:
            raise UpstreamError(f"the upstream sent a server-sent event of more than {MAX_BLOCK_LINES:,} lines")


def first_events_size(data: bytes, count: int) -> int:
    """Return the number of bytes of the first events in this data, each of which ends with `EVENT_END`."""
    end = 0
    for _ in range(count):
        end = data.index(EVENT_END, end) + len(EVENT_END)
    return end


def event_name(event_type: object) -> str:
    """Return the event name for a chunk of this type; "" if an upstream's own type is not a valid name."""
    return event_type if isinstance(event_type, str) and "\n" not in event_type and "\r" not in event_type else ""


def encode_event(data: str | bytes, event: str = "") -> bytes:
    """Return one frame. Each line of the data gets its own `data:` line, so that every line end is read as "\\n"."""
    if "\n" in event or "\r" in event:
        raise UsageError(f"an event name must be a single line, not {event!r}")
    if isinstance(data, str):
        data = data.encode()
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    head = b"event: " + event.encode() + b"\n" if event else b""
    return b"%bdata: %b\n\n" % (head, data)
