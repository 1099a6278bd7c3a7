"""Memory budget: the bytes that all requests in progress may hold together, over all workers.

Counted are request bodies, also those that are still being received, their decoded form, and the parts of replies that
are buffered. The size of decoded JSON is an estimate: it depends on the number of objects in it.
"""

from __future__ import annotations

from collections.abc import Callable

from interlingua.gateway.http.error_responses import OutOfMemory, TooLarge
from interlingua.gateway.shared_memory.worker_table import SharedCount

__all__ = ["COPIES", "UNCHECKED_BYTES", "MemoryBudget", "MemoryShare", "decoded_size"]

UNCHECKED_BYTES = 64 * 1024
"""Memory that a request may hold although the budget is used up, so that large requests do not displace small ones."""
COPIES, WIDE_COPIES = 3, 6
"""Memory for each byte of a text: received, decoded, and encoded for the recipient. Python needs up to four bytes for
each character of a decoded text that is not only ASCII."""
OBJECT_BYTES, LIST_BYTES, VALUE_BYTES = 200, 60, 60
"""Memory of a decoded object, a list and any other value, without the text in it."""


def decoded_size(data: bytes) -> int:
    """Estimate the memory that is needed to decode and translate JSON, or a part of it."""
    values = OBJECT_BYTES * data.count(b"{") + LIST_BYTES * data.count(b"[") + VALUE_BYTES * data.count(b",")
    is_wide = not data.isascii() or b"\\u" in data
    return (WIDE_COPIES if is_wide else COPIES) * len(data) + values


class MemoryBudget:
    """The budget of a gateway, as one worker uses it.

    Args:
        limit: Returns the size of the budget: a reload can change it.
        held_bytes: The bytes that the requests in progress hold. None if this process is the only worker.
    """

    def __init__(self, limit: Callable[[], int], held_bytes: SharedCount | None = None) -> None:
        self._limit = limit
        self._held_bytes = held_bytes or SharedCount()

    @property
    def used(self) -> int:
        """Bytes that the requests in progress hold, over all workers."""
        return self._held_bytes.total

    def open_share(self) -> MemoryShare:
        """Return the share of a new request."""
        return MemoryShare(self)

    def add(self, size: int, share: int) -> None:
        """Count more bytes, or fewer if negative, for a request that holds `share` bytes with them.

        Raises:
            OutOfMemory: All requests together would hold more than the budget.
            TooLarge: This request alone would.
        """
        limit = self._limit()
        if size > 0 and share > limit:
            raise TooLarge(f"this request needs more than {limit:,} bytes of memory", "increase limits.memory")
        self._held_bytes.add(size)
        if size > 0 and share > UNCHECKED_BYTES and self.used > limit:
            self._held_bytes.add(-size)
            raise OutOfMemory(limit)


class MemoryShare:
    """The bytes that one request holds."""

    __slots__ = ("_budget", "size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.size = 0

    def grow(self, size: int) -> None:
        """Count more bytes. Raises OutOfMemory or TooLarge, and then counts nothing."""
        self.resize(self.size + size)

    def resize(self, size: int) -> None:
        """Set the number of bytes. Raises OutOfMemory or TooLarge, and then changes nothing."""
        self._budget.add(size - self.size, size)
        self.size = size

    def close(self) -> None:
        """Count nothing for this request any more."""
        self.resize(0)
