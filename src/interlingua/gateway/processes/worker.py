"""Worker process: serves requests, reloads settings on SIGHUP or ends with its terminal, and stops gracefully."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import signal
import socket
import sys
from collections.abc import Callable

from aiohttp import web

from interlingua.core.reasoning_signatures import load_cipher
from interlingua.errors import InterlinguaError
from interlingua.gateway.api.app import make_app
from interlingua.gateway.demo import server as demo
from interlingua.gateway.http.connection_listener import ConnectionListener
from interlingua.gateway.processes import systemd_notify as notify
from interlingua.gateway.processes.free_memory import reuse_free_memory, trim_periodically
from interlingua.gateway.processes.heartbeat import INTERVAL_SECONDS, Heartbeat
from interlingua.gateway.processes.inspector_process import InspectorProcess
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.shared_memory.worker_memory import WorkerMemory
from interlingua.gateway.shared_memory.worker_table import WorkerState
from interlingua.gateway.state import GatewayState

__all__ = ["Worker"]

FORCED_STOP_GRACE_SECONDS = 1.0
"""Seconds after the first stop signal in which further ones are ignored: one Ctrl-C can arrive from two senders."""
SYNCHRONIZE_INTERVAL_SECONDS = 1.0
"""Interval at which one of several workers publishes metrics from callbacks, and reads the events of others."""
THREAD_SWITCH_SECONDS = 0.0005
"""Time after which a thread lets another one run: the event loop waits for each thread that has work."""
STREAM_STOP_TIMEOUT_SECONDS = 5.0
"""Time for streams to send their final error event after they were stopped."""


class Worker:
    """Server process that runs until a stop signal arrives.

    Args:
        loaded: The settings to start with.
        listener: The bound socket.
        seal_key: The key that encrypts reasoning, unless the settings contain one.
        reload: Reads the settings again. Raises InterlinguaError if they are invalid.
        memory: The memory that several workers share. None if there is one worker.
        parent_pipe: The read end of a pipe that becomes readable when the parent is gone. None if there is no parent.
        heartbeat: The heartbeat that the parent reads. None if there is no parent.
        inspector: The inspector's process, if this process or its parent has started one.
        stops_on_hangup: Whether SIGHUP stops the gateway, because its terminal was closed, instead of a reload.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        listener: socket.socket,
        seal_key: bytes,
        reload: Callable[[], LoadedSettings],
        memory: WorkerMemory | None = None,
        parent_pipe: int | None = None,
        heartbeat: Heartbeat | None = None,
        inspector: InspectorProcess | None = None,
        *,
        stops_on_hangup: bool = False,
    ) -> None:
        self._stops_on_hangup = stops_on_hangup
        self._loaded = loaded
        self._listener = listener
        self._seal_key = seal_key
        self._reload = reload
        self._memory = memory or WorkerMemory()
        self._parent_pipe = parent_pipe
        self._heartbeat = heartbeat
        self._inspector = inspector
        self.has_served = False
        """True once the worker has accepted connections."""

    def run(self) -> None:
        load_cipher()  # now, because the import takes a tenth of a second
        reuse_free_memory()
        gc.freeze()  # imported modules stay alive: exclude them from garbage collection
        gc.set_threshold(10_000)  # a request creates thousands of objects, but few reference cycles
        sys.setswitchinterval(THREAD_SWITCH_SECONDS)
        if self._heartbeat is not None:
            self._heartbeat.write_stack_on_signal()
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        settings = self._loaded.settings
        self._memory.register_process()
        demo_url, demo_runner = await demo.start_demo_server(settings.demo_pace) if settings.demo else ("", None)
        inspector_folder = self._inspector.folder if self._inspector is not None else ""
        gateway = GatewayState(self._loaded, self._seal_key, demo_url, self._memory, inspector_folder)
        await gateway.connect()
        stop_requested = self._install_signal_handlers(gateway)
        runner = web.AppRunner(make_app(gateway), handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        assert runner.server is not None, "runner.setup() creates the server"
        connection_listener = ConnectionListener(
            runner.server,
            gateway.log,
            lambda: gateway.config.settings.limits,
            lambda: gateway.config.worker_limits,
            self._memory.connections,
        )
        await connection_listener.open(self._listener)
        self.has_served = True
        self._memory.set_state(WorkerState.READY)
        heartbeat = asyncio.create_task(self._beat(gateway))
        trimmer = asyncio.create_task(trim_periodically(lambda: gateway.active_requests.change_count))
        synchronizer = asyncio.create_task(_synchronize(gateway)) if self._memory.has_several_workers else None
        notify.send_ready(self._listener)
        try:
            await stop_requested.wait()
            asyncio.get_running_loop().call_later(FORCED_STOP_GRACE_SECONDS, self._restore_default_signals)
            gateway.log.info("stopping", open=len(gateway.active_requests), seconds=gateway.config.settings.drain)
            gateway.ready = False
            self._memory.set_state(WorkerState.STOPPING)
            if self._parent_pipe is None:
                notify.send_stopping()
            connection_listener.close()
            gateway.log.info("stopped", cut=await _drain(gateway))
        finally:
            await runner.cleanup()
            await gateway.close()
            heartbeat.cancel()
            trimmer.cancel()
            faulthandler.cancel_dump_traceback_later()
            if synchronizer is not None:
                synchronizer.cancel()
                gateway.metrics.publish_callbacks()
            if demo_runner is not None:
                await demo_runner.cleanup()

    async def _beat(self, gateway: GatewayState) -> None:
        """Show that the event loop runs: to the supervisor, or without one to a timer that prints the stack."""
        seconds = self._loaded.settings.watchdog
        while True:
            if self._inspector is not None and self._inspector.restart_if_dead():
                gateway.log.error("the inspector's process has died; it was started again, without its exchanges")
            if self._heartbeat is not None:
                self._heartbeat.beat()
            elif seconds:
                faulthandler.dump_traceback_later(seconds)
                notify.send_watchdog()
            await asyncio.sleep(INTERVAL_SECONDS)

    @property
    def _stop_signals(self) -> list[signal.Signals]:
        """Signals that stop the worker. With a parent, signals from the terminal are left to the parent."""
        if self._parent_pipe is not None:
            return [signal.SIGTERM]
        return [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if self._stops_on_hangup else [])]

    def _install_signal_handlers(self, gateway: GatewayState) -> asyncio.Event:
        """Unblock signals and return an event that is set when a stop signal arrives or the parent is gone."""
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        if not self._stops_on_hangup:
            loop.add_signal_handler(signal.SIGHUP, self._reload_config, gateway)
        elif self._parent_pipe is not None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in self._stop_signals:
            loop.add_signal_handler(number, stop_requested.set)
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
        """Reload the settings. Active requests keep the settings they started with."""
        try:
            loaded = self._reload()
            gateway.config = gateway.build_config(loaded)
        except (InterlinguaError, OSError) as error:
            hint = getattr(error, "hint", "")
            gateway.log.error("cannot reload the settings; the old ones stay in use", error=str(error), hint=hint)
            return
        gateway.log.info(
            "reloaded",
            **({"only_after_a_restart": ", ".join(loaded.restart_required)} if loaded.restart_required else {}),
        )


async def _synchronize(gateway: GatewayState) -> None:
    """Exchange what no request of this worker exchanges: metrics from callbacks, and events of other workers."""
    while True:
        gateway.metrics.publish_callbacks()
        gateway.memory.events.poll()
        await asyncio.sleep(SYNCHRONIZE_INTERVAL_SECONDS)


async def _drain(gateway: GatewayState) -> int:
    """Wait for open streams to finish, then stop the rest. Returns the number of streams that were stopped."""
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
    except ImportError:  # uvloop is not available on Windows
        return None
    return uvloop.new_event_loop
