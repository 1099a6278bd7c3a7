"""What stands in line behind the open call: other calls, and text, each to go out when its turn comes."""

from __future__ import annotations

from typing import TypeAlias

from interlingua import events as ev

__all__ = ["Line", "Spoken", "Waiting"]

Spoken: TypeAlias = ev.TextDelta | ev.ReasoningDelta | ev.RefusalDelta
Waiting: TypeAlias = Spoken | ev.Seal | ev.CallStart | ev.ArgsDelta | ev.CallEnd


class Line:
    """Calls wait under their number, text under None. Who came first goes first, with all that came of it since."""

    def __init__(self) -> None:
        self._events: dict[int | None, list[Waiting]] = {}
        self.size = 0
        """How many characters wait."""

    def __bool__(self) -> bool:
        return bool(self._events)

    def has(self, key: int | None) -> bool:
        return key in self._events

    def join(self, key: int | None, event: Waiting) -> None:
        self._events.setdefault(key, []).append(event)
        self.size += _size(event)

    def leave(self) -> list[Waiting]:
        """All of who is first."""
        events = self._events.pop(next(iter(self._events)))
        self.size -= sum(map(_size, events))
        return events

    def cut(self, key: int) -> None:
        """Ends a call that waits as incomplete, without its arguments."""
        waited = self._events[key]
        self.size -= sum(map(_size, waited))
        started = [event for event in waited if isinstance(event, ev.CallStart)]
        self._events[key] = [*started, ev.CallEnd(key, complete=False)]


def _size(event: Waiting) -> int:
    if isinstance(event, ev.CallStart | ev.CallEnd):
        return 0
    return len(str(event.data)) if isinstance(event, ev.Seal) else len(event.text)
