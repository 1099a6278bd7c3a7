"""One choice's way through parser and guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.parsing.dialect import Dialect, Grammar
from interlingua.parsing.guard import Guard
from interlingua.parsing.parser import Parser
from interlingua.parsing.text_buffer__source import Channel

__all__ = ["Lane"]


class Lane:
    """One choice's way from events as they were read to events as they are promised."""

    def __init__(self, dialect: Dialect, offer: Offer, options: Options, seed: str = "") -> None:
        self._offer = offer
        self._options = options
        self._parser: Parser | None = None
        self._grammar: Grammar | None = None
        self._beside: set[int] = set()
        self._guard = Guard(
            offer,
            limits=options.limits,
            delivery=options.delivery,
            reasoning=options.reasoning,
            taken=options.taken_ids,
            seed=seed,
        )
        self.speak(dialect)

    @classmethod
    def of(cls, index: int, events: Iterable[ev.Event], dialect: Dialect, offer: Offer, options: Options) -> Lane:
        """The lane of a choice that begins with these events."""
        begin = next((event for event in events if isinstance(event, ev.Begin)), ev.Begin())
        return cls(dialect, offer, options, seed=f"{begin.id or ''}/{index}")

    @property
    def waiting(self) -> list[Call]:
        """The calls that wait for an open one to end, as far as they have come."""
        return self._guard.waiting

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return self._parser.held if self._parser else ""

    @property
    def stopped(self) -> bool:
        return self._guard.stopped

    @property
    def empty(self) -> bool:
        """Whether it stopped, as if all were said, with nothing but thinking."""
        return self._guard.empty

    @property
    def open_call(self) -> str | None:
        """The name of the call that is open."""
        return self._guard.inside_call

    @property
    def inside_call(self) -> bool:
        return self.open_call is not None or (self._parser is not None and self._parser.inside_calls)

    @property
    def passage(self) -> Callable[[str], bool] | None:
        """Tells of further texts like the last one whether they pass as it did, and counts them as read; None if no
        text does now."""
        return self._parser.passage if self._parser else _always

    def take(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        return self._guard.take(self._parse(events) if self._parser else events)

    def release(self) -> list[ev.Event]:
        """No more text will come: gives out what is held."""
        parser, self._parser = self._parser, None
        return self._guard.take(parser.close()) if parser else []

    def close_text(self) -> list[ev.Event]:
        """The text was all there is. If it ends inside a call, then it was cut."""
        events = self.release()
        if self._guard.stopped:  # it has failed
            return events
        return events + self._guard.take([ev.Stop("length" if self._guard.inside_call else None)])

    def speak(self, dialect: Dialect) -> None:
        """From here on the text is in this dialect."""
        self._grammar = dialect.grammar
        self._guard.ids.style = dialect.ids
        if dialect.markers and not self._guard.stopped:
            self._parser = Parser(dialect, self._offer, self._options.prefill, self._options.limits)

    def close_stream(self, said_done: bool) -> list[ev.Event]:
        """The upstream's stream is over. It should have said before why it stopped."""
        broken_off = self._parser is not None and self._parser.inside_calls and not said_done
        events = self.release()
        if self._guard.stopped:
            return events
        if broken_off and not self._guard.inside_call:
            return events + self._guard.take([ev.Failure("the upstream ended inside a section of calls")])
        if self._guard.inside_call or said_done:
            finding = ev.Finding("no-finish-reason", "the upstream never said why it stopped: taken from what it sent")
            return events + self._guard.take([finding, ev.Stop(None)])
        return events + self._guard.take([ev.Failure("the upstream ended without finishing its reply")])

    def take_text(self, text: str) -> list[ev.Event]:
        """`take` of one TextDelta, without making it first: this runs for every token."""
        return self._guard.take(self._parser.feed(text) if self._parser else [ev.TextDelta(text)])

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
                parsed += self._beside_text(event)
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

    def _beside_text(self, event: ev.CallStart | ev.ArgsDelta | ev.CallEnd) -> list[ev.Event]:
        """Of a call that was sent structured in a native dialect: with a number that no call of the text can have."""
        if isinstance(event, ev.CallStart):
            self._beside.add(event.index)
        if event.index not in self._beside:  # it began before the dialect was known
            return [event]
        numbered = msgspec.structs.replace(event, index=~event.index)
        if not isinstance(numbered, ev.CallStart) or self._grammar is None or self._offer.has(numbered.name):
            return [numbered]
        name = self._grammar.name_in(numbered.name, self._offer)
        if name == numbered.name:
            return [numbered]
        finding = ev.Finding("renamed", f"native text in the name {numbered.name!r}: taken as {name!r}")
        return [finding, msgspec.structs.replace(numbered, name=name)]


def _always(text: str) -> bool:  # noqa: ARG001
    return True
