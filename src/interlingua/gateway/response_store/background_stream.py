"""Response in the background: its events are stored, and clients fetch it or follow it from any worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from uuid import uuid4

import msgspec
from aiohttp import web

from interlingua.common.coerce import as_dict, as_int
from interlingua.common.jsontext.codec import encode_json, read_full_object, read_json
from interlingua.core.options import Options
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.http.final_event import FINAL_TYPES
from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.store import LOST_SECONDS, RUNNING_STATUSES, ResponseStore, StoredResponse
from interlingua.gateway.response_store.stored_exchange import STORED_STATUSES, StoredExchange
from interlingua.translation.exchange import empty_reply
from interlingua.wires.streaming.sse import encode_event, event_name

__all__ = ["BackgroundStream", "current_response", "follow_events", "run_request"]

Json = dict[str, Any]

FLUSH_SECONDS = 0.1
"""Interval at which events are stored."""
HEARTBEAT_SECONDS = 2.0
"""Interval at which a response without new events shows that it is running, and looks whether it was cancelled."""
MAX_PENDING_BYTES = 64 * 1024
"""Events that are not stored yet; more are stored at once."""
POLL_SECONDS = 0.1
"""Interval at which a client that follows a response gets new events."""
FAILED = "response.failed"
LAST_TYPES = (*FINAL_TYPES, FAILED)
"""Types of the event that ends a stream."""


def run_request(body: Json) -> bytes:
    """Return the request that runs in the place of one for a response in the background."""
    fields = {key: value for key, value in body.items() if key not in ("background", "conversation")}
    return encode_json({**fields, "stream": True, "store": False})


class BackgroundStream(EventStream):
    """Stores the events of one response while it runs, and the response at its end.

    Args:
        request: The client's HTTP request.
        wire: The client's wire.
        body: The client's request.
        encoded: The request that runs, see `run_request`.
        exchange: Stores the response.
        echo: Fields that the response repeats, if they differ from those of the body.
    """

    def __init__(
        self,
        request: web.Request,
        wire: str,
        body: Json,
        encoded: bytes,
        exchange: StoredExchange,
        echo: Mapping[str, Any],
    ) -> None:
        reply_id = uuid4().hex
        self._echo = {**echo, "background": True}
        super().__init__(request, encoded, reply_id, self._echo)
        self.response_id = f"resp_{reply_id}"
        self._exchange = exchange
        self._lock = asyncio.Lock()
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._last_number = -1
        self._final_response: Json | None = None
        self._final_number, self._final_event = 0, b""  # stored together with the response
        model, now = str(body.get("model", "")), int(time.time())
        options = Options(reply_id=reply_id, served_as=model, created=now, echo=self._echo)
        self.initial_response: Json = {**empty_reply(wire, body, options), "status": "queued", "usage": None}

    async def create(self) -> None:
        """Store the response as one that is queued."""
        exchange = self._exchange
        await exchange.store.save(exchange.owner, self._stored("queued", self.initial_response))

    async def deliver(self, event: str) -> None:
        fields = read_full_object(event)
        if fields is None:
            return
        if isinstance(response := fields.get("response"), dict):  # an upstream of the same wire has its own id
            fields["response"] = response = {**response, **self._echo, "id": self.response_id}
            if fields.get("type") in LAST_TYPES:
                self._final_response = response
        data = encode_json(fields)
        number = max(self._last_number + 1, as_int(fields.get("sequence_number")) or 0)
        if self._final_response is not None:
            self._final_number, self._final_event = number, data
            return
        self._last_number = number
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes > MAX_PENDING_BYTES:
            await self._flush()

    async def keep_stored(self, cancel: Callable[[], None]) -> None:
        """Store new events regularly until this task is cancelled. Calls `cancel` if the response was cancelled."""
        stored_at = time.monotonic()
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            if not self._pending and time.monotonic() - stored_at < HEARTBEAT_SECONDS:
                continue
            stored_at = time.monotonic()
            try:
                status = await self._flush()
            except DatabaseFailed:
                continue  # the events are kept, and the end of the response reports the error
            if status not in RUNNING_STATUSES:
                cancel()
                return

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:  # noqa: ARG002
        """Store the error of a request that failed before its first event."""
        error = as_dict((read_full_object(body) or {}).get("error"))
        fields = {"code": error.get("code") or error.get("type") or "server_error", "message": error.get("message", "")}
        response = {**self.initial_response, "status": "failed", "error": fields}
        await self.deliver(encode_json({"type": FAILED, "sequence_number": 0, "response": response}).decode())
        return await self.end()

    async def end(self, data: bytes = b"") -> web.StreamResponse:
        await self.write(data)
        if (response := self._final_response) is None:
            await self._flush()
            return web.StreamResponse()
        stored = self._stored(str(response.get("status")), response)
        gives_up_at = time.monotonic() + LOST_SECONDS
        while True:
            try:
                await self._finish(stored, response)
            except DatabaseFailed:
                if time.monotonic() >= gives_up_at:
                    raise
                await asyncio.sleep(HEARTBEAT_SECONDS)  # the database may be restarting, and nobody else has the reply
            else:
                return web.StreamResponse()

    async def _finish(self, stored: StoredResponse, response: Json) -> None:
        """Store the end of the response."""
        exchange, is_kept = self._exchange, stored.status in STORED_STATUSES
        async with self._lock:
            await exchange.store.finish(
                exchange.owner,
                stored,
                self._final_number,
                b"\n".join([*self._pending, self._final_event]),
                exchange.all_item_ids(response) if is_kept else (),
                exchange.conversation if is_kept else "",
            )
            self._pending.clear()

    async def _flush(self) -> str:
        """Store the pending events, and return the status of the response."""
        async with self._lock:
            events, count = b"\n".join(self._pending), len(self._pending)
            exchange = self._exchange
            status = await exchange.store.append_events(exchange.owner, self.response_id, self._last_number, events)
            del self._pending[:count]
            self._pending_bytes = sum(map(len, self._pending))
            return status

    def _stored(self, status: str, response: Json) -> StoredResponse:
        return StoredResponse(
            id=self.response_id,
            previous=self._exchange.previous,
            status=status,
            created=time.time(),
            input=self._exchange.input,
            response=encode_json(response),
        )


def current_response(stored: StoredResponse) -> Json:
    """Return the response object with the current status. A response whose worker is gone has failed."""
    response = read_full_object(stored.response) or {}
    if stored.status not in RUNNING_STATUSES:
        return {**response, "status": stored.status}
    if stored.used < time.time() - LOST_SECONDS:
        error = {"code": "server_error", "message": "the gateway was stopped before the response was complete"}
        return {**response, "status": "failed", "error": error}
    return {**response, "status": stored.status}


async def follow_events(
    store: ResponseStore, owner: str, id: str, after: int, report: Callable[[DatabaseFailed], None]
) -> AsyncIterator[bytes]:
    """Yield the frames of all events with a higher number, until the response has ended.

    If the database fails, `report` is called, and an error event is the last one: the client can follow the response
    again later.
    """
    while True:
        try:
            is_running = await store.is_running(owner, id)  # before the events: the last one is stored with the end
            batches = await store.events_after(owner, id, after)
            stored = None if is_running else await store.get(owner, id)
        except DatabaseFailed as error:
            report(error)
            yield _error_frame(error, after + 1)
            return
        frames: list[bytes] = []
        for line in b"\n".join(batches).splitlines():
            event = read_json(line, _EventHead) or msgspec.convert(read_full_object(line) or {}, _EventHead)
            if event.sequence_number > after:
                after = event.sequence_number
                frames.append(encode_event(line, event_name(event.type)))
                if event.type in LAST_TYPES:
                    yield b"".join(frames)
                    return
        if frames:
            yield b"".join(frames)
            continue
        if not is_running:
            if stored is not None:  # the client has all events, they are deleted, or there is no final one
                response = current_response(stored)
                final_type = f"response.{response['status']}" if response["status"] in STORED_STATUSES else FAILED
                event_fields = {"type": final_type, "sequence_number": after + 1, "response": response}
                yield encode_event(encode_json(event_fields), final_type)
            return
        yield b""
        await asyncio.sleep(POLL_SECONDS)


def _error_frame(error: DatabaseFailed, number: int) -> bytes:
    fields = {"code": "server_error", "message": f"{error} ({error.hint})", "param": None}
    return encode_event(encode_json({"type": "error", "sequence_number": number, **fields}), "error")


class _EventHead(msgspec.Struct):
    type: str = ""
    sequence_number: int = -1
