"""Heartbeat of a worker: shows the supervisor whether the event loop runs, and where it is stuck if it does not."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import time
from contextlib import suppress

from interlingua.gateway.shared_memory.worker_table import WorkerTable

__all__ = ["INTERVAL_SECONDS", "Heartbeat"]

INTERVAL_SECONDS = 1.0
"""Interval at which a worker updates its heartbeat."""
STACK_SIGNAL = signal.SIGUSR2
"""Signal on which a worker writes its stack, also if it is stuck in code that runs no signal handlers of Python."""
STACK_TIMEOUT_SECONDS = 1.0
MAX_STACK_BYTES = 64 * 1024


class Heartbeat:
    """Heartbeat of one worker process. The supervisor creates it before it forks.

    Args:
        table: The table of the workers, in the memory of all processes.
        worker: The row of this worker.
    """

    def __init__(self, table: WorkerTable, worker: int) -> None:
        self._last_beat = table.last_beat[worker : worker + 1]
        self._stack_reader, self._stack_writer = os.pipe()
        self.beat()

    # ── worker ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def beat(self) -> None:
        self._last_beat[0] = time.monotonic()

    def write_stack_on_signal(self) -> None:
        os.set_blocking(self._stack_writer, False)
        faulthandler.register(STACK_SIGNAL, self._stack_writer, all_threads=True)

    # ── supervisor ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def age(self) -> float:
        """Seconds since the last beat."""
        return time.monotonic() - self._last_beat[0]

    def request_stack(self, process: int) -> str:
        """Return the stack of the worker with this process id; "" if it does not write one, as a stopped process."""
        with suppress(ProcessLookupError):
            os.kill(process, STACK_SIGNAL)
        stack = b""
        until = time.monotonic() + STACK_TIMEOUT_SECONDS
        while len(stack) < MAX_STACK_BYTES and select.select([self._stack_reader], [], [], _remaining(until, stack))[0]:
            stack += os.read(self._stack_reader, MAX_STACK_BYTES)
        return stack.decode("utf-8", "replace")

    def close(self) -> None:
        os.close(self._stack_reader)
        os.close(self._stack_writer)


def _remaining(until: float, stack: bytes) -> float:
    """Return the seconds to wait for more of the stack: short once it has begun to arrive."""
    return 0.05 if stack else max(0.0, until - time.monotonic())
