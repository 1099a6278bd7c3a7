"""Listener for client connections: answers malformed HTTP requests and closes connections whose request never arrives.

By default, aiohttp logs each of these with a traceback and quotes the received bytes, including API keys.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

from aiohttp import web

from interlingua.common.jsontext.codec import encode_json
from interlingua.gateway.aiohttp_internals import (
    SmallQueue,
    current_request,
    is_idle,
    release_raw_headers,
    request_count,
    restore_parser,
    stop_keepalive_timer,
)
from interlingua.gateway.http.error_responses import SERVER_NAME
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.settings.descriptor_limit import (
    EXHAUSTED_HINT,
    HEALTH_DESCRIPTORS,
    descriptor_limit,
    is_reserved,
)
from interlingua.gateway.settings.schema import RequestLimits
from interlingua.gateway.shared_memory.worker_table import SharedCount

__all__ = ["ConnectionListener", "GuardedConnection"]

LimitsGetter: TypeAlias = Callable[[], RequestLimits]
"""Returns the current limits: a reload can change them while connections are open."""

KEEPALIVE_SECONDS = 90.0
"""Seconds for which an idle connection is kept between two requests."""
LINGER_SECONDS = 1.0
"""Seconds for which a client can read the error before its connection is closed."""
OVERLOAD_SECONDS = 1.0
"""Seconds for which a connection over the limit is kept for a health check."""
SHORTAGE_END_SECONDS = 10.0
"""Seconds without a shortage of descriptors after which the next one is logged again."""
HEALTH_PATHS = ("/healthz", "/readyz", "/metrics", "/status")
HEALTH_REQUESTS = tuple(f"{method} {path} ".encode() for method in ("GET", "HEAD") for path in HEALTH_PATHS)
HANDLER_START_SECONDS = 0.01
"""Seconds in which aiohttp usually starts the handler of a request that has arrived."""
_SILENT_LOGGER = logging.getLogger("interlingua.gateway.http")
_SILENT_LOGGER.addHandler(logging.NullHandler())
_SILENT_LOGGER.propagate = False


class ConnectionListener:
    """Accepts connections until it is closed.

    Args:
        server: The handler of requests.
        log: Receives connections that the gateway closes.
        limits: Returns the limits of the gateway.
        worker_limits: Returns the limits of this process, which can be lower. None if they are the same.
        count: The number of open connections. None if this process is the only worker.
    """

    def __init__(
        self,
        server: web.Server,
        log: GatewayLog,
        limits: LimitsGetter,
        worker_limits: LimitsGetter | None = None,
        count: SharedCount | None = None,
    ) -> None:
        self._server = server
        self._log = log
        self._limits = limits
        self._connections = OpenConnections(limits, worker_limits or limits, count or SharedCount())
        self._asyncio_server: asyncio.Server | None = None

    async def open(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._asyncio_server = await loop.create_server(self._make_connection, sock=listener, backlog=1024)

    def close(self) -> None:
        """Stop accepting connections. Open connections stay."""
        if self._asyncio_server is not None:
            self._asyncio_server.close()

    def _make_connection(self) -> web.RequestHandler:
        loop = asyncio.get_running_loop()
        return GuardedConnection(
            self._server,
            self._log,
            self._limits,
            self._connections,
            loop=loop,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            logger=_SILENT_LOGGER,
            lingering_time=1,
            auto_decompress=False,  # `request_body` decompresses, so that errors have the format of the client's wire
        )


class OpenConnections:
    """Connections of this worker: those within the limits, and those over them.

    Each connection over the limits is open for seconds at most, and the oldest is closed if there are too many.
    """

    def __init__(self, limits: LimitsGetter, worker_limits: LimitsGetter, count: SharedCount) -> None:
        self._limits = limits
        self._worker_limits = worker_limits
        self._count = count
        self._excess: dict[GuardedConnection, None] = {}  # in the order of their arrival
        self._last_shortage_at = -math.inf

    def begin(self) -> bool:
        """Count a connection, and return whether it is within the limits. If not, it is not counted."""
        self._count.add(1)
        is_within = (
            self._count.total <= self._limits().connections and self._count.own <= self._worker_limits().connections
        )
        if not is_within:
            self._count.add(-1)
        return is_within

    def end(self) -> None:
        """End a connection that was counted."""
        self._count.add(-1)

    def add_excess(self, connection: GuardedConnection) -> None:
        self._excess[connection] = None
        if len(self._excess) > HEALTH_DESCRIPTORS:
            next(iter(self._excess)).abort()

    def discard_excess(self, connection: GuardedConnection) -> None:
        self._excess.pop(connection, None)

    def record_shortage(self) -> bool:
        """Record that a connection got one of the last descriptors, and return whether a new shortage begins."""
        now = time.monotonic()
        begins = now - self._last_shortage_at > SHORTAGE_END_SECONDS
        self._last_shortage_at = now
        return begins


class GuardedConnection(web.RequestHandler):
    """One client connection, with a timeout for request headers and a limit on the number of connections.

    A connection over the limit is served for a second, for a health check. All other requests on it are refused.
    """

    __slots__ = (
        "_close_timer",
        "_connections",
        "_gateway_log",
        "_is_counted",
        "_limits",
        "_overload",
        "is_writing_paused",
    )

    # aiohttp would look up the addresses and the TLS context of each connection, and keep them. Nothing uses them.
    peername = None
    sockname = None
    ssl_context = None

    def __init__(
        self,
        server: web.Server,
        log: GatewayLog,
        limits: LimitsGetter,
        connections: OpenConnections,
        *,
        loop: asyncio.AbstractEventLoop,
        **options: Any,
    ) -> None:
        super().__init__(server, loop=loop, **options)
        self._messages = SmallQueue()  # type: ignore[assignment]
        self._gateway_log = log
        self._limits = limits
        self._connections = connections
        self._is_counted = False
        self._close_timer: asyncio.TimerHandle | None = None
        """Closes the connection if the request headers take too long, or after an error response."""
        self._overload = ""
        """Reason to refuse requests other than health checks; "" if the connection is within the limits."""
        self.is_writing_paused = False
        """True if so much data waits to be sent to the client that nothing should be added."""

    def pause_writing(self) -> None:
        super().pause_writing()
        self.is_writing_paused = True

    def resume_writing(self) -> None:
        super().resume_writing()
        self.is_writing_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._overload = self._find_overload(transport)
        if self._overload:
            self._connections.add_excess(self)
            self._start_close_timer(OVERLOAD_SECONDS, partial(self._refuse, 503, self._overload))
        else:
            self._start_head_timer()

    def _find_overload(self, transport: asyncio.BaseTransport) -> str:
        """Return the reason to refuse requests on a new connection; "" if there is none."""
        self._is_counted = self._connections.begin()
        if not self._is_counted:
            return "too many connections are open; retry in a second"
        if is_reserved(transport.get_extra_info("socket").fileno()):
            self._end_count()
            if self._connections.record_shortage():
                self._gateway_log.error("almost out of file descriptors", hint=EXHAUSTED_HINT)
            return f"the gateway cannot open more than {descriptor_limit()} files; retry in a second"
        return ""

    def _end_count(self) -> None:
        if self._is_counted:
            self._connections.end()
            self._is_counted = False

    def data_received(self, data: bytes) -> None:
        if self._overload:
            self._answer_health_check(data)
            return
        restore_parser(self)
        count_before = request_count(self)
        super().data_received(data)
        if request_count(self) != count_before:
            release_raw_headers(self)
            self._cancel_close_timer()
            stop_keepalive_timer(self)
        elif self._close_timer is None and is_idle(self):
            self._start_head_timer()

    def _answer_health_check(self, data: bytes) -> None:
        """Handle a request on a connection over the limit, and close the connection after a second."""
        if data.startswith(HEALTH_REQUESTS):
            self._start_close_timer(OVERLOAD_SECONDS, self.abort)
            super().data_received(data)
        else:
            self._refuse(503, self._overload)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Handle a client that closed its sending side. The result keeps the transport open."""
        self._end_after_eof()
        return True

    def _end_after_eof(self) -> None:
        """Close the connection of a client that closed its sending side, after the response to a GET request.

        A client that sent another request is usually gone, so its request is cancelled. If it still reads, it gets an
        error response.
        """
        transport, request = self.transport, current_request(self)
        if transport is None:
            return
        if request is None and not is_idle(self):  # aiohttp has not started the handler yet
            asyncio.get_running_loop().call_later(HANDLER_START_SECONDS, self._end_after_eof)
        elif request is not None and request.method == "GET":
            self.close()  # aiohttp closes the transport after the response
        else:
            if request is not None and request.writer.output_size == 0:
                message = "the client closed its side before the response was sent; keep the connection open until then"
                transport.write(_raw_response(400, message))
            transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._cancel_close_timer()
        self._connections.discard_excess(self)
        self._end_count()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        seconds = self._limits().head
        message = f"the request headers took longer than {seconds:g} s"
        self._start_close_timer(seconds, partial(self._refuse, 408, message))

    def _start_close_timer(self, seconds: float, close: Callable[[], None]) -> None:
        self._cancel_close_timer()
        self._close_timer = asyncio.get_running_loop().call_later(seconds, close)

    def abort(self) -> None:
        """Close the connection at once, and free its descriptor."""
        self._connections.discard_excess(self)
        if self.transport is not None:
            self.transport.abort()

    def _cancel_close_timer(self) -> None:
        if self._close_timer is not None:
            self._close_timer.cancel()
            self._close_timer = None

    def _refuse(self, status: int, message: str) -> None:
        """Send an error before a request is complete, then close the connection after LINGER_SECONDS.

        Closing at once would lose the error: data that the client is still sending resets the connection.
        """
        transport = self.transport
        if transport is None:
            return
        self._gateway_log.info("connection closed by the gateway", status=status, problem=message)
        self._overload = ""
        self.close()  # aiohttp ignores further requests; the transport stays open
        transport.write(_raw_response(status, message))
        transport.write_eof()
        self._start_close_timer(LINGER_SECONDS, transport.abort)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 (it quotes the received bytes)
    ) -> web.StreamResponse:
        """Return the response to an error outside of a relay, usually a malformed HTTP request."""
        problem = type(exc).__name__ if exc is not None else str(status)
        if status >= 500:
            self._gateway_log.error("internal gateway error", problem=problem, status=status)
        else:
            self._gateway_log.info("malformed HTTP request", problem=problem, status=status)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started; only closing the connection can report the error")
        reason = "internal gateway error" if status >= 500 else f"malformed HTTP request: {problem}"
        response = web.Response(status=status, body=_error_body(status, reason), content_type="application/json")
        response.force_close()
        return response


def _error_body(status: int, message: str) -> bytes:
    """Return an error body that clients of each wire can read, because the wire is not known yet."""
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
