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
from interlingua.client.body_framing import Framing
from interlingua.client.sdk_chunks import as_json
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Options
from interlingua.core.options__limits import Limits
from interlingua.core.reply import Call, Folder, Reply
from interlingua.core.tools import Offer, ToolsLike
from interlingua.dialects.registry import STANDARD, dialect_for, dialect_named
from interlingua.errors import UpstreamError, UsageError, shortened
from interlingua.parsing.choice_pipeline import Lane
from interlingua.parsing.dialect import Dialect
from interlingua.translation.translator__ending import DONE
from interlingua.wires import wire_named
from interlingua.wires.base import Choice, Chunk, Json
from interlingua.wires.streaming import chunk_decoder as chunks
from interlingua.wires.streaming import sse

__all__ = ["Accumulator"]

ERROR = "error"
"""The event that is an error, whatever its data looks like."""


class _Told:
    """One choice: its way through parser and guard, and what has come of it."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.folder = Folder()

    def take(self, events: list[ev.Event]) -> None:
        for event in events:
            self.folder.add(event)

    def reply(self) -> Reply:
        """With the calls that wait for an earlier one to end: a wire may tell of several at once."""
        reply = self.folder.reply()
        return msgspec.structs.replace(reply, parts=[*reply.parts, *self.lane.waiting]) if self.lane.waiting else reply


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
        self._wire = wire_named(wire)
        self._options = Options(limits=limits or Limits())
        self._offer = Offer(tools)
        self._dialect = dialect_named(dialect) if dialect != "auto" else dialect_for(model) if model else None
        self._reader = self._wire.reader(self._options.limits)
        self._framing = Framing(self._options.limits.event)
        self._decoder = sse.Decoder(self._options.limits.event)
        self._chunks = chunks.ChunkDecoder()
        self._told: dict[int, _Told] = {}
        self._heard: set[int] = set()  # the choices that the upstream has told of
        self._strange = ""  # a chunk that tells of none, before any did
        self._closed = False

    # ── what comes ────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, chunk: Any) -> None:
        """One chunk, a whole reply, or a piece of the response's body."""
        if self._closed:
            raise UsageError("this Accumulator is closed", "one Accumulator takes one reply: make another one")
        if isinstance(chunk, str):
            chunk = chunk.encode()
        if isinstance(chunk, bytes | bytearray | memoryview):
            self._add_piece(bytes(chunk))
        elif (body := as_json(chunk)) is not None:
            self._add_chunk(self._chunks.join(body) if self._chunks.halves or chunks.has_halves(body) else body)

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
        self._end(said_done=False)

    def _add_piece(self, piece: bytes) -> None:
        try:
            messages = self._decoder.feed(self._framing.take(piece))
        except UpstreamError as error:
            self._fail(ev.Failure(str(error)))
            return
        for message in messages:
            self._add_message(message)

    def _add_message(self, message: sse.Message) -> None:
        data = message.data.strip()
        if data == DONE:
            self._end(said_done=True)
        elif data:
            decoded = self._chunks.decode(data)
            if message.event == ERROR:
                decoded = chunks.as_error(decoded, data)
            if decoded is not None:
                self._add_chunk(decoded.chunk)
            else:
                self._unreadable(data)

    def _add_chunk(self, body: Json) -> None:
        whole = self._wire.is_body(body) and not _is_chunk(body)
        read = self._wire.read_body(body, self._reader) if whole else self._reader.read(body)
        self._heard.update(choice.index for choice in read.choices)
        if not self._heard and not self._strange:
            self._strange = write_json(body)
        self._learn_dialect(read.model)
        for choice in read.choices:
            told = self._choice(choice)
            told.take(told.lane.take(choice.events))
        self._hear(read)
        if read.last or whole:
            self._end(said_done=True)

    def _hear(self, read: Chunk) -> None:
        """What is said of the whole reply."""
        for event in read.common:
            if isinstance(event, ev.Failure):
                self._fail(event)
            else:
                first = self._choice(Choice(0, [], exact=True))
                first.take(first.lane.take([event]))

    def _learn_dialect(self, model: str) -> None:
        if self._dialect is None and model:
            self._dialect = dialect_for(model)
            for told in self._told.values():
                told.lane.speak(self._dialect)

    def _choice(self, choice: Choice) -> _Told:
        if choice.index not in self._told:
            lane = Lane.of(choice.index, choice.events, self._dialect or STANDARD, self._offer, self._options)
            self._told[choice.index] = _Told(lane)
        return self._told[choice.index]

    def _unreadable(self, data: str) -> None:
        """If a call is open, a piece of it may be lost: better no call than a wrong one."""
        first = self._choice(Choice(0, [], exact=True))
        first.take([ev.Finding("bad-json", f"an event that is not a JSON object: dropped {data!r:.60}")])
        if any(told.lane.inside_call for told in self._told.values()):
            self._fail(ev.Failure("the upstream sent an event that cannot be read, inside a call"))

    def _fail(self, failure: ev.Failure) -> None:
        self._choice(Choice(0, [], exact=True))
        for told in self._told.values():
            told.take(told.lane.release() + told.lane.take([failure]))

    def _end(self, said_done: bool) -> None:
        """The stream is over: what is held comes out."""
        if not self._heard and not any(told.folder.failure for told in self._told.values()):
            self._fail_unheard()
        for index, held in self._reader.close(said_done):
            if told := self._told.get(index):
                told.take(told.lane.take(held) + told.lane.close_stream(said_done))

    def _fail_unheard(self) -> None:
        """Nothing that came was of a reply."""
        first = self._choice(Choice(0, [], exact=True))
        if self._strange:
            what = f"nothing that came is of {self._wire.NAME}: dropped {shortened(self._strange, 60)}"
            first.take([ev.Finding("bad-chunk", what)])
            self._fail(ev.Failure(f"{what}; is the wire right?"))
        else:
            self._fail(ev.Failure("the upstream ended without a reply"))

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────

    def reply(self, choice: int = 0) -> Reply:
        """The reply so far. Calls that are still coming are in it, and not complete."""
        told = self._told.get(choice)
        return told.reply() if told else Reply()

    @property
    def text(self) -> str:
        told = self._told.get(0)
        return told.folder.text if told else ""

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
        told = self._told.get(0)
        return told is not None and told.folder.stop_reason is not None and told.folder.failure is None

    @property
    def why(self) -> str:
        """Why it is not finished, in words; nothing if it is."""
        told = self._told.get(0)
        if told is None:
            return "the reply has not ended" if self._told else "nothing has come yet"
        if told.folder.failure is not None:
            return told.folder.failure.message
        if told.folder.stop_reason is not None:
            return ""
        if told.lane.open_call is not None:
            return f"the call of {told.lane.open_call!r} is still open"
        return "the reply has not ended"


def _is_chunk(body: Json) -> bool:
    """Whether this is a chunk of chat completions: it has choices as whole replies do, but none with a message."""
    choices = body.get("choices")
    return isinstance(choices, list) and not any(isinstance(one, dict) and "message" in one for one in choices)
