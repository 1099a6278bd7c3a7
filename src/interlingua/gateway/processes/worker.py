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
from interlingua.gateway.http.connection_listener import Door
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.settings.loader import Loaded
from interlingua.gateway.state import Gateway

__all__ = ["Worker"]

TWICE = 1.0
"""Seconds behind the first word to stop, before which no other one counts: some are told once by two."""
ENDING = 5.0
"""How long streams may take to say that they were stopped."""


class Worker:
    """Runs until it is told to stop. `reload` reads the settings again; it raises if they are wrong.

    One of several has a name, and the end of a pipe that can be read once its parent is gone."""

    def __init__(
        self,
        loaded: Loaded,
        listener: socket.socket,
        seal_key: bytes,
        reload: Callable[[], Loaded],
        name: str = "",
        parent: int | None = None,
    ) -> None:
        self._loaded = loaded
        self._listener = listener
        self._seal_key = seal_key
        self._reload = reload
        self._name = name
        self._parent = parent
        self.has_served = False
        """Whether it came to where clients can ask."""

    def run(self) -> None:
        gc.freeze()  # what was imported stays: no collection need look at it again
        gc.set_threshold(10_000)  # one agent's request has thousands of objects, and leaves no cycles behind
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        settings = self._loaded.settings
        demo_url, demo_runner = await demo.start(settings.demo_pace) if settings.demo else ("", None)
        gateway = Gateway(self._loaded, self._seal_key, demo_url, self._name)
        await gateway.connect()
        told = self._heed_signals(gateway)
        runner = web.AppRunner(make_app(gateway), handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        assert runner.server is not None, "it is made by the set-up"
        door = Door(runner.server, gateway.log, lambda: gateway.setup.settings.limits)
        await door.open(self._listener)
        self.has_served = True
        notify.ready(self._listener)
        try:
            await told.wait()
            asyncio.get_running_loop().call_later(TWICE, self._go_at_once_if_told)
            gateway.log.note("stopping", open=len(gateway.open), seconds=gateway.setup.settings.drain)
            gateway.ready = False
            if self._parent is None:
                notify.stopping()
            door.close()
            gateway.log.note("stopped", cut=await _drain(gateway))
        finally:
            await runner.cleanup()
            await gateway.close()
            if demo_runner is not None:
                await demo_runner.cleanup()

    @property
    def _stops(self) -> list[signal.Signals]:
        """Which signals tell it to stop. Whoever has a parent leaves those of the terminal to it."""
        return [signal.SIGTERM] if self._parent is not None else [signal.SIGTERM, signal.SIGINT]

    def _heed_signals(self, gateway: Gateway) -> asyncio.Event:
        """What is set once it is told to stop, or nobody is left to tell it. Signals were blocked until now."""
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in self._stops:
            loop.add_signal_handler(number, told.set)
        loop.add_signal_handler(signal.SIGHUP, self._read_again, gateway)
        if (parent := self._parent) is not None:

            def orphaned() -> None:
                loop.remove_reader(parent)
                told.set()

            loop.add_reader(parent, orphaned)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return told

    def _go_at_once_if_told(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._stops:
            loop.remove_signal_handler(number)

    def _read_again(self, gateway: Gateway) -> None:
        """Requests that are under way keep the settings that they began with."""
        try:
            loaded = self._reload()
            gateway.setup = gateway.made(loaded)
        except (InterlinguaError, OSError) as error:
            hint = getattr(error, "hint", "")
            gateway.log.error("the new settings are wrong, and the old ones stay", error=str(error), hint=hint)
            return
        gateway.log.note("reloaded", **({"only_after_a_restart": ", ".join(loaded.later)} if loaded.later else {}))


async def _drain(gateway: Gateway) -> int:
    """Streams finish; those that have not in time are told that they will not. How many those are."""
    await _wait_until_none(gateway, gateway.setup.settings.drain)
    late = list(gateway.open)
    for relay in late:
        relay.stop()
    await _wait_until_none(gateway, ENDING)
    return len(late)


async def _wait_until_none(gateway: Gateway, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while gateway.open and loop.time() < until:
        await asyncio.sleep(0.05)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    return uvloop.new_event_loop
