"""WebSocket of the Responses API: several responses on one connection, one after another.

The client sends a `response.create` event for each response, and receives the events of a stream, one in each message.
The connection stays open behind a response and behind an error. The last response can be continued on the connection
also if it is not stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_object, write_json
from interlingua.core.options import Options
from interlingua.errors import BadRequest, InterlinguaError
from interlingua.gateway.http.error_responses import error_body
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.http.field_origins import Origin, Origins
from interlingua.gateway.http.final_event import final_response
from interlingua.gateway.http.input_items import add_response, input_items, input_origins
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.response_store.history_reader import PREVIOUS_ID
from interlingua.gateway.state import GatewayState
from interlingua.translation.exchange import empty_reply

__all__ = ["WebSocketEndpoint"]

Json = dict[str, Any]

HEARTBEAT_SECONDS = 30.0
"""Interval of pings. A client that does not answer is disconnected."""
CLOSE_TIMEOUT_SECONDS = 1.0
"""Time in which clients may answer when the gateway stops."""
CREATE = "response.create"
_HTTP_FIELDS = ("type", "stream", "stream_options", "background", "generate")
"""Fields of an event that are no fields of the request, or that mean nothing on a WebSocket."""


class UpgradeRequired(InterlinguaError):
    """This gateway accepts no WebSockets. Clients send the request by POST then."""

    status = 426
    type = "invalid_request_error"


class NotAWebSocket(InterlinguaError):
    status = 405
    type = "invalid_request_error"


class ConnectionTooOld(BadRequest):
    def __init__(self, seconds: float) -> None:
        problem = f"the connection is open for {seconds / 60:.4g} minutes (limits.websocket)"
        code = "websocket_connection_limit_reached"
        super().__init__("", problem, "open a new one", code)


class WebSocketEndpoint:
    """Handler of WebSockets for one wire."""

    def __init__(self, gateway: GatewayState, wire: str) -> None:
        self._gateway = gateway
        self._wire = wire
        self._sockets: set[web.WebSocketResponse] = set()

    async def close(self, _: web.Application) -> None:
        """Close all connections, because the gateway is stopping."""
        code, reason = WSCloseCode.GOING_AWAY, b"the gateway is stopping"
        closing = [asyncio.ensure_future(socket.close(code=code, message=reason)) for socket in self._sockets]
        if closing:
            unanswered = (await asyncio.wait(closing, timeout=CLOSE_TIMEOUT_SECONDS))[1]
            for task in unanswered:
                task.cancel()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        config = self._gateway.config
        config.authenticator.check_origin(request.headers)
        config.authenticator.check_key(request.headers)
        if request.headers.get("upgrade", "").lower() != "websocket":
            error = NotAWebSocket("the request opens no WebSocket", "send requests by POST")
            body = error_body(self._wire, error, "")
            return web.Response(
                status=error.status, body=body, content_type="application/json", headers={"allow": "POST"}
            )
        if not config.settings.websocket:
            raise UpgradeRequired("this gateway accepts no WebSockets", "send the request by POST")
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, max_msg_size=config.settings.limits.body, compress=False
        )
        await socket.prepare(request)
        self._sockets.add(socket)
        try:
            await _Session(self._gateway, self._wire, request, socket).run()
        finally:
            self._sockets.discard(socket)
        return socket


class _LastResponse(msgspec.Struct, frozen=True):
    """The last response of a connection, which the next one may continue."""

    id: str
    items: list[Any]
    """The items that the next one continues: those of its input and output."""
    is_stored: bool


class _Session:
    """One connection. Its requests are handled in order: while one runs, only one further message is read.

    Reading it shows that the client closes the connection, and that ends the request.
    """

    def __init__(self, gateway: GatewayState, wire: str, request: web.Request, socket: web.WebSocketResponse) -> None:
        self._gateway = gateway
        self._wire = wire
        self._request = request
        self._socket = socket
        self._last: _LastResponse | None = None

    async def run(self) -> None:
        loop, max_seconds = asyncio.get_running_loop(), self._gateway.config.settings.limits.websocket
        ends_at = loop.time() + max_seconds
        receiving = asyncio.ensure_future(self._socket.receive())
        try:
            while True:
                await asyncio.wait({receiving}, timeout=max(0.0, ends_at - loop.time()))
                if not receiving.done() or loop.time() >= ends_at:
                    break
                message = receiving.result()
                if not _is_data(message):
                    return  # closed, or broken
                receiving = asyncio.ensure_future(self._socket.receive())
                await self._handle_message(message, receiving)
        finally:
            await _cancel(receiving)
        await self._send_error(ConnectionTooOld(max_seconds))
        await self._socket.close()

    async def _handle_message(self, message: WSMessage, receiving: asyncio.Future[Any]) -> None:
        """Handle a message, unless the next one shows that the client has left."""
        handling: asyncio.Future[Any] = asyncio.ensure_future(self._answer(message))
        try:
            await asyncio.wait({handling, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if handling.done() or _is_data(receiving.result()):
                await handling
        finally:
            await _cancel(handling)

    async def _answer(self, message: WSMessage) -> None:
        try:
            if message.type is WSMsgType.BINARY:
                raise BadRequest("", "the message is binary", "send JSON as text")
            await self._handle_event(message.data)
        except InterlinguaError as error:
            await self._send_error(error)

    async def _handle_event(self, text: str) -> None:
        event = read_full_object(text)
        if event is None:
            raise BadRequest("", "the message is not a JSON object", f"send an event of the type {CREATE}")
        if event.get("type") != CREATE:
            raise BadRequest("type", f"expected {CREATE}, got {event.get('type')!r:.60}")
        body = {key: value for key, value in event.items() if key not in _HTTP_FIELDS}
        last = self._last if body.get(PREVIOUS_ID) and self._last and self._last.id == body[PREVIOUS_ID] else None
        self._last = None  # until this response is complete: a failed one cannot be continued, nor what it continued
        items = [*last.items, *input_items(body)] if last is not None else input_items(body)
        echo: Json = {}
        origins = Origins()
        if last is not None:
            _check_call_outputs(items)
            echo = {PREVIOUS_ID: last.id}
            if not last.is_stored:
                origins.add(Origin(PREVIOUS_ID, is_same=False), len(last.items))
                origins.extend(input_origins(body))
                body = {key: value for key, value in body.items() if key != PREVIOUS_ID} | {"input": items}
        if event.get("generate") is False:
            await self._acknowledge(body, items, echo)
        else:
            await self._relay(body, items, echo, origins)

    async def _relay(self, body: Json, items: list[Any], echo: Json, origins: Origins) -> None:
        stream = _WebSocketStream(self._request, encode_json({**body, "stream": True}), self._socket, echo)
        stream.changes = (origins,)
        await Relay(self._gateway, self._request, self._wire, stream).run()
        if stream.final_response is not None:
            output = as_list(stream.final_response.get("output"))
            id = str(stream.final_response.get("id"))
            conversation = list(items)
            add_response(conversation, output)
            self._last = _LastResponse(id, conversation, is_stored=stream.save is not None)

    async def _acknowledge(self, body: Json, items: list[Any], echo: Json) -> None:
        """Answer a request that only prepares the next one (`generate: false`): the model is not asked."""
        reply_id = uuid4().hex
        model, now = str(body.get("model", "")), int(time.time())
        options = Options(reply_id=reply_id, served_as=model, created=now, clock=time.time, echo=echo)
        completed = empty_reply(self._wire, body, options)
        created = {**completed, "status": "in_progress", "completed_at": None, "usage": None}
        for number, (kind, response) in enumerate((("created", created), ("completed", completed))):
            event = {"type": f"response.{kind}", "response": response, "sequence_number": number}
            await self._socket.send_str(write_json(event))
        self._last = _LastResponse(completed["id"], items, is_stored=False)

    async def _send_error(self, error: InterlinguaError) -> None:
        await self._socket.send_str(_error_event(error.status, error_body(self._wire, error, "")))


class _WebSocketStream(EventStream):
    """Sends each event of a response as one message. A final event is sent when the response is stored."""

    def __init__(self, request: web.Request, body: bytes, socket: web.WebSocketResponse, echo: Json) -> None:
        super().__init__(request, body, echo=echo)
        self._socket = socket
        self.final_response: Json | None = None

    async def deliver(self, event: str) -> None:
        if (response := final_response(event)) is not None:
            self.final_response = response
            if self.save is not None:
                await self.save(response)
        await self._socket.send_str(event)

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:  # noqa: ARG002
        await self._socket.send_str(_error_event(status, body))
        return self._socket


def _is_data(message: WSMessage) -> bool:
    """Return whether this is a message of the client, and not the end of the connection."""
    return message.type in (WSMsgType.TEXT, WSMsgType.BINARY)


async def _cancel(future: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end. An exception of it was raised before, or no longer matters."""
    future.cancel()
    await asyncio.wait({future})
    if not future.cancelled():
        future.exception()  # otherwise asyncio reports it as never retrieved


def _error_event(status: int, body: bytes) -> str:
    """Return the event for an error response with this body. Its code is always a text."""
    error = as_dict((read_full_object(body) or {}).get("error"))
    error["code"] = error.get("code") or error.get("type") or "server_error"
    return write_json({"type": "error", "status": status, "error": error})


def _check_call_outputs(items: list[Any]) -> None:
    """Raise BadRequest for the output of a call that is not in the conversation."""
    call_ids: set[str] = set()
    for item in map(as_dict, items):
        item_type, call_id = str(item.get("type")), str(item.get("call_id"))
        if item_type in ("function_call_output", "custom_tool_call_output") and call_id not in call_ids:
            raise BadRequest("input", f"no call of this conversation has the id {call_id!r:.100}")
        if item_type.endswith("_call"):
            call_ids.add(call_id)
