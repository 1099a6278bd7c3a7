"""What an upstream does on its socket, step by step: sends, waits, hangs up."""

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
    """One request that came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received_at: float = field(default_factory=time.monotonic)
    client_left_at: float | None = None
    """When its client closed the connection, if it did before the answer was over."""
    bytes_sent: int = 0
    finished: threading.Event = field(default_factory=threading.Event)
    """The script is over, or the client has left."""


Step: TypeAlias = Callable[[ReceivedRequest], Awaitable[None]]
Script: TypeAlias = Sequence[Step]


def send(data: bytes) -> Step:
    async def step(request: ReceivedRequest) -> None:
        request.writer.write(data)
        request.bytes_sent += len(data)
        await request.writer.drain()

    return step


def send_pieces(pieces: Sequence[bytes], seconds: float = 0.0) -> Step:
    """One piece after the other, each in a packet of its own if there is time between."""

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
    """The connection is torn down, with an RST."""

    async def step(request: ReceivedRequest) -> None:
        sock = request.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.writer.transport.abort()

    return step


def send_headers(
    status: str = "200 OK", type: str = "text/event-stream", *headers: str, length: int | None = None
) -> Step:
    """The headers of an answer that ends with the connection, or has a length."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {type}", *headers]
    lines += [] if length is None else [f"content-length: {length}"]
    lines.append("connection: close")
    return send("\r\n".join([*lines, "", ""]).encode())


def send_response(status: str, body: bytes, type: str = "application/json", *headers: str) -> Step:
    """A whole answer."""

    async def step(request: ReceivedRequest) -> None:
        await send_headers(status, type, *headers, length=len(body))(request)
        await send(body)(request)

    return step


def send_chunked(data: bytes, end: bool = False) -> Step:
    """A stream in HTTP chunks. Without its end, whoever reads it can tell that it was cut."""
    terminator = b"0\r\n\r\n" if end else b""
    headers = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return send(headers + b"%x\r\n%b\r\n" % (len(data), data) + terminator)


def stream_response(data: bytes) -> tuple[Step, ...]:
    """A stream that ends with its connection."""
    return send_headers(), send(data)


def stream_then_reset(data: bytes) -> tuple[Step, ...]:
    """The connection is reset behind this."""
    return send_chunked(data), wait(0.05), reset()
