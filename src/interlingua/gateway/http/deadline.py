"""How long is waited for an upstream or a client: one timer for a whole request, with a deadline that moves."""

from __future__ import annotations

import asyncio
from types import TracebackType

__all__ = ["DeadlineExceeded", "MovingDeadline"]


class DeadlineExceeded(Exception):
    """What was waited for did not come in time."""

    def __init__(self, operation: str, seconds: float) -> None:
        super().__init__(f"{operation} took longer than {seconds:g} s")
        self.operation = operation
        self.seconds = seconds


class MovingDeadline:
    """Cancels what runs inside of it once a wait takes too long, and says so with WaitedTooLong.

    `asyncio.timeout` arms its timer anew for each wait. A stream has thousands of them: here the timer looks, when it
    rings, whether the deadline has moved.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._deadline = float("inf")
        self._timeout = ("", 0.0)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._expired = False

    def set_timeout(self, operation: str, seconds: float) -> None:
        """From now on this is waited for, so long."""
        self._timeout = (operation, seconds)
        self._deadline = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            self._arm_timer()

    def __enter__(self) -> MovingDeadline:
        self._task = asyncio.current_task()
        assert self._task is not None, "only a task can wait"
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
        cancelled_elsewhere = (
            task.uncancel() > self._cancelling
        )  # someone else has cancelled it, too: that is the stronger word
        if not cancelled_elsewhere and exc_type is not None and issubclass(exc_type, asyncio.CancelledError):
            raise DeadlineExceeded(*self._timeout) from error

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        if self._task is None:
            return
        if self._loop.time() < self._deadline:
            self._arm_timer()
            return
        self._expired = True
        self._task.cancel()
