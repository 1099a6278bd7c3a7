"""What a reply has come to so far: for those who only see its bytes go by."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua import events as ev

__all__ = ["Tally"]

_SPOKEN = (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.CallStart, ev.Seal)


class Tally:
    def __init__(self) -> None:
        self.spoken = False
        """Whether the client has been told anything of the reply itself. Before that, another may take its place."""
        self.calls = 0
        self.usage: ev.Usage | None = None
        self.stop: ev.Stop | None = None
        self.failure: ev.Failure | None = None

    def count(self, events: Iterable[ev.Event]) -> None:
        for event in events:
            if isinstance(event, _SPOKEN):
                self.spoken = True
                self.calls += isinstance(event, ev.CallStart)
            elif isinstance(event, ev.Usage):
                self.usage = event
            elif isinstance(event, ev.Stop):
                self.stop = self.stop or event
            elif isinstance(event, ev.Failure):
                self.failure = self.failure or event
