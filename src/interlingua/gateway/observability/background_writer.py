"""What is done behind the streams' backs? A thread that does it, so that nobody waits for a disk or a pipe."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

__all__ = ["BackgroundWriter"]

T = TypeVar("T")


class BackgroundWriter(Generic[T]):
    """Hands items to `do`, in order, in a thread of its own; it begins with the first. Made in the process that uses
    it, for threads do not live on in a fork. `do` sees to its own errors."""

    def __init__(self, handle_item: Callable[[T], None], max_weight: int, name: str) -> None:
        self._handle_item = handle_item
        self._max_weight = max_weight
        self._queue: SimpleQueue[tuple[T, int] | None] = SimpleQueue()
        self._queued_weight = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def put(self, item: T, weight: int) -> bool:
        """Whether there was room for it: what waits never weighs more than the limit. What weighs nothing has room."""
        with self._lock:
            if weight and self._queued_weight + weight > self._max_weight:
                return False
            self._queued_weight += weight
            if self._thread.ident is None:
                self._thread.start()
        self._queue.put((item, weight))
        return True

    def close(self, seconds: float = 5) -> bool:
        """Whether all that was put is done by then. A thread that hangs is left behind; it does not hold up the end."""
        if self._thread.ident is None:
            return True
        self._queue.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            item, weight = entry
            self._handle_item(item)
            with self._lock:
                self._queued_weight -= weight
