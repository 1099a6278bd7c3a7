"""Scripts of the upstream: steps that send data, wait, or reset the connection."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "ReceivedRequest",
    "Script",
    "Step",
    "reset",
    "send",
    "send_chunked",
    "send_headers",
    "send_pieces",
    "send_response",
    "stream_response",
    "stream_then_reset",
    "wait",
    "wait_for_event",
]


@dataclass
class ReceivedRequest:
    """A request that the upstream received."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received_at: float = field(default_factory=time.monotonic)
    client_left_at: float | None = None
    """Time at which the client closed the connection before the end of the response; None if it did not."""
    bytes_sent: int = 0
    finished: threading.Event = field(default_factory=threading.Event)
    """Set when the script is finished or the client has disconnected."""


Step: TypeAlias = Callable[[ReceivedRequest], Awaitable[None]]
Script: TypeAlias = Sequence[Step]


def send(data: bytes) -> Step:
    async def step(request: ReceivedRequest) -> None:
        request.writer.write(data)
        request.bytes_sent += len(data)
        await request.writer.drain()

    return step


def send_pieces(pieces: Sequence[bytes], seconds: float = 0.0) -> Step:
    """Send the pieces one by one. With a delay between them, each is a packet of its own."""

    async def step(request: ReceivedRequest) -> None:
        for piece in pieces:
            await send(piece)(request)
            await asyncio.sleep(seconds)

    return step


def wait(seconds: float) -> Step:
    async def step(_: ReceivedRequest) -> None:
        await asyncio.sleep(seconds)

    return step


def wait_for_event(event: threading.Event) -> Step:
    async def step(_: ReceivedRequest) -> None:
        while not event.is_set():
            await asyncio.sleep(0.005)

    return step


def reset() -> Step:
    """Reset the connection (TCP RST)."""

    async def step(request: ReceivedRequest) -> None:
        sock = request.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.writer.transport.abort()

    return step


def send_headers(
    status: str = "200 OK", type: str = "text/event-stream", *headers: str, length: int | None = None
) -> Step:
    """Send the headers of a response that has a length or ends when the connection is closed."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {type}", *headers]
    lines += [] if length is None else [f"content-length: {length}"]
    lines.append("connection: close")
    return send("\r\n".join([*lines, "", ""]).encode())


def send_response(status: str, body: bytes, type: str = "application/json", *headers: str) -> Step:
    """Send a complete response."""

    async def step(request: ReceivedRequest) -> None:
        await send_headers(status, type, *headers, length=len(body))(request)
        await send(body)(request)

    return step


def send_chunked(data: bytes, end: bool = False) -> Step:
    """Send a stream with chunked encoding. Without `end`, the reader can detect that it is truncated."""
    terminator = b"0\r\n\r\n" if end else b""
    headers = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return send(headers + b"%x\r\n%b\r\n" % (len(data), data) + terminator)


def stream_response(data: bytes) -> tuple[Step, ...]:
    """Send a stream that ends when the connection is closed."""
    return send_headers(), send(data)


def stream_then_reset(data: bytes) -> tuple[Step, ...]:
    """Send this data, then reset the connection."""
    return send_chunked(data), wait(0.05), reset()
