"""Choice pipeline: parser and guard for one choice of a reply."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Call
from interlingua.core.text_forwarder import TextForwarder, forward_all
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Dialect, Grammar
from interlingua.parsing.guard import Guard
from interlingua.parsing.parser import NativeTextParser
from interlingua.parsing.text_buffer import Channel
from interlingua.parsing.tracer import ChoiceTracer

__all__ = ["ChoicePipeline"]


class ChoicePipeline:
    """Turns the events that a wire's reader has read into parsed and guarded events, and reports them to the tracer."""

    __slots__ = ("_grammar", "_guard", "_offer", "_options", "_parser", "_send", "_structured_indexes", "_tracer")

    def __init__(
        self, dialect: Dialect, offer: ToolSet, options: Options, seed: str = "", tracer: ChoiceTracer | None = None
    ) -> None:
        self._tracer = tracer
        self._offer = offer
        self._options = options
        self._parser: NativeTextParser | None = None
        self._grammar: Grammar | None = None
        self._structured_indexes: dict[int, None] = {}  # an empty set takes three times the memory
        self._guard = Guard(
            offer,
            limits=options.limits,
            delivery=options.delivery,
            reasoning=options.reasoning,
            taken_ids=options.taken_ids,
            seed=seed,
            is_seed_unique=bool(options.reply_id),
        )
        self._send = tracer.trace_events(self._guard.process) if tracer is not None else self._guard.process
        """Sends events through the guard and returns what comes out."""
        self.set_dialect(dialect)

    @classmethod
    def for_choice(
        cls,
        index: int,
        events: Iterable[ev.Event],
        dialect: Dialect,
        offer: ToolSet,
        options: Options,
        tracer: ChoiceTracer | None = None,
    ) -> ChoicePipeline:
        """Return the pipeline of a choice that begins with these events."""
        reply_start = next((event for event in events if isinstance(event, ev.Begin)), ev.Begin())
        reply_id = options.reply_id or reply_start.id or ""
        return cls(dialect, offer, options, seed=f"{reply_id}/{index}", tracer=tracer)

    @property
    def pending_calls(self) -> list[Call]:
        """The calls that are queued behind an open one, as far as they have arrived."""
        return self._guard.pending_calls

    @property
    def buffered(self) -> str:
        """Text that is buffered until the text after it is known."""
        return self._parser.buffered if self._parser else ""

    @property
    def held_chars(self) -> int:
        """Number of characters that are held back."""
        return self._guard.held_chars + (self._parser.held_chars if self._parser else 0)

    @property
    def stopped(self) -> bool:
        return self._guard.stopped

    @property
    def ended_empty(self) -> bool:
        """True if the reply stopped as if it were complete, with nothing but reasoning."""
        return self._guard.ended_empty

    @property
    def open_call_name(self) -> str | None:
        """The name of the call that is being sent."""
        return self._guard.open_call_name

    @property
    def inside_call(self) -> bool:
        return self.open_call_name is not None or (self._parser is not None and self._parser.inside_calls)

    @property
    def text_forwarder(self) -> TextForwarder | None:
        """A function for texts that parser and guard copy as they are. None if they copy none now."""
        forward = self._parser.text_forwarder if self._parser else forward_all
        if forward is None or self._tracer is None:
            return forward
        return self._tracer.watch_fast_path(forward, self._parser.channel if self._parser else None)

    @property
    def native_arguments_forwarder(self) -> TextForwarder | None:
        """A function for texts that are only arguments of the open call. None if no arguments can be forwarded now."""
        return self.arguments_forwarder(self._parser.arguments_forwarder if self._parser else None)

    def arguments_forwarder(self, forward: TextForwarder | None) -> TextForwarder | None:
        """Return a function for arguments of the open call, which their reader counts with `forward`."""
        return self._guard.arguments_forwarder(forward) if forward is not None and self._tracer is None else None

    def process(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        return self._send(self._parse(events) if self._parser else events)

    def release(self) -> None:
        """Free the parser of a reply that is not read any further."""
        if self._parser is not None:
            self._parser.release()

    def flush(self) -> list[ev.Event]:
        """End the text: return what was held back."""
        parser, self._parser = self._parser, None
        return self._send(parser.close()) if parser else []

    def end_of_text(self) -> list[ev.Event]:
        """End a reply that is only text. If it ends inside a call, it was truncated."""
        events = self.flush()
        if self._guard.stopped:  # it has failed
            return events
        return events + self._send([ev.Stop("length" if self._guard.open_call_name else None)])

    def set_dialect(self, dialect: Dialect) -> None:
        """Read the text in this dialect from here on."""
        self._grammar = dialect.grammar
        self._guard.ids.style = dialect.ids
        if (dialect.markers or self._offer.requires_call) and not self._guard.stopped:
            self._parser = NativeTextParser(
                dialect,
                self._offer,
                self._options.prefill,
                self._options.limits,
                tracer=self._tracer.for_parser(dialect.marker_roles) if self._tracer is not None else None,
                arguments=self._options.arguments,
            )

    def end_of_stream(self, finished: bool) -> list[ev.Event]:
        """End the stream. The upstream should have sent a stop reason before.

        Args:
            finished: the upstream has marked the end of its stream, so that it was not cut off.
        """
        interrupted = self._parser is not None and self._parser.inside_calls and not finished
        events = self.flush()
        if self._guard.stopped:
            return events
        if interrupted and not self._guard.open_call_name:
            return events + self._send([ev.Failure("the upstream ended inside a section of calls")])
        if self._guard.open_call_name or finished:
            finding = ev.Finding(
                "no-finish-reason", "the upstream sent no finish reason: derived from the content of the reply"
            )
            return events + self._send([finding, ev.Stop(None)])
        return events + self._send([ev.Failure("the upstream ended without finishing its reply")])

    def process_text(self, text: str) -> list[ev.Event]:
        """`process` one TextDelta without creating it: this runs for every token."""
        return self._send(self._parser.feed(text) if self._parser else [ev.TextDelta(text)])

    def report_held(self) -> None:
        """Report the texts that wait, if the reply is traced."""
        if self._tracer is not None:
            if self._parser is not None:
                self._tracer.report_held(self._parser.held_back(), self._parser.held_channel)
            self._tracer.report_held(self._guard.held_back(), None)

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
                    parsed += self._parser.feed("", Channel.TEXT)  # the thinking has ended: flush the lookahead
                parsed.append(event)
            else:
                if isinstance(event, ev.Stop | ev.Failure):
                    parsed += self._parser.close()
                    self._parser = None
                parsed.append(event)
        return parsed

    def _renumber_structured_call(self, event: ev.CallStart | ev.ArgsDelta | ev.CallEnd) -> list[ev.Event]:
        """Give a structured call in a native dialect an index that no call in the text can have."""
        if isinstance(event, ev.CallStart):
            self._structured_indexes[event.index] = None
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
