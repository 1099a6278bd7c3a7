"""WebSocket of the Responses API: several responses on one connection, one after another.

The client sends a `response.create` event for each response, and receives the events of a stream, one in each message.
The connection stays open behind a response and behind an error. The last response can be continued on the connection
also if it is not stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

import msgspec
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_object, write_json
from interlingua.core.options import Options
from interlingua.errors import BadRequest, InterlinguaError
from interlingua.gateway.http.error_responses import TooLarge, error_body
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.http.field_origins import Origin, Origins
from interlingua.gateway.http.final_event import final_response
from interlingua.gateway.http.input_items import COMPACTION, add_response, input_items, input_origins
from interlingua.gateway.http.memory_budget import decoded_size
from interlingua.gateway.http.request_body import decode_body
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.response_store.history_reader import CONVERSATION, PREVIOUS_ID
from interlingua.gateway.response_store.stored_exchange import is_reference
from interlingua.gateway.state import GatewayState
from interlingua.translation.exchange import empty_reply

__all__ = ["WebSocketEndpoint"]

Json = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")

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
        client_id = config.authenticator.check_key(request.headers)
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
            await _Session(self._gateway, self._wire, request, socket, client_id).run()
        finally:
            self._sockets.discard(socket)
        return socket


class _Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation up to the last response of a connection, which the next one may continue."""

    id: str
    """Id of that response."""
    stored_id: str
    """Id of the stored response that `items` continue: that response if it is stored; empty if there is none."""
    items: list[Any]
    """Items that only this connection has."""
    memory: int
    """Memory of these items in bytes, as an estimate."""
    call_ids: frozenset[str] | None
    """Ids of the calls in the conversation; None if not all of them are known."""

    def add(self, id: str, output: list[Any], *, is_stored: bool) -> _Conversation:
        """Return the conversation with a response that continues it."""
        call_ids = frozenset[str]() if _has_summary(output) else self.call_ids
        if call_ids is not None:
            call_ids |= _call_ids(output)
        if is_stored:
            return _Conversation(id=id, stored_id=id, items=[], memory=0, call_ids=call_ids)
        items = list(self.items)
        add_response(items, output)
        stored_id = "" if _has_summary(output) else self.stored_id
        memory = _memory_of(output) + (0 if _has_summary(output) else self.memory)
        return _Conversation(id=id, stored_id=stored_id, items=items, memory=memory, call_ids=call_ids)


class _Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the client, ready to be handled."""

    body: Json
    encoded: bytes
    """The body as JSON."""
    conversation: _Conversation
    """The conversation that its response continues, with its own input."""
    echo: Json
    """Fields of the client's request that the body lacks or changes."""
    origins: Origins
    """Origins of the items in its input, in the client's request."""


class _Session:
    """One connection. Its requests are handled in order: while one runs, only one further message is read.

    Reading it shows that the client closes the connection, and that ends the request.
    """

    def __init__(
        self, gateway: GatewayState, wire: str, request: web.Request, socket: web.WebSocketResponse, client_id: str
    ) -> None:
        self._gateway = gateway
        self._wire = wire
        self._request = request
        self._socket = socket
        self._client_id = client_id
        self._memory = gateway.memory_budget.open_share()
        self._last_conversation: _Conversation | None = None

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
            self._memory.close()
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
        kept = self._last_conversation.memory if self._last_conversation is not None else 0
        try:
            event = await self._read_event(text)
            turn = await self._run(len(text) + kept, self._prepare, event)
            if event.get("generate") is False:
                await self._acknowledge(turn)
            else:
                await self._relay(turn)
        finally:
            self._keep_last()

    async def _read_event(self, text: str) -> Json:
        """Return the event of the client, when its memory is counted. Raises BadRequest, TooLarge or OutOfMemory."""
        data = text.encode()
        self._memory.grow(await self._run(len(data), decoded_size, data))
        event = await self._run(len(data), decode_body, data, self._gateway.config.settings.limits)
        if event.get("type") != CREATE:
            raise BadRequest("type", f"expected {CREATE}, got {event.get('type')!r:.60}")
        return event

    def _keep_last(self) -> None:
        """Count the memory of the conversation that is kept. It is not kept if there is no memory for it."""
        try:
            self._memory.resize(self._last_conversation.memory if self._last_conversation is not None else 0)
        except InterlinguaError:
            self._last_conversation = None
            self._memory.resize(0)

    def _prepare(self, event: Json) -> _Turn:
        """Return the request with what it continues on this connection. Until its response is complete, nothing can be
        continued: neither a failed response, nor what it has continued.

        Raises:
            BadRequest: It has the output of a call that is not in the conversation.
            TooLarge: It is larger than a request may be.
        """
        body = {key: value for key, value in event.items() if key not in _HTTP_FIELDS}
        last, self._last_conversation = self._last_conversation, None
        previous, own_items, origins = body.get(PREVIOUS_ID), input_items(body), Origins()
        echo: Json = {}
        if last is None or last.id != previous:
            is_whole = not previous and not body.get(CONVERSATION)
            last = _Conversation(
                id="",
                stored_id=previous if isinstance(previous, str) else "",
                items=[],
                memory=0,
                call_ids=frozenset() if is_whole else None,
            )
        else:
            _check_call_outputs(own_items, last.call_ids)
            echo = {PREVIOUS_ID: previous}
        if last.items:
            origins.add(Origin(PREVIOUS_ID, is_same=False), len(last.items))
            origins.extend(input_origins(body))
            body = {**body, "input": [*last.items, *own_items], PREVIOUS_ID: last.stored_id or None}
        encoded, limit = encode_json({**body, "stream": True}), self._gateway.config.settings.limits.body
        if len(encoded) > limit:
            raise TooLarge(f"the request with what it continues is larger than {limit:,} bytes (limits.body)")
        call_ids = None if any(map(is_reference, own_items)) else last.call_ids
        conversation = _Conversation(
            id="",
            stored_id=last.stored_id,
            items=[*last.items, *own_items],
            memory=last.memory + _memory_of(own_items),
            call_ids=None if call_ids is None else call_ids | _call_ids(own_items),
        )
        return _Turn(body=body, encoded=encoded, conversation=conversation, echo=echo, origins=origins)

    async def _relay(self, turn: _Turn) -> None:
        stream = _WebSocketStream(self._request, turn.encoded, self._socket, turn.echo)
        stream.changes = (turn.origins,)
        await Relay(self._gateway, self._request, self._wire, stream).run()
        response = stream.final_response
        if response is not None and (stream.is_stored or not turn.body.get(CONVERSATION)):
            output = as_list(response.get("output"))
            add = turn.conversation.add
            self._last_conversation = await self._run(
                len(turn.encoded), add, str(response.get("id")), output, is_stored=stream.is_stored
            )

    async def _acknowledge(self, turn: _Turn) -> None:
        """Answer a request that only prepares the next one (`generate: false`): the model is not asked."""
        reply_id = uuid4().hex
        model, now = str(turn.body.get("model", "")), int(time.time())
        options = Options(reply_id=reply_id, served_as=model, created=now, clock=time.time, echo=turn.echo)
        completed = empty_reply(self._wire, turn.body, options)
        created = {**completed, "status": "in_progress", "completed_at": None, "usage": None}
        for number, (kind, response) in enumerate((("created", created), ("completed", completed))):
            event = {"type": f"response.{kind}", "response": response, "sequence_number": number}
            await self._socket.send_str(write_json(event))
        self._last_conversation = turn.conversation.add(completed["id"], [], is_stored=False)

    async def _run(self, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._gateway.work_threads.run(self._client_id, size, function, *args, **kwargs)

    async def _send_error(self, error: InterlinguaError) -> None:
        await self._socket.send_str(_error_event(error.status, error_body(self._wire, error, "")))


class _WebSocketStream(EventStream):
    """Sends each event of a response as one message. A final event is sent when the response is stored."""

    def __init__(self, request: web.Request, body: bytes, socket: web.WebSocketResponse, echo: Json) -> None:
        super().__init__(request, body, echo=echo)
        self._socket = socket
        self.final_response: Json | None = None
        self.is_stored = False

    async def deliver(self, event: str) -> None:
        if (response := final_response(event)) is not None:
            self.final_response = response
            self.is_stored = self.save is not None and await self.save(response)
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


def _check_call_outputs(items: list[Any], call_ids: frozenset[str] | None) -> None:
    """Raise BadRequest for the output of a call that is not in the conversation, if its calls are known."""
    if call_ids is None or any(map(is_reference, items)):
        return
    known = set(call_ids)
    for item in map(as_dict, items):
        item_type, call_id = str(item.get("type")), str(item.get("call_id"))
        if item_type in ("function_call_output", "custom_tool_call_output") and call_id not in known:
            raise BadRequest("input", f"no call of this conversation has the id {call_id!r:.100}")
        if item_type.endswith("_call"):
            known.add(call_id)


def _call_ids(items: list[Any]) -> frozenset[str]:
    calls = (item for item in map(as_dict, items) if str(item.get("type")).endswith("_call"))
    return frozenset(str(call.get("call_id")) for call in calls)


def _has_summary(output: list[Any]) -> bool:
    return any(as_dict(item).get("type") == COMPACTION for item in output)


def _memory_of(items: list[Any]) -> int:
    return decoded_size(encode_json(items))
