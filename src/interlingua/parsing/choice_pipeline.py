"""One choice's way through parser and guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Dialect, Grammar
from interlingua.parsing.guard import Guard
from interlingua.parsing.parser import NativeTextParser
from interlingua.parsing.text_buffer import Channel

__all__ = ["ChoicePipeline"]


class ChoicePipeline:
    """One choice's way from events as they were read to events as they are promised."""

    def __init__(self, dialect: Dialect, offer: ToolSet, options: Options, seed: str = "") -> None:
        self._offer = offer
        self._options = options
        self._parser: NativeTextParser | None = None
        self._grammar: Grammar | None = None
        self._structured_indexes: set[int] = set()
        self._guard = Guard(
            offer,
            limits=options.limits,
            delivery=options.delivery,
            reasoning=options.reasoning,
            taken_ids=options.taken_ids,
            seed=seed,
        )
        self.set_dialect(dialect)

    @classmethod
    def for_choice(
        cls, index: int, events: Iterable[ev.Event], dialect: Dialect, offer: ToolSet, options: Options
    ) -> ChoicePipeline:
        """The lane of a choice that begins with these events."""
        reply_start = next((event for event in events if isinstance(event, ev.Begin)), ev.Begin())
        return cls(dialect, offer, options, seed=f"{reply_start.id or ''}/{index}")

    @property
    def pending_calls(self) -> list[Call]:
        """The calls that wait for an open one to end, as far as they have come."""
        return self._guard.pending_calls

    @property
    def buffered(self) -> str:
        """The text that waits for what follows it."""
        return self._parser.buffered if self._parser else ""

    @property
    def stopped(self) -> bool:
        return self._guard.stopped

    @property
    def ended_empty(self) -> bool:
        """Whether it stopped, as if all were said, with nothing but thinking."""
        return self._guard.ended_empty

    @property
    def open_call_name(self) -> str | None:
        """The name of the call that is open."""
        return self._guard.open_call_name

    @property
    def inside_call(self) -> bool:
        return self.open_call_name is not None or (self._parser is not None and self._parser.inside_calls)

    @property
    def passthrough_check(self) -> Callable[[str], bool] | None:
        """Tells of further texts like the last one whether they pass as it did, and counts them as read; None if no
        text does now."""
        return self._parser.passthrough_check if self._parser else _accept_all

    def process(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        return self._guard.process(self._parse(events) if self._parser else events)

    def flush(self) -> list[ev.Event]:
        """No more text will come: gives out what is held."""
        parser, self._parser = self._parser, None
        return self._guard.process(parser.close()) if parser else []

    def end_of_text(self) -> list[ev.Event]:
        """The text was all there is. If it ends inside a call, then it was cut."""
        events = self.flush()
        if self._guard.stopped:  # it has failed
            return events
        return events + self._guard.process([ev.Stop("length" if self._guard.open_call_name else None)])

    def set_dialect(self, dialect: Dialect) -> None:
        """From here on the text is in this dialect."""
        self._grammar = dialect.grammar
        self._guard.ids.style = dialect.ids
        if dialect.markers and not self._guard.stopped:
            self._parser = NativeTextParser(dialect, self._offer, self._options.prefill, self._options.limits)

    def end_of_stream(self, finished: bool) -> list[ev.Event]:
        """The upstream's stream is over. It should have said before why it stopped."""
        interrupted = self._parser is not None and self._parser.inside_calls and not finished
        events = self.flush()
        if self._guard.stopped:
            return events
        if interrupted and not self._guard.open_call_name:
            return events + self._guard.process([ev.Failure("the upstream ended inside a section of calls")])
        if self._guard.open_call_name or finished:
            finding = ev.Finding("no-finish-reason", "the upstream never said why it stopped: taken from what it sent")
            return events + self._guard.process([finding, ev.Stop(None)])
        return events + self._guard.process([ev.Failure("the upstream ended without finishing its reply")])

    def process_text(self, text: str) -> list[ev.Event]:
        """`take` of one TextDelta, without making it first: this runs for every token."""
        return self._guard.process(self._parser.feed(text) if self._parser else [ev.TextDelta(text)])

    def _parse(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        parsed: list[ev.Event] = []
        for event in events:
            if self._parser is None:
                parsed.append(event)
            elif isinstance(event, ev.TextDelta):
                parsed += self._parser.feed(event.text, Channel.TEXT)
            elif isinstance(event, ev.ReasoningDelta):
                parsed += self._parser.feed(event.text, Channel.REASONING)
            elif isinstance(event, ev.CallStart | ev.ArgsDelta | ev.CallEnd):
                parsed += self._renumber_structured_call(event)
            elif isinstance(event, ev.Seal):
                if not self._parser.inside_calls:
                    parsed += self._parser.feed("", Channel.TEXT)  # the thinking is over: none of it waits for more
                parsed.append(event)
            else:
                if isinstance(event, ev.Stop | ev.Failure):
                    parsed += self._parser.close()
                    self._parser = None
                parsed.append(event)
        return parsed

    def _renumber_structured_call(self, event: ev.CallStart | ev.ArgsDelta | ev.CallEnd) -> list[ev.Event]:
        """Of a call that was sent structured in a native dialect: with a number that no call of the text can have."""
        if isinstance(event, ev.CallStart):
            self._structured_indexes.add(event.index)
        if event.index not in self._structured_indexes:  # it began before the dialect was known
            return [event]
        renumbered = msgspec.structs.replace(event, index=~event.index)
        if not isinstance(renumbered, ev.CallStart) or self._grammar is None or self._offer.has(renumbered.name):
            return [renumbered]
        name = self._grammar.extract_name(renumbered.name, self._offer)
        if name == renumbered.name:
            return [renumbered]
        finding = ev.Finding("renamed", f"native text in the name {renumbered.name!r}: taken as {name!r}")
        return [finding, msgspec.structs.replace(renumbered, name=name)]


def _accept_all(text: str) -> bool:  # noqa: ARG001
    return True
