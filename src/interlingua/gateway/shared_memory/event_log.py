"""Log of events that workers exchange, so that each worker has the same state: circuit breakers, budgets, calibration.

Each worker changes its own state, and appends an event that describes the change to its ring in shared memory. Other
workers read the ring before they use their state, and make the same change. There are no locks: a ring has one writer,
and a reader remembers how far it has read.

A worker that replaces a dead one reads all rings from their oldest event, and so continues with the state of the
others. A reader that is too late for some events of a worker misses them, and ignores older events of the others, which
they may have revoked. No state depends on an event for long: circuit breakers close with the next success, and budgets
refill.

Two workers that decide at the same moment do not see each other's event. So a decision that one worker should make can
be made once by each worker, such as to send a probe. Reading takes microseconds and happens right before a decision.
"""

from __future__ import annotations

import math
import mmap
from array import array
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import TypeVar
from zlib import crc32

import msgspec

__all__ = ["EventLog", "EventRings"]

RING_EVENTS = 2048
"""Number of events in a ring. An idle worker reads once per second."""
SLOT_BYTES = 512
HEADER_BYTES = 8
"""Checksum and size of an event, 4 bytes each."""
MAX_EVENT_BYTES = SLOT_BYTES - HEADER_BYTES
_WORD_BYTES = 8

Event = TypeVar("Event", bound=msgspec.Struct)


class _Envelope(msgspec.Struct, array_like=True, frozen=True):
    at: float
    type: str
    body: msgspec.Raw


_encode = msgspec.msgpack.Encoder().encode
_decode_envelope = msgspec.msgpack.Decoder(_Envelope).decode


class EventRings:
    """Rings of all workers, in memory that the processes share after a fork."""

    def __init__(self, workers: int, size: int = RING_EVENTS) -> None:
        self.ends = memoryview(mmap.mmap(-1, workers * _WORD_BYTES)).cast("Q")
        """Number of events that each worker has ever appended. Written last: an event is either absent or complete."""
        self.size = size
        self._slots = [memoryview(mmap.mmap(-1, size * SLOT_BYTES)) for _ in range(workers)]

    def append(self, worker: int, data: bytes) -> None:
        number = self.ends[worker]
        slot = self._slot(worker, number)
        slot[HEADER_BYTES : HEADER_BYTES + len(data)] = data
        slot[:HEADER_BYTES] = _header(number, data)
        self.ends[worker] = number + 1

    def read(self, worker: int, number: int) -> bytes | None:
        """Return an event; None if it is overwritten, or if this processor does not see all of it yet."""
        slot = self._slot(worker, number)
        size = int.from_bytes(slot[4:HEADER_BYTES], "little")
        data = bytes(slot[HEADER_BYTES : HEADER_BYTES + size])
        return data if size and slot[:HEADER_BYTES] == _header(number, data) else None

    def _slot(self, worker: int, number: int) -> memoryview[int]:
        start = number % self.size * SLOT_BYTES
        return self._slots[worker][start : start + SLOT_BYTES]


class EventLog:
    """Events of all workers, as one worker writes and reads them. All methods must run in the same thread.

    Args:
        rings: The rings of all workers. None if this process is the only worker: then nothing is written.
        worker: The index of the worker that runs in this process.
    """

    def __init__(self, rings: EventRings | None = None, worker: int = 0) -> None:
        self._rings = rings
        self._worker = worker
        self._subscribers: dict[str, Callable[[float, msgspec.Raw], None]] = {}
        self._positions = array("Q", [0] * len(rings.ends) if rings else [])  # the next event to read in each ring

    def subscribe(self, event_type: type[Event], apply: Callable[[float, Event], None]) -> None:
        """Call `apply` with the time and the content of each event of this type that another worker publishes."""
        decode = msgspec.msgpack.Decoder(event_type).decode
        self._subscribers[event_type.__name__] = lambda at, data: apply(at, decode(data))

    def publish(self, event: msgspec.Struct, at: float) -> None:
        """Send an event to all other workers. One with a very long text, or with unpaired surrogates, is not sent."""
        if self._rings is None:
            return
        self.poll()
        with suppress(UnicodeEncodeError):
            data = _encode(_Envelope(at, type(event).__name__, msgspec.Raw(_encode(event))))
            if len(data) <= MAX_EVENT_BYTES:
                self._rings.append(self._worker, data)
                self._positions[self._worker] = self._rings.ends[self._worker]

    def poll(self) -> None:
        """Apply the new events of other workers, and at first those of a predecessor, in the order of their times."""
        if self._rings is None or self._rings.ends.tobytes() == self._positions.tobytes():
            return
        events: list[_Envelope] = []
        complete_since = -math.inf
        for worker in range(len(self._positions)):
            new_events, has_gap = self._read_new(self._rings, worker)
            events += new_events
            if has_gap and new_events:
                complete_since = max(complete_since, new_events[0].at)
        for event in sorted(events, key=attrgetter("at")):
            if event.at >= complete_since and (apply := self._subscribers.get(event.type)):
                apply(event.at, event.body)

    def _read_new(self, rings: EventRings, worker: int) -> tuple[list[_Envelope], bool]:
        """Return the new events of a worker, and whether some before them were overwritten."""
        events, has_gap, position = [], False, self._positions[worker]
        while position < (end := rings.ends[worker]):
            data = rings.read(worker, position)
            if data is not None:
                events.append(_decode_envelope(data))
                position += 1
            elif position <= end - rings.size:  # overwritten, or being overwritten now
                position, has_gap = end - rings.size + 1, True
            else:  # another processor has written it, and this one sees it later
                break
        self._positions[worker] = position
        return events, has_gap


def _header(number: int, data: bytes) -> bytes:
    """Return the header of an event. The number in the checksum distinguishes it from older events in its slot."""
    checksum = crc32(data, number & 0xFFFFFFFF)
    return checksum.to_bytes(4, "little") + len(data).to_bytes(4, "little")
