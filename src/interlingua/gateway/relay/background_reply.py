"""Reply in the background: the client gets it later, or follows it as it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from interlingua.gateway.relay.client_side import ClientSide, InnerRelay
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.response_store.background_stream import BackgroundStream, follow_events, run_request
from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.stored_exchange import StoredExchange

__all__ = ["start_in_background"]


async def start_in_background(
    client: ClientSide,
    client_request: ClientRequest,
    exchange: StoredExchange,
    start_task: Callable[[Coroutine[Any, Any, None]], None],
) -> web.StreamResponse:
    """Run a request in the background. Sends the response as it is now, or a stream that follows it.

    Args:
        client: The client.
        client_request: The request.
        exchange: Stores the response.
        start_task: Starts a task that outlives the client's request.
    """
    body = client_request.body.decode()
    encoded = await client.work_on(client_request, run_request, body)
    stream = BackgroundStream(client.request, client_request.wire, body, encoded, exchange, client_request.echo)
    await stream.create()
    start_task(_run(client.hand_over_to(stream), stream))
    if not client_request.stream:
        return await client.send_reply(stream.initial_response)

    def report(error: DatabaseFailed) -> None:
        exchange.log.error("cannot follow a response", id=exchange.exchange_id, error=error.log_message)

    async with client.early_keepalive():
        async for frames in follow_events(exchange.store, exchange.owner, stream.response_id, -1, report):
            if frames:
                await client.send_frames(frames)
    return await client.end_stream()


async def _run(relay: InnerRelay, stream: BackgroundStream) -> None:
    storing = asyncio.create_task(stream.keep_stored(relay.cancel))
    try:
        await relay.run()
    except asyncio.CancelledError:  # by a client that has cancelled or deleted the response
        return
    finally:
        storing.cancel()
