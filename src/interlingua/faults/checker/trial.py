"""One scenario, played against one gateway in one API: the client's side of it, and what the upstream saw."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from interlingua.faults.apis import minimal_body, tools_field
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.client_view import ClientView, read_into_view
from interlingua.faults.checker.raw_client import RawResponse
from interlingua.faults.upstream.server import FOREIGN_PATH, REQUESTS_PATH

__all__ = ["GatewayTarget", "RequestRefused", "Trial", "TrialResponse"]


class RequestRefused(Exception):
    """The gateway took no such request: the upstream was never asked."""


@dataclass(frozen=True)
class GatewayTarget:
    """The gateway that is tried, and the fault server behind it."""

    gateway: str
    fault_server: str
    prefix: str = ""
    """What the gateway wants before a model's id."""
    key: str = ""
    """What clients show to the gateway."""
    timeout: float = 25
    """How long a client waits for anything, in seconds: long enough to hear our own gateway say that it is there."""


@dataclass
class TrialResponse(ClientView):
    """What the client heard, and how the connection went."""

    truncated: bool = False
    """The answer breaks off, and the client notices."""
    timed_out: bool = False
    """The client's patience is over, the answer is not."""
    elapsed: float = 0

    @property
    def is_kept_alive(self) -> bool:
        """The last that came in the stream is a sign of life: a comment, or a ping of Messages."""
        last = self.body.replace(b"\r", b"").rstrip(b"\n").rpartition(b"\n\n")[2]
        return self.streamed and (last.startswith(b":") or b"event: ping" in last)


@dataclass
class Trial:
    target: GatewayTarget
    api: str
    name: str
    run_id: str
    """A run of its own, so that the fault server counts it from one."""

    @property
    def model(self) -> str:
        """As the upstream is asked for it."""
        return f"{self.name}--{self.run_id}"

    @property
    def path(self) -> str:
        base = urlsplit(self.target.gateway).path.rstrip("/")
        return f"{base if base.endswith('/v1') else base + '/v1'}/{self.api}"

    @property
    def foreign_url(self) -> str:
        """An address where nobody has any reason to ask, on another host."""
        return f"http://localhost:{urlsplit(self.target.fault_server).port}{FOREIGN_PATH}{self.model}"

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def body(self, stream: bool = True, offer: bool = True, **more: Any) -> bytes:
        fields = {
            **minimal_body(self.api, self.target.prefix + self.model, stream),
            **(tools_field(self.api) if offer else {}),
        }
        return json.dumps({**fields, **more}).encode()

    def build_request(self, body: bytes, **headers: str) -> bytes:
        extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.build_request(self.path, body, {**self.headers(), **extra_headers})

    def headers(self) -> dict[str, str]:
        url = urlsplit(self.target.gateway)
        key = self.target.key
        auth_headers = {"authorization": f"Bearer {key}", "x-api-key": key} if key else {}
        return {"host": url.netloc, "anthropic-version": "2023-06-01", **auth_headers}

    def open_connection(self, data: bytes) -> socket.socket:
        """A connection on which this was sent, as far as the gateway has read it."""
        sock = client.connect(self.target.gateway, self.target.timeout)
        with suppress(OSError):  # it may have answered before it has read all
            sock.sendall(data)
        return sock

    def send(self, data: bytes, seconds: float | None = None) -> TrialResponse:
        """The answer to these bytes, whatever it is."""
        started = time.monotonic()
        try:
            with self.open_connection(data) as sock:
                raw, complete = client.read_response(sock, seconds or self.target.timeout)
        except OSError as error:
            return TrialResponse(0, {}, b"", error=str(error), truncated=True, elapsed=time.monotonic() - started)
        response = self.response_from(client.parse_response(raw))
        response.timed_out, response.elapsed = not complete, time.monotonic() - started
        return response

    def response_from(self, raw_response: RawResponse) -> TrialResponse:
        response = TrialResponse(
            raw_response.status, dict(raw_response.headers), raw_response.body, truncated=raw_response.truncated
        )
        return response if not raw_response.status else self._read_content(response)

    def _read_content(self, response: TrialResponse) -> TrialResponse:
        read_into_view(response, self.api)
        return response

    def send_request(
        self, stream: bool = True, offer: bool = True, seconds: float | None = None, **more: Any
    ) -> TrialResponse:
        """The answer to a usual request. Raises if the gateway takes none such."""
        response = self.send(self.build_request(self.body(stream, offer, **more)), seconds)
        if 400 <= response.status < 500 and not self.upstream_requests():
            raise RequestRefused(f"{response.status}, and the upstream was not asked: {response.error[:120]}")
        if response.status == 200 and response.streamed != stream:
            response.violations.append(
                "a stream was asked for, and this is none" if stream else "a stream, which nobody asked for"
            )
        return response

    # ── what the upstream saw ─────────────────────────────────────────────────────────────────────────────────────

    def upstream_requests(self) -> list[Any]:
        """The requests for this model that came to the fault server."""
        path = f"{REQUESTS_PATH}?model={quote(self.model)}"
        with client.connect(self.target.fault_server, 10) as sock:
            sock.sendall(client.build_request(path, method="GET"))
            raw, _ = client.read_response(sock, 10)
        requests: list[Any] = client.parse_response(raw).json
        return requests

    def wait_until(self, condition: Callable[[list[Any]], bool], seconds: float) -> list[Any]:
        """What was seen, once that is true, or the time is over."""
        deadline = time.monotonic() + seconds
        while not condition(requests := self.upstream_requests()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return requests
