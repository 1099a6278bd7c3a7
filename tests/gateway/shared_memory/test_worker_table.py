"""Tests of the table of the workers: counts over all workers, and what remains of a worker that has ended."""

from __future__ import annotations

import subprocess
import sys

from interlingua.gateway.shared_memory.worker_memory import SharedMemory, WorkerMemory
from interlingua.gateway.shared_memory.worker_table import SharedCount, WorkerState, WorkerTable


def test_every_worker_reads_the_sum_of_all() -> None:
    table = WorkerTable(3)
    first, second, third = (SharedCount(table.requests, worker) for worker in range(3))
    first.add(5)
    second.add(3)
    second.add(-1)
    assert [(count.own, count.total) for count in (first, second, third)] == [(5, 7), (2, 7), (0, 7)]


def test_single_worker_needs_no_table() -> None:
    first, second = SharedCount(), SharedCount()
    first.add(1)
    assert (first.total, second.total) == (1, 0)


def test_row_of_a_worker_that_ended_is_cleared_except_for_its_restarts() -> None:
    shared = SharedMemory(2)
    workers = [WorkerMemory(shared, index) for index in range(2)]
    for worker in workers:
        worker.register_process()
        worker.set_state(WorkerState.READY)
        for count in (worker.open_requests, worker.open_token_counts, worker.connections, worker.memory_bytes):
            count.add(7)
    shared.table.restarts[0] += 1
    shared.table.clear_row(0)
    table = shared.table
    assert (table.process[0], table.started_at[0], table.state[0], table.restarts[0]) == (0, 0, 0, 1)
    survivor = workers[1]
    for count in (survivor.open_requests, survivor.open_token_counts, survivor.connections, survivor.memory_bytes):
        assert count.total == 7
    assert table.process[1] > 0
    assert table.state[1] == WorkerState.READY


FORK = """
import os
from interlingua.gateway.shared_memory.worker_memory import SharedMemory, WorkerMemory
shared = SharedMemory(2)
process = os.fork()
if process == 0:
    child = WorkerMemory(shared, 1)
    child.register_process()
    child.open_requests.add(4)
    os._exit(0)
assert os.waitpid(process, 0)[1] == 0
print(WorkerMemory(shared, 0).open_requests.total, shared.table.process[1] == process, shared.table.is_stopping)
"""


def test_numbers_of_a_child_process_are_visible() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout == "4 True False\n"
