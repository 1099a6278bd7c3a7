"""Streamed response to a client: headers, frames, and keep-alive frames while the upstream is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Protocol, cast

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from interlingua.gateway.aiohttp_internals import (
    EventStreamResponse,
    is_chunked,
    release_request_parser,
    release_response_headers,
)
from interlingua.gateway.chunk_framing import frame_chunk
from interlingua.gateway.http.connection_listener import GuardedConnection

__all__ = ["EarlyKeepAlive", "ResponseStream"]

SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
KEEPALIVE_COMMENT = b": keep-alive\n\n"


class ClientConnection(Protocol):
    """Connection of a client, as far as a response uses it."""

    transport: asyncio.Transport | None
    """None after the client has disconnected."""
    is_writing_paused: bool


class ResponseStream:
    """Response with server-sent events.

    The headers are sent with the first write. Until then the response can still become an error with its own status.
    """

    can_write_now = True
    """True if `write_now` is possible."""

    __slots__ = (
        "_bytes_at_last_check",
        "_connection",
        "_is_chunked",
        "_request",
        "_writer",
        "bytes_sent",
        "headers",
        "response",
    )

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response: web.StreamResponse | None = None
        """None until the response has started."""
        self.headers: dict[str, str] = {}
        self.bytes_sent = 0
        """Bytes of all writes that have succeeded."""
        self._bytes_at_last_check = 0
        self._writer: AbstractStreamWriter | None = None
        self._connection: ClientConnection | None = None
        self._is_chunked = False

    async def write(self, data: bytes) -> None:
        writer = self._writer or await self._start()
        await writer.write(data)
        self.bytes_sent += len(data)

    def write_now(self, data: bytes) -> bool:
        """Write without waiting, even if the client reads slowly. Only after `write`, which sends the headers.

        Returns and raises as `write_delta` does.
        """
        return self.write_delta(data)

    def write_delta(self, data: bytes) -> bool:
        """Write an event that has a part of a text or of arguments, like `write_now`. Nearly all events are deltas.

        Returns:
            Whether the client has not read what was written: `is_full`.

        Raises:
            ConnectionError: The client has closed the connection.
        """
        connection = self._connection
        assert connection is not None, "the response has started"
        transport = connection.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has closed the connection")
        transport.write(frame_chunk(data) if self._is_chunked else data)
        self.bytes_sent += len(data)
        return connection.is_writing_paused

    def keep_alive(self, frame: bytes) -> None:
        """Send the frame if nothing was sent since the last call, and the client has read what was sent before.

        It prevents clients and proxies from closing an idle connection. Each write has complete frames only, so this
        one never splits another.
        """
        if self.bytes_sent == self._bytes_at_last_check and not self.is_full:
            with suppress(ConnectionError):  # the next write reports it again
                self.write_now(frame)
        self._bytes_at_last_check = self.bytes_sent

    @property
    def is_full(self) -> bool:
        """True if the client has not read what was written: `drain` waits for it."""
        return self._connection is not None and self._connection.is_writing_paused

    async def drain(self) -> None:
        """Wait until the client has read most of what was written."""
        if self._writer is not None:
            await self._writer.drain()

    async def end(self, data: bytes = b"") -> web.StreamResponse:
        """Write the last data, and the end of the response with it."""
        if self._writer is None:
            await self._start()
        assert self.response is not None
        await self.response.write_eof(data)
        self.bytes_sent += len(data)
        return self.response

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        """Send a complete response instead of a stream, and wait until it is written."""
        response = web.Response(status=status, body=body, content_type="application/json", headers=headers)
        await response.prepare(self._request)
        await response.write_eof()
        self.bytes_sent += len(body)
        return response

    def abort(self) -> None:
        """Abort the connection of a client that cannot be reached."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _start(self) -> AbstractStreamWriter:
        """Prepare the headers and return the low-level writer that `StreamResponse.write` uses."""
        if self.response is None:
            self.response = EventStreamResponse(headers={**SSE_HEADERS, **self.headers})
            if self._request.version < HttpVersion11:  # HTTP/1.0 marks the end of the body by closing the connection
                self.response.force_close()
        self._writer = await self.response.prepare(self._request)
        assert self._writer is not None, "write() must not be called after end()"
        self._is_chunked = is_chunked(self._writer)
        self._connection = cast("ClientConnection", self._request.protocol)
        self._release_heads()
        return self._writer

    def _release_heads(self) -> None:
        """Release what is not needed while the stream lasts: headers that are sent, and the parser of requests."""
        assert self.response is not None
        release_response_headers(self.response)
        self.headers = {}
        if isinstance(self._request.protocol, GuardedConnection):
            release_request_parser(self._request)


class EarlyKeepAlive:
    """Context manager that sends keep-alive comments until a reply begins, and the headers with the first of them.

    They prevent clients and proxies from closing an idle connection. Clients of all wires ignore a comment. From the
    beginning of a reply on, `ResponseStream.keep_alive` sends the frame of the client's wire, without a task.
    """

    def __init__(
        self,
        stream: ResponseStream,
        interval: float,
        headers: Callable[[], Mapping[str, str]],
    ) -> None:
        self._stream = stream
        self._bytes_seen = stream.bytes_sent
        self._interval = interval
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        self._timer = self._loop.call_later(self._interval, self._start)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        task, self._task = self._task, None  # the task keeps its last frame, and that keeps this object: a cycle
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # the client is gone; the next write reports it again

    def _start(self) -> None:
        self._task = self._loop.create_task(self._send_keepalives())

    async def _send_keepalives(self) -> None:
        self._stream.headers |= self._headers()
        while True:
            if self._stream.bytes_sent == self._bytes_seen:
                await self._stream.write(KEEPALIVE_COMMENT)
            self._bytes_seen = self._stream.bytes_sent
            await asyncio.sleep(self._interval)
