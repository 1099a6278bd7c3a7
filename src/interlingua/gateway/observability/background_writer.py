"""Background writer thread with a bounded queue.

Used by the log and the captures, so that request handling never blocks on a disk or a pipe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["BackgroundWriter"]

COLLECT_SECONDS = 0.02
"""Time in which further items are collected after the first one: waking up the thread for each of them, and switching
from the event loop to it and back, takes longer than handling it."""

T = TypeVar("T")


class BackgroundWriter(Generic[T]):
    """Passes items to a function, in order, in a separate thread. The thread starts with the first item.

    Create it in the process that uses it: threads do not survive a fork.

    Args:
        handle_item: Function that processes an item. It must not raise.
        max_weight: Maximum total weight of queued items.
        name: Name of the thread.
    """

    def __init__(self, handle_item: Callable[[T], None], max_weight: int, name: str) -> None:
        self._handle_item = handle_item
        self._max_weight = max_weight
        self._queue: SimpleQueue[tuple[T, int] | None] = SimpleQueue()
        self._closing = threading.Event()
        self._queued_weight = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def put(self, item: T, weight: int) -> bool:
        """Enqueue the item if it fits into the limit, and return whether it did. An item with weight 0 always fits."""
        with self._lock:
            if weight and self._queued_weight + weight > self._max_weight:
                return False
            self._queued_weight += weight
            if self._thread.ident is None:
                self._thread.start()
        self._queue.put((item, weight))
        return True

    def close(self, seconds: float = 5) -> bool:
        """Wait for the queued items and return whether all are done in time.

        A thread that hangs is abandoned; as a daemon thread it does not keep the process alive.
        """
        if self._thread.ident is None:
            return True
        self._closing.set()
        self._queue.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        entry = self._queue.get()
        while entry is not None:
            item, weight = entry
            self._handle_item(item)
            with self._lock:
                self._queued_weight -= weight
            entry = self._next_entry()

    def _next_entry(self) -> tuple[T, int] | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            entry = self._queue.get()
            self._closing.wait(COLLECT_SECONDS)
            return entry
