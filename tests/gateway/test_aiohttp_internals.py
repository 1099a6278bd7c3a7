"""Tests of the private attributes of aiohttp that the gateway uses: one test per attribute.

A failure means that the installed aiohttp has changed. Adapt `gateway/aiohttp_internals.py` before the upper bound in
`pyproject.toml` allows this version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from interlingua.gateway.aiohttp_internals import (
    UpstreamConnection,
    UpstreamConnector,
    current_request,
    is_idle,
    request_count,
)
from interlingua.gateway.http.connection_listener import GuardedConnection

HEAD_START, HEAD_END = b"GET / HTTP/1.1\r\nHost: local", b"host\r\n\r\n"
MALFORMED = b"\x16\x03\x01\r\n\r\n"


def assert_has(owner: object, name: str) -> None:
    kind = type(owner).__name__
    assert hasattr(owner, name), (
        f"aiohttp {aiohttp.__version__} has no {kind}.{name}: change gateway/aiohttp_internals.py"
    )


async def wait_until(condition: Callable[[], bool], expectation: str) -> None:
    """Fail with the expectation if the condition is not true within two seconds."""
    try:
        async with asyncio.timeout(2):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        pytest.fail(f"aiohttp {aiohttp.__version__}: {expectation}")


class ServerConnection:
    """One connection of an aiohttp server. Its handler waits for `may_respond`."""

    def __init__(self) -> None:
        self.may_respond = asyncio.Event()
        self.handled: list[web.BaseRequest] = []
        self.server_side: web.RequestHandler
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.handled.append(request)
        await self.may_respond.wait()
        return web.Response(text="ok")


@asynccontextmanager
async def open_connection() -> AsyncIterator[ServerConnection]:
    connection = ServerConnection()
    server = web.Server(connection.handle)

    def make_handler() -> web.RequestHandler:
        connection.server_side = web.RequestHandler(server, loop=asyncio.get_running_loop())
        return connection.server_side

    listener = await asyncio.get_running_loop().create_server(make_handler, "127.0.0.1", 0)
    connection.reader, connection.writer = await asyncio.open_connection(*listener.sockets[0].getsockname()[:2])
    try:
        await wait_until(lambda: bool(server.connections), "Server.connections must list an open connection")
        yield connection
    finally:
        connection.may_respond.set()
        connection.writer.close()
        await server.shutdown(1)
        listener.close()
        await listener.wait_closed()


def test_request_count_grows_when_headers_are_complete() -> None:
    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            assert_has(server_side, "_request_count")
            assert request_count(server_side) == 0
            connection.writer.write(HEAD_START)
            await asyncio.sleep(0.05)
            assert request_count(server_side) == 0, "an incomplete request must not count"
            connection.writer.write(HEAD_END)
            await wait_until(lambda: request_count(server_side) == 1, "a request with complete headers must count")
            connection.may_respond.set()
            await connection.reader.readuntil(b"ok")
            connection.writer.write(MALFORMED)
            await wait_until(lambda: request_count(server_side) == 2, "a malformed request must count")

    asyncio.run(main())


def test_waiter_is_pending_while_connection_waits_for_headers() -> None:
    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            assert_has(server_side, "_waiter")
            await wait_until(lambda: is_idle(server_side), "a new connection must be idle")
            connection.writer.write(HEAD_START)
            await asyncio.sleep(0.05)
            assert is_idle(server_side), "a connection with incomplete headers must be idle"
            connection.writer.write(HEAD_END)
            await wait_until(lambda: bool(connection.handled), "the handler must be called")
            assert not is_idle(server_side), "a connection with a request must not be idle"
            connection.may_respond.set()
            await wait_until(lambda: is_idle(server_side), "a connection must be idle after the response")

    asyncio.run(main())


def test_current_request_is_set_while_handler_runs() -> None:
    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            assert_has(server_side, "_current_request")
            assert current_request(server_side) is None
            connection.writer.write(HEAD_START + HEAD_END)
            await wait_until(lambda: bool(connection.handled), "the handler must be called")
            assert current_request(server_side) is connection.handled[0], "must be the request of the handler"
            connection.may_respond.set()
            await wait_until(lambda: current_request(server_side) is None, "must be None after the response")

    asyncio.run(main())


def test_closed_connection_ignores_requests_but_keeps_transport() -> None:
    """`close` is public, but not documented."""

    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            server_side.close()
            connection.writer.write(HEAD_START + HEAD_END)
            await asyncio.sleep(0.05)
            assert not connection.handled, "a closed connection must not handle requests"
            assert server_side.transport is not None, "the transport must stay, so that an error can be sent"
            server_side.transport.write(b"error")
            assert await connection.reader.readexactly(5) == b"error"

    asyncio.run(main())


def test_guarded_connection_overrides_no_attribute_of_aiohttp() -> None:
    overridden = [name for name in GuardedConnection.__slots__ if hasattr(web.RequestHandler, name)]
    assert not overridden, (
        f"aiohttp {aiohttp.__version__} has attributes of these names: rename them in GuardedConnection"
    )


@asynccontextmanager
async def get_body(size: int) -> AsyncIterator[aiohttp.ClientResponse]:
    async def respond(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"x" * size)

    server = web.Server(respond)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()[:2]
    try:
        async with (
            aiohttp.ClientSession(connector=UpstreamConnector(), read_bufsize=1024) as session,
            session.get(f"http://{host}:{port}/") as response,
        ):
            yield response
    finally:
        await server.shutdown(1)
        listener.close()
        await listener.wait_closed()


def test_factory_makes_the_protocol_of_new_connections() -> None:
    async def main() -> None:
        assert_has(aiohttp.TCPConnector(), "_factory")
        async with get_body(1_000_000) as response:
            assert response.connection is not None, "the connection must be in use until the body is read"
            protocol = response.connection.protocol
            assert isinstance(protocol, UpstreamConnection), (
                f"aiohttp {aiohttp.__version__}: the connector ignores _factory: change gateway/aiohttp_internals.py"
            )

    asyncio.run(main())


@pytest.mark.parametrize(("size", "must_pause"), [(100, False), (1_000_000, True)], ids=["short body", "long body"])
def test_reading_paused_is_set_while_reading_is_paused(
    monkeypatch: pytest.MonkeyPatch, size: int, must_pause: bool
) -> None:
    resumed: list[bool] = []
    original_resume = ResponseHandler.resume_reading

    def record_resume(handler: ResponseHandler, *args: Any, **options: Any) -> None:
        resumed.append(handler._reading_paused)
        original_resume(handler, *args, **options)

    monkeypatch.setattr(ResponseHandler, "resume_reading", record_resume)

    async def main() -> int:
        assert_has(UpstreamConnection(asyncio.get_running_loop()), "_reading_paused")
        received = 0
        async with asyncio.timeout(10), get_body(size) as response:
            while piece := await response.content.readany():
                received += len(piece)
                await asyncio.sleep(0)
        return received

    assert asyncio.run(main()) == size
    assert bool(resumed) == must_pause, "reading must be resumed if, and only if, it was paused"
    assert all(resumed)


def test_release_marks_a_connection_as_idle_until_the_next_request() -> None:
    """Names of aiohttp in `UpstreamConnector` and `UpstreamConnection`: `_release`, `_parser`, `_buffer`."""

    async def main() -> None:
        assert_has(aiohttp.TCPConnector(), "_release")
        assert_has(ResponseHandler(asyncio.get_running_loop()), "_buffer")
        async with get_body(1_000_000) as response:
            assert response.connection is not None, "the connection must be in use until the body is read"
            connection = response.connection.protocol
            assert isinstance(connection, UpstreamConnection)
            assert_has(connection, "_parser")
            assert not connection.is_idle, "aiohttp must call set_response_params before it sends a request"
            await response.read()
            await wait_until(lambda: connection.is_idle, "aiohttp must call _release at the end of the body")
            assert connection.is_connected()
            connection.data_received(b"x")
            assert not connection.is_connected(), "data on an idle connection must close it"

    asyncio.run(main())
