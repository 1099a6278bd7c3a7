"""HTTP client on a raw socket: it can read slowly, disconnect early, and send what no SDK would send."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from interlingua.faults.apis import minimal_body

__all__ = [
    "RawResponse",
    "build_request",
    "connect",
    "parse_complete",
    "parse_response",
    "read_response",
    "read_to_end",
]


@dataclass
class RawResponse:
    """HTTP response. Status 0: there was none."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    truncated: bool = False
    """The body is truncated, and the client can detect that."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Data of each event; [DONE] is a string."""
        lines = [line[5:].strip() for line in self.body.split(b"\n") if line.startswith(b"data:")]
        return [json.loads(line) if line != b"[DONE]" else "[DONE]" for line in lines]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


def connect(base: str, seconds: float = 20) -> socket.socket:
    """Connect to the server of this URL."""
    url = urlsplit(base)
    port = url.port or (443 if url.scheme == "https" else 80)
    sock = socket.create_connection((url.hostname or "", port), seconds)
    if url.scheme == "https":
        return ssl.create_default_context().wrap_socket(sock, server_hostname=url.hostname)
    return sock


def build_request(
    path: str, body: bytes | None = None, headers: dict[str, str] | None = None, method: str = "POST", length: str = ""
) -> bytes:
    """Return the bytes of a request. Headers with an empty value are left out."""
    all_headers = {"host": "127.0.0.1", "content-type": "application/json", "connection": "close", **(headers or {})}
    if body is not None:
        all_headers.setdefault("content-length", length or str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def build_minimal_request(api: str, model: str, stream: bool = True, **fields: Any) -> bytes:
    """Return the bytes of a minimal request."""
    return build_request(f"/v1/{api}", json.dumps(minimal_body(api, model, stream, **fields)).encode())


def read_response(sock: socket.socket, seconds: float, response_count: int = 1) -> tuple[bytes, bool]:
    """Read for at most some seconds. Return the bytes, and whether the response is complete or the connection closed.

    With a `response_count` other than 1, read until the connection is closed.
    """
    data = bytearray()
    deadline = time.monotonic() + seconds
    try:
        while (remaining := deadline - time.monotonic()) > 0:
            sock.settimeout(remaining)
            piece = sock.recv(1 << 20)
            data += piece
            if not piece or (response_count == 1 and _is_complete(data)):
                return bytes(data), True
    except TimeoutError:
        return bytes(data), False
    except OSError:  # reset
        return bytes(data), True
    return bytes(data), False


def _is_complete(data: bytearray) -> bool:
    """Return whether the response is complete. Servers may keep the connection open, so its end is no criterion."""
    if data.endswith(b"\r\n0\r\n\r\n"):
        return True
    end = data.find(b"\r\n\r\n")
    match = _CONTENT_LENGTH.search(data, 0, end + 2) if end >= 0 else None
    return match is not None and len(data) >= end + 4 + int(match[1])


_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


def read_to_end(sock: socket.socket) -> RawResponse:
    """Read until the connection is closed, and return the complete response."""
    data = bytearray()
    with sock:
        while piece := sock.recv(1 << 20):
            data += piece
    return parse_complete(bytes(data))


def parse_complete(data: bytes) -> RawResponse:
    """Parse a response and assert that it is not truncated."""
    response = parse_response(data)
    assert not response.truncated, f"the body is truncated after {len(data)} bytes: {data[-200:]!r}"
    return response


def parse_response(data: bytes) -> RawResponse:
    """Parse the first response in these bytes. Interim responses (100 Continue) are skipped."""
    head, separator, body = data.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    if not separator or not status_line.startswith("HTTP/"):
        return RawResponse(0, [], data, truncated=True)
    status = int(status_line.split()[1])
    if status < 200:
        return parse_response(body)
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    response = RawResponse(status, headers, body)
    if (response.header("transfer-encoding") or "").lower() == "chunked":
        response.body, response.truncated = _decode_chunked(body)
    elif length := response.header("content-length"):
        response.body, response.truncated = body[: int(length)], len(body) < int(length)
    return response


def _decode_chunked(data: bytes) -> tuple[bytes, bool]:
    """Return the decoded bytes, and whether the final chunk is missing."""
    pieces: list[bytes] = []
    position = 0
    while (end := data.find(b"\r\n", position)) >= 0:
        size = int(data[position:end].partition(b";")[0], 16)
        if not size:
            return b"".join(pieces), False
        pieces.append(data[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
    return b"".join(pieces), True
