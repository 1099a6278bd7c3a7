"""Shared memory of a gateway: all of it as the supervisor creates it, and as one worker uses it."""

from __future__ import annotations

import os
import time

from interlingua.gateway.shared_memory.event_log import EventLog, EventRings
from interlingua.gateway.shared_memory.series import SeriesMemory, SeriesRegion
from interlingua.gateway.shared_memory.worker_table import SharedCount, WorkerState, WorkerTable

__all__ = ["SharedMemory", "WorkerMemory"]


class SharedMemory:
    """Memory of all workers. The supervisor creates it before it forks, and it outlives the workers."""

    def __init__(self, workers: int = 1) -> None:
        self.regions = [SeriesRegion() for _ in range(workers)]
        self.rings = EventRings(workers) if workers > 1 else None
        self.table = WorkerTable(workers)
        self.created_at = time.time()


class WorkerMemory:
    """Shared memory as one worker uses it. Without arguments, this process is the only worker."""

    def __init__(self, shared: SharedMemory | None = None, worker: int = 0) -> None:
        shared = shared or SharedMemory()
        self.table = shared.table
        self.gateway_started_at = shared.created_at
        """Unix time at which the gateway started, with all its workers."""
        self._worker = worker
        self.series = SeriesMemory(shared.regions, worker)
        self.events = EventLog(shared.rings, worker)
        self.open_requests = SharedCount(shared.table.requests, worker)
        self.open_token_counts = SharedCount(shared.table.token_counts, worker)
        self.connections = SharedCount(shared.table.connections, worker)
        self.memory_bytes = SharedCount(shared.table.memory_bytes, worker)

    def register_process(self) -> None:
        """Enter this process into the table, as the worker."""
        self.table.process[self._worker] = os.getpid()
        self.table.started_at[self._worker] = time.monotonic()

    def set_state(self, state: WorkerState) -> None:
        self.table.state[self._worker] = state

    @property
    def has_several_workers(self) -> bool:
        return len(self.series.regions) > 1
