"""Free memory of a worker. Requests use it again while they arrive, and then it is returned to the system.

New memory costs a page fault for each 4 KiB, which takes longer than copying a request into it. glibc would return each
block of 128 KiB at once, and keep much of the rest.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress

__all__ = ["reuse_free_memory", "trim_periodically"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt: the free memory at the end of the heap that it keeps, and the size of blocks that it
returns as soon as they are free."""
MAX_FREE_BYTES = 4 * 1024 * 1024
MIN_RETURNED_BYTES = 1024 * 1024
CHECK_SECONDS = 1.0
MAX_BUSY_CHECKS = 10
"""Checks after which free memory is returned although requests arrive all the time."""


def reuse_free_memory() -> None:
    """Let glibc use free memory again, but return large blocks."""
    with suppress(OSError, AttributeError, TypeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, MAX_FREE_BYTES)
        mallopt(M_MMAP_THRESHOLD, MIN_RETURNED_BYTES)


async def trim_periodically(count_requests: Callable[[], int]) -> None:
    """Return free memory to the system in the first second without a request, or after ten seconds.

    Args:
        count_requests: Function that returns a number which is higher after each beginning and each end of a request.
    """
    trim = _trim_function()
    if trim is None:
        return
    seen = trimmed = count_requests()
    busy_checks = 0
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        count = count_requests()
        busy_checks = busy_checks + 1 if count != seen else 0
        if count != trimmed and (count == seen or busy_checks >= MAX_BUSY_CHECKS):
            await asyncio.to_thread(trim, 0)  # some milliseconds for 100 MiB
            trimmed, busy_checks = count, 0
        seen = count


def _trim_function() -> Callable[[int], int] | None:
    """Return glibc's malloc_trim; None if there is none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return trim
