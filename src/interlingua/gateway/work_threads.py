"""CPU work of requests: short work runs on the event loop, long work in a thread, so that other requests continue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from interlingua.dialects.native_text import compile_dialect
from interlingua.parsing.dialect import Dialect

__all__ = ["MAX_INLINE_TEXT_BYTES", "MAX_UNQUEUED_BYTES", "WorkThreads"]

MAX_INLINE_BYTES = 64 * 1024
"""Size of the data up to which work on it runs on the event loop."""
MAX_UNQUEUED_BYTES = 8 * 1024
"""Work on more data than this, on the event loop, waits for its turn: one function in each turn of the loop."""
MAX_INLINE_TEXT_BYTES = 2 * 1024
"""The same for data with model text. Parsing hostile text takes a hundred times as long as decoding JSON."""
SCANNED_BYTES_PER_DECODED = 8
"""Comparing JSON, or reading its top level, takes as long as decoding an eighth of it."""
MEDIUM_BYTES = 128 * 1024
LARGE_BYTES = 1024 * 1024
"""Work on more data than this has threads of its own, so that work on less data never waits for it."""

P = ParamSpec("P")
T = TypeVar("T")


class WorkThreads:
    """Threads for CPU work, in three pools by the size of the data.

    The interpreter runs one thread at a time, so several threads finish nothing earlier. They let the work of one
    client go on beside that of another.
    """

    def __init__(self) -> None:
        self._small = _FairThreadPool(4, "small-work")
        self._medium = _FairThreadPool(4, "medium-work")
        self._large = _FairThreadPool(2, "large-work")
        self._turn = asyncio.Lock()  # held by the work that runs in the next turn of the event loop
        self._compiled: dict[str, Dialect] = {}  # by name

    async def run(self, client_id: str, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function, which works on `size` bytes of data for this client."""
        if size <= MAX_INLINE_BYTES:
            if size > MAX_UNQUEUED_BYTES:
                await self.wait_for_turn()
            return function(*args, **kwargs)
        return await self._pool_for(size).run(client_id, function, *args, **kwargs)

    async def scan(self, client_id: str, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function, which scans `size` bytes of data for this client, but does not decode
        them."""
        return await self.run(client_id, size // SCANNED_BYTES_PER_DECODED, function, *args, **kwargs)

    async def wait_for_turn(self) -> None:
        """Wait for the next turn of the event loop in which no other request works on data on the loop."""
        async with self._turn:
            await asyncio.sleep(0)

    async def parse(self, client_id: str, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function, which parses `size` bytes of model text for this client."""
        if size <= MAX_INLINE_TEXT_BYTES:
            return function(*args, **kwargs)
        return await self._pool_for(size).run(client_id, function, *args, **kwargs)

    async def compile(self, client_id: str, dialect: Dialect) -> None:
        """Compile the patterns of a dialect before its first reply, which takes up to half a second."""
        if self._compiled.get(dialect.name) is not dialect:
            await self._medium.run(client_id, compile_dialect, dialect)
            self._compiled[dialect.name] = dialect

    def close(self) -> None:
        """Stop the threads. Work that has begun is finished in the background."""
        for pool in (self._small, self._medium, self._large):
            pool.close()

    def _pool_for(self, size: int) -> _FairThreadPool:
        return self._large if size > LARGE_BYTES else self._medium if size > MEDIUM_BYTES else self._small


class _FairThreadPool:
    """Thread pool that runs one function at a time per client, so that no client can use all threads."""

    def __init__(self, thread_count: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(thread_count, name)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by client id, while in use

    async def run(self, client_id: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._locks.setdefault(client_id, asyncio.Lock()):
            work = self._executor.submit(function, *args, **kwargs)
            future = asyncio.wrap_future(work)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                if not work.cancel():  # it has begun: the caller must not touch its objects before it is done
                    await asyncio.wait({future})
                raise
            finally:
                del work, future  # they keep an exception, whose traceback keeps this frame: a cycle

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
