"""Memory budget: the bytes that all requests in progress of one worker may hold together.

Counted are request bodies, also those that are still being received, their decoded form, and the parts of replies that
are buffered. The size of decoded JSON is an estimate: it depends on the number of objects in it.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

from interlingua.gateway.http.error_responses import OutOfMemory, TooLarge

__all__ = ["UNCHECKED_BYTES", "MemoryBudget", "MemoryShare", "decoded_size", "use_one_heap"]

UNCHECKED_BYTES = 64 * 1024
"""What a request may hold although the budget is used up, so that large requests do not displace small ones."""
COPIES, WIDE_COPIES = 3, 6
"""Memory for each byte of a text: received, decoded, and encoded for the recipient. Python needs up to four bytes for
each character of a decoded text that is not only ASCII."""
OBJECT_BYTES, LIST_BYTES, VALUE_BYTES = 200, 60, 60
"""Memory of a decoded object, a list and any other value, without the text in it."""


LARGE_SHARE_BYTES = 8 * 1024 * 1024
"""Size of a share from which free memory is returned to the system after the request."""
TRIM_DELAY_SECONDS = 0.5
"""Time after which that is done, once for all requests that end meanwhile."""


M_ARENA_MAX = -8
"""Parameter of glibc's `mallopt`: the number of heaps."""


def use_one_heap() -> None:
    """Use the same heap in all threads, before they start: `malloc_trim` does not return the end of the others."""
    _call_libc("mallopt", M_ARENA_MAX, 1)


def _call_libc(name: str, *args: int) -> None:
    """Call a function of glibc. Other C libraries do not have it."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*args)


def decoded_size(data: bytes) -> int:
    """Estimate the memory that is needed to decode and translate JSON, or a part of it."""
    values = OBJECT_BYTES * data.count(b"{") + LIST_BYTES * data.count(b"[") + VALUE_BYTES * data.count(b",")
    is_wide = not data.isascii() or b"\\u" in data
    return (WIDE_COPIES if is_wide else COPIES) * len(data) + values


class MemoryBudget:
    """The budget of one worker. `limit` returns its size: a reload can change it."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self.used = 0
        """Bytes that the requests in progress hold."""
        self._trim_timer: asyncio.TimerHandle | None = None

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
        if size > 0 and share > UNCHECKED_BYTES and self.used + size > limit:
            raise OutOfMemory(limit)
        self.used += size

    def trim_later(self) -> None:
        """Return free memory to the system soon.

        glibc keeps the memory of large blocks for further ones, so that one flood of large bodies would stay in the
        process for good.
        """
        if self._trim_timer is None:
            self._trim_timer = asyncio.get_running_loop().call_later(TRIM_DELAY_SECONDS, self._trim)

    def _trim(self) -> None:
        self._trim_timer = None
        _call_libc("malloc_trim", 0)


class MemoryShare:
    """The bytes that one request holds."""

    __slots__ = ("_budget", "_largest", "size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._largest = 0
        self.size = 0

    def grow(self, size: int) -> None:
        """Count more bytes. Raises OutOfMemory or TooLarge, and then counts nothing."""
        self.resize(self.size + size)

    def resize(self, size: int) -> None:
        """Set the number of bytes. Raises OutOfMemory or TooLarge, and then changes nothing."""
        self._budget.add(size - self.size, size)
        self.size = size
        self._largest = max(self._largest, size)

    def close(self) -> None:
        """Count nothing for this request any more."""
        self.resize(0)
        if self._largest >= LARGE_SHARE_BYTES:
            self._budget.trim_later()
