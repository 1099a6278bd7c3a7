"""Stream whose events go somewhere else than to an HTTP response: to a WebSocket, or to the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from aiohttp import web

from interlingua.gateway.http.field_origins import Origins
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.wires.streaming.sse import SseDecoder

__all__ = ["EventStream", "SaveResponse"]

SaveResponse: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
"""Function that stores a response object."""


class EventStream(ResponseStream):
    """Delivers each event of a reply as JSON. The request does not come from an HTTP body, but from `body`."""

    can_write_now = False

    def __init__(
        self, request: web.Request, body: bytes, reply_id: str = "", echo: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(request)
        self.body = body
        self.echo = echo or {}
        """Fields of the client's request that `body` lacks or changes, and that the response repeats."""
        self.reply_id = reply_id
        """Id of the response without its prefix; empty if the gateway chooses one."""
        self.changes: tuple[Origins, ...] = ()
        """For each change of the client's request that has led to `body`, the origins of the items in it."""
        self.save: SaveResponse | None = None
        """Stores the response, before its final event is delivered; None if it is not stored."""

    async def deliver(self, event: str) -> None:
        """Deliver one event, which is a JSON object."""
        raise NotImplementedError

    async def write(self, data: bytes) -> None:
        for message in SseDecoder(len(data)).feed(data):
            if message.has_data and message.data != "[DONE]":
                self.response = self.response or web.StreamResponse()  # from now on errors are events
                await self.deliver(message.data)
        self.bytes_sent += len(data)

    def keep_alive(self, frame: bytes) -> None:
        """Do nothing: an event stream has its own way to show that it is alive."""

    async def drain(self) -> None:
        """Do nothing: `deliver` waits for the recipient."""

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        raise NotImplementedError

    async def end(self, data: bytes = b"") -> web.StreamResponse:
        await self.write(data)
        return self.response or web.StreamResponse()

    def abort(self) -> None:
        """Do nothing: other requests may use the connection."""
