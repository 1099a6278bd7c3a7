"""Tests of timeouts with a deadline that moves."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline


async def seconds_until_expiry(deadline: MovingDeadline, timeout: float) -> float:
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(DeadlineExceeded, match="the next event took longer than"):
        await _wait_for(deadline, timeout)
    return loop.time() - started


async def _wait_for(deadline: MovingDeadline, timeout: float) -> None:
    with deadline:
        deadline.set_timeout("the next event", timeout)
        await asyncio.sleep(30)


def test_block_is_cancelled_at_the_deadline() -> None:
    async def main() -> float:
        return await seconds_until_expiry(MovingDeadline(), 0.1)

    assert 0.1 <= asyncio.run(main()) < 0.3


def test_new_timeout_replaces_the_last_one() -> None:
    async def main() -> None:
        with MovingDeadline() as deadline:
            deadline.set_timeout("the first", 0.05)
            deadline.set_timeout("the second", 30)
            await asyncio.sleep(0.15)
            deadline.set_timeout("the third", 0.05)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(30)
            raise asyncio.CancelledError

    with pytest.raises(DeadlineExceeded, match="the third took longer than"):
        asyncio.run(main())


def test_progress_starts_the_timeout_again() -> None:
    received = 0

    async def receive() -> None:
        nonlocal received
        for _ in range(6):
            await asyncio.sleep(0.05)
            received += 1

    async def main() -> float:
        task = asyncio.create_task(receive())
        seconds = await seconds_until_expiry(MovingDeadline(lambda: received), 0.16)
        await task
        return seconds

    last_progress = 0.3
    assert last_progress + 0.16 <= asyncio.run(main()) < last_progress + 0.16 + 0.16 / 8 + 0.15


def test_without_progress_the_block_is_cancelled_at_the_deadline() -> None:
    async def main() -> float:
        return await seconds_until_expiry(MovingDeadline(lambda: 7), 0.16)

    assert 0.16 <= asyncio.run(main()) < 0.3


@pytest.mark.parametrize(("event", "stream", "operation"), [(0.05, 30, "the next event"), (30, 0.05, "the stream")])
def test_shorter_timeout_ends_the_block(event: float, stream: float, operation: str) -> None:
    async def main() -> None:
        with MovingDeadline() as deadline:
            deadline.set_final_timeout("the stream", stream)
            deadline.set_timeout("the next event", event)
            await asyncio.sleep(30)

    with pytest.raises(DeadlineExceeded, match=f"{operation} took longer than"):
        asyncio.run(main())


def test_progress_does_not_move_the_final_timeout() -> None:
    received = 0

    async def main() -> None:
        nonlocal received
        with MovingDeadline(lambda: received) as deadline:
            deadline.set_final_timeout("the stream", 0.4)
            deadline.set_timeout("the next event", 0.3)
            while True:
                await asyncio.sleep(0.02)
                received += 1

    with pytest.raises(DeadlineExceeded, match="the stream took longer than"):
        asyncio.run(main())


def test_regular_calls_end_at_the_deadline_and_do_not_move_it() -> None:
    calls: list[float] = []

    async def main() -> float:
        deadline, loop = MovingDeadline(), asyncio.get_running_loop()
        deadline.call_every(0.05, lambda: calls.append(loop.time()))
        return await seconds_until_expiry(deadline, 0.5)

    assert 0.5 <= asyncio.run(main()) < 0.8
    assert 2 <= len(calls) <= 10
    assert all(later - earlier >= 0.045 for earlier, later in pairwise(calls))


def test_regular_calls_end_with_the_block() -> None:
    calls: list[int] = []

    async def main() -> None:
        with MovingDeadline() as deadline:
            deadline.call_every(0.02, lambda: calls.append(1))
            await asyncio.sleep(0.1)
        count = len(calls)
        await asyncio.sleep(0.1)
        assert count == len(calls) > 0

    asyncio.run(main())
