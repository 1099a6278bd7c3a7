"""Sender to a scripted engine, without a socket: for tests and for the table of attributions."""

from __future__ import annotations

from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.faults.engines import EngineResponse, FaultMix, ScriptedEngine
from interlingua.verification.probing.sender import Json
from interlingua.verification.recording import Arrival, Recording
from interlingua.wires import get_wire
from interlingua.wires.http_api import VERSION_PATH

__all__ = ["EngineSender"]


class EngineSender:
    """It is a `Sender`."""

    def __init__(self, engine: ScriptedEngine | FaultMix, wire: str = DEFAULT_WIRE) -> None:
        self._engine = engine
        self._wire = wire
        self.requests = 0
        """Number of requests for a reply so far."""

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        self.requests += 1
        wire = wire or self._wire
        copied = read_full_object(encode_json(body).decode()) or {}  # faults change requests in place
        response = self._engine.respond(VERSION_PATH + get_wire(wire).HTTP_API.path, copied)
        return _record(response, wire, stream)

    async def list_models(self) -> Recording:
        return _record(self._engine.respond(f"{VERSION_PATH}/models", {}), self._wire, stream=False)

    async def call_server(self, path: str, body: Json | None = None) -> Json | None:
        response = self._engine.respond(path, body or {})
        return read_full_object(response.body.decode()) if response.status == 200 else None


def _record(response: EngineResponse, wire: str, stream: bool) -> Recording:
    return Recording(
        wire=wire,
        stream=stream,
        status=response.status,
        content_type=response.content_type,
        body=response.body,
        arrivals=_arrivals(len(response.body)),
        seconds=0.02,
        error="the connection was lost in the middle of the reply" if response.is_reset else "",
    )


def _arrivals(size: int) -> tuple[Arrival, ...]:
    return Arrival(size // 2, 0.01), Arrival(size - size // 2, 0.02)
