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
    "Asked",
    "Script",
    "Step",
    "answer",
    "chunked",
    "each",
    "head",
    "reset",
    "send",
    "streamed",
    "torn",
    "until",
    "wait",
]


@dataclass
class Asked:
    """One request that came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    came: float = field(default_factory=time.monotonic)
    left: float | None = None
    """When its client closed the connection, if it did before the answer was over."""
    sent: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    """The script is over, or the client has left."""


Step: TypeAlias = Callable[[Asked], Awaitable[None]]
Script: TypeAlias = Sequence[Step]


def send(data: bytes) -> Step:
    async def step(asked: Asked) -> None:
        asked.writer.write(data)
        asked.sent += len(data)
        await asked.writer.drain()

    return step


def each(pieces: Sequence[bytes], seconds: float = 0.0) -> Step:
    """One piece after the other, each in a packet of its own if there is time between."""

    async def step(asked: Asked) -> None:
        for piece in pieces:
            await send(piece)(asked)
            await asyncio.sleep(seconds)

    return step


def wait(seconds: float) -> Step:
    async def step(_: Asked) -> None:
        await asyncio.sleep(seconds)

    return step


def until(event: threading.Event) -> Step:
    async def step(_: Asked) -> None:
        while not event.is_set():
            await asyncio.sleep(0.005)

    return step


def reset() -> Step:
    """The connection is torn down, with an RST."""

    async def step(asked: Asked) -> None:
        sock = asked.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        asked.writer.transport.abort()

    return step


def head(status: str = "200 OK", type: str = "text/event-stream", *headers: str, length: int | None = None) -> Step:
    """The headers of an answer that ends with the connection, or has a length."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {type}", *headers]
    lines += [] if length is None else [f"content-length: {length}"]
    lines.append("connection: close")
    return send("\r\n".join([*lines, "", ""]).encode())


def answer(status: str, body: bytes, type: str = "application/json", *headers: str) -> Step:
    """A whole answer."""

    async def step(asked: Asked) -> None:
        await head(status, type, *headers, length=len(body))(asked)
        await send(body)(asked)

    return step


def chunked(data: bytes, end: bool = False) -> Step:
    """A stream in HTTP chunks. Without its end, whoever reads it can tell that it was cut."""
    ended = b"0\r\n\r\n" if end else b""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return send(head + b"%x\r\n%b\r\n" % (len(data), data) + ended)


def streamed(data: bytes) -> tuple[Step, ...]:
    """A stream that ends with its connection."""
    return head(), send(data)


def torn(data: bytes) -> tuple[Step, ...]:
    """The connection is reset behind this."""
    return chunked(data), wait(0.05), reset()
