"""What a reply has come to so far: for those who only see its bytes go by."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua import events as ev

__all__ = ["QUIET", "Tally"]

QUIET = frozenset({ev.TextDelta, ev.ReasoningDelta, ev.ArgsDelta})
"""Nearly all events are such. Once a reply has begun, there is nothing to count in them."""
_SPOKEN = frozenset({ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.CallStart, ev.Seal})


class Tally:
    def __init__(self) -> None:
        self.spoken = False
        """Whether the client has been told anything of the reply itself. Before that, another may take its place."""
        self.calls = 0
        self.usage: ev.Usage | None = None
        self.stop: ev.Stop | None = None
        self.failure: ev.Failure | None = None

    def hear(self, events: Iterable[ev.Event]) -> None:
        """As long as nothing is spoken."""
        self.spoken = any(type(event) in _SPOKEN for event in events)

    def count(self, event: ev.Event) -> None:
        """One that is not quiet."""
        match event:
            case ev.CallStart():
                self.calls += 1
            case ev.Usage():
                self.usage = event
            case ev.Stop():
                self.stop = self.stop or event
            case ev.Failure():
                self.failure = self.failure or event
