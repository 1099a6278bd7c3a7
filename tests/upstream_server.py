"""An upstream whose every byte is scripted, on a real socket: what it sends depends on the model that it is asked for.

    server = UpstreamServer()
    server.add("cut", chat("Hel"), close())         # answers for the model "cut"
    server.url                                      # http://127.0.0.1:PORT/v1
    server.asked("cut")                             # the requests that came for it, and when each client left

A script is a list of steps. The same model may have several scripts: the first request gets the first one, and all
further requests the last.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Step = Callable[["Asked"], Awaitable[None]]


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


class UpstreamServer:
    def __init__(self) -> None:
        self._scripts: dict[str, list[list[Step]]] = {}
        self._asked: dict[str, list[Asked]] = {}
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def add(self, model: str, *steps: Step) -> str:
        """A script for this model, behind those that it has."""
        self._scripts.setdefault(model, []).append(list(steps))
        return model

    def asked(self, model: str, count: int = 1, seconds: float = 10) -> list[Asked]:
        """The requests for this model, once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._asked.get(model, [])) >= count, seconds), model
            return list(self._asked[model])

    def count(self, model: str) -> int:
        with self._changed:
            return len(self._asked.get(model, []))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request on this connection; whether more may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        asked = Asked(first.split(" ")[1], headers, body, reader, writer)
        model = str(body.get("model"))
        scripts = self._scripts[model]
        with self._changed:
            seen = self._asked.setdefault(model, [])
            seen.append(asked)
            self._changed.notify_all()
        script = asyncio.ensure_future(self._play(asked, scripts[min(len(seen), len(scripts)) - 1]))
        gone = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({script, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not script.done() or isinstance(script.exception(), ConnectionError):
            asked.left = time.monotonic()
            script.cancel()
        gone.cancel()
        asked.done.set()
        await asyncio.gather(script, gone, return_exceptions=True)
        return False

    async def _play(self, asked: Asked, steps: list[Step]) -> None:
        for step in steps:
            await step(asked)


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def send(data: bytes) -> Step:
    async def step(asked: Asked) -> None:
        asked.writer.write(data)
        asked.sent += len(data)
        await asked.writer.drain()

    return step


def each(pieces: list[bytes], seconds: float = 0.0) -> Step:
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


def event(chunk: Any) -> bytes:
    return b"data: " + (chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()) + b"\n\n"


def delta(content: str | None = None, finish: str | None = None, **fields: Any) -> bytes:
    """One event of chat completions."""
    said = {"content": content, **fields} if content is not None else fields
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    )


ROLE = delta("", role="assistant")
DONE = event(b"[DONE]")


def chat(*texts: str, finish: str | None = "stop", done: bool = True) -> Step:
    """A stream of chat completions that says these texts."""
    stream = ROLE + b"".join(map(delta, texts))
    stream += delta(finish=finish) if finish else b""
    return _both(head(), send(stream + (DONE if done else b"")))


def _both(*steps: Step) -> Step:
    async def step(asked: Asked) -> None:
        for one in steps:
            await one(asked)

    return step
