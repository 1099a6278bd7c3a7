"""Tests of the private attributes of aiohttp that the gateway uses: one test per attribute.

A failure means that the installed aiohttp has changed. Adapt `gateway/aiohttp_internals.py` before the upper bound in
`pyproject.toml` allows this version.
"""

from __future__ import annotations

import asyncio
import gc
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from interlingua.gateway.aiohttp_internals import (
    EventStreamResponse,
    SmallQueue,
    UpstreamConnection,
    UpstreamConnector,
    UpstreamResponse,
    buffered_size,
    current_request,
    is_chunked,
    is_idle,
    release_metadata,
    release_raw_headers,
    release_request_parser,
    release_response_headers,
    replace_queues,
    request_count,
    restore_parser,
    stop_keepalive_timer,
    take_before_error,
    take_buffered,
    upstream_connection,
)
from interlingua.gateway.http.connection_listener import GuardedConnection, OpenConnections
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.settings.schema import Log, RequestLimits
from interlingua.gateway.shared_memory.worker_table import SharedCount

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
async def serving(
    respond: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], *, guarded: bool = False
) -> AsyncIterator[tuple[str, int]]:
    server, loop = web.Server(respond), asyncio.get_running_loop()
    log, limits = GatewayLog(Log(), []), RequestLimits()
    connections = OpenConnections(lambda: limits, lambda: limits, SharedCount())
    make_connection = partial(GuardedConnection, server, log, lambda: limits, connections, loop=loop)
    listener = await loop.create_server(make_connection if guarded else server, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[:2]
    finally:
        await server.shutdown(1)
        listener.close()
        await listener.wait_closed()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


EVENT, OTHER_EVENT = b"data: first event\n\n", b"data: second event\n\n"


@pytest.mark.parametrize(
    ("headers", "reads", "direct"),
    [
        pytest.param(b"transfer-encoding: chunked", [chunk(EVENT), chunk(OTHER_EVENT)], [OTHER_EVENT], id="chunks"),
        pytest.param(
            b"transfer-encoding: chunked",
            [chunk(EVENT), chunk(OTHER_EVENT)[:9], chunk(OTHER_EVENT)[9:], chunk(EVENT), chunk(OTHER_EVENT)],
            [OTHER_EVENT],
            id="a chunk in two reads",
        ),
        pytest.param(
            b"transfer-encoding: chunked",
            [chunk(EVENT), chunk(EVENT) + chunk(OTHER_EVENT), chunk(EVENT), chunk(OTHER_EVENT)],
            [OTHER_EVENT],
            id="two chunks in one read",
        ),
        pytest.param(
            b"transfer-encoding: chunked",
            [chunk(chunk(EVENT) + chunk(EVENT))[:4], chunk(EVENT), chunk(EVENT) + b"\r\n", chunk(EVENT), chunk(EVENT)],
            [EVENT],
            id="chunks inside a chunk are data",
        ),
        pytest.param(b"connection: close", [chunk(EVENT), chunk(OTHER_EVENT)], [], id="a body without chunks"),
        pytest.param(
            b"transfer-encoding: chunked\r\ncontent-encoding: deflate",
            [chunk(zlib.compress(EVENT)), chunk(OTHER_EVENT)],
            [],
            id="compressed",
        ),
    ],
)
def test_whole_chunks_bypass_the_parser(headers: bytes, reads: list[bytes], direct: list[bytes]) -> None:
    """Names of aiohttp in `UpstreamConnection`: `_payload`, `StreamReader.total_bytes` and `StreamReader._buffer`."""

    async def main() -> tuple[list[bytes], bytes]:
        connections: list[asyncio.StreamWriter] = []
        may_send = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append(writer)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % headers)
            await may_send.wait()
            for data in reads:
                writer.write(data)
                await asyncio.sleep(0.05)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        taken: list[bytes] = []
        body = b""
        async with (
            aiohttp.ClientSession(connector=UpstreamConnector()) as session,
            session.get(f"http://{host}:{port}/") as response,
        ):
            connection, content = upstream_connection(response), response.content
            assert connection is not None

            class Receiver:
                def receive_chunk(self, data: bytes) -> bool:
                    nonlocal body
                    assert_has(content, "total_bytes")
                    taken.append(data)
                    body += data
                    return True

                def receive_progress(self) -> None:
                    nonlocal body
                    body += take_buffered(content, 10_000) or b""

            connection.receiver = Receiver()
            may_send.set()
            await wait_until(lambda: content.is_eof() or content.exception() is not None, "the body ends")
        for writer in connections:
            writer.transport.abort()
        server.close()
        await server.wait_closed()
        return taken, body

    taken, body = asyncio.run(main())
    assert taken == direct
    if b"chunked" not in headers:
        assert body == b"".join(reads)


def test_chunked_is_true_if_the_body_is_sent_in_chunks() -> None:
    async def main() -> None:
        chunked: dict[str, bool] = {}

        async def respond(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            if request.path == "/plain":
                response.content_length = 3
            writer = await response.prepare(request)
            assert writer is not None
            chunked[request.path] = is_chunked(writer)
            await response.write(b"one")
            return response

        async with serving(respond) as (host, port), aiohttp.ClientSession() as session:
            for path in ("/", "/plain"):
                async with session.get(f"http://{host}:{port}{path}") as response:
                    assert await response.read() == b"one"
        assert chunked == {"/": True, "/plain": False}

    asyncio.run(main())


def test_headers_of_an_event_stream_are_sent_with_its_first_data() -> None:
    assert_has(web.StreamResponse(), "_send_headers_immediately")

    async def main() -> None:
        sizes: list[int] = []

        async def respond(request: web.BaseRequest) -> web.StreamResponse:
            response = EventStreamResponse()
            writer = await response.prepare(request)
            assert writer is not None
            sizes.append(writer.output_size)
            await response.write(b"one")
            sizes.append(writer.output_size)
            assert_has(response, "_headers")
            release_response_headers(response)
            assert not response.headers
            return response

        async with (
            serving(respond) as (host, port),
            aiohttp.ClientSession() as session,
            session.get(f"http://{host}:{port}/") as response,
        ):
            assert await response.read() == b"one"
        assert sizes[0] == 0
        assert sizes[1] > 0

    asyncio.run(main())


def test_writing_is_paused_while_a_client_does_not_read() -> None:
    """`GuardedConnection.is_writing_paused` says the same as aiohttp's own `_paused`, which `drain` waits for."""

    async def main() -> None:
        states: list[bool] = []

        def record_state(connection: web.RequestHandler) -> None:
            assert isinstance(connection, GuardedConnection)
            assert_has(connection, "_paused")
            assert connection.is_writing_paused == connection._paused
            states.append(connection.is_writing_paused)

        async def respond(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            writer = await response.prepare(request)
            assert writer is not None
            assert request.transport is not None
            await response.write(b"x")
            record_state(request.protocol)
            request.transport.write(b"5\r\nxxxxx\r\n" * 2_000_000)
            record_state(request.protocol)
            await writer.drain()
            record_state(request.protocol)
            return response

        async with serving(respond, guarded=True) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(HEAD_START + HEAD_END)
            await wait_until(lambda: len(states) == 2, "a write must not wait")
            await reader.readexactly(20_000_000)
            await wait_until(lambda: len(states) == 3, "drain must return when the client has read")
            assert states == [False, True, False]
            writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("queue", [deque, SmallQueue])
def test_taken_data_is_what_the_reader_would_read(queue: type) -> None:
    """Names of aiohttp in `take_buffered`: `_eof`, `_exception`, `_size`, `_buffer`, `_buffer_offset`, `_cursor` and
    `_http_chunk_splits`."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        content = aiohttp.StreamReader(UpstreamConnection(loop), 1000, loop=loop)
        for name in ("_eof", "_exception", "_size", "_buffer", "_buffer_offset", "_cursor", "_http_chunk_splits"):
            assert_has(content, name)
        if queue is SmallQueue:
            replace_queues(content)
        assert type(content._buffer) is queue
        assert take_buffered(content, 100) == b""
        for chunk in (b"one", b"two"):
            content.begin_http_chunk_receiving()
            content.feed_data(chunk)
            content.end_http_chunk_receiving()
        assert (buffered_size(content), take_buffered(content, 5)) == (6, None), "nothing is taken of more than 5 bytes"
        assert take_buffered(content, 6) == b"onetwo"
        assert (buffered_size(content), take_buffered(content, 6)) == (0, b"")
        content.begin_http_chunk_receiving()
        content.feed_data(b"three")
        content.end_http_chunk_receiving()
        assert await content.readchunk() == (b"three", True), "the position in the body must be right"
        content.feed_data(b"four")
        assert await content.read(2) == b"fo"
        assert take_buffered(content, 6) == b"ur"
        content.feed_data(b"end")
        content.feed_eof()
        assert take_buffered(content, 6) is None, "the end is left to the reader"
        assert await content.readany() == b"end"
        failed = aiohttp.StreamReader(UpstreamConnection(loop), 1000, loop=loop)
        failed.feed_data(b"x")
        assert take_before_error(failed) == b"", "it has not failed yet"
        failed.set_exception(aiohttp.ClientPayloadError())
        assert take_buffered(failed, 6) is None
        assert (take_before_error(failed), buffered_size(failed), take_before_error(failed)) == (b"x", 0, b"")
        with pytest.raises(aiohttp.ClientPayloadError):
            await failed.readany()

    asyncio.run(main())


def test_queues_of_messages_without_a_body_are_left_alone() -> None:
    replace_queues(aiohttp.streams.EMPTY_PAYLOAD)
    assert not hasattr(aiohttp.streams.EMPTY_PAYLOAD, "_buffer")


def test_small_queue_gives_its_first_item() -> None:
    queue = SmallQueue([1, 2])
    queue.append(3)
    assert [queue.popleft() for _ in range(3)] == [1, 2, 3]


def test_connection_has_small_queues() -> None:
    """aiohttp creates both in `__init__`, and nowhere else."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        upstream_side = UpstreamConnection(loop)
        assert_has(upstream_side, "_buffer")
        assert type(upstream_side._buffer).__name__ == SmallQueue.__name__
        async with open_connection() as connection:
            assert_has(connection.server_side, "_messages")

    asyncio.run(main())


def test_upstream_connection_has_few_attributes_outside_of_slots() -> None:
    """With more than 30 attributes, CPython stores those of each object in a dict of its own."""

    async def main() -> None:
        async with get_body(1_000_000) as response:
            assert response.connection is not None
            assert len(vars(response.connection.protocol)) < 30

    asyncio.run(main())


def test_body_can_be_read_after_its_headers_are_released() -> None:
    async def main() -> None:
        async with get_body(1_000_000) as response:
            for name in ("_headers", "_raw_headers", "_request_info", "_cache"):
                assert_has(response, name)
            assert response.headers["content-length"] == "1000000"
            release_metadata(response)
            assert not response.headers
            assert not response.raw_headers
            assert len(await response.read()) == 1_000_000

    asyncio.run(main())


def test_headers_are_released_from_the_parser_of_a_connection() -> None:
    may_end = asyncio.Event()

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"x-number": request.path})
        await response.prepare(request)
        await response.write(b"one")
        await may_end.wait()
        may_end.clear()
        return response

    def kept_texts(response: aiohttp.ClientResponse) -> list[str]:
        connection = upstream_connection(response)
        assert connection is not None
        assert_has(connection, "_parser")
        lists = [value for value in gc.get_referents(connection._parser) if type(value) is list]
        return [str(pair) for pairs in lists for pair in pairs]

    async def main() -> None:
        async with (
            serving(respond) as (host, port),
            aiohttp.ClientSession(connector=UpstreamConnector(limit=1)) as session,
        ):
            for path in ("/first", "/second"):  # on the same connection
                async with session.get(f"http://{host}:{port}{path}") as response:
                    assert response.headers["x-number"] == path
                    assert any(path in text for text in kept_texts(response)), "aiohttp does not keep them any more"
                    release_metadata(response)
                    assert kept_texts(response) == []
                    may_end.set()
                    assert await response.read() == b"one"

    asyncio.run(main())


def test_response_has_few_attributes_outside_of_slots() -> None:
    """With more, CPython stores those of each object in a dict of its own. The optional ones of aiohttp count, too."""

    async def main() -> None:
        async with get_body(1_000_000) as response:
            for name in UpstreamResponse.__slots__:
                assert_has(response, name)
                assert not hasattr(aiohttp.ClientResponse, name), f"a slot would hide the default of {name}"
            assert len(vars(response)) <= 15

    asyncio.run(main())


def has_keepalive_timer(connection: web.RequestHandler) -> bool:
    return connection._keepalive_handle is not None


def has_parser(connection: web.RequestHandler) -> bool:
    return connection._parser is not None


def test_keepalive_timer_is_started_again_after_a_response() -> None:
    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            assert_has(server_side, "_keepalive_handle")
            assert has_keepalive_timer(server_side), "a new connection must have the timer"
            stop_keepalive_timer(server_side)
            assert not has_keepalive_timer(server_side)
            connection.writer.write(HEAD_START + HEAD_END)
            connection.may_respond.set()
            await connection.reader.readuntil(b"ok")
            await wait_until(lambda: is_idle(server_side), "a connection must be idle after the response")
            assert has_keepalive_timer(server_side), "an idle connection must have the timer"

    asyncio.run(main())


def test_request_has_its_headers_without_the_raw_headers() -> None:
    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            connection.writer.write(HEAD_START + HEAD_END)
            await wait_until(lambda: bool(connection.handled), "the handler must be called")
            server_side.data_received(HEAD_START + HEAD_END)
            release_raw_headers(server_side)
            connection.may_respond.set()
            await wait_until(lambda: len(connection.handled) == 2, "the second request must be handled")
            first, second = connection.handled
            assert (first.raw_headers, second.raw_headers) == (((b"Host", b"localhost"),), ())
            assert first.headers == second.headers

    asyncio.run(main())


@pytest.mark.parametrize(("beginning", "is_closed"), [(b"", False), (b"\r\n", False), (HEAD_START, True)])
def test_restored_parser_reads_the_next_request(beginning: bytes, is_closed: bool) -> None:
    """If the released parser has read the beginning of another request, the connection ignores the rest of it."""

    async def main() -> None:
        async with open_connection() as connection:
            server_side = connection.server_side
            for name in ("_parser", "_upgraded", "_loop", "_read_bufsize", "_max_msg_queue_size"):
                assert_has(server_side, name)
            connection.writer.write(HEAD_START + HEAD_END + beginning)
            await wait_until(lambda: bool(connection.handled), "the handler must be called")
            release_request_parser(connection.handled[0])
            assert not has_parser(server_side)
            restore_parser(server_side)
            assert has_parser(server_side)
            server_side.data_received(HEAD_START + HEAD_END)
            connection.may_respond.set()
            await connection.reader.readuntil(b"ok")
            if is_closed:
                assert await connection.reader.read() == b""
            else:
                await wait_until(lambda: len(connection.handled) == 2, "the second request must be handled")

    asyncio.run(main())


def test_parser_with_further_requests_is_not_released() -> None:
    async def main() -> None:
        async with open_connection() as connection:
            connection.writer.write(2 * (HEAD_START + HEAD_END))
            await wait_until(lambda: bool(connection.handled), "the handler must be called")
            release_request_parser(connection.handled[0])
            assert has_parser(connection.server_side)

    asyncio.run(main())


@asynccontextmanager
async def get_body(size: int) -> AsyncIterator[aiohttp.ClientResponse]:
    async def respond(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"x" * size)

    async with (
        serving(respond) as (host, port),
        aiohttp.ClientSession(
            connector=UpstreamConnector(), response_class=UpstreamResponse, read_bufsize=1024
        ) as session,
        session.get(f"http://{host}:{port}/") as response,
    ):
        yield response


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


@pytest.mark.parametrize("how_it_ends", ["end of the body", "lost connection", "error"])
def test_progress_of_a_connection_is_reported(how_it_ends: str) -> None:
    async def main() -> None:
        content_length = {"end of the body": 6, "lost connection": 100, "error": 100}[how_it_ends]

        connections: list[asyncio.StreamWriter] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append(writer)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {content_length}\r\n\r\n".encode())
            for piece in (b"one", b"two"):
                await asyncio.sleep(0.05)
                writer.write(piece)
            await asyncio.sleep(0.05)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        async with (
            aiohttp.ClientSession(connector=UpstreamConnector()) as session,
            session.get(f"http://{host}:{port}/") as response,
        ):
            connection, content = upstream_connection(response), response.content
            assert connection is not None, "the connection must be in use until the body is received"
            assert_has(content, "_size")
            states: list[tuple[int, bool]] = []

            class Receiver:
                def receive_chunk(self, content: bytes) -> bool:  # noqa: ARG002
                    return False

                def receive_progress(self) -> None:
                    states.append((buffered_size(content), content.is_eof() or content.exception() is not None))

            connection.receiver = Receiver()
            await wait_until(lambda: bool(states), "data must be reported")
            if how_it_ends == "error":
                connection.set_exception(aiohttp.ClientConnectionError("failed"))
            await wait_until(lambda: states[-1][1], "the end must be reported")
            assert states[0] == (3, False)
            if how_it_ends == "end of the body":
                assert states[1] == (6, True)
                assert upstream_connection(response) is None
            connection.receiver = None
        for writer in connections:
            writer.transport.abort()
        server.close()
        await server.wait_closed()

    asyncio.run(main())
