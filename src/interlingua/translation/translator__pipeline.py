"""reader → parser → guard → emitter, for one reply; still no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Options
from interlingua.core.tools import ToolsLike
from interlingua.errors import UpstreamError, expect
from interlingua.parsing.dialect import Dialect
from interlingua.translation.fast_path import Again
from interlingua.translation.reply_decoder import State, failure_in
from interlingua.translation.translator__ending import DONE, Ending, Said
from interlingua.wires import reasoning_fields as opaque
from interlingua.wires.base import Choice, Chunk
from interlingua.wires.streaming import chunk_decoder as chunks
from interlingua.wires.streaming import sse
from interlingua.wires.streaming.collecting_emitter import Folding

__all__ = ["Step", "Translator", "translate_reply"]

COMMENT = b":\n\n"
UNREADABLE = 100
"""So many events that are no JSON are dropped; then it is no reply."""
ERROR = "error"
"""The event that is an error, whatever its data looks like."""
ERROR_LINE = b"event: error"
USUAL = 2 * chunks.DEEP
"""How long the data of a usual chunk may be, in bytes: no brackets can be too deep in it."""
TOO_LONG, CLOSE = sse.Block([], b""), sse.Block([], b"")
"""What stands for an event that is too long, and for the end of all bytes."""

_Usual: TypeAlias = tuple[Chunk, chunks.Decoded | None]
"""What a usual chunk says, and the chunk itself if it may pass."""


class Step(msgspec.Struct, frozen=True):
    """One message of the upstream on its way: what came, what it meant, what went out, what still waits."""

    came: bytes
    data: str
    events: list[ev.Event]
    sent: bytes
    held: str


_OPEN = State.OPEN  # it is asked for with every token, and an Enum is slow to answer


class Translator(Ending):
    """SSE bytes of one reply in, SSE bytes out. On the same wire, chunks that need no change pass on byte for byte.

    `dialect` is a name, a Dialect, or "auto": by `model`, else by the model that the upstream names in its first chunk.
    """

    def __init__(
        self,
        source: str = "openai-chat",
        target: str = "openai-chat",
        dialect: str | Dialect = "auto",
        model: str | None = None,
        tools: ToolsLike = None,
        options: Options | None = None,
    ) -> None:
        super().__init__(source, target, dialect, model, tools, options)
        self._decoder = sse.Decoder(self._options.limits.event)
        self._again = Again(self._reader, self._options.limits.event, self.tally)
        self._unreadables = 0

    @property
    def ended(self) -> bool:
        """Whether the client has been told the end."""
        return self._state is not State.OPEN

    def feed(self, data: bytes) -> bytes:
        if (sent := self._again.take(data)) is not None:  # as it mostly is: this runs for every token
            self._messages += 1
            return sent
        if (read := self._again.read(data)) is not None:
            return self._take_again(read, data)
        blocks = self._blocks(data)
        if len(blocks) == 1 and blocks[0].raw == data:
            return self._take_alone(blocks[0])
        return b"".join([self._take(block)[1] for block in blocks])

    def close(self) -> bytes:
        """The upstream's stream is over: what is held goes out, and the client's stream ends properly."""
        return b"".join([self._take(block)[1] for block in self._last_blocks()])

    @property
    def begun(self) -> bool:
        """Whether the upstream has sent an event."""
        return self._messages > 0

    def abort(self, message: str, type: str = "api_error", code: str | None = None) -> bytes:
        """The upstream's stream is over, and not by its own will. If it had said all, that is as good as `close`."""
        if self.ended or self._stopped:
            return self.close()
        name = next((lane.open_call for lane in self._lanes.values() if lane.open_call), None)
        failure = ev.Failure(message + (f", inside the call of {name!r}" if name else ""), type, code)
        events, sent = self._fail([failure], failure)
        self._again.forget()
        self._state = State.CLOSED
        self._noted(events)
        return sent

    def fold(self, stream: bytes) -> dict[str, Any]:
        """A stream, for a client that wants a whole reply."""
        self._must_be_fresh()
        folding = self._emitter = Folding(self._target, self._options, self._offer)
        self._same = False  # nothing passes as it came
        self.feed(stream)
        self.close()
        body = folding.body()
        self._noted([])
        return body

    def steps(self, data: bytes) -> list[Step]:
        """`feed`, told message by message."""
        return [self._step(block) for block in self._blocks(data)]

    def last_steps(self) -> list[Step]:
        """`close`, told message by message."""
        return [self._step(block) for block in self._last_blocks()]

    def _step(self, block: sse.Block) -> Step:
        events, sent = self._take(block)
        return Step(block.raw, block.message().data, events, sent, self.held)

    def _blocks(self, data: bytes) -> list[sse.Block]:
        self._again.forget()
        if self._state is not _OPEN:
            self._must_be_open()
        if type(data) is not bytes:  # looked at here first, for this runs for every token
            expect(data, bytes | bytearray | memoryview, "data is bytes", "feed what came from the wire as it is")
            data = bytes(data)
        if self._state is not _OPEN and self._state is State.OVERRUN:
            return []
        limit = self._options.limits.event
        if len(data) > limit:  # no more at once, or the decoder would lose what precedes a long event
            return [block for at in range(0, len(data), limit) for block in self._blocks(data[at : at + limit])]
        try:
            return self._decoder.blocks(data)
        except UpstreamError:
            return [TOO_LONG]

    def _last_blocks(self) -> Iterator[sse.Block]:
        self._again.forget()
        if self._state is State.CLOSED:
            return
        try:
            yield from self._decoder.last_blocks()
        except UpstreamError:
            yield TOO_LONG
        if self._state is State.OPEN:
            yield CLOSE
        self._state = State.CLOSED

    # ── one message ───────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, block: sse.Block) -> Said:
        """What a block says, with what was odd about it, and what goes out for it."""
        return self._told(block, self._usual(block))

    def _take_alone(self, block: sse.Block) -> bytes:
        """What goes out for a block that came alone. The next one may be the same again."""
        usual = self._usual(block)
        events, sent = self._told(block, usual)
        if usual is not None and self._state is _OPEN:
            self._again.learn(*usual, block.raw, events, self._lanes, self._emitter)
        return sent

    def _take_again(self, read: Chunk, raw: bytes) -> bytes:
        """What goes out for a chunk that is the last one again, but for its text."""
        self._messages += 1
        events, sent = self._translate(read, None, raw)
        self._noted(events)
        if self._state is _OPEN:
            self._again.keep(read.choices[0], events, self._lanes, self._emitter)
        else:
            self._again.forget()
        return sent

    def _told(self, block: sse.Block, usual: _Usual | None) -> Said:
        events, sent = self._translate(*usual, block.raw) if usual else self._read(block)
        return self._noted(events), sent

    def _read(self, block: sse.Block) -> Said:
        if block is TOO_LONG:
            return self._too_long()
        if block is CLOSE:
            return self._end(b"")
        message = block.message()
        if not message.has_data:
            passes = message.closed and self._state is not State.OVERRUN
            kept = message.raw if self._same else COMMENT
            return [], kept if passes else b""
        self._messages += 1
        if self._state is not State.OPEN:
            return self._overrun(message)
        if message.data.strip() == DONE:
            return self._end(message.raw)
        decoded = self._chunks.decode(message.data)
        if message.event == ERROR and message.data.strip():
            decoded = chunks.as_error(decoded, message.data)
        if decoded is None:
            return self._unreadable(message)
        raw = message.raw
        if self._puts_name:
            decoded, raw = self._with_name(decoded, message)
        return self._translate(self._reader.read(decoded.chunk), decoded, raw)

    def _with_name(self, decoded: chunks.Decoded, message: sse.Message) -> tuple[chunks.Decoded, bytes]:
        """The chunk, and its bytes, with the upstream's name in what the upstream alone can read."""
        chunk = opaque.sealed(decoded.chunk, self._source.NAME, self._options)
        if chunk is decoded.chunk:
            return decoded, message.raw
        return chunks.Decoded(chunk, decoded.exact), sse.encode(write_json(chunk), message.event)

    def _usual(self, block: sse.Block) -> _Usual | None:
        """What a block says whose chunk is a usual one, and that chunk, if it may pass; None, and nothing has happened,
        if it is not."""
        data = block.data
        if data is None or len(data) > USUAL or self._state is not _OPEN:
            return None
        if self._dialect is None or self._chunks.halves or block.lines[0].startswith(ERROR_LINE):
            return None
        if (read := self._reader.usual(data)) is None:
            return None
        self._messages += 1
        return read, self._chunks.decode(data.decode("utf-8", "replace")) if self._same else None

    def _translate(self, read: Chunk, decoded: chunks.Decoded | None, raw: bytes) -> Said:
        """Takes what was read to the client. Of the chunk itself only those are told that speak its wire."""
        if self._dialect is None:
            self._learn_dialect(read.model)
        like = decoded.chunk if decoded is not None and self._same else None
        exact = like is not None and decoded is not None and decoded.exact and read.exact
        choices, common = read.choices, read.common
        if self._target.SINGLE:
            choices = self._choices(choices, common)
        said: list[tuple[int, list[ev.Event]]] = []
        events: list[ev.Event] = []
        for choice in choices:
            lane = self._lanes.get(choice.index) or self._lane(choice)
            out = lane.take(choice.events)
            said.append((choice.index, out))
            events += out
        events += common
        if common and (failure := failure_in(common)):
            if self._stopped:
                late = ev.Finding("after-stop", f"an error after the reply had stopped: dropped {failure.message!r}")
                return [late], b""
            return self._fail(events, failure, raw if exact else b"")
        exact = exact and all(map(_unchanged, said, choices))
        if exact and like is not None and not read.last and (passed := self._emitter.pass_on(like, raw)) is not None:
            return events, passed
        sent = self._emitter.emit(said, common, like)
        if failure := failure_in(events):
            events, end = self._fail(events, failure)
            return events, sent + end
        if read.last:
            last, end = self._end(raw, exact=exact, common=events)
            return events + last, sent + end
        return events, sent

    def _unreadable(self, message: sse.Message) -> Said:
        if not message.data.strip():
            finding = ev.Finding("empty-event", "an event without data, which clients cannot read: sent as a comment")
            return [finding], COMMENT
        if message.closed:
            return self._bad_json(message)
        finding = ev.Finding("cut-event", f"the stream ended inside an event: dropped {message.data!r:.60}")
        return [finding], b""

    def _bad_json(self, message: sse.Message) -> Said:
        """Official clients give up at such an event, so none is sent it. If a call is open, a piece of it may be lost:
        better no call than a wrong one."""
        finding = ev.Finding("bad-json", f"an event that is not a JSON object: dropped {message.data!r:.60}")
        self._unreadables += 1
        inside = any(lane.inside_call for lane in self._lanes.values())
        if not inside and self._unreadables <= UNREADABLE:
            return [finding], b""
        what = "an event that cannot be read, inside a call" if inside else "too many events that cannot be read"
        failure = ev.Failure(f"the upstream sent {what}")
        return self._fail([finding, failure], failure)


def translate_reply(
    body: dict[str, Any],
    source: str = "openai-chat",
    target: str = "openai-chat",
    dialect: str | Dialect = "auto",
    model: str | None = None,
    tools: ToolsLike = None,
    options: Options | None = None,
) -> dict[str, Any]:
    """A whole reply of one wire as a whole reply of another. `Translator.reply` also tells the findings."""
    return Translator(source, target, dialect, model, tools, options).reply(body)


def _unchanged(said: tuple[int, list[ev.Event]], choice: Choice) -> bool:
    return said[1] == choice.events
