"""Tests of the event log: every worker receives the events of the others, once and in order, also after a crash."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from interlingua.gateway.shared_memory.event_log import MAX_EVENT_BYTES, EventLog, EventRings


class Counted(msgspec.Struct, array_like=True):
    number: int
    text: str = ""


class Worker:
    """Worker that keeps the events which it receives."""

    def __init__(self, rings: EventRings | None, index: int) -> None:
        self.log = EventLog(rings, index)
        self.received: list[tuple[float, int]] = []
        self.log.subscribe(Counted, lambda at, event: self.received.append((at, event.number)))

    def take(self) -> list[tuple[float, int]]:
        self.log.poll()
        received, self.received = self.received, []
        return received


def workers(number: int, size: int = 8) -> tuple[EventRings, list[Worker]]:
    rings = EventRings(number, size)
    return rings, [Worker(rings, index) for index in range(number)]


def test_events_reach_all_other_workers_once() -> None:
    _, (first, second, third) = workers(3)
    first.log.publish(Counted(1), 10.0)
    second.log.publish(Counted(2), 11.0)
    assert (first.take(), second.take(), third.take()) == ([(11.0, 2)], [(10.0, 1)], [(10.0, 1), (11.0, 2)])
    assert (first.take(), second.take(), third.take()) == ([], [], [])


def test_events_of_several_workers_are_applied_in_the_order_of_their_times() -> None:
    _, (first, second, third) = workers(3)
    for number in range(4):
        (first if number % 2 else second).log.publish(Counted(number), float(-number))
    assert third.take() == [(-3.0, 3), (-2.0, 2), (-1.0, 1), (0.0, 0)]


def test_reader_that_is_too_late_continues_with_the_newest_events() -> None:
    _, (first, second) = workers(2, size=8)
    for number in range(100):
        first.log.publish(Counted(number), float(number))
    assert second.take() == [(float(number), number) for number in range(93, 100)], "the last slot is written next"
    first.log.publish(Counted(100), 100.0)
    assert second.take() == [(100.0, 100)]


def test_reader_that_is_too_late_ignores_events_that_lost_ones_may_have_revoked() -> None:
    rings, (first, second, third) = workers(3, size=8)
    second.log.publish(Counted(-1), 0.5)
    for number in range(100):
        first.log.publish(Counted(number), float(number))
    second.log.publish(Counted(-2), 200.0)
    expected = [(float(number), number) for number in range(93, 100)] + [(200.0, -2)]
    assert third.take() == expected
    assert Worker(rings, 2).take() == expected, "the same for a replacement"


def test_replacement_reads_the_events_of_all_workers_and_of_its_predecessor() -> None:
    rings, (first, second) = workers(2)
    first.log.publish(Counted(1), 1.0)
    second.log.publish(Counted(2), 2.0)
    replacement = Worker(rings, 0)
    replacement.log.publish(Counted(3), 3.0)
    assert replacement.take() == [(1.0, 1), (2.0, 2)]
    assert second.take() == [(1.0, 1), (3.0, 3)]


def test_incomplete_event_of_a_killed_worker_is_overwritten() -> None:
    rings, (first, second) = workers(2)
    first.log.publish(Counted(1), 1.0)
    rings.append(0, b"\xff" * 40)
    rings.ends[0] -= 1  # the worker was killed before it counted the event
    assert second.take() == [(1.0, 1)]
    Worker(rings, 0).log.publish(Counted(2), 2.0)
    assert second.take() == [(2.0, 2)]


def test_event_that_a_processor_does_not_see_yet_is_read_later() -> None:
    rings, (first, second) = workers(2)
    rings.ends[0] += 1
    assert second.take() == []
    rings.ends[0] -= 1
    first.log.publish(Counted(1), 1.0)
    assert second.take() == [(1.0, 1)]


def test_events_that_do_not_fit_stay_in_the_worker() -> None:
    _, (first, second) = workers(2)
    first.log.publish(Counted(1, "x" * MAX_EVENT_BYTES), 1.0)
    first.log.publish(Counted(2, "\ud800"), 2.0)
    first.log.publish(Counted(3, "x" * (MAX_EVENT_BYTES - 50)), 3.0)
    assert second.take() == [(3.0, 3)]


def test_single_worker_writes_nothing() -> None:
    alone = Worker(None, 0)
    alone.log.publish(Counted(1), 1.0)
    assert alone.take() == []


FORK = """
import os
import msgspec
from interlingua.gateway.shared_memory.event_log import EventLog, EventRings

class Counted(msgspec.Struct):
    number: int

rings = EventRings(3)
for worker in (1, 2):
    process = os.fork()
    if process == 0:
        EventLog(rings, worker).publish(Counted(worker), worker)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
log = EventLog(rings, 0)
log.subscribe(Counted, lambda at, event: print(at, event.number))
log.poll()
"""


def test_events_of_child_processes_are_visible() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout == "1.0 1\n2.0 2\n"
