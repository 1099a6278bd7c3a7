"""The way of one reply from its upstream's wire to its client's: all that streams and whole replies share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from enum import Enum

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply_stats import Tally, size
from interlingua.core.tools import Offer, ToolsLike
from interlingua.dialects.registry import STANDARD, dialect_for, dialect_named
from interlingua.errors import UsageError, expect
from interlingua.parsing.choice_pipeline import Lane
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams import signs
from interlingua.wires import wire_named
from interlingua.wires.base import Choice, Emitter
from interlingua.wires.streaming.chunk_decoder import ChunkDecoder

__all__ = ["State", "Way", "failure_in"]


MOST = 100
"""So many findings of one kind are told of a reply: an upstream may send the same oddity without end."""


class State(Enum):
    OPEN = "open"
    ENDED = "the client has been told the end"
    OVERRUN = "more has come since, and was dropped"
    CLOSED = "closed"


class Way:
    def __init__(
        self,
        source: str,
        target: str,
        dialect: str | Dialect,
        model: str | None,
        tools: ToolsLike,
        options: Options | None,
    ) -> None:
        self.findings: list[ev.Finding] = []
        self._found: Counter[str] = Counter()
        self.tally = Tally()
        self._source, self._target = wire_named(source), wire_named(target)
        self._same = source == target
        self._dialect = _choose_dialect(dialect, model)
        self._offer = Offer(tools)
        self._options = Options() if options is None else options
        expect(self._options, Options, "options are an Options", "write il.Options(delivery=…)")
        upstream = self._options.upstream
        self._puts_name = self._same and upstream != "" and not signs(upstream, source)  # in what it signs
        self._chunks = ChunkDecoder()
        self._reader = self._source.reader(self._options.limits)
        self._emitter: Emitter = self._target.emitter(self._options, self._offer)
        self._lanes: dict[int, Lane] = {}
        self._dropped: set[int] = set()  # choices that the client cannot be told of
        self._messages = 0
        self._state = State.OPEN

    @property
    def dialect(self) -> Dialect | None:
        """The dialect in use; None while nothing has told which."""
        return self._dialect

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return "".join(lane.held for lane in self._lanes.values())

    @property
    def _stopped(self) -> bool:
        """Whether all has been said."""
        return bool(self._lanes) and all(lane.stopped for lane in self._lanes.values())

    def _must_be_open(self) -> None:
        if self._state is State.CLOSED:
            raise UsageError("this Translator is closed", "one Translator translates one reply: make another one")

    def _must_be_fresh(self) -> None:
        self._must_be_open()
        if self._messages:
            raise UsageError("this Translator is in the middle of a stream", "make another one for a whole reply")

    def _learn_dialect(self, model: str) -> None:
        if self._dialect is None and model:
            self._dialect = dialect_for(model)
            for lane in self._lanes.values():
                lane.speak(self._dialect)

    def _choices(self, choices: list[Choice], common: list[ev.Event]) -> list[Choice]:
        """Those that a client can be told of which knows but one."""
        if len(choices) == 1 and choices[0].index == 0:
            return choices
        for index in {choice.index for choice in choices} - {0, *self._dropped}:
            self._dropped.add(index)
            common.append(ev.Finding("choice-dropped", f"choice {index}: this client can be told of one, so it is not"))
        return [choice for choice in choices if choice.index == 0]

    def _lane(self, choice: Choice) -> Lane:
        """The lane of a choice that begins."""
        dialect = self._dialect or STANDARD
        lane = self._lanes[choice.index] = Lane.of(choice.index, choice.events, dialect, self._offer, self._options)
        return lane

    def _for_client(self, failure: ev.Failure) -> ev.Failure:
        """What an upstream says of its failure beside the message is for clients of its own wire."""
        return failure if self._same else msgspec.structs.replace(failure, native=None)

    def _last_findings(self) -> list[ev.Finding]:
        """What is odd about a reply now that all of it is there."""
        found: list[ev.Finding] = []
        if self._chunks.halves:
            what = "half of a surrogate pair was left at the end of a text: dropped"
            found.append(ev.Finding("half-character", what))
        if any(lane.empty for lane in self._lanes.values()) and not self._found["not-translated"]:
            found.append(ev.Finding("empty-turn", "the model stopped without a text or a call: passed on as it is"))
        return found

    def _noted(self, events: list[ev.Event]) -> list[ev.Event]:
        """What was said, with what the emitter found odd in it: counted, and the findings kept."""
        if self._emitter.findings:
            events = [*events, *self._emitter.findings]
            self._emitter.findings = []
        if not self.tally.spoken:
            self.tally.hear(events)
        tally = self.tally
        for event in events:
            if type(event) is ev.TextDelta or type(event) is ev.ReasoningDelta or type(event) is ev.ArgsDelta:
                tally.size += size(event.text)  # as it mostly is
            else:
                self._note(event)
        return events

    def _estimate(self, events: list[ev.Event]) -> list[ev.Event]:
        """The usage, if the upstream has told none up to the end, and these last events neither."""
        if not self._options.input_tokens or self.tally.usage is not None or failure_in(events):
            return []
        last = copy(self.tally)
        for event in events:
            last.count(event)
        if last.usage is not None:
            return []
        usage = ev.Usage(input=self._options.input_tokens, output=last.tokens, estimated=True)
        what = f"the upstream tells no usage: about {usage.input:,} tokens in and {usage.output:,} out"
        return [usage, ev.Finding("usage-estimated", what)]

    def _note(self, event: ev.Event) -> None:
        """Findings are told with their place in the stream."""
        if type(event) is not ev.Finding:
            self.tally.count(event)
            return
        self._found[event.kind] += 1
        if self._found[event.kind] > MOST:
            return
        last = "; more of this kind are not told" if self._found[event.kind] == MOST else ""
        where = f"event {self._messages}" if self._messages else "the reply"
        place = f"{where}, {event.place}" if event.place else where
        self.findings.append(ev.Finding(event.kind, event.message + last, place))


def failure_in(events: Iterable[ev.Event]) -> ev.Failure | None:
    for event in events:  # a loop, for this runs for every token
        if type(event) is ev.Failure:
            return event
    return None


def _choose_dialect(dialect: str | Dialect, model: str | None) -> Dialect | None:
    """None: the upstream's first chunk will tell."""
    if dialect != "auto":
        return dialect_named(dialect)
    return dialect_for(model) if model else None
