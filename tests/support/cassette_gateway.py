"""A gateway in a thread that records or replays, and plain HTTP requests to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from interlingua.gateway.processes.gateway_thread import GatewayThread
from interlingua.gateway.settings.schema import Cassettes, Log, Settings, State, Upstream
from interlingua.wires import get_wire

__all__ = ["Response", "cassette_gateway", "post"]

Json = dict[str, Any]


class Response(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def error(self) -> str:
        """The message of an error response."""
        error: Json = json.loads(self.body)["error"]
        message: str = error["message"]
        return message


@contextmanager
def cassette_gateway(
    path: Path, mode: str, upstreams: dict[str, Upstream] | None = None, **options: Any
) -> Iterator[str]:
    """Run a gateway with a cassette. Yields its URL. `options` are those of the cassette."""
    settings = Settings(
        demo=upstreams is None and mode != "replay",
        demo_pace=0,
        upstreams=upstreams or {},
        cassettes=Cassettes(dir=str(path), mode=mode, **options),  # type: ignore[arg-type]
        log=Log(level="error", file=str(path.with_suffix(".log"))),
        state=State(path=str(path.with_suffix(".db"))),
    )
    with GatewayThread(settings) as gateway:
        yield gateway.url


def post(url: str, wire: str, body: Json, *, stop_after: int | None = None, **headers: Any) -> Response:
    """Send a request and read the response; with `stop_after`, disconnect after that many bytes."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        path = f"/v1{get_wire(wire).HTTP_API.path}"
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **named})
        response = connection.getresponse()
        data = response.read() if stop_after is None else response.read(stop_after)
        return Response(response.status, data, {name.lower(): value for name, value in response.getheaders()})
    finally:
        connection.close()
