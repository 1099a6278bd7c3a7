"""Translator: one reply from one wire to another. Bytes in, bytes out; no I/O.

    SSE bytes ─▶ SseDecoder ─▶ ReplyDecoder (wire reader, parser, guard) ─▶ Emitter ─▶ SSE bytes

The most common chunks take the `FastPath` instead, if the upstream's wire has a fast codec. A whole reply goes through
the same events, so that a streamed and a whole reply agree.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import encode_json, write_json
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.core.options import Options
from interlingua.core.reply_stats import ReplyStats
from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolsLike
from interlingua.core.wire_traits import WireLike
from interlingua.errors import UpstreamError, UsageError, expect_type
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.tracer import ReplyTracer
from interlingua.trace import TraceObserver
from interlingua.translation.fast_path import FastPath, FastRead
from interlingua.translation.reply_decoder import DONE, MAX_UNREADABLE_EVENTS, ReplyDecoder
from interlingua.translation.reply_recorder import ReplyRecorder, find_failure
from interlingua.translation.upstream_errors import MAX_ERROR_BODY_BYTES, shorten_failure
from interlingua.upstreams import signs_on_wire
from interlingua.wires import get_wire, reasoning_fields
from interlingua.wires.base import Choice, Chunk, Emitter
from interlingua.wires.streaming import sse
from interlingua.wires.streaming.chunk_decoder import DecodedChunk
from interlingua.wires.streaming.collecting_emitter import CollectingEmitter
from interlingua.wires.streaming.sse import EVENT_END

__all__ = ["Translator", "translate_reply"]

SSE_COMMENT = b":\n\n"
MAX_PART_BYTES = 64 * 1024
"""More data than this is translated in parts: dividing it into events at once would hold the interpreter lock."""
MIN_RUN_BYTES, MAX_RUN_BYTES = 1024, 16 * 1024
"""Size of the data in which the fast path looks for events that it can forward together: it grows while it does."""
MIN_EVENT_BYTES = 32
"""Shorter events, such as blank lines and comments, are not translated one by one: each part has a cost of its own."""
TOO_LONG, CLOSE = sse.SseBlock([], b""), sse.SseBlock([], b"")
"""Placeholders in the sequence of blocks: an event over the size limit, and the end of the bytes."""

CHECK_INTERVAL_BYTES = 64 * 1024
"""Bytes of a stream after which its limits are checked: not for every token."""

StepResult: TypeAlias = tuple[list[ev.Event], bytes]
"""The events of one message, and the bytes for the client."""


class TranslatorState(Enum):
    OPEN = "open"
    ENDED = "the end was sent to the client"
    OVERRUN = "data after the end was dropped"
    CLOSED = "closed"


_OPEN = TranslatorState.OPEN  # a module constant, because attribute access on an Enum is slow and runs for every token


class Translator:
    """Translates one reply: SSE bytes in, SSE bytes out.

    On the same wire, chunks that need no change are forwarded byte for byte.

    Args:
        source: the upstream's wire.
        target: the client's wire.
        dialect: a name, a Dialect, or "auto": by `model`, else by the model that the upstream names in its first chunk.
        model: the id of the upstream's model.
        tools: the tools that the client offered; None if they are not known.
        options: see `il.Options`.
        tool_choice: the `tool_choice` of the request on any wire, or "auto", "required", "none" or the name of a tool;
            None if it is not known. If a call is required, JSON that the server made the model write is a call.
        observer: receives a trace event for everything that happens; see `interlingua.trace`.
    """

    __slots__ = (
        "_decoder",
        "_dropped_choices",
        "_emitter",
        "_fast_path",
        "_max_event_bytes",
        "_next_check",
        "_options",
        "_received_bytes",
        "_record_events",
        "_recorder",
        "_same_wire",
        "_signs_for_upstream",
        "_source",
        "_sse",
        "_state",
        "_target",
        "_tracer",
        "_unreadable_events",
    )

    def __init__(
        self,
        source: WireLike = "openai-chat",
        target: WireLike = "openai-chat",
        dialect: str | Dialect = "auto",
        model: str | None = None,
        tools: ToolsLike = None,
        options: Options | None = None,
        *,
        tool_choice: ToolChoiceLike = None,
        observer: TraceObserver | None = None,
    ) -> None:
        self._source, self._target = get_wire(source), get_wire(target)
        self._options = Options() if options is None else options
        expect_type(self._options, Options, "options are an Options", "write il.Options(delivery=…)")
        if observer is not None and not callable(observer):
            raise UsageError("observer should be a function", "it is called with each trace event")
        self._tracer = ReplyTracer(observer) if observer is not None else None
        self._decoder = ReplyDecoder(self._source, dialect, model, tools, self._options, self._tracer, tool_choice)
        self._recorder = ReplyRecorder()
        self._record_events = (
            self._tracer.trace_events(self._recorder.record) if self._tracer else self._recorder.record
        )
        self._emitter: Emitter = self._target.emitter(self._options, self._decoder.tool_set)
        self._same_wire = source == target
        upstream = self._options.upstream
        self._signs_for_upstream = self._same_wire and upstream != "" and not signs_on_wire(upstream, source)
        self._max_event_bytes = self._options.limits.event
        self._sse = sse.SseDecoder(self._max_event_bytes)
        self._fast_path = self._create_fast_path()
        self._state = TranslatorState.OPEN
        self._received_bytes = 0
        self._next_check = min(CHECK_INTERVAL_BYTES, self._options.limits.stream)
        self._unreadable_events = 0
        self._dropped_choices: dict[int, None] = {}  # choices that the client's wire cannot carry

    def _create_fast_path(self) -> FastPath | None:
        """Return the fast path, until the end of the stream; None if the upstream's wire has no fast codec."""
        reader = self._decoder.reader.fast
        if reader is None:
            return None
        return FastPath(
            reader,
            self._decoder,
            self._emitter,
            self._recorder,
            same_wire=self._same_wire,
            max_chunk_bytes=self._max_event_bytes,
        )

    # ── state ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def findings(self) -> list[ev.Finding]:
        """The findings so far, with their location in the stream."""
        return self._recorder.findings

    @property
    def tally(self) -> ReplyStats:
        """Statistics of the reply so far: size, calls, usage, stop reason, failure."""
        return self._recorder.stats

    @property
    def dialect(self) -> Dialect | None:
        """The dialect in use; None until a chunk names the model."""
        return self._decoder.dialect

    @property
    def held(self) -> str:
        """Text that is buffered until the text after it is known."""
        return self._decoder.buffered

    @property
    def pending_bytes(self) -> int:
        """Number of buffered bytes of an event that has not arrived completely."""
        return self._sse.pending_bytes

    @property
    def held_bytes(self) -> int:
        """Approximate size of what is kept in memory: an incomplete event, held-back text, and text for the end."""
        return self._sse.held_bytes + self._decoder.held_chars + self._emitter.kept_chars

    @property
    def begun(self) -> bool:
        """True if the upstream has sent an event."""
        return self._recorder.message_count > 0

    @property
    def ended(self) -> bool:
        """True if the end of the stream was sent to the client."""
        return self._state is not TranslatorState.OPEN

    # ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────

    def feed(self, data: bytes) -> bytes:
        """Translate the next bytes of the upstream's stream."""
        self._received_bytes += len(data)
        if self._received_bytes > self._next_check and (problem := self._find_excess()):
            return self._end_over_limit(problem)
        if len(data) > MAX_PART_BYTES:
            parts = (data[at : at + MAX_PART_BYTES] for at in range(0, len(data), MAX_PART_BYTES))
            return b"".join([self._feed_part(part) for part in parts])
        return self._feed_part(data)

    def forward(self, data: bytes) -> bytes | None:
        """Translate one event, if the fast path can do it; None if it has to be translated by `feed`."""
        received_bytes = self._received_bytes + len(data)
        if received_bytes > self._next_check or self._fast_path is None or self._tracer is not None:
            return None
        forwarded = self._fast_path.forward_event(data)
        if forwarded is not None:
            self._received_bytes = received_bytes
        return forwarded

    def _feed_part(self, data: bytes) -> bytes:
        """Translate a part of the stream, event by event if the fast path can be of use."""
        fast_path = self._fast_path
        if fast_path is None or type(data) is not bytes:
            return self._feed_event(data)
        if self._tracer is not None:
            return self._feed_traced(data, fast_path, self._tracer)
        sent, size = fast_path.forward(data if len(data) <= MAX_RUN_BYTES else data[:MAX_RUN_BYTES])
        if size == len(data):
            return sent
        if not fast_path.learns_repeats or (size == 0 and _find_event_end(data, 0) == len(data)):
            return self._feed_event(data)
        return sent + b"".join(self._feed_events(data, size))

    def _feed_events(self, data: bytes, start: int) -> Iterator[bytes]:
        """Translate the events from this position on: in runs on the fast path, or one by one.

        The fast path has not forwarded the first of them, unless it is longer than a run.
        """
        run_bytes, run_end = MIN_RUN_BYTES, MAX_RUN_BYTES
        while start < len(data):
            end = _find_event_end(data, start)
            if end <= run_end:
                end = end if end - start >= MIN_EVENT_BYTES else min(start + MIN_RUN_BYTES, len(data))
                yield self._feed_event(data[start:end])
                start, run_bytes = end, MIN_RUN_BYTES
                end = _find_event_end(data, start)
            else:  # all whole events of the last run were forwarded
                run_bytes = min(2 * run_bytes, MAX_RUN_BYTES)
            run_end = max(end, start + run_bytes)
            if self._fast_path is not None:
                sent, size = self._fast_path.forward(data[start:run_end])
                yield sent
                start += size

    def _feed_traced(self, data: bytes, fast_path: FastPath, tracer: ReplyTracer) -> bytes:
        """Translate a part of a stream that is traced. It is not divided into events: a trace has more to tell about
        the ordinary path."""
        sent = fast_path.forward_event(data)
        if sent is None:
            return self._feed_event(data)
        tracer.begin_message(data)
        tracer.report_passed()
        self._end_traced(sent, tracer)
        return sent

    def _feed_event(self, data: bytes) -> bytes:
        """Translate a part of the stream, which should be one event, and which cannot be forwarded."""
        fast_path, tracer = self._fast_path, self._tracer
        if fast_path is None:
            return b"".join([self._process(block)[1] for block in self._decode_blocks(data)])
        repeat = fast_path.read_repeat(data)
        if repeat is not None:
            if tracer is not None:
                tracer.begin_message(data)
            events, sent = self._process_fast(repeat)
            if tracer is not None:
                self._end_traced(sent, tracer)
        else:
            blocks = self._decode_blocks(data)
            if len(blocks) != 1 or blocks[0].raw != data:  # only a single event can be repeated
                return b"".join([self._process(block)[1] for block in blocks])
            events, sent = self._process(blocks[0])
        fast_path.learn(events, sent)
        return sent

    def close(self) -> bytes:
        """End the upstream's stream: flush what is held back, and end the client's stream as its protocol says."""
        return b"".join([self._process(block)[1] for block in self._final_blocks()])

    def abort(self, message: str, type: str = "api_error", code: str | None = None) -> bytes:
        """End a stream that was cut off, with an error. The same as `close` if the reply was complete by then."""
        if self.ended or self._decoder.all_stopped:
            return self.close()
        if self._tracer is not None:
            self._tracer.begin_end()
        name = self._decoder.open_call_name
        failure = ev.Failure(message + (f", inside the call of {name!r}" if name else ""), type, code)
        events, sent = self._fail_stream([failure], failure)
        self._state = TranslatorState.CLOSED
        self._record(events)
        if self._tracer is not None:
            self._tracer.end_message(sent)
        return sent

    def release(self) -> None:
        """Free the memory of a reply that is not read any further."""
        self._decoder.release()

    # ── whole replies ─────────────────────────────────────────────────────────────────────────────────────────────

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Translate a whole reply to a whole reply: the one that the stream would fold to."""
        written = self._translate_body(body)
        if self._tracer is not None:
            self._tracer.end_message(encode_json(written), whole=True)
        return written

    def _translate_body(self, body: dict[str, Any]) -> dict[str, Any]:
        body, chunk = self._read_body(body)
        choices = self._process_body(chunk)
        events = [*(event for _, events in choices for event in events), *chunk.common]
        usage_events = self._recorder.estimated_usage(events, self._options.input_tokens)
        self._record([*events, *usage_events, *self._final_findings()])
        failure = find_failure(chunk.common)
        is_body = self._source.is_body(body)
        is_upstream_failure = failure is not None and failure.native is not None
        if self._same_wire and (is_upstream_failure or not (chunk.choices or is_body)):
            return body
        template = body if self._same_wire and is_body else None  # a body inside another object is no template
        changed = [
            (choice.index, events)
            for choice, events in choices
            if template is None or not choice.exact or events != choice.events
        ]
        common = [self._client_failure(failure)] if failure else [*chunk.common, *usage_events]
        written, findings = self._target.write_body(changed, common, self._options, self._decoder.tool_set, template)
        self._record([*findings])
        return written

    def stream(self, body: dict[str, Any]) -> bytes:
        """Translate a whole reply to a stream."""
        _, chunk = self._read_body(body)
        choice_events = [(choice.index, events) for choice, events in self._process_body(chunk)]
        events = [*(event for _, events in choice_events for event in events), *chunk.common]
        failure = find_failure(events)
        usage_events = self._recorder.estimated_usage(events, self._options.input_tokens)
        sent = self._emitter.emit(choice_events, [] if failure else chunk.common)
        sent += self._emitter.emit([], usage_events) if usage_events else b""
        sent += self._emitter.fail(self._client_failure(failure)) if failure else self._emitter.finish()
        self._record([*events, *usage_events, *self._final_findings()])
        if self._tracer is not None:
            self._tracer.end_message(sent)
        return sent

    def fold(self, stream: bytes) -> dict[str, Any]:
        """Translate a stream to a whole reply."""
        self._require_unused()
        # Replies of the same wire keep the upstream's id.
        options = msgspec.structs.replace(self._options, reply_id="") if self._same_wire else self._options
        collector = CollectingEmitter(self._target, options, self._decoder.tool_set)
        self._emitter = collector
        self._same_wire = False  # nothing is forwarded: the collector needs the events
        self._fast_path = self._create_fast_path()
        self.feed(stream)
        self.close()
        body = collector.body()
        self._record([])
        if self._tracer is not None:
            self._tracer.end_message(encode_json(body), whole=True)
        return body

    def _read_body(self, body: dict[str, Any]) -> tuple[dict[str, Any], Chunk]:
        """Return the body as a client of the same wire gets it, and its content."""
        self._require_unused()
        expect_type(body, dict, "a reply is a dict", "decode its JSON first")
        self._state = TranslatorState.CLOSED
        if self._tracer is not None:
            self._tracer.begin_message(encode_json(body), whole=True)
        body = self._decoder.join_characters(body)
        if self._signs_for_upstream:
            body = reasoning_fields.sign_reasoning(body, self._source.REASONING_FIELDS, self._options)
        return body, self._decoder.read_body(body)

    def _process_body(self, chunk: Chunk) -> list[tuple[Choice, list[ev.Event]]]:
        choices = []
        for choice in self._supported_choices(chunk.choices, chunk.common):
            pipeline = self._decoder.pipeline_for(choice)
            choices.append((choice, pipeline.process(choice.events) + pipeline.end_of_stream(finished=True)))
        return choices

    # ── from bytes to messages ────────────────────────────────────────────────────────────────────────────────────

    def _require_open(self) -> None:
        if self._state is TranslatorState.CLOSED:
            raise UsageError("this Translator is closed", "one Translator translates one reply: make another one")

    def _require_unused(self) -> None:
        self._require_open()
        if self.begun:
            raise UsageError("this Translator is in the middle of a stream", "make another one for a whole reply")

    def _decode_blocks(self, data: bytes) -> list[sse.SseBlock]:
        if self._fast_path is not None:
            self._fast_path.reset()
        if self._state is not _OPEN:
            self._require_open()
        if type(data) is not bytes:  # checked first, because this runs for every token
            expect_type(data, bytes | bytearray | memoryview, "data is bytes", "pass the received bytes unchanged")
            data = bytes(data)
        if self._state is not _OPEN and self._state is TranslatorState.OVERRUN:
            return []
        limit = min(self._max_event_bytes, 2 * sse.MAX_BLOCK_LINES)  # a line that is not blank has two bytes
        if len(data) > limit:  # in parts, or the decoder would drop the events before one that is too long
            return [block for at in range(0, len(data), limit) for block in self._decode_blocks(data[at : at + limit])]
        try:
            return self._sse.blocks(data)
        except UpstreamError:
            return [TOO_LONG]

    def _final_blocks(self) -> Iterator[sse.SseBlock]:
        if self._state is TranslatorState.CLOSED:
            return
        try:
            yield from self._sse.last_blocks()
        except UpstreamError:
            yield TOO_LONG
        if self._state is TranslatorState.OPEN:
            yield CLOSE
        self._state = TranslatorState.CLOSED

    # ── one message ───────────────────────────────────────────────────────────────────────────────────────────────

    def _process(self, block: sse.SseBlock) -> StepResult:
        """Translate one message."""
        tracer = self._tracer
        if tracer is not None:
            if block is CLOSE:
                tracer.begin_end()
            else:
                tracer.begin_message(block.raw)
        fast_read = self._fast_path.read(block) if self._fast_path is not None else None
        if fast_read is not None:
            events, sent = self._process_fast(fast_read)
        else:
            events, sent = self._read_block(block)
            events = self._record(events)
        if tracer is not None:
            self._end_traced(sent, tracer)
        return events, sent

    def _end_traced(self, sent: bytes, tracer: ReplyTracer) -> None:
        """Report what is held back after a message, and what was sent for it."""
        self._decoder.report_held()
        tracer.end_message(sent)

    def _process_fast(self, fast_read: FastRead) -> StepResult:
        """Translate a chunk that the fast path has read."""
        self._recorder.message_count += 1
        chunk, decoded, raw = fast_read
        events, sent = self._translate(chunk, decoded, raw)
        return self._record(events), sent

    def _record(self, events: list[ev.Event]) -> list[ev.Event]:
        """Record the events, and the findings of the emitter about what it had to write."""
        if self._emitter.findings:
            events = [*events, *self._emitter.findings]
            self._emitter.findings.clear()
        self._record_events(events)
        return events

    def _read_block(self, block: sse.SseBlock) -> StepResult:
        if block is TOO_LONG:
            limits = f"of more than {self._max_event_bytes:,} bytes or {sse.MAX_BLOCK_LINES:,} lines"
            return self._fail_over_limit(limits)
        if block is CLOSE:
            return self._end_stream(b"")
        message = block.message()
        if message.raw.startswith(BOM_UTF8):
            # At the start of a stream clients ignore a byte order mark, and would read the line after it.
            raw = sse.encode_event(message.data, message.event) if message.has_data else SSE_COMMENT
            message = msgspec.structs.replace(message, raw=raw)
        if not message.has_data:
            forwards = message.closed and self._state is not TranslatorState.OVERRUN
            comment = message.raw if self._same_wire else SSE_COMMENT
            return [], comment if forwards else b""
        self._recorder.message_count += 1
        if self._state is not TranslatorState.OPEN:
            return self._drop_after_end(message)
        if message.data.strip() == DONE:
            return self._end_stream(message.raw)
        if not has_at_most_values(message.raw, self._options.limits.values):
            return self._fail_over_limit(f"with more than {self._options.limits.values:,} JSON values")
        decoded = self._decoder.decode_message(message)
        if decoded is None:
            return self._handle_unreadable(message)
        raw = message.raw
        if self._signs_for_upstream:
            decoded, raw = self._sign_chunk(decoded, message)
        return self._translate(self._decoder.reader.read(decoded.chunk), decoded, raw)

    def _sign_chunk(self, decoded: DecodedChunk, message: sse.SseMessage) -> tuple[DecodedChunk, bytes]:
        """Put the upstream's name into the reasoning that only this upstream can read."""
        if not self._source.REASONING_FIELDS.may_occur_in(message.raw):
            return decoded, message.raw
        chunk = reasoning_fields.sign_reasoning(decoded.chunk, self._source.REASONING_FIELDS, self._options)
        if chunk is decoded.chunk:
            return decoded, message.raw
        return DecodedChunk(chunk, decoded.exact), sse.encode_event(write_json(chunk), message.event)

    def _translate(self, chunk: Chunk, decoded: DecodedChunk | None, raw: bytes) -> StepResult:
        """Translate the content of one chunk.

        Args:
            chunk: its content, as the wire's reader has read it.
            decoded: its JSON; None if it is not needed.
            raw: its bytes, which are forwarded if nothing in the chunk has to change.
        """
        if self._decoder.dialect is None:
            self._decoder.learn_dialect(chunk.model)
        template = decoded.chunk if decoded is not None and self._same_wire else None
        exact = template is not None and decoded is not None and decoded.exact and chunk.exact
        choices, common = chunk.choices, chunk.common
        if self._target.SINGLE_CHOICE:
            choices = self._supported_choices(choices, common)
        choice_events, events = self._process_choices(choices)
        events += common
        if common and (failure := find_failure(common)):
            return self._handle_failure(events, failure, raw, exact)
        exact = exact and all(map(_is_unchanged, choice_events, choices))
        if exact and template is not None and not chunk.last:
            forwarded = self._emitter.forward(template, raw)
            if forwarded is not None:
                return events, forwarded
        sent = self._emitter.emit(choice_events, common, template)
        if failure := find_failure(events):
            events, end = self._fail_stream(events, failure)
            return events, sent + end
        if chunk.last:
            last_events, end = self._end_stream(raw, exact=exact, common=events)
            return events + last_events, sent + end
        return events, sent

    def _process_choices(self, choices: list[Choice]) -> tuple[list[tuple[int, list[ev.Event]]], list[ev.Event]]:
        """Return the guarded events of each choice, and all of them as one list."""
        choice_events: list[tuple[int, list[ev.Event]]] = []
        all_events: list[ev.Event] = []
        pipelines = self._decoder.pipelines
        for choice in choices:
            pipeline = pipelines.get(choice.index) or self._decoder.pipeline_for(choice)
            events = pipeline.process(choice.events)
            choice_events.append((choice.index, events))
            all_events += events
        return choice_events, all_events

    def _supported_choices(self, choices: list[Choice], common: list[ev.Event]) -> list[Choice]:
        """Return the choices that the client's wire can carry; report each dropped one once."""
        if not self._target.SINGLE_CHOICE or (len(choices) == 1 and choices[0].index == 0):
            return choices
        for index in {choice.index for choice in choices} - {0}:
            if index not in self._dropped_choices:
                self._dropped_choices[index] = None
                common.append(ev.Finding("choice-dropped", f"choice {index}: the client's API has only one; dropped"))
        return [choice for choice in choices if choice.index == 0]

    # ── faults and the end ────────────────────────────────────────────────────────────────────────────────────────

    def _handle_unreadable(self, message: sse.SseMessage) -> StepResult:
        """Drop an event without a JSON object: official clients give up at such an event."""
        if not message.data.strip():
            finding = ev.Finding("empty-event", "an event without data, which clients cannot read: sent as a comment")
            return [finding], SSE_COMMENT
        if not message.closed:
            finding = ev.Finding("cut-event", f"the stream ended inside an event: dropped {message.data!r:.60}")
            return [finding], b""
        finding = ev.Finding("bad-json", f"an event that is not a JSON object: dropped {message.data!r:.60}")
        self._unreadable_events += 1
        # A piece of an open call may be lost: better no call than a wrong one.
        inside_call = self._decoder.inside_call
        if not inside_call and self._unreadable_events <= MAX_UNREADABLE_EVENTS:
            return [finding], b""
        problem = (
            "an event that cannot be read, inside a call" if inside_call else "too many events that cannot be read"
        )
        failure = ev.Failure(f"the upstream sent {problem}")
        return self._fail_stream([finding, failure], failure)

    def _handle_failure(self, events: list[ev.Event], failure: ev.Failure, raw: bytes, exact: bool) -> StepResult:
        """End the stream with the upstream's error, unless the reply was complete before it."""
        if len(raw) > MAX_ERROR_BODY_BYTES:
            events = [event for event in events if event is not failure]
            failure, exact = shorten_failure(failure), False
            events.append(failure)
        if self._decoder.all_stopped:
            late = ev.Finding("after-stop", f"an error after the reply had stopped: dropped {failure.message!r}")
            return [late], b""
        return self._fail_stream(events, failure, raw if exact else b"")

    def _fail_stream(self, events: list[ev.Event], failure: ev.Failure, raw: bytes = b"") -> StepResult:
        """End the client's stream with an error frame, after the text that was held back.

        Args:
            events: the events of this message so far.
            failure: the error.
            raw: the upstream's own frame, if it may be forwarded.
        """
        choice_events = self._decoder.flush()
        self._mark_ended()
        sent = self._emitter.emit(choice_events)
        sent += raw or self._emitter.fail(self._client_failure(failure))
        return events + [event for _, flushed in choice_events for event in flushed], sent

    def _fail_over_limit(self, problem: str) -> StepResult:
        """End the client's stream, because an event exceeds a limit."""
        if self._state is not TranslatorState.OPEN:
            return [], b""
        failure = ev.Failure(f"the upstream sent an event {problem}")
        result = self._fail_stream([failure], failure)
        self._state = TranslatorState.OVERRUN
        return result

    def _find_excess(self) -> str:
        """Return which limit of the stream is exceeded; "" if none is, or if the stream has ended."""
        limits = self._options.limits
        kept_chars = max(self.tally.content_bytes, self._emitter.kept_chars)
        self._next_check = min(self._received_bytes + CHECK_INTERVAL_BYTES, max(limits.stream, self._received_bytes))
        if self._state is not _OPEN:
            return ""
        if self._received_bytes > limits.stream:
            return f"the upstream's stream has more than {limits.stream:,} bytes (limits.stream)"
        return f"the reply has more than {limits.text:,} characters (limits.text)" if kept_chars > limits.text else ""

    def _end_over_limit(self, problem: str) -> bytes:
        """End the stream with an error. If the reply is complete, only the rest of the stream is dropped."""
        if self._tracer is not None:
            self._tracer.begin_end()
        if self._decoder.all_stopped:
            events, sent = self._end_stream(b"")
            events.append(ev.Finding("after-end", f"{problem}: the rest of the stream is dropped"))
        else:
            failure = ev.Failure(problem)
            events, sent = self._fail_stream([failure], failure)
        self._state = TranslatorState.OVERRUN
        self._record(events)
        if self._tracer is not None:
            self._tracer.end_message(sent)
        return sent

    def _end_stream(self, done: bytes, *, exact: bool = True, common: Sequence[ev.Event] = ()) -> StepResult:
        """End the client's stream.

        Args:
            done: the upstream's bytes that mark the end of its stream; empty if the stream was cut off.
            exact: these bytes may be forwarded.
            common: the events of the last chunk, which are not recorded yet.
        """
        finished = bool(done)
        choice_events = self._decoder.close(finished)
        events = [event for _, last_events in choice_events for event in last_events]
        events += self._final_findings()
        if not self._decoder.pipelines:
            events.append(ev.Failure("the upstream ended without a reply"))
        failure = find_failure(events)
        sent = self._emitter.emit(choice_events)
        if failure:
            sent += self._emitter.fail(self._client_failure(failure))
        else:
            usage_events = self._recorder.estimated_usage([*events, *common], self._options.input_tokens)
            sent += self._emitter.emit([], usage_events) if usage_events else b""
            sent += self._emitter.finish(done if self._same_wire and exact and not usage_events else b"")
            events += usage_events
        self._mark_ended()
        return events, sent

    def _mark_ended(self) -> None:
        self._state = TranslatorState.ENDED
        self._fast_path = None

    def _drop_after_end(self, message: sse.SseMessage) -> StepResult:
        """Drop a message after the end. Only the first one is reported, and no [DONE] after an error."""
        findings: list[ev.Event] = []
        if self._state is TranslatorState.ENDED and message.data.strip() != DONE:
            self._state = TranslatorState.OVERRUN
            findings.append(ev.Finding("after-end", f"data after the end of the stream: dropped {message.data!r:.60}"))
        return findings, b""

    def _final_findings(self) -> list[ev.Finding]:
        """Return the findings that only a complete reply shows."""
        findings: list[ev.Finding] = []
        if self._decoder.has_split_character:
            message = "half of a surrogate pair was left at the end of a text: dropped"
            findings.append(ev.Finding("half-character", message))
        if self._decoder.ended_empty and not self._recorder.has_finding("not-translated"):
            findings.append(ev.Finding("empty-turn", "the model stopped without a text or a call: forwarded unchanged"))
        return findings

    def _client_failure(self, failure: ev.Failure) -> ev.Failure:
        """Return the failure for the client. The upstream's own fields are for clients of the same wire only."""
        return failure if self._same_wire else msgspec.structs.replace(failure, native=None)


def translate_reply(
    body: dict[str, Any],
    source: WireLike = "openai-chat",
    target: WireLike = "openai-chat",
    dialect: str | Dialect = "auto",
    model: str | None = None,
    tools: ToolsLike = None,
    options: Options | None = None,
    *,
    tool_choice: ToolChoiceLike = None,
) -> dict[str, Any]:
    """Translate a whole reply of one wire to a whole reply of another. `Translator.reply` also has the findings."""
    return Translator(source, target, dialect, model, tools, options, tool_choice=tool_choice).reply(body)


def _find_event_end(data: bytes, start: int) -> int:
    """Return the end of the event that begins at this position, or the end of the data."""
    end = data.find(EVENT_END, start)
    return end + len(EVENT_END) if end >= 0 else len(data)


def _is_unchanged(choice_events: tuple[int, list[ev.Event]], choice: Choice) -> bool:
    return choice_events[1] == choice.events
