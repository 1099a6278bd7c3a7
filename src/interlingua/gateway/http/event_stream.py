"""Stream whose events go somewhere else than to an HTTP response: to a WebSocket, or to the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from aiohttp import web

from interlingua.gateway.http.field_origins import Origins
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.wires.streaming.sse import SseDecoder

__all__ = ["EventStream", "SaveResponse"]

SaveResponse: TypeAlias = Callable[[dict[str, Any]], Awaitable[bool]]
"""Function that stores a response object. Returns False if it is not stored."""


class EventStream(ResponseStream):
    """Delivers each event of a reply as JSON.

    Args:
        request: The HTTP request that has opened the connection.
        body: The request to the gateway, in place of the body of the HTTP request.
        reply_id: Id of the response without its prefix; empty if the gateway chooses one.
        echo: Fields of the client's request that `body` lacks or changes, and that the response repeats.
    """

    can_write_now = False

    def __init__(
        self, request: web.Request, body: bytes, reply_id: str = "", echo: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(request)
        self._body = body
        self.echo = echo or {}
        self.reply_id = reply_id
        self.changes: tuple[Origins, ...] = ()
        """For each change of the client's request that has led to the body, the origins of the items in it."""
        self.save: SaveResponse | None = None
        """Stores the response, before its final event is delivered; None if it is not stored."""

    def take_body(self) -> bytes:
        """Return the request. Its memory is released while the reply lasts."""
        body, self._body = self._body, b""
        return body

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
