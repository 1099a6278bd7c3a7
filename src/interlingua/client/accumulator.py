"""Accumulator: one reply collected from its chunks, and its state while it is still arriving.

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
from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolsLike
from interlingua.core.wire_traits import DEFAULT_WIRE, WireLike
from interlingua.errors import UpstreamError, UsageError, shorten
from interlingua.parsing.dialect import Dialect
from interlingua.translation.reply_decoder import DONE, MAX_UNREADABLE_EVENTS, ReplyDecoder
from interlingua.wires import get_wire
from interlingua.wires.base import Choice, Json
from interlingua.wires.streaming import sse

__all__ = ["Accumulator"]

_FIRST_CHOICE = Choice(0, [], exact=True)
"""Owner of events that are of no choice: failures, and findings about the stream."""


class Accumulator:
    """Collects the chunks of one reply: dicts, objects of an SDK, or the response body as bytes or text.

    A body is server-sent events, cut anywhere or line by line as `iter_lines()` of HTTP clients returns them, or JSON.

    A request with `n` > 1 gets several choices: all properties are those of the first one; `reply(n)` returns another.

    Args:
        wire: the API that the chunks are of.
        dialect: as for a Translator. Calls that a model wrote as text are calls here, too.
        model: the id of the model, for `dialect="auto"`.
        tools: the tools that were offered; None if they are not known.
        tool_choice: the tool choice of the request, as for a Translator.
        limits: see `il.Limits`.
    """

    def __init__(
        self,
        wire: WireLike = DEFAULT_WIRE,
        *,
        dialect: str | Dialect = "auto",
        model: str | None = None,
        tools: ToolsLike = None,
        tool_choice: ToolChoiceLike = None,
        limits: Limits | None = None,
    ) -> None:
        options = Options(limits=limits or Limits())
        self._wire = get_wire(wire)
        self._decoder = ReplyDecoder(self._wire, dialect, model, tools, options, tool_choice=tool_choice)
        self._framing = BodyFraming(options.limits.event)
        self._sse = sse.SseDecoder(options.limits.event)
        self._builders: dict[int, ReplyBuilder] = {}
        self._has_choice = False
        self._unrecognised_chunk = ""  # the first chunk without a choice, as long as no chunk had one
        self._unreadable_events = 0
        self._closed = False

    # ── adding chunks ─────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, chunk: Any) -> None:
        """Add one chunk, a whole reply, or a piece of the response body."""
        if self._closed:
            raise UsageError("this Accumulator is closed", "one Accumulator takes one reply: make another one")
        if isinstance(chunk, str):
            chunk = chunk.encode()
        if isinstance(chunk, bytes | bytearray | memoryview):
            self._add_bytes(bytes(chunk))
        elif (body := chunk_to_json(chunk)) is not None:
            self._add_chunk(self._decoder.join_characters(body))

    def close(self) -> None:
        """End the reply. If it is not finished by then, `why` says what is missing."""
        if self._closed:
            return
        self._closed = True
        try:
            messages = [*self._sse.feed(self._framing.close()), *self._sse.close()]
        except UpstreamError as error:
            self._fail(ev.Failure(str(error)))
            messages = []
        for message in messages:
            self._add_message(message)
        self._end(finished=False)

    def _add_bytes(self, data: bytes) -> None:
        try:
            messages = self._sse.feed(self._framing.feed(data))
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
            decoded = self._decoder.decode_message(message)
            if decoded is not None:
                self._add_chunk(decoded.chunk)
            else:
                self._report_unreadable(data)

    def _add_chunk(self, body: Json) -> None:
        is_complete = self._wire.is_body(body) and not _is_chunk(body)
        chunk = self._decoder.read_body(body) if is_complete else self._decoder.reader.read(body)
        self._has_choice = self._has_choice or bool(chunk.choices)
        if not self._has_choice and not self._unrecognised_chunk:
            self._unrecognised_chunk = write_json(body)
        self._decoder.learn_dialect(chunk.model)
        for choice in chunk.choices:
            self._process(choice, choice.events)
        for event in chunk.common:
            if isinstance(event, ev.Failure):
                self._fail(event)
            else:
                self._process(_FIRST_CHOICE, [event])
        if chunk.last or is_complete:
            self._end(finished=True)

    def _process(self, choice: Choice, events: list[ev.Event]) -> None:
        self._collect(choice.index, self._decoder.pipeline_for(choice).process(events))

    def _collect(self, index: int, events: list[ev.Event]) -> None:
        builder = self._builders.setdefault(index, ReplyBuilder())
        for event in events:
            builder.add(event)

    def _report_unreadable(self, data: str) -> None:
        self._unreadable_events += 1
        if self._unreadable_events > MAX_UNREADABLE_EVENTS + 1:  # the reply has failed
            return
        self._decoder.pipeline_for(_FIRST_CHOICE)
        finding = ev.Finding("bad-json", f"an event that is not a JSON object: dropped {data!r:.60}")
        self._collect(_FIRST_CHOICE.index, [finding])
        if self._decoder.inside_call:  # a piece of the call may be lost: better no call than a wrong one
            self._fail(ev.Failure("the upstream sent an event that cannot be read, inside a call"))
        elif self._unreadable_events > MAX_UNREADABLE_EVENTS:
            self._fail(ev.Failure("the upstream sent too many events that cannot be read"))

    def _fail(self, failure: ev.Failure) -> None:
        first = self._decoder.pipeline_for(_FIRST_CHOICE)
        for index, pipeline in self._decoder.take_running() or [(_FIRST_CHOICE.index, first)]:
            self._collect(index, pipeline.flush() + pipeline.process([failure]))

    def _end(self, finished: bool) -> None:
        """End the stream: collect what was held back."""
        if not self._has_choice and not any(builder.failure for builder in self._builders.values()):
            self._fail_without_reply()
        for index, events in self._decoder.close(finished):
            self._collect(index, events)

    def _fail_without_reply(self) -> None:
        self._decoder.pipeline_for(_FIRST_CHOICE)
        if self._unrecognised_chunk:
            message = f"no chunk is of {self._wire.NAME}: dropped {shorten(self._unrecognised_chunk, 60)}"
            self._collect(_FIRST_CHOICE.index, [ev.Finding("bad-chunk", message)])
            self._fail(ev.Failure(f"{message}; is the wire right?"))
        else:
            self._fail(ev.Failure("the upstream ended without a reply"))

    # ── the reply so far ──────────────────────────────────────────────────────────────────────────────────────────

    def reply(self, choice: int = 0) -> Reply:
        """Return the reply so far. Calls that are not finished are in it, with `complete` false."""
        builder = self._builders.get(choice)
        if builder is None:
            return Reply()
        reply = builder.reply()
        # Calls that the guard holds back until an earlier one ends: some wires send several calls at once.
        pending = self._decoder.pipelines[choice].pending_calls
        return msgspec.structs.replace(reply, parts=[*reply.parts, *pending]) if pending else reply

    @property
    def text(self) -> str:
        builder = self._builders.get(0)
        return builder.text if builder else ""

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
        """True if the upstream has ended the reply and sent a stop reason. Do not run calls before that."""
        builder = self._builders.get(0)
        return builder is not None and builder.stop_reason is not None and builder.failure is None

    @property
    def why(self) -> str:
        """The reason why the reply is not finished; empty if it is."""
        builder = self._builders.get(0)
        if builder is None:
            return "the reply has not ended" if self._builders else "no data was received yet"
        if builder.failure is not None:
            return builder.failure.message
        if builder.stop_reason is not None:
            return ""
        open_call = self._decoder.pipelines[0].open_call_name
        return f"the call of {open_call!r} is still open" if open_call is not None else "the reply has not ended"


def _is_chunk(body: Json) -> bool:
    """Return whether this is a chunk of chat completions. Whole replies have choices, too, but with a message each."""
    choices = body.get("choices")
    return isinstance(choices, list) and not any(isinstance(choice, dict) and "message" in choice for choice in choices)
