"""The way of one reply from its upstream's wire to its client's: all that streams and whole replies share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from enum import Enum

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply_stats import ReplyStats, utf8_size
from interlingua.core.tools import ToolSet, ToolsLike
from interlingua.dialects.registry import STANDARD_DIALECT, dialect_for, get_dialect
from interlingua.errors import UsageError, expect_type
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams import signs_on_wire
from interlingua.wires import get_wire
from interlingua.wires.base import Choice, Emitter
from interlingua.wires.streaming.chunk_decoder import ChunkDecoder

__all__ = ["ReplyDecoder", "TranslatorState", "find_failure"]


MAX_FINDINGS_PER_KIND = 100
"""So many findings of one kind are told of a reply: an upstream may send the same oddity without end."""


class TranslatorState(Enum):
    OPEN = "open"
    ENDED = "the client has been told the end"
    OVERRUN = "more has come since, and was dropped"
    CLOSED = "closed"


class ReplyDecoder:
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
        self._finding_counts: Counter[str] = Counter()
        self.tally = ReplyStats()
        self._source_wire, self._target_wire = get_wire(source), get_wire(target)
        self._same_wire = source == target
        self._dialect = _choose_dialect(dialect, model)
        self._offer = ToolSet(tools)
        self._options = Options() if options is None else options
        expect_type(self._options, Options, "options are an Options", "write il.Options(delivery=…)")
        upstream = self._options.upstream
        self._signs_reasoning = (
            self._same_wire and upstream != "" and not signs_on_wire(upstream, source)
        )  # in what it signs
        self._chunk_decoder = ChunkDecoder()
        self._reader = self._source_wire.reader(self._options.limits)
        self._emitter: Emitter = self._target_wire.emitter(self._options, self._offer)
        self._pipelines: dict[int, ChoicePipeline] = {}
        self._dropped_choices: set[int] = set()  # choices that the client cannot be told of
        self._message_count = 0
        self._state = TranslatorState.OPEN

    @property
    def dialect(self) -> Dialect | None:
        """The dialect in use; None while nothing has told which."""
        return self._dialect

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return "".join(pipeline.buffered for pipeline in self._pipelines.values())

    @property
    def _all_stopped(self) -> bool:
        """Whether all has been said."""
        return bool(self._pipelines) and all(pipeline.stopped for pipeline in self._pipelines.values())

    def _require_open(self) -> None:
        if self._state is TranslatorState.CLOSED:
            raise UsageError("this Translator is closed", "one Translator translates one reply: make another one")

    def _require_unused(self) -> None:
        self._require_open()
        if self._message_count:
            raise UsageError("this Translator is in the middle of a stream", "make another one for a whole reply")

    def _learn_dialect(self, model: str) -> None:
        if self._dialect is None and model:
            self._dialect = dialect_for(model)
            for pipeline in self._pipelines.values():
                pipeline.set_dialect(self._dialect)

    def _supported_choices(self, choices: list[Choice], common: list[ev.Event]) -> list[Choice]:
        """Those that a client can be told of which knows but one."""
        if len(choices) == 1 and choices[0].index == 0:
            return choices
        for index in {choice.index for choice in choices} - {0, *self._dropped_choices}:
            self._dropped_choices.add(index)
            common.append(ev.Finding("choice-dropped", f"choice {index}: this client can be told of one, so it is not"))
        return [choice for choice in choices if choice.index == 0]

    def _start_pipeline(self, choice: Choice) -> ChoicePipeline:
        """The lane of a choice that begins."""
        dialect = self._dialect or STANDARD_DIALECT
        pipeline = self._pipelines[choice.index] = ChoicePipeline.for_choice(
            choice.index, choice.events, dialect, self._offer, self._options
        )
        return pipeline

    def _client_failure(self, failure: ev.Failure) -> ev.Failure:
        """What an upstream says of its failure beside the message is for clients of its own wire."""
        return failure if self._same_wire else msgspec.structs.replace(failure, native=None)

    def _final_findings(self) -> list[ev.Finding]:
        """What is odd about a reply now that all of it is there."""
        findings: list[ev.Finding] = []
        if self._chunk_decoder.pending_surrogates:
            message = "half of a surrogate pair was left at the end of a text: dropped"
            findings.append(ev.Finding("half-character", message))
        if (
            any(pipeline.ended_empty for pipeline in self._pipelines.values())
            and not self._finding_counts["not-translated"]
        ):
            findings.append(ev.Finding("empty-turn", "the model stopped without a text or a call: passed on as it is"))
        return findings

    def _record(self, events: list[ev.Event]) -> list[ev.Event]:
        """What was said, with what the emitter found odd in it: counted, and the findings kept."""
        if self._emitter.findings:
            events = [*events, *self._emitter.findings]
            self._emitter.findings = []
        if not self.tally.has_content:
            self.tally.detect_content(events)
        stats = self.tally
        for event in events:
            if type(event) is ev.TextDelta or type(event) is ev.ReasoningDelta or type(event) is ev.ArgsDelta:
                stats.content_bytes += utf8_size(event.text)  # as it mostly is
            else:
                self._record_finding(event)
        return events

    def _estimated_usage(self, events: list[ev.Event]) -> list[ev.Event]:
        """The usage, if the upstream has told none up to the end, and these last events neither."""
        if not self._options.input_tokens or self.tally.usage is not None or find_failure(events):
            return []
        stats = copy(self.tally)
        for event in events:
            stats.count(event)
        if stats.usage is not None:
            return []
        usage = ev.Usage(input=self._options.input_tokens, output=stats.estimated_tokens, estimated=True)
        message = f"the upstream tells no usage: about {usage.input:,} tokens in and {usage.output:,} out"
        return [usage, ev.Finding("usage-estimated", message)]

    def _record_finding(self, event: ev.Event) -> None:
        """Findings are told with their place in the stream."""
        if type(event) is not ev.Finding:
            self.tally.count(event)
            return
        self._finding_counts[event.kind] += 1
        if self._finding_counts[event.kind] > MAX_FINDINGS_PER_KIND:
            return
        suffix = "; more of this kind are not told" if self._finding_counts[event.kind] == MAX_FINDINGS_PER_KIND else ""
        position = f"event {self._message_count}" if self._message_count else "the reply"
        location = f"{position}, {event.place}" if event.place else position
        self.findings.append(ev.Finding(event.kind, event.message + suffix, location))


def find_failure(events: Iterable[ev.Event]) -> ev.Failure | None:
    for event in events:  # a loop, for this runs for every token
        if type(event) is ev.Failure:
            return event
    return None


def _choose_dialect(dialect: str | Dialect, model: str | None) -> Dialect | None:
    """None: the upstream's first chunk will tell."""
    if dialect != "auto":
        return get_dialect(dialect)
    return dialect_for(model) if model else None
