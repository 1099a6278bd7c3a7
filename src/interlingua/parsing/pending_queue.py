"""Queue of events that arrive while another call is open.

Clients accept one open call at a time. Other calls and text are buffered here and released in order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.core.reply import Call
from interlingua.parsing.tracer import MAX_HELD_PIECES

__all__ = ["ContentDelta", "PendingQueue", "QueuedEvent", "last_texts"]

ContentDelta: TypeAlias = ev.TextDelta | ev.ReasoningDelta | ev.RefusalDelta
QueuedEvent: TypeAlias = ContentDelta | ev.Seal | ev.CallStart | ev.ArgsDelta | ev.CallEnd


NOTHING: OrderedDict[int | None, list[QueuedEvent]] = OrderedDict()
"""The pending events of all queues that have not been used: most queues never are."""


class PendingQueue:
    """Events by call index, or by None for text.

    The entry that was added first is released first, with all events that were added to it since.
    """

    __slots__ = ("buffered_chars", "pending", "start_chars")

    def __init__(self) -> None:
        self.pending = NOTHING
        self.buffered_chars = 0
        """Number of characters of texts and arguments in the queue."""
        self.start_chars = 0
        """Number of characters of ids, names and further fields of calls in the queue."""

    def contains(self, key: int | None) -> bool:
        return key in self.pending

    def append(self, key: int | None, event: QueuedEvent) -> None:
        if self.pending is NOTHING:
            # An ordinary dict would search for its first entry among all that were removed.
            self.pending = OrderedDict()
        self.pending.setdefault(key, []).append(event)
        if isinstance(event, ev.CallStart):
            self.start_chars += _start_chars(event)
        else:
            self.buffered_chars += _char_count(event)

    def pop_first(self) -> list[QueuedEvent]:
        """Remove the first entry and return all of its events."""
        _, events = self.pending.popitem(last=False)
        self.buffered_chars -= sum(map(_char_count, events))
        self.start_chars -= sum(_start_chars(event) for event in events if isinstance(event, ev.CallStart))
        return events

    def last_texts(self) -> list[str]:
        """Return the last texts and arguments in the queue, in order."""
        texts: list[str] = []
        for events in reversed(self.pending.values()):
            texts = last_texts(events) + texts
            if len(texts) >= MAX_HELD_PIECES:
                break
        return texts

    def calls(self) -> list[Call]:
        """Return the queued calls, with the arguments received so far."""
        return [_build_call(events) for events in self.pending.values() if isinstance(events[0], ev.CallStart)]

    def truncate(self, key: int) -> None:
        """End a queued call as incomplete and drop its arguments."""
        queued = self.pending[key]
        self.buffered_chars -= sum(map(_char_count, queued))
        starts = [event for event in queued if isinstance(event, ev.CallStart)]
        self.pending[key] = [*starts, ev.CallEnd(key, complete=False)]


def last_texts(events: Sequence[ev.Event]) -> list[str]:
    """Return the texts and arguments of the last events, in order."""
    last_events = events[-MAX_HELD_PIECES:]
    return [event.text for event in last_events if isinstance(event, ContentDelta | ev.ArgsDelta)]


def _build_call(events: list[QueuedEvent]) -> Call:
    start, *following = events
    assert isinstance(start, ev.CallStart)
    args = "".join(event.text for event in following if isinstance(event, ev.ArgsDelta))
    complete = any(isinstance(event, ev.CallEnd) and event.complete for event in following)
    return Call(start.id or "", start.name, args, complete, start.extra or msgspec.UNSET)


def _char_count(event: QueuedEvent) -> int:
    if isinstance(event, ev.CallStart | ev.CallEnd):
        return 0
    return len(str(event.data)) if isinstance(event, ev.Seal) else len(event.text)


def _start_chars(event: ev.CallStart) -> int:
    return len(event.id or "") + len(event.name) + (len(str(event.extra)) if event.extra else 0)
