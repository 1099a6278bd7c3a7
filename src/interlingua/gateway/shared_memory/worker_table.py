"""Table of the workers of a gateway, with the numbers that must not exceed a limit over all workers.

Each worker writes its own row, and all workers read the table. The supervisor clears the row of a worker that has
ended, and counts its restarts.
"""

from __future__ import annotations

import mmap
from enum import IntEnum

__all__ = ["SharedCount", "WorkerState", "WorkerTable"]

COLUMNS = 9
_WORD_BYTES = 8


class WorkerState(IntEnum):
    STARTING = 0
    READY = 1
    STOPPING = 2


class WorkerTable:
    """Columns of the table, with one number per worker, in memory that the processes share after a fork."""

    def __init__(self, workers: int) -> None:
        memory = memoryview(mmap.mmap(-1, (COLUMNS * workers + 1) * _WORD_BYTES)).cast("d")
        columns = [memory[column * workers : (column + 1) * workers] for column in range(COLUMNS)]
        self.process, self.started_at, self.last_beat, self.state, self.restarts, *counts = columns
        """Process id (0: none), times of the start and of the last heartbeat, `WorkerState`, number of restarts."""
        self.requests, self.token_counts, self.connections, self.memory_bytes = counts
        """Requests and token counts in progress, connections of clients, bytes of the memory budget in use."""
        self._is_stopping = memory[-1:]

    @property
    def is_stopping(self) -> bool:
        """True once the supervisor has received a stop signal."""
        return self._is_stopping[0] != 0

    def set_stopping(self) -> None:
        self._is_stopping[0] = 1.0

    def clear_row(self, worker: int) -> None:
        """Forget a worker that has ended, also all that it counted."""
        columns = (self.process, self.started_at, self.last_beat, self.state)
        for column in (*columns, self.requests, self.token_counts, self.connections, self.memory_bytes):
            column[worker] = 0.0


class SharedCount:
    """Number that a worker counts, and its sum over all workers.

    A worker first adds to its count, then compares the sum with a limit: the limit is never exceeded, but workers that
    do so at the same time may both refuse.
    """

    __slots__ = ("_column", "_worker")

    def __init__(self, column: memoryview[float] | None = None, worker: int = 0) -> None:
        self._column = WorkerTable(1).requests if column is None else column
        self._worker = worker

    def add(self, number: int) -> None:
        self._column[self._worker] += number

    @property
    def own(self) -> int:
        """The number of this worker."""
        return int(self._column[self._worker])

    @property
    def total(self) -> int:
        """The sum over all workers."""
        return int(sum(self._column))
