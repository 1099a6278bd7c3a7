"""Start-up of `interlingua serve`: check settings, open the port, then run one worker or a supervisor with several."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

from interlingua.errors import BadInput
from interlingua.gateway.observability.capture_writer import check_capture_folder
from interlingua.gateway.observability.rotating_file import RotatingFile
from interlingua.gateway.observability.tracing import check_tracing
from interlingua.gateway.processes import terminal
from interlingua.gateway.processes.inspector_process import InspectorProcess
from interlingua.gateway.processes.supervisor import Supervisor
from interlingua.gateway.processes.worker import Worker
from interlingua.gateway.routing.routes import routes_for
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.upstream.connector import check_certificates

__all__ = ["check_settings", "open_listeners", "serve"]


def check_settings(loaded: LoadedSettings) -> None:
    """Check the settings before the gateway starts. Raises InterlinguaError if the gateway cannot run with them."""
    routes_for(loaded)
    check_certificates(loaded.settings)
    check_tracing(loaded.settings)
    if loaded.settings.cassettes:
        from interlingua.gateway.cassettes.check import check_cassettes

        check_cassettes(loaded)
    if loaded.settings.capture:
        check_capture_folder(loaded.settings.capture)
    if loaded.settings.log.file:
        RotatingFile(loaded.settings.log.file).close()


def open_listeners(settings: Settings) -> list[socket.socket]:
    """Open one socket per worker, all on the same port (SO_REUSEPORT). The kernel distributes the connections.

    Clients that connect before the workers serve wait in the backlog instead of being refused.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sockets: list[socket.socket] = []
    port = settings.port
    for _ in range(settings.workers):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.workers > 1:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            listener.bind((settings.host.strip("[]"), port))
            listener.listen()
        except OSError as error:
            raise BadInput(
                f"cannot listen on {settings.host}:{port}: {error.strerror}", "choose another port with --port"
            ) from error
        port = listener.getsockname()[1]
        sockets.append(listener)
    return sockets


def serve(
    loaded: LoadedSettings, sockets: list[socket.socket], seal_key: bytes, load: Callable[[], LoadedSettings]
) -> None:
    """Serve until a stop signal arrives and all streams have ended.

    Args:
        loaded: The settings to start with.
        sockets: One open listener per worker; more than one starts a supervisor.
        seal_key: The key that encrypts reasoning, unless the settings contain one.
        load: Reads the settings again, for a reload.
    """

    def reload() -> LoadedSettings:
        reloaded = load().keep_restart_only_fields(loaded.settings)
        check_settings(reloaded)
        return reloaded

    stops_on_hangup = terminal.stops_on_hangup()
    # Signal handlers are not installed yet. Until then a signal must not end a gateway that is starting.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    inspector = InspectorProcess(loaded.settings.inspect) if loaded.settings.inspect.enabled else None
    try:
        if len(sockets) == 1:
            worker = Worker(loaded, sockets[0], seal_key, reload, inspector=inspector, stops_on_hangup=stops_on_hangup)
            worker.run()
        else:
            Supervisor(loaded, sockets, seal_key, reload, inspector, stops_on_hangup=stops_on_hangup).run()
    finally:
        if inspector is not None:
            inspector.stop()
