"""reader → parser → guard → emitter, for one reply; still no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from interlingua import events as ev
from interlingua.dialect import Dialect
from interlingua.dialects import STANDARD, dialect_for, dialect_named
from interlingua.errors import UpstreamError, UsageError, expect
from interlingua.json_text import write_json
from interlingua.lane import Lane
from interlingua.options import Options
from interlingua.tally import Tally
from interlingua.tools import Offer, ToolsLike
from interlingua.upstreams import signs
from interlingua.wire import chunks, opaque, sse
from interlingua.wire.folding import Folding
from interlingua.wire.wire import Choice, Chunk, Emitter
from interlingua.wires import wire_named

__all__ = ["Step", "Translator", "translate_reply"]

DONE = "[DONE]"
"""How a stream of chat completions ends. Upstreams of other wires send it too."""
COMMENT = b":\n\n"
ERROR = "error"
"""The event that is an error, whatever its data looks like."""


class Step(msgspec.Struct, frozen=True):
    """One message of the upstream on its way: what came, what it meant, what went out, what still waits."""

    came: bytes
    data: str
    events: list[ev.Event]
    sent: bytes
    held: str


class _State(Enum):
    OPEN = "open"
    ENDED = "the client has been told the end"
    OVERRUN = "more has come since, and was dropped"
    CLOSED = "closed"


class Translator:
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
        self._source, self._target = wire_named(source), wire_named(target)
        self._same = source == target
        self.findings: list[ev.Finding] = []
        self.tally = Tally()
        self._dialect = _choose_dialect(dialect, model)
        self._offer = Offer(tools)
        self._options = Options() if options is None else options
        expect(self._options, Options, "options are an Options", "write il.Options(delivery=…)")
        upstream = self._options.upstream
        self._puts_name = self._same and upstream != "" and not signs(upstream, source)  # in what it signs
        self._decoder = sse.Decoder(self._options.limits.event)
        self._chunks = chunks.ChunkDecoder()
        self._reader = self._source.reader(self._options.limits)
        self._emitter: Emitter = self._target.emitter(self._options, self._offer)
        self._lanes: dict[int, Lane] = {}
        self._dropped: set[int] = set()  # choices that the client cannot be told of
        self._messages = 0
        self._state = _State.OPEN

    @property
    def dialect(self) -> Dialect | None:
        """The dialect in use; None while nothing has told which."""
        return self._dialect

    def feed(self, data: bytes) -> bytes:
        return b"".join(step.sent for step in self.steps(data))

    def close(self) -> bytes:
        """The upstream's stream is over: what is held goes out, and the client's stream ends properly."""
        return b"".join(step.sent for step in self.last_steps())

    @property
    def ended(self) -> bool:
        """Whether the client has been told the end."""
        return self._state is not _State.OPEN

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return "".join(lane.held for lane in self._lanes.values())

    def abort(self, message: str, type: str = "api_error") -> bytes:
        """The upstream's stream is over, and not by its own will. If it had said all, that is as good as `close`."""
        stopped = bool(self._lanes) and all(lane.stopped for lane in self._lanes.values())
        if self.ended or stopped:
            return self.close()
        failure = ev.Failure(message, type)
        events, sent = self._fail([failure], failure)
        self._state = _State.CLOSED
        self._tell(b"", "", events, sent)
        return sent

    def stream(self, body: dict[str, Any]) -> bytes:
        """A whole reply, for a client that wants a stream."""
        read = self._source.read_body(self._given(body), self._reader)
        said = [(choice.index, events) for choice, events in self._whole(read)]
        events = [*(event for _, events in said for event in events), *read.common]
        failure = _failure(events)
        sent = self._emitter.emit(said, [] if failure else read.common)
        sent += self._emitter.fail(self._for_client(failure)) if failure else self._emitter.done()
        self._tell(b"", "", [*events, *self._halves()], sent)
        return sent

    def fold(self, stream: bytes) -> dict[str, Any]:
        """A stream, for a client that wants a whole reply."""
        folding = self._emitter = Folding(self._target, self._options, self._offer)
        self._same = False
        self.feed(stream)
        self.close()
        body = folding.body()
        self._tell(b"", "", [], b"")
        return body

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """A whole reply, instead of a stream. It is what the stream would have folded to."""
        body = self._given(body)
        read = self._source.read_body(body, self._reader)
        if self._same and not self._source.is_body(body):
            self.tally.count(read.common)
            return body
        said: list[tuple[int, list[ev.Event]]] = []
        for choice, events in self._whole(read):
            if not self._same or not choice.exact or events != choice.events:
                said.append((choice.index, events))
        failure = _failure(read.common)
        if failure and self._same:
            return body
        told = [self._for_client(failure)] if failure else read.common
        written, found = self._target.write_body(said, told, self._options, self._offer, body if self._same else None)
        found += self._halves()
        self._tell(b"", "", [*(event for _, events in said for event in events), *read.common, *found], b"")
        return written

    def steps(self, data: bytes) -> list[Step]:
        """`feed`, told message by message."""
        self._must_be_open()
        expect(data, bytes | bytearray | memoryview, "data is bytes", "feed what came from the wire as it is")
        if self._state is _State.OVERRUN:
            return []
        steps: list[Step] = []
        limit = self._options.limits.event  # no more at once, or the decoder would lose what precedes a long event
        for start in range(0, len(data), limit):
            try:
                steps += [self._step(message) for message in self._decoder.feed(bytes(data[start : start + limit]))]
            except UpstreamError:
                steps += self._too_long()
        return steps

    def last_steps(self) -> list[Step]:
        """`close`, told message by message."""
        if self._state is _State.CLOSED:
            return []
        try:
            steps = [self._step(message) for message in self._decoder.close()]
        except UpstreamError:
            steps = self._too_long()
        if self._state is _State.OPEN:
            events, sent = self._end(b"")
            steps.append(self._tell(b"", "", events, sent))
        self._state = _State.CLOSED
        return steps

    def _given(self, body: dict[str, Any]) -> dict[str, Any]:
        self._must_be_open()
        expect(body, dict, "a reply is a dict", "decode its JSON first")
        self._state = _State.CLOSED
        if chunks.has_halves(body):
            body = self._chunks.join(body)
        return opaque.sealed(body, self._source.NAME, self._options) if self._puts_name else body

    def _whole(self, read: Chunk) -> list[tuple[Choice, list[ev.Event]]]:
        """Each choice of a body, and what is to be said of it."""
        self._learn_dialect(read.model)
        choices = self._choices(read.choices, read.common)
        lanes = [(choice, self._lane(choice)) for choice in choices]
        return [(choice, lane.take(choice.events) + lane.close_stream(said_done=True)) for choice, lane in lanes]

    def _must_be_open(self) -> None:
        if self._state is _State.CLOSED:
            raise UsageError("this Translator is closed", "one Translator translates one reply: make another one")

    def _learn_dialect(self, model: str) -> None:
        if self._dialect is None and model:
            self._dialect = dialect_for(model)
            for lane in self._lanes.values():
                lane.speak(self._dialect)

    # ── one message ───────────────────────────────────────────────────────────────────────────────────────────────

    def _step(self, message: sse.Message) -> Step:
        if not message.has_data:
            passes = message.closed and self._state is not _State.OVERRUN
            kept = message.raw if self._same else COMMENT
            return self._tell(message.raw, "", [], kept if passes else b"")
        self._messages += 1
        if self._state is not _State.OPEN:
            return self._overrun(message)
        if message.data.strip() == DONE:
            events, sent = self._end(message.raw)
            return self._tell(message.raw, message.data, events, sent)
        decoded = self._chunks.decode(message.data)
        if message.event == ERROR and message.data.strip():
            decoded = _as_error(decoded, message.data)
        if decoded is None:
            return self._unreadable(message)
        raw = message.raw
        if self._puts_name:
            decoded, raw = self._with_name(decoded, message)
        events, sent = self._translate(decoded, raw)
        return self._tell(message.raw, message.data, events, sent)

    def _with_name(self, decoded: chunks.Decoded, message: sse.Message) -> tuple[chunks.Decoded, bytes]:
        """The chunk, and its bytes, with the upstream's name in what the upstream alone can read."""
        chunk = opaque.sealed(decoded.chunk, self._source.NAME, self._options)
        if chunk is decoded.chunk:
            return decoded, message.raw
        return chunks.Decoded(chunk, decoded.exact), sse.encode(write_json(chunk), message.event)

    def _translate(self, decoded: chunks.Decoded, raw: bytes) -> tuple[list[ev.Event], bytes]:
        chunk = decoded.chunk
        read = self._reader.read(chunk)
        self._learn_dialect(read.model)
        exact = self._same and decoded.exact and read.exact
        choices = self._choices(read.choices, read.common)
        said = [(choice.index, self._lane(choice).take(choice.events)) for choice in choices]
        events = [event for _, out in said for event in out] + read.common
        if failure := _failure(read.common):
            if self._lanes and all(lane.stopped for lane in self._lanes.values()):
                late = ev.Finding("after-stop", f"an error after the reply had stopped: dropped {failure.message!r}")
                return [late], b""
            return self._fail(events, failure, raw if exact else b"")
        exact &= [out for _, out in said] == [choice.events for choice in choices]
        if exact and not read.last and (passed := self._emitter.pass_on(chunk, raw)) is not None:
            return events, passed
        sent = self._emitter.emit(said, read.common, chunk if self._same else None)
        if failure := _failure(events):
            events, end = self._fail(events, failure)
        elif read.last:
            last, end = self._end(raw, exact=exact)
            events = events + last
        else:
            end = b""
        return events, sent + end

    def _choices(self, choices: list[Choice], common: list[ev.Event]) -> list[Choice]:
        """Those that the client can be told of."""
        if not self._target.SINGLE:
            return choices
        for index in {choice.index for choice in choices} - {0, *self._dropped}:
            self._dropped.add(index)
            common.append(ev.Finding("choice-dropped", f"choice {index}: this client can be told of one, so it is not"))
        return [choice for choice in choices if choice.index == 0]

    def _for_client(self, failure: ev.Failure) -> ev.Failure:
        """What an upstream says of its failure beside the message is for clients of its own wire."""
        return failure if self._same else msgspec.structs.replace(failure, native=None)

    def _lane(self, choice: Choice) -> Lane:
        if choice.index not in self._lanes:
            begin = next((event for event in choice.events if isinstance(event, ev.Begin)), ev.Begin())
            seed = f"{begin.id or ''}/{choice.index}"
            self._lanes[choice.index] = Lane(self._dialect or STANDARD, self._offer, self._options, seed)
        return self._lanes[choice.index]

    def _unreadable(self, message: sse.Message) -> Step:
        if not message.data.strip():
            finding = ev.Finding("empty-event", "an event without data, which clients cannot read: sent as a comment")
            return self._tell(message.raw, message.data, [finding], COMMENT)
        if message.closed:
            return self._bad_json(message)
        finding = ev.Finding("cut-event", f"the stream ended inside an event: dropped {message.data!r:.60}")
        return self._tell(message.raw, message.data, [finding], b"")

    def _bad_json(self, message: sse.Message) -> Step:
        """Official clients give up at such an event, so none is sent it. If a call is open, a piece of it may be lost:
        better no call than a wrong one."""
        finding = ev.Finding("bad-json", f"an event that is not a JSON object: dropped {message.data!r:.60}")
        if not any(lane.inside_call for lane in self._lanes.values()):
            return self._tell(message.raw, message.data, [finding], b"")
        failure = ev.Failure("the upstream sent an event that cannot be read, inside a call")
        events, sent = self._fail([finding, failure], failure)
        return self._tell(message.raw, message.data, events, sent)

    def _overrun(self, message: sse.Message) -> Step:
        """A message after the end. The first one is a finding, but for a [DONE] after an error."""
        findings: list[ev.Event] = []
        if self._state is _State.ENDED and message.data.strip() != DONE:
            self._state = _State.OVERRUN
            findings.append(ev.Finding("after-end", f"more came after the end: dropped {message.data!r:.60}"))
        return self._tell(message.raw, message.data, findings, b"")

    def _tell(self, came: bytes, data: str, events: list[ev.Event], sent: bytes) -> Step:
        events = [*events, *self._emitter.findings]
        self._emitter.findings = []
        for event in events:
            if isinstance(event, ev.Finding):
                where = f"event {self._messages}" if self._messages else "the reply"
                place = f"{where}, {event.place}" if event.place else where
                self.findings.append(msgspec.structs.replace(event, place=place))
        self.tally.count(events)
        return Step(came, data, events, sent, self.held)

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _end(self, done: bytes, *, exact: bool = True) -> tuple[list[ev.Event], bytes]:
        """The upstream's stream is over; `done` is how it said so, if it did, and `exact` whether that may pass."""
        said_done = bool(done)
        said = []
        for index, held in self._reader.close(said_done):
            if lane := self._lanes.get(index):  # else the client cannot be told of this choice
                said.append((index, lane.take(held) + lane.close_stream(said_done)))
        events = [event for _, out in said for event in out]
        events += self._halves()
        if not self._lanes and not (said_done and self._same):
            events.append(ev.Failure("the upstream ended without a reply"))
        failure = _failure(events)
        sent = self._emitter.emit(said)
        if failure:
            sent += self._emitter.fail(self._for_client(failure))
        else:
            sent += self._emitter.done(done if self._same and exact else b"")
        self._state = _State.ENDED
        return events, sent

    def _halves(self) -> list[ev.Finding]:
        what = "half of a surrogate pair was left at the end of a text: dropped"
        return [ev.Finding("half-character", what)] if self._chunks.halves else []

    def _fail(self, events: list[ev.Event], failure: ev.Failure, raw: bytes = b"") -> tuple[list[ev.Event], bytes]:
        """Ends the client's stream with an error frame, after the text that was held; `raw` is the upstream's frame, if
        that may pass."""
        said = [(index, lane.release()) for index, lane in self._lanes.items()]
        self._state = _State.ENDED
        sent = self._emitter.emit(said)
        sent += raw or self._emitter.fail(self._for_client(failure))
        return events + [event for _, out in said for event in out], sent

    def _too_long(self) -> list[Step]:
        if self._state is not _State.OPEN:
            return []
        failure = ev.Failure(f"the upstream sent an event of more than {self._options.limits.event:,} bytes")
        events, sent = self._fail([failure], failure)
        self._state = _State.OVERRUN
        return [self._tell(b"", "", events, sent)]


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


def _failure(events: Iterable[ev.Event]) -> ev.Failure | None:
    return next((event for event in events if isinstance(event, ev.Failure)), None)


def _as_error(decoded: chunks.Decoded | None, data: str) -> chunks.Decoded:
    """The data of an event that is an error, in a form that says so."""
    if decoded is None:
        return chunks.Decoded({"error": {"message": data}}, exact=False)
    says_so = decoded.chunk.get("error") or decoded.chunk.get("type") == "error"
    return decoded if says_so else chunks.Decoded({"error": decoded.chunk}, exact=False)


def _choose_dialect(dialect: str | Dialect, model: str | None) -> Dialect | None:
    """None: the upstream's first chunk will tell."""
    if dialect != "auto":
        return dialect_named(dialect)
    return dialect_for(model) if model else None
