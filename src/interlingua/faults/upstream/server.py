"""An upstream whose every byte is scripted, on a real socket: what it sends depends on the model that it is asked for.

    server = UpstreamServer()
    server.add("cut", chat("Hel"), reset())         # answers for the model "cut"
    server.url                                      # http://127.0.0.1:PORT/v1
    server.asked("cut")                             # the requests that came for it, and when each client left

A script is a list of steps. The same model may have several scripts: the first request gets the first one, and all
further requests the last. Models that nobody has added are looked up in a `book`, if there is one.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from interlingua.faults.upstream.script import Asked, Script, Step, answer

__all__ = ["ELSEWHERE", "SEEN", "Book", "UpstreamServer"]

Book: TypeAlias = Callable[[Asked], list[Script]]
"""The scripts for a request, by its model and its path."""
SEEN = "/_seen"
"""Where one asks what came for a model: GET /_seen?model=NAME"""
ELSEWHERE = "/_elsewhere/"
"""Where nobody has any reason to ask. Whoever does is seen under the rest of the path."""
NOBODY: Script = [
    answer("404 Not Found", b'{"error": {"message": "there is no such model", "type": "not_found_error"}}')
]
MOST_MODELS = 5000
LARGE = 1024 * 1024
"""A body that is larger is not kept, once it was answered."""


class UpstreamServer:
    """Runs in a thread of its own until `stop`."""

    def __init__(self, port: int = 0, book: Book | None = None, tell: Callable[[Asked], None] | None = None) -> None:
        self._scripts: dict[str, list[Script]] = {}
        self._asked: dict[str, list[Asked]] = {}
        self._changed = threading.Condition()
        self._book = book
        self._tell = tell
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._problem: OSError | None = None
        self.port = port
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        if self._problem is not None:
            raise self._problem

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
        try:
            server = self._loop.run_until_complete(
                asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**24)
            )
        except OSError as error:
            self._problem = error
            self._ready.set()
            self._loop.close()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(_let_go(self._loop))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _request(reader, writer)
            if (told := self._answer(asked)) is not None:
                await answer("200 OK", json.dumps(told).encode())(asked)
            else:
                await self._one(asked)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        except asyncio.CancelledError:  # by `stop`: asyncio would log it as a fault
            writer.transport.abort()
        finally:
            writer.close()

    def _answer(self, asked: Asked) -> Any:
        """What is asked of the server itself, and not of a model."""
        path = urlsplit(asked.path)
        if path.path == SEEN:
            model = parse_qs(path.query).get("model", [""])[0]
            with self._changed:
                return [_seen(one) for one in self._asked.get(model, [])]
        if path.path.startswith(ELSEWHERE):
            self._note(path.path.removeprefix(ELSEWHERE).split("/")[0], asked)
            asked.done.set()
            return {}
        return None

    def _note(self, model: str, asked: Asked) -> int:
        """How many requests there have been for this model, this one included."""
        with self._changed:
            seen = self._asked.setdefault(model, [])
            seen.append(asked)
            if len(self._asked) > MOST_MODELS:
                del self._asked[next(iter(self._asked))]
            self._changed.notify_all()
            return len(seen)

    async def _one(self, asked: Asked) -> None:
        model = str(asked.body.get("model"))
        count = self._note(model, asked)
        scripts = self._scripts.get(model) or (self._book(asked) if self._book else [])
        steps = scripts[min(count, len(scripts)) - 1] if scripts else NOBODY
        script = asyncio.ensure_future(_play(asked, steps))
        gone = asyncio.ensure_future(asked.reader.read(1))
        await asyncio.wait({script, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not script.done() or isinstance(script.exception(), ConnectionError):
            asked.left = time.monotonic()
            script.cancel()
        gone.cancel()
        if int(asked.headers.get("content-length", 0)) > LARGE:
            asked.body = {"model": model}
        asked.done.set()
        if self._tell is not None:
            self._tell(asked)
        await asyncio.gather(script, gone, return_exceptions=True)


async def _let_go(loop: asyncio.AbstractEventLoop) -> None:
    """Ends whatever is under way, with its connections: the collector would find an open one, in another test."""
    under_way = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    await asyncio.sleep(0)  # a connection that is closed is let go of by the loop, a turn later


async def _play(asked: Asked, steps: Script) -> None:
    for step in steps:
        await step(asked)


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        data = await _chunks(reader)
    else:
        data = await reader.readexactly(int(headers.get("content-length", 0)))
    body = json.loads(data or b"{}")
    return Asked(first.split(" ")[1], headers, body if isinstance(body, dict) else {}, reader, writer)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readuntil(b"\r\n")
    return b"".join(pieces)


def _seen(asked: Asked) -> dict[str, Any]:
    """What came, for whoever asks from another process: `left` says how many seconds ago its client hung up."""
    left = None if asked.left is None else time.monotonic() - asked.left
    told = {"path": asked.path, "headers": asked.headers, "body": asked.body, "sent": asked.sent}
    return {**told, "done": asked.done.is_set(), "left": left}
