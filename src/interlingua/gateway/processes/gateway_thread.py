"""Gateway in a thread of the current process, for programs that need one for a short time: tests and tools.

with GatewayThread(settings) as gateway:
    requests to gateway.url
"""

from __future__ import annotations

import asyncio
import socket
import threading
from types import TracebackType

from aiohttp import web

from interlingua.gateway.api.app import make_app
from interlingua.gateway.demo import server as demo
from interlingua.gateway.http.connection_listener import ConnectionListener
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.state import GatewayState

__all__ = ["GatewayThread"]

HOST = "127.0.0.1"
STOP_SECONDS = 60.0


class GatewayThread:
    """A gateway on a free loopback port. It has no signal handlers and no workers, and is not reloaded.

    Args:
        settings: Its settings. Host, port and workers are not used.
        seal_key: The key that encrypts reasoning, unless the settings contain one.
    """

    def __init__(self, settings: Settings, seal_key: bytes = b"") -> None:
        self._loaded = LoadedSettings(settings, "", [], {})
        self._seal_key = seal_key
        self._thread = threading.Thread(target=self._run, name="interlingua gateway", daemon=True)
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._problem: BaseException | None = None
        self._state: GatewayState | None = None
        self.url = ""
        """Address of the gateway: http://127.0.0.1:PORT"""

    @property
    def state(self) -> GatewayState:
        assert self._state is not None, "the gateway is running"
        return self._state

    def start(self) -> None:
        """Start the gateway, and return when it listens. Raises InterlinguaError if it cannot be started."""
        routes_for(self._loaded)
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._problem

    def stop(self) -> None:
        """Stop the gateway, and return when everything is written that it has recorded."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(STOP_SECONDS)

    def __enter__(self) -> GatewayThread:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - `start` raises it in the thread of its caller
            self._problem = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        settings = self._loaded.settings
        demo_url, demo_runner = await demo.start_demo_server(settings.demo_pace) if settings.demo else ("", None)
        self._state = state = GatewayState(self._loaded, self._seal_key, demo_url)
        await state.connect()
        runner = web.AppRunner(make_app(state), handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        assert runner.server is not None, "runner.setup() creates the server"
        listener = ConnectionListener(
            runner.server,
            state.log,
            lambda: state.config.settings.limits,
            lambda: state.config.worker_limits,
            state.memory.connections,
        )
        listening = socket.create_server((HOST, 0))
        await listener.open(listening)
        self.url, self._loop = f"http://{HOST}:{listening.getsockname()[1]}", asyncio.get_running_loop()
        self._started.set()
        try:
            await self._stop.wait()
        finally:
            listener.close()
            await runner.cleanup()
            await state.close()
            if demo_runner is not None:
                await demo_runner.cleanup()
