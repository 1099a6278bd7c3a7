"""The door that connections come in by: requests that nobody can read are told so, and those that never come end.

aiohttp would log each of these with a trace, and quote what came, keys and all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from aiohttp import web

from interlingua.gateway.log import Log
from interlingua.json_text import encode_json

__all__ = ["Door"]

KEPT = 90.0
"""Seconds for which a connection is kept between two requests."""
FIRST = 20.0
"""Seconds for the head of a connection's first request."""
_QUIET = logging.getLogger("interlingua.gateway.http")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class Door:
    """Listens, until it is closed."""

    def __init__(self, server: web.Server, log: Log) -> None:
        self._server = server
        self._log = log
        self._listening: asyncio.Server | None = None

    async def open(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._connection, sock=listener, backlog=1024)

    def close(self) -> None:
        """No more connections; those that are there stay."""
        if self._listening is not None:
            self._listening.close()

    def _connection(self) -> web.RequestHandler:
        loop = asyncio.get_running_loop()
        return _Connection(
            self._server,
            self._log,
            loop=loop,
            access_log=None,
            keepalive_timeout=KEPT,
            logger=_QUIET,
            lingering_time=1,
            auto_decompress=False,  # `bodies` unpacks: what cannot be is told in the client's words
        )


class _Connection(web.RequestHandler):
    __slots__ = ("_gateways_log", "_head")

    def __init__(self, server: web.Server, log: Log, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(server, loop=loop, **options)
        self._gateways_log = log
        self._head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._head = asyncio.get_running_loop().call_later(FIRST, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._head is not None:
            self._head.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if self._request_count == 0 and self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 (it quotes what came)
    ) -> web.StreamResponse:
        """Of what happened outside of a relay: mostly a request that is none."""
        problem = type(exc).__name__ if exc is not None else str(status)
        if status >= 500:
            self._gateways_log.error("a fault of the gateway", problem=problem, status=status)
        else:
            self._gateways_log.note("a request that cannot be read", problem=problem, status=status)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun: there is no other way to say that it failed")
        said = "a fault of the gateway" if status >= 500 else f"the request cannot be read: {problem}"
        kind = "api_error" if status >= 500 else "invalid_request_error"
        body = {"type": "error", "error": {"type": kind, "message": said, "code": None, "param": None}}
        response = web.Response(status=status, body=encode_json(body), content_type="application/json")
        response.force_close()
        return response
