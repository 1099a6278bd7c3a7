"""CPU work on the event loop and in threads."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import interlingua as il
from interlingua.dialects.native_text import compile_dialect
from interlingua.dialects.registry import get_dialect, list_dialects
from interlingua.gateway.work_threads import (
    LARGE_BYTES,
    MAX_INLINE_BYTES,
    MAX_INLINE_TEXT_BYTES,
    MEDIUM_BYTES,
    WorkThreads,
)
from interlingua.parsing.detection import DetectShape
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.lookahead import Lookahead
from interlingua.parsing.markers import MarkerSet

CLIENT, OTHER_CLIENT = "client", "other client"


def thread_name() -> str:
    """Return the name of the current thread without its number."""
    return threading.current_thread().name.rpartition("_")[0] or "event loop"


REQUEST_THREADS = {
    MAX_INLINE_BYTES: "event loop",
    MAX_INLINE_BYTES + 1: "small-work",
    MEDIUM_BYTES + 1: "medium-work",
    LARGE_BYTES + 1: "large-work",
}
TEXT_THREADS = {
    MAX_INLINE_TEXT_BYTES: "event loop",
    MAX_INLINE_TEXT_BYTES + 1: "small-work",
    MEDIUM_BYTES + 1: "medium-work",
    LARGE_BYTES + 1: "large-work",
}


def test_only_work_on_much_data_leaves_the_event_loop() -> None:
    async def check() -> None:
        work_threads = WorkThreads()
        try:
            assert {size: await work_threads.run(CLIENT, size, thread_name) for size in REQUEST_THREADS} == (
                REQUEST_THREADS
            )
            assert {size: await work_threads.parse(CLIENT, size, thread_name) for size in TEXT_THREADS} == TEXT_THREADS
        finally:
            work_threads.close()

    asyncio.run(check())


@pytest.mark.parametrize("size", [MAX_INLINE_BYTES + 1, MEDIUM_BYTES + 1, LARGE_BYTES + 1])
def test_work_of_a_client_does_not_wait_for_the_queue_of_another(size: int) -> None:
    async def check() -> None:
        work_threads, release = WorkThreads(), threading.Event()
        queue = [asyncio.create_task(work_threads.run(CLIENT, size, release.wait, 30)) for _ in range(20)]
        try:
            await asyncio.sleep(0)
            assert await asyncio.wait_for(work_threads.run(OTHER_CLIENT, size, thread_name), 10)
            assert not any(task.done() for task in queue)
        finally:
            release.set()
            await asyncio.gather(*queue)
            work_threads.close()

    asyncio.run(check())


def test_work_of_a_client_on_little_data_does_not_wait_for_its_work_on_more_data() -> None:
    async def check() -> None:
        work_threads, release = WorkThreads(), threading.Event()
        sizes = [LARGE_BYTES + 1, MEDIUM_BYTES + 1]
        waiting = [asyncio.create_task(work_threads.run(CLIENT, size, release.wait, 30)) for size in sizes]
        try:
            await asyncio.sleep(0)
            assert await asyncio.wait_for(work_threads.run(CLIENT, MEDIUM_BYTES, thread_name), 10) == "small-work"
        finally:
            release.set()
            await asyncio.gather(*waiting)
            work_threads.close()

    asyncio.run(check())


def test_exception_reaches_the_caller() -> None:
    async def fail() -> None:
        work_threads = WorkThreads()
        try:
            await work_threads.run(CLIENT, LARGE_BYTES, int, "x")
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
        first = asyncio.create_task(work_threads.run(CLIENT, LARGE_BYTES, work, "first", started))
        second = asyncio.create_task(work_threads.run(CLIENT, LARGE_BYTES, work, "second", never_started))
        await asyncio.to_thread(started.wait)
        for task in (second, first):
            task.cancel()
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(result) for result in results] == [asyncio.CancelledError] * 2
        assert done == ["first"]
        assert not never_started.is_set()
        work_threads.close()

    asyncio.run(cancel())


def test_dialect_is_compiled_once_and_not_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    monkeypatch.setattr("interlingua.gateway.work_threads.compile_dialect", lambda _: threads.append(thread_name()))

    async def compile_twice() -> None:
        work_threads = WorkThreads()
        for _ in range(2):
            await work_threads.compile(CLIENT, get_dialect("kimi_k3"))
        work_threads.close()

    asyncio.run(compile_twice())
    assert threads == ["medium-work"]


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


def test_work_of_many_requests_on_the_event_loop_takes_turns() -> None:
    async def run_all() -> None:
        work_threads, order = WorkThreads(), list[str]()

        async def tick() -> None:
            while order.count("work") < 10:
                order.append("tick")
                await asyncio.sleep(0)

        work = [work_threads.run("a", MAX_INLINE_BYTES, order.append, "work") for _ in range(10)]
        await asyncio.gather(tick(), *work)
        work_threads.close()
        assert "work work" not in " ".join(order)

    asyncio.run(run_all())
