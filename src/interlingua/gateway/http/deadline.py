"""Timeouts while waiting for an upstream or a client: one timer per request, with a deadline that moves."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from types import TracebackType

__all__ = ["DeadlineExceeded", "MovingDeadline"]

PROGRESS_CHECKS = 8
"""Number of checks of the progress in the time of a timeout."""
NO_TIMEOUT = ("", math.inf)
TIMER_CONTEXT = Context()
"""Context of all timers. Each would have a copy of that of its task, which no timer needs."""


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

    Besides the timeout that moves, there can be one for the block as a whole, and a function that is called regularly.
    All of them share the timer, because a timer takes more memory than most other parts of a stream.

    Args:
        progress: A number that changes when something has arrived, which starts the timeout again. It is checked
            `PROGRESS_CHECKS` times in the time of the timeout, so that arriving data costs nothing: the block is
            cancelled up to an eighth of the timeout later than necessary.
    """

    __slots__ = (
        "_call",
        "_call_interval",
        "_cancelling",
        "_deadline",
        "_expired_timeout",
        "_final_deadline",
        "_final_timeout",
        "_last_progress",
        "_loop",
        "_next_call",
        "_progress",
        "_task",
        "_timeout",
        "_timer",
    )

    def __init__(self, progress: Callable[[], int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._progress = progress
        self._last_progress = 0
        self._deadline = self._final_deadline = self._next_call = math.inf
        self._timeout = self._final_timeout = NO_TIMEOUT
        self._expired_timeout: tuple[str, float] | None = None
        self._call: Callable[[], None] | None = None
        self._call_interval = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def set_timeout(self, operation: str, seconds: float) -> None:
        """Set the operation that is waited for from now on, and its timeout."""
        self._timeout = (operation, seconds)
        now = self._loop.time()
        self._deadline = now + seconds
        self._arm_timer(now)

    def set_final_timeout(self, operation: str, seconds: float) -> None:
        """Set the timeout of the whole block, from now on, whatever else is waited for."""
        self._final_timeout = (operation, seconds)
        now = self._loop.time()
        self._final_deadline = now + seconds
        self._arm_timer(now)

    def call_every(self, seconds: float, call: Callable[[], None]) -> None:
        """Call the function regularly until the end of the block."""
        self._call, self._call_interval = call, seconds
        now = self._loop.time()
        self._next_call = now + seconds
        self._arm_timer(now)

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
        if self._expired_timeout is None or task is None:
            return
        # A cancellation from elsewhere has priority over the timeout.
        cancelled_elsewhere = task.uncancel() > self._cancelling
        if not cancelled_elsewhere and exc_type is not None and issubclass(exc_type, asyncio.CancelledError):
            raise DeadlineExceeded(*self._expired_timeout) from error

    def _arm_timer(self, now: float) -> None:
        """Let the timer fire when there is something to do next, unless it fires before that anyway."""
        next_time = min(self._deadline, self._final_deadline, self._next_call)
        if self._progress is not None:
            self._last_progress = self._progress()
            next_time = min(next_time, now + self._timeout[1] / PROGRESS_CHECKS)
        if self._timer is not None:
            if self._timer.when() <= next_time:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(next_time, self._on_timer, context=TIMER_CONTEXT)

    def _on_timer(self) -> None:
        if self._task is None:
            return
        now, self._timer = self._loop.time(), None
        if self._progress is not None and self._progress() != self._last_progress:
            self._deadline = now + self._timeout[1]
        if now >= min(self._deadline, self._final_deadline):
            self._expired_timeout = self._timeout if self._deadline <= self._final_deadline else self._final_timeout
            self._task.cancel()
            return
        if self._call is not None and now >= self._next_call:
            self._next_call = now + self._call_interval
            self._call()
        self._arm_timer(now)
