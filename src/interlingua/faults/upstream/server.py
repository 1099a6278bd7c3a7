"""Scripted upstream server on a real socket. The requested model selects the script.

    server = UpstreamServer()
    server.add("cut", chat_stream("Hel"), reset())  # script for the model "cut"
    server.url                                      # http://127.0.0.1:PORT/v1
    server.wait_for_requests("cut")                 # requests for it, and when each client disconnected

A script is a list of steps. A model can have several scripts: the first request gets the first script, the second
request the second one, and all further requests the last one. For models that were not added, the scripts come from
`script_source`, if there is one.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from interlingua.faults.upstream.connection import read_request, run_script
from interlingua.faults.upstream.script import ReceivedRequest, Script, Step, send_response

__all__ = ["FOREIGN_PATH", "REQUESTS_PATH", "ScriptSource", "UpstreamServer"]

ScriptSource: TypeAlias = Callable[[ReceivedRequest], list[Script]]
"""Returns the scripts for a request, by its model and its path."""
REQUESTS_PATH = "/_seen"
"""Path that returns the requests received for a model: GET /_seen?model=NAME"""
FOREIGN_PATH = "/_elsewhere/"
"""Path to which no gateway has a reason to send a request. Requests are recorded under the rest of the path."""
UNKNOWN_MODEL_SCRIPT: Script = [
    send_response("404 Not Found", b'{"error": {"message": "unknown model", "type": "not_found_error"}}')
]
MAX_RECORDED_MODELS = 5000
MAX_KEPT_BODY_BYTES = 1024 * 1024
"""Larger request bodies are dropped after the response."""


class UpstreamServer:
    """Server that runs in its own thread until `stop`."""

    def __init__(
        self,
        port: int = 0,
        script_source: ScriptSource | None = None,
        on_request: Callable[[ReceivedRequest], None] | None = None,
    ) -> None:
        self._scripts: dict[str, list[Script]] = {}
        self._requests: dict[str, list[ReceivedRequest]] = {}
        self._requests_changed = threading.Condition()
        self._script_source = script_source
        self._on_request = on_request
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
        """Append a script for this model, and return the model."""
        self._scripts.setdefault(model, []).append(list(steps))
        return model

    def wait_for_requests(self, model: str, count: int = 1, seconds: float = 10) -> list[ReceivedRequest]:
        """Wait until there are `count` requests for this model, and return them."""
        with self._requests_changed:
            assert self._requests_changed.wait_for(lambda: len(self._requests.get(model, [])) >= count, seconds), model
            return list(self._requests[model])

    def count(self, model: str) -> int:
        with self._requests_changed:
            return len(self._requests.get(model, []))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # ── server thread ─────────────────────────────────────────────────────────────────────────────────────────────────

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
        self._loop.run_until_complete(_cancel_tasks(self._loop))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader, writer)
            if (own_reply := self._own_reply(request)) is not None:
                await send_response("200 OK", json.dumps(own_reply).encode())(request)
            else:
                await self._run_script(request)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        except asyncio.CancelledError:  # by `stop`: asyncio would log it as an error
            writer.transport.abort()
        finally:
            writer.close()
            if (error := reader.exception()) is not None:  # its traceback holds the reader, which holds the error
                error.__traceback__ = None

    def _own_reply(self, request: ReceivedRequest) -> Any:
        """Return the response to a request for the server's own paths; None for all other requests."""
        path = urlsplit(request.path)
        if path.path == REQUESTS_PATH:
            model = parse_qs(path.query).get("model", [""])[0]
            with self._requests_changed:
                return [_request_summary(received) for received in self._requests.get(model, [])]
        if path.path.startswith(FOREIGN_PATH):
            self._record(path.path.removeprefix(FOREIGN_PATH).split("/")[0], request)
            request.finished.set()
            return {}
        return None

    def _record(self, model: str, request: ReceivedRequest) -> int:
        """Record the request. Return the number of requests for this model, including this one."""
        with self._requests_changed:
            requests = self._requests.setdefault(model, [])
            requests.append(request)
            if len(self._requests) > MAX_RECORDED_MODELS:
                del self._requests[next(iter(self._requests))]
            self._requests_changed.notify_all()
            return len(requests)

    async def _run_script(self, request: ReceivedRequest) -> None:
        model = str(request.body.get("model"))
        count = self._record(model, request)
        scripts = self._scripts.get(model) or (self._script_source(request) if self._script_source else [])
        steps = scripts[min(count, len(scripts)) - 1] if scripts else UNKNOWN_MODEL_SCRIPT
        await run_script(request, steps)
        if int(request.headers.get("content-length", 0)) > MAX_KEPT_BODY_BYTES:
            request.body = {"model": model}
        request.finished.set()
        if self._on_request is not None:
            self._on_request(request)


async def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks. An open connection would cause a ResourceWarning in a later test."""
    tasks = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # the loop releases closed connections in its next iteration


def _request_summary(request: ReceivedRequest) -> dict[str, Any]:
    """Return the request as JSON, for other processes. `left`: seconds since the client disconnected, or None."""
    seconds_since_left = None if request.client_left_at is None else time.monotonic() - request.client_left_at
    summary = {"path": request.path, "headers": request.headers, "body": request.body, "sent": request.bytes_sent}
    return {**summary, "done": request.finished.is_set(), "left": seconds_since_left}
