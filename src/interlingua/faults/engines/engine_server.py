"""Server of a scripted engine on loopback."""

from __future__ import annotations

from http import HTTPStatus

from interlingua.faults.engines.fault_mix import FaultMix
from interlingua.faults.engines.scripted_engine import SSE_TYPE, EngineResponse, ScriptedEngine
from interlingua.faults.upstream.script import ReceivedRequest, Script, reset, send_headers, send_pieces, wait
from interlingua.faults.upstream.server import UpstreamServer

__all__ = ["start_engine_server"]

STREAM_PIECES, PIECE_SECONDS = 4, 0.004
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


def _pieces(response: EngineResponse) -> list[bytes]:
    """Return the pieces of a response: a few for a stream, so that it arrives as a stream, and one for the others."""
    events = response.body.split(b"\n\n") if response.content_type == SSE_TYPE else []
    if len(events) < STREAM_PIECES:
        return [response.body]
    size = len(events) // STREAM_PIECES
    first = [b"\n\n".join(events[n * size : (n + 1) * size]) + b"\n\n" for n in range(STREAM_PIECES - 1)]
    return [*first, b"\n\n".join(events[(STREAM_PIECES - 1) * size :])]


def _script(response: EngineResponse, pace_seconds: float) -> Script:
    status = f"{response.status} {HTTPStatus(response.status).phrase}"
    length = None if response.is_reset else len(response.body)
    steps = [wait(pace_seconds)] if pace_seconds else []
    steps += [send_headers(status, response.content_type, length=length), send_pieces(_pieces(response), PIECE_SECONDS)]
    return [*steps, wait(RESET_DELAY_SECONDS), reset()] if response.is_reset else steps
