"""Timeouts while waiting for an upstream or a client: one timer per request, with a deadline that moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

__all__ = ["DeadlineExceeded", "MovingDeadline"]

PROGRESS_CHECKS = 8
"""How often progress is checked in the time of a timeout."""


class DeadlineExceeded(Exception):
    """An operation took longer than its timeout."""

    def __init__(self, operation: str, seconds: float) -> None:
        super().__init__(f"{operation} took longer than {seconds:g} s")
        self.operation = operation
        self.seconds = seconds


class MovingDeadline:
    """Context manager that cancels its block when the deadline passes, and raises DeadlineExceeded.

    `asyncio.timeout` creates a new timer for each wait, and a stream has thousands of waits. Here, one timer checks
    whether the deadline has moved when it fires, and is armed again if so.

    Args:
        progress: A number that changes when something has arrived, which starts the timeout again. It is checked
            `PROGRESS_CHECKS` times in the time of the timeout, so that arriving data costs nothing: the block is
            cancelled up to an eighth of the timeout later than necessary.
    """

    def __init__(self, progress: Callable[[], int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._progress = progress
        self._last_progress = 0
        self._deadline = float("inf")
        self._timeout = ("", 0.0)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._expired = False

    def set_timeout(self, operation: str, seconds: float) -> None:
        """Set the operation that is waited for from now on, and its timeout."""
        self._timeout = (operation, seconds)
        now = self._loop.time()
        self._deadline = now + seconds
        check_at = self._next_check(now)
        if self._timer is None or self._timer.when() > check_at:
            self._arm_timer(check_at)

    def __enter__(self) -> MovingDeadline:
        self._task = asyncio.current_task()
        assert self._task is not None, "a deadline can only be used inside a task"
        self._cancelling = self._task.cancelling()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        task, self._task = self._task, None
        if not self._expired or task is None:
            return
        # A cancellation from elsewhere has priority over the timeout.
        cancelled_elsewhere = task.uncancel() > self._cancelling
        if not cancelled_elsewhere and exc_type is not None and issubclass(exc_type, asyncio.CancelledError):
            raise DeadlineExceeded(*self._timeout) from error

    def _next_check(self, now: float) -> float:
        """Return the time at which the timer has to fire next."""
        if self._progress is None:
            return self._deadline
        self._last_progress = self._progress()
        return min(self._deadline, now + self._timeout[1] / PROGRESS_CHECKS)

    def _arm_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        if self._task is None:
            return
        now = self._loop.time()
        if self._progress is not None and self._progress() != self._last_progress:
            self._deadline = now + self._timeout[1]
        if now < self._deadline:
            self._arm_timer(self._next_check(now))
            return
        self._expired = True
        self._task.cancel()
