"""A gateway in the event loop of a test, so that the test can look at its objects."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from interlingua.gateway.api.app import make_app
from interlingua.gateway.http.connection_listener import ConnectionListener
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.state import GatewayState

__all__ = ["InProcessGateway", "run_in_process"]


class InProcessGateway:
    """A running gateway, and clients of it."""

    def __init__(self, state: GatewayState, port: int) -> None:
        self.state = state
        self._port = port

    async def send(self, data: bytes, stop_after: int | None = None) -> bytes:
        """Send these bytes and return the response; with `stop_after`, disconnect after that many bytes of it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        received = b""
        try:
            writer.write(data)
            with suppress(ConnectionError):
                await writer.drain()
                while stop_after is None or len(received) < stop_after:
                    piece = await reader.read(1 << 20)
                    received += piece
                    if not piece:
                        break
        finally:
            writer.transport.abort()
        return received

    async def open(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send these bytes and return the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(data)
        await writer.drain()
        return reader, writer

    async def settle(self) -> None:
        """Wait until no request is in progress."""
        async with asyncio.timeout(20):
            while self.state.active_requests:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)


@asynccontextmanager
async def run_in_process(settings: Settings) -> AsyncIterator[InProcessGateway]:
    """Run a gateway with these settings until the block ends, as a worker does."""
    state = GatewayState(LoadedSettings(settings, "", [], {}), b"k" * 32, "")
    await state.connect()
    runner = web.AppRunner(make_app(state), handler_cancellation=True, access_log=None, shutdown_timeout=1)
    await runner.setup()
    assert runner.server is not None
    listening = socket.create_server(("127.0.0.1", 0))
    listener = ConnectionListener(
        runner.server,
        state.log,
        lambda: state.config.settings.limits,
        lambda: state.config.worker_limits,
        state.memory.connections,
    )
    await listener.open(listening)
    try:
        yield InProcessGateway(state, listening.getsockname()[1])
    finally:
        listener.close()
        await runner.cleanup()
        await state.close()
