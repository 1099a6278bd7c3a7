"""What stands in line behind the open call: other calls, and text, each to go out when its turn comes."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.core.reply import Call

__all__ = ["Line", "Spoken", "Waiting"]

Spoken: TypeAlias = ev.TextDelta | ev.ReasoningDelta | ev.RefusalDelta
Waiting: TypeAlias = Spoken | ev.Seal | ev.CallStart | ev.ArgsDelta | ev.CallEnd


class Line:
    """Calls wait under their number, text under None. Who came first goes first, with all that came of it since."""

    def __init__(self) -> None:
        self.waiting: dict[int | None, list[Waiting]] = {}
        self.size = 0
        """How many characters wait."""

    def has(self, key: int | None) -> bool:
        return key in self.waiting

    def join(self, key: int | None, event: Waiting) -> None:
        self.waiting.setdefault(key, []).append(event)
        self.size += _size(event)

    def leave(self) -> list[Waiting]:
        """All of who is first."""
        events = self.waiting.pop(next(iter(self.waiting)))
        self.size -= sum(map(_size, events))
        return events

    def calls(self) -> list[Call]:
        """The calls among them, as far as they have come."""
        return [_call(events) for events in self.waiting.values() if isinstance(events[0], ev.CallStart)]

    def cut(self, key: int) -> None:
        """Ends a call that waits as incomplete, without its arguments."""
        waited = self.waiting[key]
        self.size -= sum(map(_size, waited))
        started = [event for event in waited if isinstance(event, ev.CallStart)]
        self.waiting[key] = [*started, ev.CallEnd(key, complete=False)]


def _call(events: list[Waiting]) -> Call:
    start, *rest = events
    assert isinstance(start, ev.CallStart)
    args = "".join(event.text for event in rest if isinstance(event, ev.ArgsDelta))
    complete = any(isinstance(event, ev.CallEnd) and event.complete for event in rest)
    return Call(start.id or "", start.name, args, complete, start.extra or msgspec.UNSET)


def _size(event: Waiting) -> int:
    if isinstance(event, ev.CallStart | ev.CallEnd):
        return 0
    return len(str(event.data)) if isinstance(event, ev.Seal) else len(event.text)
