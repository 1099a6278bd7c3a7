"""The door that connections come in by: requests that nobody can read are told so, and those that never come end.

aiohttp would log each of these with a trace, and quote what came, keys and all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeAlias

from aiohttp import web

from interlingua.common.jsontext.codec import encode_json
from interlingua.gateway.http.error_responses import SERVER
from interlingua.gateway.observability.log import Log
from interlingua.gateway.settings.schema import RequestLimits

__all__ = ["Door"]

Limited: TypeAlias = Callable[[], RequestLimits]
"""The limits as they are now: they may change while connections are open."""

KEPT = 90.0
"""Seconds for which a connection is kept between two requests."""
READING = 1.0
"""Seconds for which a client may read why its connection is closed."""
_QUIET = logging.getLogger("interlingua.gateway.http")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class Door:
    """Listens, until it is closed."""

    def __init__(self, server: web.Server, log: Log, limits: Limited) -> None:
        self._server = server
        self._log = log
        self._limits = limits
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
            self._limits,
            loop=loop,
            access_log=None,
            keepalive_timeout=KEPT,
            logger=_QUIET,
            lingering_time=1,
            auto_decompress=False,  # `bodies` unpacks: what cannot be is told in the client's words
        )


class _Connection(web.RequestHandler):
    __slots__ = ("_gateways_log", "_head", "_limits", "_server")

    def __init__(
        self, server: web.Server, log: Log, limits: Limited, *, loop: asyncio.AbstractEventLoop, **options: Any
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._gateways_log = log
        self._limits = limits
        self._server = server
        self._head: asyncio.TimerHandle | None = None
        """Ends the connection, if the head of a request takes too long."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._server.connections) > self._limits().connections:
            self._refuse(503, "too many connections are open: try again in a second")
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._forget_head()
        elif self._head is None and self._waiter is not None and not self._waiter.done():
            self._await_head()  # no request is under way, so that this is a piece of a head

    def eof_received(self) -> None:
        """The client sends no more. Mostly it is gone, and what waits for its answer is cancelled; one that still reads
        is told why it gets none."""
        request = self._current_request
        if request is not None and request.transport is not None and request.writer.output_size == 0:
            said = "the client closed its side before the answer had come: keep it open until then"
            request.transport.write(_response(400, said))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        seconds = self._limits().head
        said = f"the head of the request took longer than {seconds:g} s"
        self._head = asyncio.get_running_loop().call_later(seconds, self._refuse, 408, said)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _refuse(self, status: int, said: str) -> None:
        """An answer to what is no request yet, and the end of the connection: once the client has had time to read it,
        for what it sends meanwhile would take the answer from it."""
        transport = self.transport
        if transport is None:
            return
        self._gateways_log.note("a connection is closed", status=status, problem=said)
        self._force_close = True  # nothing that comes is read
        if self._waiter is not None:
            self._waiter.cancel()
        transport.write(_response(status, said))
        transport.write_eof()
        self._forget_head()
        self._head = asyncio.get_running_loop().call_later(READING, transport.abort)

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
        response = web.Response(status=status, body=_body(status, said), content_type="application/json")
        response.force_close()
        return response


def _body(status: int, said: str) -> bytes:
    """As clients of each wire read it: it is not known which one has come."""
    kind = "api_error" if status >= 500 else "invalid_request_error"
    return encode_json({"type": "error", "error": {"type": kind, "message": said, "code": None, "param": None}})


def _response(status: int, said: str) -> bytes:
    body = _body(status, said)
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"server: {SERVER}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *(["retry-after: 1"] if status == 503 else []),
        "connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
