"""Translator: one streamed reply from one wire to another. SSE bytes in, SSE bytes out; no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Options
from interlingua.core.tools import ToolsLike
from interlingua.errors import UpstreamError, expect_type
from interlingua.parsing.dialect import Dialect
from interlingua.translation.fast_path import FastPath
from interlingua.translation.reply_body import WholeReplyDecoder
from interlingua.translation.reply_decoder import TranslatorState, find_failure
from interlingua.wires import reasoning_fields as opaque
from interlingua.wires.base import Choice, Chunk
from interlingua.wires.streaming import chunk_decoder as chunks
from interlingua.wires.streaming import sse
from interlingua.wires.streaming.collecting_emitter import CollectingEmitter

__all__ = ["DONE", "StepResult", "StreamEnding", "TraceStep", "Translator", "translate_reply"]

DONE = "[DONE]"
"""How a stream of chat completions ends. Upstreams of other wires send it too."""

StepResult: TypeAlias = tuple[list[ev.Event], bytes]
"""What was said, and what goes out for it."""


class StreamEnding(WholeReplyDecoder):
    def _end_stream(self, done: bytes, *, exact: bool = True, common: Sequence[ev.Event] = ()) -> StepResult:
        """The upstream's stream is over; `done` is how it said so, if it did, `exact` whether that may pass, and
        `common` what was said with it."""
        finished = bool(done)
        choice_events = []
        for index, remaining in self._reader.close(finished):
            if pipeline := self._pipelines.get(index):  # else the client cannot be told of this choice
                choice_events.append((index, pipeline.process(remaining) + pipeline.end_of_stream(finished)))
        events = [event for _, out in choice_events for event in out]
        events += self._final_findings()
        if not self._pipelines and not (finished and self._same_wire):
            events.append(ev.Failure("the upstream ended without a reply"))
        failure = find_failure(events)
        sent = self._emitter.emit(choice_events)
        if failure:
            sent += self._emitter.fail(self._client_failure(failure))
        else:
            usage_events = self._estimated_usage([*events, *common])
            sent += self._emitter.emit([], usage_events) if usage_events else b""
            sent += self._emitter.finish(done if self._same_wire and exact and not usage_events else b"")
            events += usage_events
        self._state = TranslatorState.ENDED
        return events, sent

    def _fail_stream(self, events: list[ev.Event], failure: ev.Failure, raw: bytes = b"") -> StepResult:
        """Ends the client's stream with an error frame, after the text that was held; `raw` is the upstream's frame, if
        that may pass."""
        choice_events = [(index, pipeline.flush()) for index, pipeline in self._pipelines.items()]
        self._state = TranslatorState.ENDED
        sent = self._emitter.emit(choice_events)
        sent += raw or self._emitter.fail(self._client_failure(failure))
        return events + [event for _, out in choice_events for event in out], sent

    def _fail_too_long(self) -> StepResult:
        if self._state is not TranslatorState.OPEN:
            return [], b""
        failure = ev.Failure(f"the upstream sent an event of more than {self._options.limits.event:,} bytes")
        result = self._fail_stream([failure], failure)
        self._state = TranslatorState.OVERRUN
        return result

    def _drop_after_end(self, message: sse.SseMessage) -> StepResult:
        """A message after the end. The first one is a finding, but for a [DONE] after an error."""
        findings: list[ev.Event] = []
        if self._state is TranslatorState.ENDED and message.data.strip() != DONE:
            self._state = TranslatorState.OVERRUN
            findings.append(ev.Finding("after-end", f"more came after the end: dropped {message.data!r:.60}"))
        return findings, b""


SSE_COMMENT = b":\n\n"
MAX_UNREADABLE_EVENTS = 100
"""So many events that are no JSON are dropped; then it is no reply."""
ERROR_EVENT = "error"
"""The event that is an error, whatever its data looks like."""
ERROR_EVENT_LINE = b"event: error"
MAX_FAST_DATA_BYTES = 2 * chunks.MAX_UNCHECKED_BRACKETS
"""How long the data of a usual chunk may be, in bytes: no brackets can be too deep in it."""
TOO_LONG_BLOCK, CLOSE_BLOCK = sse.SseBlock([], b""), sse.SseBlock([], b"")
"""What stands for an event that is too long, and for the end of all bytes."""

_FastRead: TypeAlias = tuple[Chunk, chunks.DecodedChunk | None]
"""What a usual chunk says, and the chunk itself if it may pass."""


class TraceStep(msgspec.Struct, frozen=True):
    """One message of the upstream on its way: what came, what it meant, what went out, what still waits."""

    received: bytes
    data: str
    events: list[ev.Event]
    sent: bytes
    buffered: str


_OPEN = TranslatorState.OPEN  # it is asked for with every token, and an Enum is slow to answer


class Translator(StreamEnding):
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
        self._decoder = sse.SseDecoder(self._options.limits.event)
        self._fast_path = FastPath(self._reader, self._options.limits.event, self.tally)
        self._unreadable_count = 0

    @property
    def ended(self) -> bool:
        """Whether the client has been told the end."""
        return self._state is not TranslatorState.OPEN

    def feed(self, data: bytes) -> bytes:
        if (sent := self._fast_path.forward(data)) is not None:  # as it mostly is: this runs for every token
            self._message_count += 1
            return sent
        if (chunk := self._fast_path.decode(data)) is not None:
            return self._process_repeat(chunk, data)
        blocks = self._decode_blocks(data)
        if len(blocks) == 1 and blocks[0].raw == data:
            return self._process_single(blocks[0])
        return b"".join([self._process(block)[1] for block in blocks])

    def close(self) -> bytes:
        """The upstream's stream is over: what is held goes out, and the client's stream ends properly."""
        return b"".join([self._process(block)[1] for block in self._final_blocks()])

    @property
    def begun(self) -> bool:
        """Whether the upstream has sent an event."""
        return self._message_count > 0

    def abort(self, message: str, type: str = "api_error", code: str | None = None) -> bytes:
        """The upstream's stream is over, and not by its own will. If it had said all, that is as good as `close`."""
        if self.ended or self._all_stopped:
            return self.close()
        name = next((pipeline.open_call_name for pipeline in self._pipelines.values() if pipeline.open_call_name), None)
        failure = ev.Failure(message + (f", inside the call of {name!r}" if name else ""), type, code)
        events, sent = self._fail_stream([failure], failure)
        self._fast_path.reset()
        self._state = TranslatorState.CLOSED
        self._record(events)
        return sent

    def fold(self, stream: bytes) -> dict[str, Any]:
        """A stream, for a client that wants a whole reply."""
        self._require_unused()
        collector = self._emitter = CollectingEmitter(self._target_wire, self._options, self._offer)
        self._same_wire = False  # nothing passes as it came
        self.feed(stream)
        self.close()
        body = collector.body()
        self._record([])
        return body

    def trace(self, data: bytes) -> list[TraceStep]:
        """`feed`, told message by message."""
        return [self._trace_block(block) for block in self._decode_blocks(data)]

    def trace_end(self) -> list[TraceStep]:
        """`close`, told message by message."""
        return [self._trace_block(block) for block in self._final_blocks()]

    def _trace_block(self, block: sse.SseBlock) -> TraceStep:
        events, sent = self._process(block)
        return TraceStep(block.raw, block.message().data, events, sent, self.held)

    def _decode_blocks(self, data: bytes) -> list[sse.SseBlock]:
        self._fast_path.reset()
        if self._state is not _OPEN:
            self._require_open()
        if type(data) is not bytes:  # looked at here first, for this runs for every token
            expect_type(data, bytes | bytearray | memoryview, "data is bytes", "feed what came from the wire as it is")
            data = bytes(data)
        if self._state is not _OPEN and self._state is TranslatorState.OVERRUN:
            return []
        limit = self._options.limits.event
        if len(data) > limit:  # no more at once, or the decoder would lose what precedes a long event
            return [
                block
                for start in range(0, len(data), limit)
                for block in self._decode_blocks(data[start : start + limit])
            ]
        try:
            return self._decoder.blocks(data)
        except UpstreamError:
            return [TOO_LONG_BLOCK]

    def _final_blocks(self) -> Iterator[sse.SseBlock]:
        self._fast_path.reset()
        if self._state is TranslatorState.CLOSED:
            return
        try:
            yield from self._decoder.last_blocks()
        except UpstreamError:
            yield TOO_LONG_BLOCK
        if self._state is TranslatorState.OPEN:
            yield CLOSE_BLOCK
        self._state = TranslatorState.CLOSED

    # ── one message ───────────────────────────────────────────────────────────────────────────────────────────────

    def _process(self, block: sse.SseBlock) -> StepResult:
        """What a block says, with what was odd about it, and what goes out for it."""
        return self._process_read(block, self._read_fast(block))

    def _process_single(self, block: sse.SseBlock) -> bytes:
        """What goes out for a block that came alone. The next one may be the same again."""
        fast_read = self._read_fast(block)
        events, sent = self._process_read(block, fast_read)
        if fast_read is not None and self._state is _OPEN:
            self._fast_path.learn(*fast_read, block.raw, events, self._pipelines, self._emitter)
        return sent

    def _process_repeat(self, chunk: Chunk, raw: bytes) -> bytes:
        """What goes out for a chunk that is the last one again, but for its text."""
        self._message_count += 1
        events, sent = self._translate(chunk, None, raw)
        self._record(events)
        if self._state is _OPEN:
            self._fast_path.refresh(chunk.choices[0], events, self._pipelines, self._emitter)
        else:
            self._fast_path.reset()
        return sent

    def _process_read(self, block: sse.SseBlock, fast_read: _FastRead | None) -> StepResult:
        events, sent = self._translate(*fast_read, block.raw) if fast_read else self._read_block(block)
        return self._record(events), sent

    def _read_block(self, block: sse.SseBlock) -> StepResult:
        if block is TOO_LONG_BLOCK:
            return self._fail_too_long()
        if block is CLOSE_BLOCK:
            return self._end_stream(b"")
        message = block.message()
        if not message.has_data:
            forwards = message.closed and self._state is not TranslatorState.OVERRUN
            comment = message.raw if self._same_wire else SSE_COMMENT
            return [], comment if forwards else b""
        self._message_count += 1
        if self._state is not TranslatorState.OPEN:
            return self._drop_after_end(message)
        if message.data.strip() == DONE:
            return self._end_stream(message.raw)
        decoded = self._chunk_decoder.decode(message.data)
        if message.event == ERROR_EVENT and message.data.strip():
            decoded = chunks.as_error_chunk(decoded, message.data)
        if decoded is None:
            return self._handle_unreadable(message)
        raw = message.raw
        if self._signs_reasoning:
            decoded, raw = self._sign_chunk(decoded, message)
        return self._translate(self._reader.read(decoded.chunk), decoded, raw)

    def _sign_chunk(self, decoded: chunks.DecodedChunk, message: sse.SseMessage) -> tuple[chunks.DecodedChunk, bytes]:
        """The chunk, and its bytes, with the upstream's name in what the upstream alone can read."""
        chunk = opaque.sign_reasoning(decoded.chunk, self._source_wire.NAME, self._options)
        if chunk is decoded.chunk:
            return decoded, message.raw
        return chunks.DecodedChunk(chunk, decoded.exact), sse.encode_event(write_json(chunk), message.event)

    def _read_fast(self, block: sse.SseBlock) -> _FastRead | None:
        """What a block says whose chunk is a usual one, and that chunk, if it may pass; None, and nothing has happened,
        if it is not."""
        data = block.data
        if data is None or len(data) > MAX_FAST_DATA_BYTES or self._state is not _OPEN:
            return None
        if (
            self._dialect is None
            or self._chunk_decoder.pending_surrogates
            or block.lines[0].startswith(ERROR_EVENT_LINE)
        ):
            return None
        if (chunk := self._reader.read_fast(data)) is None:
            return None
        self._message_count += 1
        return chunk, self._chunk_decoder.decode(data.decode("utf-8", "replace")) if self._same_wire else None

    def _translate(self, chunk: Chunk, decoded: chunks.DecodedChunk | None, raw: bytes) -> StepResult:
        """Takes what was read to the client. Of the chunk itself only those are told that speak its wire."""
        if self._dialect is None:
            self._learn_dialect(chunk.model)
        template = decoded.chunk if decoded is not None and self._same_wire else None
        exact = template is not None and decoded is not None and decoded.exact and chunk.exact
        choices, common = chunk.choices, chunk.common
        if self._target_wire.SINGLE_CHOICE:
            choices = self._supported_choices(choices, common)
        choice_events: list[tuple[int, list[ev.Event]]] = []
        events: list[ev.Event] = []
        for choice in choices:
            pipeline = self._pipelines.get(choice.index) or self._start_pipeline(choice)
            out = pipeline.process(choice.events)
            choice_events.append((choice.index, out))
            events += out
        events += common
        if common and (failure := find_failure(common)):
            if self._all_stopped:
                finding = ev.Finding("after-stop", f"an error after the reply had stopped: dropped {failure.message!r}")
                return [finding], b""
            return self._fail_stream(events, failure, raw if exact else b"")
        exact = exact and all(map(_is_unchanged, choice_events, choices))
        if (
            exact
            and template is not None
            and not chunk.last
            and (forwarded := self._emitter.forward(template, raw)) is not None
        ):
            return events, forwarded
        sent = self._emitter.emit(choice_events, common, template)
        if failure := find_failure(events):
            events, end = self._fail_stream(events, failure)
            return events, sent + end
        if chunk.last:
            final_events, end = self._end_stream(raw, exact=exact, common=events)
            return events + final_events, sent + end
        return events, sent

    def _handle_unreadable(self, message: sse.SseMessage) -> StepResult:
        if not message.data.strip():
            finding = ev.Finding("empty-event", "an event without data, which clients cannot read: sent as a comment")
            return [finding], SSE_COMMENT
        if message.closed:
            return self._handle_bad_json(message)
        finding = ev.Finding("cut-event", f"the stream ended inside an event: dropped {message.data!r:.60}")
        return [finding], b""

    def _handle_bad_json(self, message: sse.SseMessage) -> StepResult:
        """Official clients give up at such an event, so none is sent it. If a call is open, a piece of it may be lost:
        better no call than a wrong one."""
        finding = ev.Finding("bad-json", f"an event that is not a JSON object: dropped {message.data!r:.60}")
        self._unreadable_count += 1
        inside_call = any(pipeline.inside_call for pipeline in self._pipelines.values())
        if not inside_call and self._unreadable_count <= MAX_UNREADABLE_EVENTS:
            return [finding], b""
        reason = "an event that cannot be read, inside a call" if inside_call else "too many events that cannot be read"
        failure = ev.Failure(f"the upstream sent {reason}")
        return self._fail_stream([finding, failure], failure)


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


def _is_unchanged(choice_events: tuple[int, list[ev.Event]], choice: Choice) -> bool:
    return choice_events[1] == choice.events
