"""Server of a scripted engine on loopback."""

from __future__ import annotations

from http import HTTPStatus

from interlingua.faults.engines.fault_mix import FaultMix
from interlingua.faults.engines.scripted_engine import EngineResponse, ScriptedEngine
from interlingua.faults.upstream.script import ReceivedRequest, Script, reset, send, send_headers, wait
from interlingua.faults.upstream.server import UpstreamServer

__all__ = ["start_engine_server"]

RESET_DELAY_SECONDS = 0.05
"""Time for the client to receive what was sent before the connection is reset."""


def start_engine_server(engine: ScriptedEngine | FaultMix, port: int = 0, pace_seconds: float = 0.0) -> UpstreamServer:
    """Start a server for the engine in a thread of its own; its `stop` ends it.

    Args:
        engine: The engine.
        port: Port to listen on; 0: any free port.
        pace_seconds: Time before each reply.
    """

    def scripts_for(request: ReceivedRequest) -> list[Script]:
        return [_script(engine.respond(request.path, request.body), pace_seconds if request.body else 0.0)]

    return UpstreamServer(port, scripts_for)


def _script(response: EngineResponse, pace_seconds: float) -> Script:
    status = f"{response.status} {HTTPStatus(response.status).phrase}"
    length = None if response.is_reset else len(response.body)
    steps = [wait(pace_seconds)] if pace_seconds else []
    steps += [send_headers(status, response.content_type, length=length), send(response.body)]
    return [*steps, wait(RESET_DELAY_SECONDS), reset()] if response.is_reset else steps
