"""Trial: one scenario on one gateway in one API. Sends requests and reads what the upstream received."""

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
from interlingua.faults.checker import raw_client
from interlingua.faults.checker.client_view import ClientView, read_into_view
from interlingua.faults.checker.raw_client import RawResponse
from interlingua.faults.upstream.server import FOREIGN_PATH, REQUESTS_PATH

__all__ = ["GatewayTarget", "RequestRefused", "Trial", "TrialResponse"]


class RequestRefused(Exception):
    """The gateway rejected the request and sent nothing to the upstream."""


@dataclass(frozen=True)
class GatewayTarget:
    """The tested gateway and the fault server behind it."""

    gateway: str
    fault_server: str
    prefix: str = ""
    """Prefix that the gateway requires before model ids."""
    key: str = ""
    """API key that clients use for the gateway."""
    timeout: float = 25
    """Seconds that a client waits; longer than the keep-alive interval of our own gateway."""


@dataclass
class TrialResponse(ClientView):
    """Response as the client sees it, and the state of the connection."""

    truncated: bool = False
    """The response is truncated, and the client can detect that."""
    timed_out: bool = False
    """The client timed out before the end of the response."""
    elapsed: float = 0

    @property
    def is_kept_alive(self) -> bool:
        """True if the last thing in the stream is a keep-alive: a comment, or a `ping` event of Messages."""
        last = self.body.replace(b"\r", b"").rstrip(b"\n").rpartition(b"\n\n")[2]
        return self.streamed and (last.startswith(b":") or b"event: ping" in last)


@dataclass
class Trial:
    target: GatewayTarget
    api: str
    name: str
    run_id: str
    """Unique id, so that the fault server counts requests of this trial from one."""

    @property
    def model(self) -> str:
        """Model id that the upstream receives."""
        return f"{self.name}--{self.run_id}"

    @property
    def path(self) -> str:
        base = urlsplit(self.target.gateway).path.rstrip("/")
        return f"{base if base.endswith('/v1') else base + '/v1'}/{self.api}"

    @property
    def foreign_url(self) -> str:
        """URL on another host to which no gateway has a reason to send a request."""
        return f"http://localhost:{urlsplit(self.target.fault_server).port}{FOREIGN_PATH}{self.model}"

    # ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def body(self, stream: bool = True, offer: bool = True, **more: Any) -> bytes:
        fields = {
            **minimal_body(self.api, self.target.prefix + self.model, stream),
            **(tools_field(self.api) if offer else {}),
        }
        return json.dumps({**fields, **more}).encode()

    def build_request(self, body: bytes, **headers: str) -> bytes:
        extra_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return raw_client.build_request(self.path, body, {**self.headers(), **extra_headers})

    def headers(self) -> dict[str, str]:
        url = urlsplit(self.target.gateway)
        key = self.target.key
        auth_headers = {"authorization": f"Bearer {key}", "x-api-key": key} if key else {}
        return {"host": url.netloc, "anthropic-version": "2023-06-01", **auth_headers}

    def open_connection(self, data: bytes) -> socket.socket:
        """Open a connection and send this data, as far as the gateway reads it."""
        sock = raw_client.connect(self.target.gateway, self.target.timeout)
        with suppress(OSError):  # the gateway may respond before it has read everything
            sock.sendall(data)
        return sock

    def send(self, data: bytes, seconds: float | None = None) -> TrialResponse:
        """Send these bytes and return the response, whatever it is."""
        started = time.monotonic()
        try:
            with self.open_connection(data) as sock:
                raw, complete = raw_client.read_response(sock, seconds or self.target.timeout)
        except OSError as error:
            return TrialResponse(0, {}, b"", error=str(error), truncated=True, elapsed=time.monotonic() - started)
        response = self.response_from(raw_client.parse_response(raw))
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
        """Send a normal request and return the response. Raises `RequestRefused` if the gateway rejects it."""
        response = self.send(self.build_request(self.body(stream, offer, **more)), seconds)
        if 400 <= response.status < 500 and not self.upstream_requests():
            raise RequestRefused(f"{response.status}, and nothing was sent to the upstream: {response.error[:120]}")
        if response.status == 200 and response.streamed != stream:
            response.violations.append(
                "a stream was requested, but the response is none"
                if stream
                else "the response is a stream, which was not requested"
            )
        return response

    # ── requests that the upstream received ───────────────────────────────────────────────────────────────────────────

    def upstream_requests(self) -> list[Any]:
        """Return the requests for this model that the fault server received."""
        path = f"{REQUESTS_PATH}?model={quote(self.model)}"
        with raw_client.connect(self.target.fault_server, 10) as sock:
            sock.sendall(raw_client.build_request(path, method="GET"))
            raw, _ = raw_client.read_response(sock, 10)
        requests: list[Any] = raw_client.parse_response(raw).json
        return requests

    def wait_until(self, condition: Callable[[list[Any]], bool], seconds: float) -> list[Any]:
        """Poll the upstream requests until the condition is true or the time is over, and return them."""
        deadline = time.monotonic() + seconds
        while not condition(requests := self.upstream_requests()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return requests
