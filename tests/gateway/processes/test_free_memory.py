"""Free memory is returned to the system when no request arrives, and at the latest after some time."""

from __future__ import annotations

import asyncio
import ctypes

import pytest

from interlingua.gateway.processes import free_memory

BUSY = free_memory.MAX_BUSY_CHECKS


async def returned_after(monkeypatch: pytest.MonkeyPatch, counts: list[int]) -> list[int]:
    """Return the numbers of the checks after which memory was returned.

    Args:
        monkeypatch: Replaces the functions of glibc.
        counts: The number of requests at the start and at each check.
    """
    returned: list[int] = []
    check = -1
    done = asyncio.Event()

    def count_requests() -> int:
        nonlocal check
        check = min(check + 1, len(counts) - 1)
        if check == len(counts) - 1:
            done.set()
        return counts[check]

    def trim(_: int) -> int:
        returned.append(check)
        return 1

    monkeypatch.setattr(free_memory, "CHECK_SECONDS", 0)
    monkeypatch.setattr(free_memory, "_trim_function", lambda: trim)
    task = asyncio.create_task(free_memory.trim_periodically(count_requests))
    await done.wait()
    task.cancel()
    return returned


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([0, 0, 0, 0], []),
        ([0, 2, 2, 2, 2], [2]),
        ([0, 2, 4, 4, 4, 6, 6, 6], [3, 6]),
        ([*range(BUSY + 3)], [BUSY]),
    ],
    ids=["no request", "one request", "two bursts", "always busy"],
)
def test_memory_is_returned_after_a_burst(
    monkeypatch: pytest.MonkeyPatch, counts: list[int], expected: list[int]
) -> None:
    assert asyncio.run(returned_after(monkeypatch, counts)) == expected


def test_nothing_is_returned_without_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: None) -> object:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", load)
    free_memory.reuse_free_memory()
    asyncio.run(asyncio.wait_for(free_memory.trim_periodically(lambda: 1), 1))
