"""Tracers: send the trace events of one reply to its observer.

`ReplyTracer` knows the message that is being translated, `ChoiceTracer` adds the choice, `ParserTracer` knows the roles
of markers. Without an observer there are no tracers, and nothing is reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from interlingua import events as ev
from interlingua import trace
from interlingua.core.text_forwarder import TextForwarder
from interlingua.trace import Channel, HoldReason, MarkerRole

__all__ = ["MAX_HELD_PIECES", "ChoiceTracer", "HeldText", "ParserTracer", "ReplyTracer", "join_tail"]

MAX_HELD_PIECES = 64
"""Maximum number of pieces of a held-back text in one report: a trace must not grow with the square of the text."""

_NUMBER_FIELDS = ("created", "code", "input", "output", "cached", "reasoning", "cache_written")

HeldText: TypeAlias = tuple[str, HoldReason]
"""A text that waits, and the reason."""
MarkerRoles: TypeAlias = Mapping[str, MarkerRole]


def join_tail(pieces: Sequence[str]) -> str:
    """Join the pieces of a text that waits; only the last ones if there are many."""
    return "".join(pieces[-MAX_HELD_PIECES:])


def _without_booleans(event: ev.ReplyEvent) -> ev.ReplyEvent:
    """Return the event with 1 or 0 where the upstream sent a boolean instead of a number: JSON tells them apart."""
    if not isinstance(event, ev.Begin | ev.Usage | ev.Failure):
        return event
    numbers = {name: int(value) for name in _NUMBER_FIELDS if isinstance(value := getattr(event, name, None), bool)}
    return msgspec.structs.replace(event, **numbers) if numbers else event


class ReplyTracer:
    """Numbers the messages of one reply and sends its trace events to the observer."""

    def __init__(self, observer: trace.TraceObserver) -> None:
        self._observer: trace.TraceObserver | None = observer
        self.message = 0
        """The number of the current message."""
        self._received = b""
        self._dialect = ""
        self._choice_events: list[ev.Event] = []
        """The events of the current message that a choice has reported."""
        self._passed: trace.Passed | None = None

    def observe(self, event: trace.TraceEvent) -> None:
        """Send an event to the observer. An observer that raises must not break the reply: it is not called again."""
        if self._observer is None:
            return
        try:
            self._observer(event)
        except Exception as error:  # noqa: BLE001
            self._observer = None
            warnings.warn(f"the observer raised {error!r}: it is not called again", RuntimeWarning, stacklevel=2)

    def for_choice(self, index: int) -> ChoiceTracer:
        return ChoiceTracer(self, int(index))  # it may be a boolean

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────

    def begin_message(self, received: bytes, *, whole: bool = False) -> None:
        self._begin(received)
        self.observe(trace.MessageReceived(self.message, received.decode("utf-8", "replace"), whole))

    def begin_end(self) -> None:
        """Begin the end of a stream whose end the upstream has not marked."""
        self._begin(b"")
        self.observe(trace.InputEnded(self.message))

    def end_message(self, sent: bytes, *, whole: bool = False) -> None:
        unchanged = bool(self._received) and sent.endswith(self._received)
        self.observe(trace.FramesSent(self.message, sent.decode("utf-8", "replace"), unchanged, whole))

    def _begin(self, received: bytes) -> None:
        self.message += 1
        self._received = received
        self._choice_events = []

    # ── inside a message ──────────────────────────────────────────────────────────────────────────────────────────

    def report_dialect(self, dialect: str) -> None:
        """Report the dialect in use, unless it is known."""
        if dialect != self._dialect:
            self._dialect = dialect
            self.observe(trace.DialectChosen(self.message, dialect))

    def report_choice_events(self, choice: int, events: list[ev.Event]) -> None:
        self._choice_events += events
        self._report_events(choice, events)

    def trace_events(self, record: Callable[[list[ev.Event]], None]) -> Callable[[list[ev.Event]], None]:
        """Return the function, extended by a report of the events of the message that no choice has reported."""

        def record_and_report(events: list[ev.Event]) -> None:
            record(events)
            known = set(map(id, self._choice_events))
            self._report_events(None, [event for event in events if id(event) not in known])

        return record_and_report

    def _report_events(self, choice: int | None, events: list[ev.Event]) -> None:
        for event in events:
            if isinstance(event, ev.Finding):
                self.observe(trace.FindingReported(self.message, choice, event))
            else:
                self.observe(trace.EventSent(self.message, choice, _without_booleans(event)))

    # ── the fast path ─────────────────────────────────────────────────────────────────────────────────────────────

    def expect_passed(self, choice: int, channel: Channel, event: ev.TextDelta | ev.ReasoningDelta) -> None:
        """Remember a text that the fast path is about to forward. Its message begins after that."""
        self._passed = trace.Passed(self.message + 1, choice, channel, event)

    def report_passed(self) -> None:
        """Report the text that the fast path has forwarded."""
        passed, self._passed = self._passed, None
        if passed is not None:
            self.observe(passed)


class ChoiceTracer:
    """Sends the trace events of one choice to the observer."""

    def __init__(self, reply: ReplyTracer, choice: int) -> None:
        self._reply = reply
        self._choice = choice
        self._marker_ends: set[int] = set()
        """The positions in the text after the markers that were reported."""
        self._last_delta: type[ev.TextDelta | ev.ReasoningDelta] = ev.TextDelta

    def for_parser(self, roles: MarkerRoles) -> ParserTracer:
        """Return the tracer of the parser for a dialect whose markers have these roles."""
        return ParserTracer(self, roles)

    def report_marker(self, marker: str, role: MarkerRole, end: int, channel: Channel) -> None:
        """Report a marker that ends at this position in the text. A marker that is read again is reported once."""
        if end > 0 and end not in self._marker_ends:  # not in the prefill
            self._marker_ends.add(end)
            self._reply.observe(trace.MarkerSeen(self._reply.message, self._choice, channel, marker, role))

    def report_release(self, text: str, reason: HoldReason, channel: Channel) -> None:
        self._reply.observe(trace.Released(self._reply.message, self._choice, channel, text, reason))

    def trace_events(
        self, process: Callable[[Iterable[ev.Event]], list[ev.Event]]
    ) -> Callable[[Iterable[ev.Event]], list[ev.Event]]:
        """Return the function, extended by a report of the events that it returns."""

        def process_and_report(events: Iterable[ev.Event]) -> list[ev.Event]:
            processed = process(events)
            self._reply.report_choice_events(self._choice, processed)
            deltas = [event for event in processed if isinstance(event, ev.TextDelta | ev.ReasoningDelta)]
            if deltas:
                self._last_delta = type(deltas[-1])
            return processed

        return process_and_report

    def report_held(self, held: Sequence[HeldText], channel: Channel | None) -> None:
        for text, reason in held:
            self._reply.observe(trace.HeldBack(self._reply.message, self._choice, channel, text, reason))

    def watch_fast_path(self, forward: TextForwarder, channel: Channel | None) -> TextForwarder:
        """Return the function of the fast path, extended by a report of each text that it forwards.

        Args:
            forward: the function.
            channel: the channel of the text; None if text leaves in the channel in which it comes.
        """
        delta_type = self._last_delta
        if channel is None:
            channel = Channel.TEXT if delta_type is ev.TextDelta else Channel.REASONING

        def forward_and_report(texts: list[str], joined: str) -> int:
            count = forward(texts, joined)
            for text in texts[:count]:
                self._reply.expect_passed(self._choice, channel, delta_type(text))
            return count

        return forward_and_report


class ParserTracer:
    """Tracer of one parser of native text.

    The tracer of a parser that competes with others is deferred: it reports only if its parser wins.
    """

    def __init__(self, choice: ChoiceTracer, roles: MarkerRoles, *, deferred: bool = False) -> None:
        self._choice = choice
        self._roles = roles
        self._deferred: list[Callable[[], None]] | None = [] if deferred else None

    def defer(self, roles: MarkerRoles) -> ParserTracer:
        """Return the tracer of a competing parser."""
        return ParserTracer(self._choice, roles, deferred=True)

    def start(self) -> None:
        """Report what was deferred, and everything else at once."""
        reports, self._deferred = self._deferred or [], None
        for report in reports:
            report()

    def is_marker(self, text: str) -> bool:
        return text.strip() in self._roles

    def report_marker(self, marker: str, end: int, channel: Channel) -> None:
        """Report a marker that was read as structure, unless it has no role in the dialect, as a brace.

        Args:
            marker: the marker, perhaps with whitespace around it.
            end: the position in the reply after the marker.
            channel: the channel that it stood in.
        """
        marker = marker.strip()
        role = self._roles.get(marker)
        if role is not None:
            self._report(partial(self._choice.report_marker, marker, role, end, channel))

    def report_release(self, text: str, reason: HoldReason, channel: Channel) -> None:
        """Report text that was held back for this reason and is sent as text."""
        if text:
            self._report(partial(self._choice.report_release, text, reason, channel))

    def _report(self, report: Callable[[], None]) -> None:
        if self._deferred is None:
            report()
        else:
            self._deferred.append(report)
