"""The loop of a reply with tools that the gateway runs: ask the model, run what it calls, ask it again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

import msgspec
from aiohttp import web

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.relay.client_side import ClientSide, repeated_fields
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.server_tools.request_tools import start_rounds
from interlingua.gateway.server_tools.server_tool import MAX_USES_EXCEEDED, Json, Outcome, ServerCall, ServerTool

__all__ = ["MAX_ROUNDS", "ServerToolLoop"]

MAX_ROUNDS = 10
"""Number of times that the model is asked within one request of the client."""
MAX_CALLS_PER_ROUND = 32
MAX_CONCURRENT_CALLS = 4


class ErrorResponse(msgspec.Struct, frozen=True):
    """Response of a round that failed before its reply began."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class ServerToolLoop:
    """One reply to the client, for which the model is asked again after each call of a tool that the gateway runs.

    Args:
        client: The client.
        client_request: Its request.
        body: The body of its request.
        tools: The tools that the gateway runs, by name.
        max_seal_bytes: Maximum size of what is sealed in the request, unpacked.

    Raises:
        TooLarge: What is sealed in the request exceeds the maximum size.
    """

    def __init__(
        self,
        client: ClientSide,
        client_request: ClientRequest,
        body: Json,
        tools: Mapping[str, ServerTool],
        max_seal_bytes: int,
    ) -> None:
        self._client = client
        self._client_request = client_request
        self._is_stream = client_request.stream
        self._rounds = start_rounds(client_request.wire, body, tools, client_request.seal_key, max_seal_bytes)
        self._call_count = 0  # in earlier rounds
        self._reply_id = client_request.reply_id
        self._echo = repeated_fields(client_request)
        """The reply repeats the client's request, because a round has other tools."""

    async def run(self) -> web.StreamResponse:
        """Send the reply, or the error of a round.

        Raises:
            ConnectionError: The client has closed the connection.
        """
        client, rounds = self._client, self._rounds
        async with client.early_keepalive() if self._is_stream else nullcontext():
            error = await self._run_rounds()
        if error is not None and not client.has_begun:
            return await client.respond(error.status, error.body, error.headers)
        if error is not None:
            await self._send(rounds.fail(as_dict((read_full_object(error.body) or {}).get("error"))))
        return await (client.end_stream() if self._is_stream else client.send_reply(rounds.body()))

    async def _run_rounds(self) -> ErrorResponse | None:
        """Run all rounds. Returns the error response of a round that failed before its reply began."""
        rounds = self._rounds
        for number in range(1, MAX_ROUNDS + 1):
            if (error := await self._ask()) is not None:
                return error
            if not rounds.is_complete:  # the relay of this round has ended without an error only because of the client
                raise ConnectionResetError("the client has closed the connection")
            if rounds.has_failed:
                return None
            await self._run_calls(rounds.calls)
            if not rounds.calls or rounds.needs_client or number == MAX_ROUNDS:
                break
        is_paused = bool(rounds.calls) and not rounds.needs_client
        await self._send(rounds.finish(is_paused=is_paused))
        return None

    async def _run_calls(self, calls: list[ServerCall]) -> None:
        """Run the calls of a round, some at the same time, and send their outcomes in order."""
        slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
        running = [asyncio.ensure_future(self._run_call(call, n, slots)) for n, call in enumerate(calls)]
        try:
            for call, outcome in zip(calls, running, strict=True):
                await self._send(self._rounds.write_outcome(call, await outcome))
        finally:
            for task in running:
                task.cancel()
            self._call_count += len(calls)

    async def _run_call(self, call: ServerCall, number: int, slots: asyncio.Semaphore) -> Outcome:
        """Return the outcome of a call, or an error if the model has called too many tools."""
        max_calls = self._rounds.max_calls
        if number >= MAX_CALLS_PER_ROUND or (max_calls and self._call_count + number >= max_calls):
            return Outcome(error=MAX_USES_EXCEEDED)
        async with slots:
            return await call.tool.run(call.arguments)

    async def _ask(self) -> ErrorResponse | None:
        """Ask the model for one round. Only the first has the id of the reply: the ids of items are made from it."""
        body = await self._client.work_on(self._client_request, lambda: encode_json(self._rounds.start_round()))
        stream = _RoundStream(self._client.request, body, self._reply_id, self._echo, self._deliver)
        stream.changes = (self._rounds.origins,)
        self._reply_id = ""
        await self._client.relay_to(stream).run()
        return stream.error_response

    async def _deliver(self, event: str) -> None:
        await self._send(self._rounds.read_event(read_full_object(event) or {}))

    async def _send(self, frames: bytes) -> None:
        if frames and self._is_stream:
            await self._client.send_frames(frames)


class _RoundStream(EventStream):
    """Delivers the events of one round to the loop."""

    def __init__(
        self,
        request: web.Request,
        body: bytes,
        reply_id: str,
        echo: Mapping[str, Any],
        deliver: Callable[[str], Awaitable[None]],
    ) -> None:
        super().__init__(request, body, reply_id, echo)
        self.error_response: ErrorResponse | None = None
        self._deliver = deliver

    async def deliver(self, event: str) -> None:
        await self._deliver(event)

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        self.error_response = ErrorResponse(status, body, headers)
        return web.StreamResponse()
