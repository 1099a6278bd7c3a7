"""Reply decoder: the chunks of one upstream reply to events that are parsed and guarded, per choice.

`Translator` writes these events to another wire, `Accumulator` collects them. The decoder chooses the dialect, keeps
one `ChoicePipeline` per choice and joins characters that the upstream has split over two chunks. It does no I/O.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import msgspec

from interlingua import events as ev
from interlingua.core.call_ids import PackedIds
from interlingua.core.options import Options
from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolSet, ToolsLike
from interlingua.dialects.registry import STANDARD_DIALECT, dialect_for, get_dialect
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.tracer import ReplyTracer
from interlingua.wires.base import Choice, Chunk, Json, Wire
from interlingua.wires.streaming import chunk_decoder, sse
from interlingua.wires.streaming.chunk_decoder import DecodedChunk

__all__ = ["DONE", "MAX_UNREADABLE_EVENTS", "ReplyDecoder"]

DONE = "[DONE]"
"""Data of the event that ends a stream of chat completions. Upstreams of other wires send it, too."""
ERROR_EVENT = "error"
"""Name of the SSE event that reports an error, whatever its data looks like."""
MAX_UNREADABLE_EVENTS = 100
"""Number of events without a JSON object that are dropped before the reply fails."""


class ReplyDecoder:
    """Decodes the chunks, or the body, of one reply."""

    __slots__ = ("_chunks", "_options", "_running", "_tracer", "dialect", "pipelines", "reader", "tool_set", "wire")

    def __init__(
        self,
        wire: Wire,
        dialect: str | Dialect,
        model: str | None,
        tools: ToolsLike,
        options: Options,
        tracer: ReplyTracer | None = None,
        tool_choice: ToolChoiceLike = None,
    ) -> None:
        """`dialect` is a name, a Dialect, or "auto": by `model`, else by the model that the first chunk names."""
        self.wire = wire
        self.reader = wire.reader(options)
        self.tool_set = tools if isinstance(tools, ToolSet) and tool_choice is None else ToolSet(tools, tool_choice)
        self.dialect = _choose_dialect(dialect, model)
        """The dialect in use; None until a chunk names the model."""
        self.pipelines: dict[int, ChoicePipeline] = {}
        """The pipeline of each choice that has begun, by the choice's index."""
        self._running: list[int] = []
        """The choices that may not have stopped: those that have are removed when they are found."""
        if options.taken_ids and not isinstance(options.taken_ids, Set | PackedIds):  # a set, which all choices share
            options = msgspec.structs.replace(options, taken_ids=frozenset(options.taken_ids))
        self._options = options
        self._tracer = tracer
        self._chunks = chunk_decoder.ChunkDecoder()

    # ── state ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def buffered(self) -> str:
        """Text that is buffered until the text after it is known."""
        return "".join(pipeline.buffered for pipeline in self.pipelines.values())

    @property
    def held_chars(self) -> int:
        """Number of characters that are held back in all choices."""
        return sum(pipeline.held_chars for pipeline in self.pipelines.values())

    @property
    def all_stopped(self) -> bool:
        """True if the reply has begun and every choice has its stop reason."""
        while self._running and self.pipelines[self._running[-1]].stopped:
            self._running.pop()
        return bool(self.pipelines) and not self._running

    @property
    def inside_call(self) -> bool:
        """True if a call, or a section of calls, is open in any choice."""
        return any(pipeline.inside_call for pipeline in self.pipelines.values())

    @property
    def open_call_name(self) -> str | None:
        """The name of the first call that is open."""
        names = (pipeline.open_call_name for pipeline in self.pipelines.values())
        return next((name for name in names if name), None)

    @property
    def ended_empty(self) -> bool:
        """True if a choice stopped as if it were complete, without a text or a call."""
        return any(pipeline.ended_empty for pipeline in self.pipelines.values())

    @property
    def has_split_character(self) -> bool:
        """True if a chunk ended inside a surrogate pair and its second half has not come yet."""
        return bool(self._chunks.pending_surrogates)

    # ── from bytes to chunks ──────────────────────────────────────────────────────────────────────────────────────

    def decode_message(self, message: sse.SseMessage) -> DecodedChunk | None:
        """Return the JSON object of an SSE message; None if its data is not a JSON object."""
        decoded = self._chunks.decode(message.data)
        if message.event == ERROR_EVENT and message.data.strip():
            return chunk_decoder.as_error_chunk(decoded, message.data)
        return decoded

    def decode_data(self, data: bytes) -> DecodedChunk | None:
        """Return the JSON object in the data of one event that is not an error event."""
        return self._chunks.decode(data.decode("utf-8", "replace"))

    def join_characters(self, body: Json) -> Json:
        """Return the chunk or body with whole characters: surrogates that were split over chunks are joined."""
        if self._chunks.pending_surrogates or chunk_decoder.has_lone_surrogates(body):
            joined: Json = self._chunks.join_surrogates(body)
            return joined
        return body

    def read_body(self, body: dict[str, Any]) -> Chunk:
        """Read a whole reply and learn the dialect from the model that it names."""
        chunk = self.wire.read_body(body, self.reader)
        self.learn_dialect(chunk.model)
        return chunk

    def learn_dialect(self, model: str) -> None:
        """Choose the dialect by the upstream's model, if it is not known yet."""
        if self.dialect is None and model:
            self.dialect = dialect_for(model)
            self._report_dialect()
            for pipeline in self.pipelines.values():
                pipeline.set_dialect(self.dialect)

    def release(self) -> None:
        """Free the parsers of a reply that is not read any further, which a garbage collection would do later."""
        for pipeline in self.pipelines.values():
            pipeline.release()

    # ── from chunks to events ─────────────────────────────────────────────────────────────────────────────────────

    def pipeline_for(self, choice: Choice) -> ChoicePipeline:
        """Return the pipeline of a choice. A choice that begins gets a new one, seeded by its first events."""
        pipeline = self.pipelines.get(choice.index)
        if pipeline is None:
            self._report_dialect()
            pipeline = ChoicePipeline.for_choice(
                choice.index,
                choice.events,
                self.dialect or STANDARD_DIALECT,
                self.tool_set,
                self._options,
                tracer=self._tracer.for_choice(choice.index) if self._tracer is not None else None,
            )
            self.pipelines[choice.index] = pipeline
            self._running.append(choice.index)
        return pipeline

    def take_running(self) -> list[tuple[int, ChoicePipeline]]:
        """Return each choice that may not have stopped, once: the caller ends it."""
        running, self._running = self._running, []
        return [(index, self.pipelines[index]) for index in running]

    def report_held(self) -> None:
        """Report the texts that wait in any choice, if the reply is traced."""
        for pipeline in self.pipelines.values():
            pipeline.report_held()

    def _report_dialect(self) -> None:
        if self._tracer is not None and self.dialect is not None:
            self._tracer.report_dialect(self.dialect.name)

    def flush(self) -> list[tuple[int, list[ev.Event]]]:
        """End the text of every choice: return what was held back."""
        return [(index, pipeline.flush()) for index, pipeline in self.pipelines.items()]

    def close(self, finished: bool) -> list[tuple[int, list[ev.Event]]]:
        """End the stream: return the last events of every choice.

        Args:
            finished: the upstream has marked the end of its stream, so that it was not cut off.
        """
        last_events = []
        for index, events in self.reader.close(finished):
            if pipeline := self.pipelines.get(index):  # a choice that the client does not support has none
                last_events.append((index, pipeline.process(events) + pipeline.end_of_stream(finished)))
        return last_events


def _choose_dialect(dialect: str | Dialect, model: str | None) -> Dialect | None:
    if dialect != "auto":
        return get_dialect(dialect)
    return dialect_for(model) if model else None
