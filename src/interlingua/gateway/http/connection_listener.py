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
from interlingua.gateway.http.error_responses import SERVER_NAME
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.settings.schema import RequestLimits

__all__ = ["ConnectionListener"]

LimitsGetter: TypeAlias = Callable[[], RequestLimits]
"""The limits as they are now: they may change while connections are open."""

KEEPALIVE_SECONDS = 90.0
"""Seconds for which a connection is kept between two requests."""
LINGER_SECONDS = 1.0
"""Seconds for which a client may read why its connection is closed."""
_SILENT_LOGGER = logging.getLogger("interlingua.gateway.http")
_SILENT_LOGGER.addHandler(logging.NullHandler())
_SILENT_LOGGER.propagate = False


class ConnectionListener:
    """Listens, until it is closed."""

    def __init__(self, server: web.Server, log: GatewayLog, limits: LimitsGetter) -> None:
        self._server = server
        self._log = log
        self._limits = limits
        self._asyncio_server: asyncio.Server | None = None

    async def open(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._asyncio_server = await loop.create_server(self._make_connection, sock=listener, backlog=1024)

    def close(self) -> None:
        """No more connections; those that are there stay."""
        if self._asyncio_server is not None:
            self._asyncio_server.close()

    def _make_connection(self) -> web.RequestHandler:
        loop = asyncio.get_running_loop()
        return GuardedConnection(
            self._server,
            self._log,
            self._limits,
            loop=loop,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            logger=_SILENT_LOGGER,
            lingering_time=1,
            auto_decompress=False,  # `bodies` unpacks: what cannot be is told in the client's words
        )


class GuardedConnection(web.RequestHandler):
    __slots__ = ("_gateways_log", "_head", "_limits", "_server")

    def __init__(
        self,
        server: web.Server,
        log: GatewayLog,
        limits: LimitsGetter,
        *,
        loop: asyncio.AbstractEventLoop,
        **options: Any,
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
            self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        count_before = self._request_count
        super().data_received(data)
        if self._request_count != count_before:
            self._cancel_head_timer()
        elif self._head is None and self._waiter is not None and not self._waiter.done():
            self._start_head_timer()  # no request is under way, so that this is a piece of a head

    def eof_received(self) -> None:
        """The client sends no more. Mostly it is gone, and what waits for its answer is cancelled; one that still reads
        is told why it gets none."""
        request = self._current_request
        if request is not None and request.transport is not None and request.writer.output_size == 0:
            message = "the client closed its side before the answer had come: keep it open until then"
            request.transport.write(_raw_response(400, message))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._cancel_head_timer()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        seconds = self._limits().head
        message = f"the head of the request took longer than {seconds:g} s"
        self._head = asyncio.get_running_loop().call_later(seconds, self._refuse, 408, message)

    def _cancel_head_timer(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _refuse(self, status: int, message: str) -> None:
        """An answer to what is no request yet, and the end of the connection: once the client has had time to read it,
        for what it sends meanwhile would take the answer from it."""
        transport = self.transport
        if transport is None:
            return
        self._gateways_log.info("a connection is closed", status=status, problem=message)
        self._force_close = True  # nothing that comes is read
        if self._waiter is not None:
            self._waiter.cancel()
        transport.write(_raw_response(status, message))
        transport.write_eof()
        self._cancel_head_timer()
        self._head = asyncio.get_running_loop().call_later(LINGER_SECONDS, transport.abort)

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
            self._gateways_log.info("a request that cannot be read", problem=problem, status=status)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun: there is no other way to say that it failed")
        reason = "a fault of the gateway" if status >= 500 else f"the request cannot be read: {problem}"
        response = web.Response(status=status, body=_error_body(status, reason), content_type="application/json")
        response.force_close()
        return response


def _error_body(status: int, message: str) -> bytes:
    """As clients of each wire read it: it is not known which one has come."""
    error_type = "api_error" if status >= 500 else "invalid_request_error"
    return encode_json(
        {"type": "error", "error": {"type": error_type, "message": message, "code": None, "param": None}}
    )


def _raw_response(status: int, message: str) -> bytes:
    body = _error_body(status, message)
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"server: {SERVER_NAME}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *(["retry-after: 1"] if status == 503 else []),
        "connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
