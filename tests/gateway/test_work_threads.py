"""CPU work on the event loop and in threads."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import interlingua as il
from interlingua.dialects.native_text import compile_dialect
from interlingua.dialects.registry import get_dialect, list_dialects
from interlingua.gateway.work_threads import LARGE_BYTES, MAX_INLINE_BYTES, WorkThreads
from interlingua.parsing.detection import DetectShape
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.lookahead import Lookahead
from interlingua.parsing.markers import MarkerSet


def test_only_work_on_much_data_leaves_the_event_loop() -> None:
    async def thread_names() -> list[str]:
        work_threads = WorkThreads()
        sizes = [MAX_INLINE_BYTES, MAX_INLINE_BYTES + 1, LARGE_BYTES + 1]
        try:
            return [await work_threads.run(size, lambda: threading.current_thread().name) for size in sizes]
        finally:
            work_threads.close()

    assert asyncio.run(thread_names()) == ["MainThread", "medium-work_0", "large-work_0"]


def test_exception_reaches_the_caller() -> None:
    async def fail() -> None:
        work_threads = WorkThreads()
        try:
            await work_threads.run(LARGE_BYTES, int, "x")
        finally:
            work_threads.close()

    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(fail())


def test_cancelled_caller_waits_for_work_that_has_begun() -> None:
    done: list[str] = []

    def work(name: str, started: threading.Event) -> None:
        started.set()
        time.sleep(0.1)
        done.append(name)

    async def cancel() -> None:
        work_threads, started, never_started = WorkThreads(), threading.Event(), threading.Event()
        first = asyncio.create_task(work_threads.run(LARGE_BYTES, work, "first", started))
        second = asyncio.create_task(work_threads.run(LARGE_BYTES, work, "second", never_started))
        await asyncio.to_thread(started.wait)
        for task in (second, first):
            task.cancel()
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(result) for result in results] == [asyncio.CancelledError] * 2
        assert done == ["first"]
        assert not never_started.is_set()
        work_threads.close()

    asyncio.run(cancel())


def test_streams_take_turns() -> None:
    """In each turn of the event loop, one stream translates, however many wait."""

    async def count_turns() -> int:
        work_threads, turns, done = WorkThreads(), 0, 0

        async def translate_slices() -> None:
            nonlocal done
            for _ in range(5):
                await work_threads.wait_for_turn()
                done += 1

        streams = asyncio.gather(*(translate_slices() for _ in range(10)))
        while not streams.done():
            before = done
            await asyncio.sleep(0)
            assert done - before <= 1
            turns += 1
        work_threads.close()
        return turns

    assert asyncio.run(count_turns()) >= 50


def test_dialect_is_compiled_once_and_not_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    monkeypatch.setattr(
        "interlingua.gateway.work_threads.compile_dialect", lambda _: threads.append(threading.current_thread().name)
    )

    async def compile_twice() -> None:
        work_threads = WorkThreads()
        for _ in range(2):
            await work_threads.compile(get_dialect("kimi_k3"))
        work_threads.close()

    asyncio.run(compile_twice())
    assert threads == ["medium-work_0"]


@pytest.mark.parametrize("dialect", [*list_dialects(), get_dialect("detect")], ids=lambda dialect: dialect.name)
def test_compiled_dialect_needs_no_more_patterns_for_its_sample(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_dialect(dialect)
    candidates = dialect.shape.dialects if isinstance(dialect.shape, DetectShape) else (dialect,)
    patterns: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(MarkerSet, "__init__", lambda _, *literals: patterns.extend(literals))
        patch.setattr(Lookahead, "_compile", lambda lookahead: patterns.extend(lookahead._sequences))
        for candidate in candidates:
            il.parse(candidate.sample, dialect)
    assert patterns == []
