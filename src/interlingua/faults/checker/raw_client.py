"""A client of a gateway that is nothing but a socket: it can read slowly, leave early, and send what no SDK would."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from interlingua.faults.apis import body_for

__all__ = ["Got", "connect", "finish", "parsed", "read", "request", "whole_answer"]


@dataclass
class Got:
    """An answer. Without one, its status is 0."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    cut: bool = False
    """Its body breaks off: a client notices."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of each event; [DONE] is text."""
        lines = [line[5:].strip() for line in self.body.split(b"\n") if line.startswith(b"data:")]
        return [json.loads(line) if line != b"[DONE]" else "[DONE]" for line in lines]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


def connect(base: str, seconds: float = 20) -> socket.socket:
    """A connection to the server of this URL."""
    url = urlsplit(base)
    port = url.port or (443 if url.scheme == "https" else 80)
    sock = socket.create_connection((url.hostname or "", port), seconds)
    if url.scheme == "https":
        return ssl.create_default_context().wrap_socket(sock, server_hostname=url.hostname)
    return sock


def request(
    path: str, body: bytes | None = None, headers: dict[str, str] | None = None, method: str = "POST", length: str = ""
) -> bytes:
    """The bytes of a request. A header with an empty value is left out."""
    given = {"host": "127.0.0.1", "content-type": "application/json", "connection": "close", **(headers or {})}
    if body is not None:
        given.setdefault("content-length", length or str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def asking(api: str, model: str, stream: bool = True, **more: Any) -> bytes:
    """The bytes of the least request."""
    return request(f"/v1/{api}", json.dumps(body_for(api, model, stream, **more)).encode())


def read(sock: socket.socket, seconds: float, answers: int = 1) -> tuple[bytes, bool]:
    """What comes on this connection within some seconds, and whether it is over: so many answers, or its end."""
    data = bytearray()
    until = time.monotonic() + seconds
    try:
        while (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            piece = sock.recv(1 << 20)
            data += piece
            if not piece or (answers == 1 and _is_whole(data)):
                return bytes(data), True
    except TimeoutError:
        return bytes(data), False
    except OSError:  # reset
        return bytes(data), True
    return bytes(data), False


def _is_whole(data: bytearray) -> bool:
    """Whether an answer ends here: servers may leave the connection open, and clients do not wait for its end."""
    if data.endswith(b"\r\n0\r\n\r\n"):
        return True
    end = data.find(b"\r\n\r\n")
    found = _LENGTH.search(data, 0, end + 2) if end >= 0 else None
    return found is not None and len(data) >= end + 4 + int(found[1])


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


def finish(sock: socket.socket) -> Got:
    """All that comes on this connection."""
    data = bytearray()
    with sock:
        while piece := sock.recv(1 << 20):
            data += piece
    return whole_answer(bytes(data))


def whole_answer(data: bytes) -> Got:
    """The answer in these bytes, which must have come to its end."""
    got = parsed(data)
    assert not got.cut, f"a body that breaks off after {len(data)} bytes: {data[-200:]!r}"
    return got


def parsed(data: bytes) -> Got:
    """The first answer in these bytes, but for those that only say that they wait (100 Continue)."""
    head, found, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    if not found or not first.startswith("HTTP/"):
        return Got(0, [], data, cut=True)
    status = int(first.split()[1])
    if status < 200:
        return parsed(body)
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    got = Got(status, headers, body)
    if (got.header("transfer-encoding") or "").lower() == "chunked":
        got.body, got.cut = _unchunked(body)
    elif length := got.header("content-length"):
        got.body, got.cut = body[: int(length)], len(body) < int(length)
    return got


def _unchunked(data: bytes) -> tuple[bytes, bool]:
    """The bytes in these chunks, and whether the last one is missing."""
    pieces: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:end].partition(b";")[0], 16)
        if not size:
            return b"".join(pieces), False
        pieces.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(pieces), True
