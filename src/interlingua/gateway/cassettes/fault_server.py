"""Server on loopback that sends recorded replies with faults, by the scripts of `interlingua.faults`.

A fault such as a reset connection needs a real socket. The path of a request begins with the token of its replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from secrets import token_hex
from typing import TypeAlias

from interlingua.faults.upstream.connection import read_request, run_script
from interlingua.faults.upstream.script import Script, send_response

__all__ = ["FaultServer", "ScriptSource"]

MAX_TOKENS = 1000
"""Number of replays whose scripts are kept."""
MAX_REQUEST_BYTES = 2**24
ScriptSource: TypeAlias = Callable[[bool], list[Script]]
"""Returns the scripts for the first, second, … request of a replay. The argument: whether a stream is requested."""
NOT_FOUND: Script = [send_response("404 Not Found", b'{"error": {"message": "no such replay"}}')]


class FaultServer:
    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._sources: dict[str, ScriptSource] = {}
        self._requests: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, source: ScriptSource) -> str:
        """Add a replay, and return the URL of its upstream. The server starts with the first one."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_REQUEST_BYTES)
        token = token_hex(16)
        self._sources[token], self._requests[token] = source, 0
        if len(self._sources) > MAX_TOKENS:
            oldest = next(iter(self._sources))
            del self._sources[oldest], self._requests[oldest]
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{token}/v1"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader, writer)
            scripts = self._scripts_for(request.path.split("/")[1], stream=bool(request.body.get("stream")))
            await run_script(request, scripts)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()

    def _scripts_for(self, token: str, *, stream: bool) -> Script:
        source = self._sources.get(token)
        if source is None:
            return NOT_FOUND
        scripts = source(stream)
        number, self._requests[token] = self._requests[token], self._requests[token] + 1
        return scripts[min(number, len(scripts) - 1)]
