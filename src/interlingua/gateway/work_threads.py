"""CPU work of requests: short work runs on the event loop, long work in a thread, so that other requests continue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from interlingua.dialects.native_text import compile_dialect
from interlingua.parsing.dialect import Dialect

__all__ = ["MAX_SLICE_BYTES", "WorkThreads"]

MAX_INLINE_BYTES = 64 * 1024
"""Size of the data up to which work on it runs on the event loop."""
LARGE_BYTES = 1024 * 1024
"""Work on more data than this has a thread of its own, so that work on less data never waits for it."""
MAX_SLICE_BYTES = 8 * 1024
"""Size of the data of one stream that is translated in one turn of the event loop."""

P = ParamSpec("P")
T = TypeVar("T")


class WorkThreads:
    """Two threads for CPU work. The interpreter switches between them and the event loop every few milliseconds.

    More threads would not finish earlier, because only one thread runs at a time, but the event loop would have to wait
    for each of them.
    """

    def __init__(self) -> None:
        self._medium = ThreadPoolExecutor(1, "medium-work")
        self._large = ThreadPoolExecutor(1, "large-work")
        self._turn = asyncio.Lock()
        self._compiled: dict[str, Dialect] = {}  # by name

    async def run(self, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function, which works on `size` bytes of data."""
        if size <= MAX_INLINE_BYTES:
            return function(*args, **kwargs)
        executor = self._large if size > LARGE_BYTES else self._medium
        return await self._run_in_thread(executor, function, *args, **kwargs)

    async def compile(self, dialect: Dialect) -> None:
        """Compile the patterns of a dialect before its first reply, which takes up to half a second."""
        if self._compiled.get(dialect.name) is not dialect:
            await self._run_in_thread(self._medium, compile_dialect, dialect)
            self._compiled[dialect.name] = dialect

    async def _run_in_thread(
        self, executor: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        work = executor.submit(function, *args, **kwargs)
        future = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not work.cancel():  # it has begun: the caller must not touch its objects before it is done
                await asyncio.wait({future})
            raise
        finally:
            del work, future  # they keep an exception, whose traceback keeps this frame: a cycle

    async def wait_for_turn(self) -> None:
        """Wait for the next turn of the event loop in which no other stream translates a slice of its data."""
        async with self._turn:
            await asyncio.sleep(0)

    def close(self) -> None:
        """Stop the threads. Work that has begun is finished in the background."""
        for executor in (self._medium, self._large):
            executor.shutdown(wait=False, cancel_futures=True)
