"""Tests of the response stream on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import ClientError, ClientSession, web
from aiohttp.test_utils import TestServer

from interlingua.gateway.http.response_stream import ResponseStream


async def write_now(stream: ResponseStream) -> None:
    stream.write_now(b"second")


WRITES: dict[str, Callable[[ResponseStream], Awaitable[object]]] = {
    "write": lambda stream: stream.write(b"second"),
    "write_now": write_now,
    "end": lambda stream: stream.end(b"second"),
}


def handle(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
    """Let a server handle one request of a client."""

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/", handler)
        async with asyncio.timeout(10), TestServer(app) as server, ClientSession() as client:
            with pytest.raises(ClientError):
                await (await client.post(server.make_url("/"))).read()

    asyncio.run(main())


@pytest.mark.parametrize("name", WRITES)
def test_failed_write_is_not_counted(name: str) -> None:
    counts: list[int] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        stream = ResponseStream(request)
        await stream.write(b"first")
        assert request.transport is not None
        request.transport.abort()
        with pytest.raises(ConnectionError):
            await WRITES[name](stream)
        counts.append(stream.bytes_sent)
        return web.Response()

    handle(handler)
    assert counts == [len(b"first")]


def test_failed_response_is_not_counted() -> None:
    counts: list[int] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        stream = ResponseStream(request)
        assert request.transport is not None
        request.transport.abort()
        with pytest.raises(ConnectionError):
            await stream.respond(200, b"body", {})
        counts.append(stream.bytes_sent)
        return web.Response()

    handle(handler)
    assert counts == [0]
