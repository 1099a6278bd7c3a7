"""One process that serves: it listens, reloads and stops."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable

from aiohttp import web

from interlingua.errors import InterlinguaError
from interlingua.gateway.api.app import make_app
from interlingua.gateway.demo import server as demo
from interlingua.gateway.http.connection_listener import ConnectionListener
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.state import GatewayState

__all__ = ["Worker"]

FORCED_STOP_GRACE_SECONDS = 1.0
"""Seconds behind the first word to stop, before which no other one counts: some are told once by two."""
STREAM_STOP_TIMEOUT_SECONDS = 5.0
"""How long streams may take to say that they were stopped."""


class Worker:
    """Runs until it is told to stop. `reload` reads the settings again; it raises if they are wrong.

    One of several has a name, and the end of a pipe that can be read once its parent is gone."""

    def __init__(
        self,
        loaded: LoadedSettings,
        listener: socket.socket,
        seal_key: bytes,
        reload: Callable[[], LoadedSettings],
        name: str = "",
        parent_pipe: int | None = None,
    ) -> None:
        self._loaded = loaded
        self._listener = listener
        self._seal_key = seal_key
        self._reload = reload
        self._name = name
        self._parent_pipe = parent_pipe
        self.has_served = False
        """Whether it came to where clients can ask."""

    def run(self) -> None:
        gc.freeze()  # what was imported stays: no collection need look at it again
        gc.set_threshold(10_000)  # one agent's request has thousands of objects, and leaves no cycles behind
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        settings = self._loaded.settings
        demo_url, demo_runner = await demo.start_demo_server(settings.demo_pace) if settings.demo else ("", None)
        gateway = GatewayState(self._loaded, self._seal_key, demo_url, self._name)
        await gateway.connect()
        stop_requested = self._install_signal_handlers(gateway)
        runner = web.AppRunner(make_app(gateway), handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        assert runner.server is not None, "it is made by the set-up"
        connection_listener = ConnectionListener(runner.server, gateway.log, lambda: gateway.config.settings.limits)
        await connection_listener.open(self._listener)
        self.has_served = True
        notify.send_ready(self._listener)
        try:
            await stop_requested.wait()
            asyncio.get_running_loop().call_later(FORCED_STOP_GRACE_SECONDS, self._restore_default_signals)
            gateway.log.info("stopping", open=len(gateway.active_requests), seconds=gateway.config.settings.drain)
            gateway.ready = False
            if self._parent_pipe is None:
                notify.send_stopping()
            connection_listener.close()
            gateway.log.info("stopped", cut=await _drain(gateway))
        finally:
            await runner.cleanup()
            await gateway.close()
            if demo_runner is not None:
                await demo_runner.cleanup()

    @property
    def _stop_signals(self) -> list[signal.Signals]:
        """Which signals tell it to stop. Whoever has a parent leaves those of the terminal to it."""
        return [signal.SIGTERM] if self._parent_pipe is not None else [signal.SIGTERM, signal.SIGINT]

    def _install_signal_handlers(self, gateway: GatewayState) -> asyncio.Event:
        """What is set once it is told to stop, or nobody is left to tell it. Signals were blocked until now."""
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in self._stop_signals:
            loop.add_signal_handler(number, stop_requested.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload_config, gateway)
        if (parent_pipe := self._parent_pipe) is not None:

            def on_parent_exit() -> None:
                loop.remove_reader(parent_pipe)
                stop_requested.set()

            loop.add_reader(parent_pipe, on_parent_exit)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return stop_requested

    def _restore_default_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._stop_signals:
            loop.remove_signal_handler(number)

    def _reload_config(self, gateway: GatewayState) -> None:
        """Requests that are under way keep the settings that they began with."""
        try:
            loaded = self._reload()
            gateway.config = gateway.build_config(loaded)
        except (InterlinguaError, OSError) as error:
            hint = getattr(error, "hint", "")
            gateway.log.error("the new settings are wrong, and the old ones stay", error=str(error), hint=hint)
            return
        gateway.log.info(
            "reloaded",
            **({"only_after_a_restart": ", ".join(loaded.restart_required)} if loaded.restart_required else {}),
        )


async def _drain(gateway: GatewayState) -> int:
    """Streams finish; those that have not in time are told that they will not. How many those are."""
    await _wait_until_idle(gateway, gateway.config.settings.drain)
    unfinished = list(gateway.active_requests)
    for request in unfinished:
        request.stop()
    await _wait_until_idle(gateway, STREAM_STOP_TIMEOUT_SECONDS)
    return len(unfinished)


async def _wait_until_idle(gateway: GatewayState, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while gateway.active_requests and loop.time() < deadline:
        await asyncio.sleep(0.05)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    return uvloop.new_event_loop
