"""Tests of the HTTP client for upstreams on its own."""

from __future__ import annotations

import asyncio

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from interlingua.gateway.upstream.http_client import drain


def test_cancelled_drain_closes_the_connection() -> None:
    """The gateway stops while an upstream has not ended a body whose reply is complete."""

    async def send_start(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(10)
        return response

    async def main() -> bool:
        app = web.Application()
        app.router.add_get("/", send_start)
        async with asyncio.timeout(10), TestServer(app) as server, ClientSession() as session:
            response = await session.get(server.make_url("/"))
            task = asyncio.create_task(drain(response))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            return response.connection is None

    assert asyncio.run(main())
