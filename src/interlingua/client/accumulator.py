"""A reply put together from its chunks, whatever they come as; and what is known of it while it is still coming.

acc = Accumulator("openai-chat")
for chunk in client.chat.completions.create(…, stream=True):
    acc.add(chunk)
    print(acc.text, [call.partial() for call in acc.calls])
acc.close()
if acc.finished:
    for call in acc.calls: …
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua import events as ev
from interlingua.client.body_framing import BodyFraming
from interlingua.client.sdk_chunks import chunk_to_json
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Limits, Options
from interlingua.core.reply import Call, Reply, ReplyBuilder
from interlingua.core.tools import ToolSet, ToolsLike
from interlingua.dialects.registry import STANDARD_DIALECT, dialect_for, get_dialect
from interlingua.errors import UpstreamError, UsageError, shorten
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.dialect import Dialect
from interlingua.translation.translator import DONE
from interlingua.wires import get_wire
from interlingua.wires.base import Choice, Chunk, Json
from interlingua.wires.streaming import chunk_decoder as chunks
from interlingua.wires.streaming import sse

__all__ = ["Accumulator"]

ERROR_EVENT = "error"
"""The event that is an error, whatever its data looks like."""


class _ChoiceAccumulator:
    """One choice: its way through parser and guard, and what has come of it."""

    def __init__(self, pipeline: ChoicePipeline) -> None:
        self.pipeline = pipeline
        self.builder = ReplyBuilder()

    def add(self, events: list[ev.Event]) -> None:
        for event in events:
            self.builder.add(event)

    def reply(self) -> Reply:
        """With the calls that wait for an earlier one to end: a wire may tell of several at once."""
        reply = self.builder.reply()
        return (
            msgspec.structs.replace(reply, parts=[*reply.parts, *self.pipeline.pending_calls])
            if self.pipeline.pending_calls
            else reply
        )


class Accumulator:
    """Takes the chunks of one reply: dicts, objects of an SDK, or the body of the response as bytes or text.

    A body is server-sent events, cut anywhere or line by line as `iter_lines()` of HTTP clients has them, or JSON.

    `dialect` is as for a Translator: calls that a model wrote as text are calls here, too. `tools` are those offered.
    A reply that was asked for several times (`n`) has choices: all that is told is of the first, but for `reply(n)`.
    """

    def __init__(
        self,
        wire: str = "openai-chat",
        *,
        dialect: str | Dialect = "auto",
        model: str | None = None,
        tools: ToolsLike = None,
        limits: Limits | None = None,
    ) -> None:
        self._wire = get_wire(wire)
        self._options = Options(limits=limits or Limits())
        self._tool_set = ToolSet(tools)
        self._dialect = get_dialect(dialect) if dialect != "auto" else dialect_for(model) if model else None
        self._reader = self._wire.reader(self._options.limits)
        self._framing = BodyFraming(self._options.limits.event)
        self._decoder = sse.SseDecoder(self._options.limits.event)
        self._chunk_decoder = chunks.ChunkDecoder()
        self._choices: dict[int, _ChoiceAccumulator] = {}
        self._seen_choices: set[int] = set()  # the choices that the upstream has told of
        self._unrecognised_chunk = ""  # a chunk that tells of none, before any did
        self._closed = False

    # ── what comes ────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, chunk: Any) -> None:
        """One chunk, a whole reply, or a piece of the response's body."""
        if self._closed:
            raise UsageError("this Accumulator is closed", "one Accumulator takes one reply: make another one")
        if isinstance(chunk, str):
            chunk = chunk.encode()
        if isinstance(chunk, bytes | bytearray | memoryview):
            self._add_bytes(bytes(chunk))
        elif (body := chunk_to_json(chunk)) is not None:
            self._add_chunk(
                self._chunk_decoder.join_surrogates(body)
                if self._chunk_decoder.pending_surrogates or chunks.has_lone_surrogates(body)
                else body
            )

    def close(self) -> None:
        """No more will come. A reply that is not finished by now never will be, and `why` tells what is missing."""
        if self._closed:
            return
        self._closed = True
        try:
            messages = [*self._decoder.feed(self._framing.close()), *self._decoder.close()]
        except UpstreamError as error:
            self._fail(ev.Failure(str(error)))
            messages = []
        for message in messages:
            self._add_message(message)
        self._end(finished=False)

    def _add_bytes(self, data: bytes) -> None:
        try:
            messages = self._decoder.feed(self._framing.feed(data))
        except UpstreamError as error:
            self._fail(ev.Failure(str(error)))
            return
        for message in messages:
            self._add_message(message)

    def _add_message(self, message: sse.SseMessage) -> None:
        data = message.data.strip()
        if data == DONE:
            self._end(finished=True)
        elif data:
            decoded = self._chunk_decoder.decode(data)
            if message.event == ERROR_EVENT:
                decoded = chunks.as_error_chunk(decoded, data)
            if decoded is not None:
                self._add_chunk(decoded.chunk)
            else:
                self._report_unreadable(data)

    def _add_chunk(self, body: Json) -> None:
        is_complete = self._wire.is_body(body) and not _is_chunk(body)
        chunk = self._wire.read_body(body, self._reader) if is_complete else self._reader.read(body)
        self._seen_choices.update(choice.index for choice in chunk.choices)
        if not self._seen_choices and not self._unrecognised_chunk:
            self._unrecognised_chunk = write_json(body)
        self._learn_dialect(chunk.model)
        for choice in chunk.choices:
            accumulator = self._choice_for(choice)
            accumulator.add(accumulator.pipeline.process(choice.events))
        self._add_common_events(chunk)
        if chunk.last or is_complete:
            self._end(finished=True)

    def _add_common_events(self, chunk: Chunk) -> None:
        """What is said of the whole reply."""
        for event in chunk.common:
            if isinstance(event, ev.Failure):
                self._fail(event)
            else:
                first = self._choice_for(Choice(0, [], exact=True))
                first.add(first.pipeline.process([event]))

    def _learn_dialect(self, model: str) -> None:
        if self._dialect is None and model:
            self._dialect = dialect_for(model)
            for accumulator in self._choices.values():
                accumulator.pipeline.set_dialect(self._dialect)

    def _choice_for(self, choice: Choice) -> _ChoiceAccumulator:
        if choice.index not in self._choices:
            pipeline = ChoicePipeline.for_choice(
                choice.index, choice.events, self._dialect or STANDARD_DIALECT, self._tool_set, self._options
            )
            self._choices[choice.index] = _ChoiceAccumulator(pipeline)
        return self._choices[choice.index]

    def _report_unreadable(self, data: str) -> None:
        """If a call is open, a piece of it may be lost: better no call than a wrong one."""
        first = self._choice_for(Choice(0, [], exact=True))
        first.add([ev.Finding("bad-json", f"an event that is not a JSON object: dropped {data!r:.60}")])
        if any(accumulator.pipeline.inside_call for accumulator in self._choices.values()):
            self._fail(ev.Failure("the upstream sent an event that cannot be read, inside a call"))

    def _fail(self, failure: ev.Failure) -> None:
        self._choice_for(Choice(0, [], exact=True))
        for accumulator in self._choices.values():
            accumulator.add(accumulator.pipeline.flush() + accumulator.pipeline.process([failure]))

    def _end(self, finished: bool) -> None:
        """The stream is over: what is held comes out."""
        if not self._seen_choices and not any(accumulator.builder.failure for accumulator in self._choices.values()):
            self._fail_without_reply()
        for index, events in self._reader.close(finished):
            if told := self._choices.get(index):
                told.add(told.pipeline.process(events) + told.pipeline.end_of_stream(finished))

    def _fail_without_reply(self) -> None:
        """Nothing that came was of a reply."""
        first = self._choice_for(Choice(0, [], exact=True))
        if self._unrecognised_chunk:
            message = f"nothing that came is of {self._wire.NAME}: dropped {shorten(self._unrecognised_chunk, 60)}"
            first.add([ev.Finding("bad-chunk", message)])
            self._fail(ev.Failure(f"{message}; is the wire right?"))
        else:
            self._fail(ev.Failure("the upstream ended without a reply"))

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────

    def reply(self, choice: int = 0) -> Reply:
        """The reply so far. Calls that are still coming are in it, and not complete."""
        accumulator = self._choices.get(choice)
        return accumulator.reply() if accumulator else Reply()

    @property
    def text(self) -> str:
        accumulator = self._choices.get(0)
        return accumulator.builder.text if accumulator else ""

    @property
    def reasoning(self) -> str:
        return self.reply().reasoning

    @property
    def calls(self) -> list[Call]:
        return self.reply().calls

    @property
    def findings(self) -> list[ev.Finding]:
        return self.reply().findings

    @property
    def finished(self) -> bool:
        """Whether the upstream has said that the reply is over, and why it stopped. Run no call before that."""
        accumulator = self._choices.get(0)
        return (
            accumulator is not None
            and accumulator.builder.stop_reason is not None
            and accumulator.builder.failure is None
        )

    @property
    def why(self) -> str:
        """Why it is not finished, in words; nothing if it is."""
        accumulator = self._choices.get(0)
        if accumulator is None:
            return "the reply has not ended" if self._choices else "nothing has come yet"
        if accumulator.builder.failure is not None:
            return accumulator.builder.failure.message
        if accumulator.builder.stop_reason is not None:
            return ""
        if accumulator.pipeline.open_call_name is not None:
            return f"the call of {accumulator.pipeline.open_call_name!r} is still open"
        return "the reply has not ended"


def _is_chunk(body: Json) -> bool:
    """Whether this is a chunk of chat completions: it has choices as whole replies do, but none with a message."""
    choices = body.get("choices")
    return isinstance(choices, list) and not any(isinstance(choice, dict) and "message" in choice for choice in choices)
