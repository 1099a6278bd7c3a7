"""The loop of a reply with tools that the gateway runs: ask the model, run what it calls, ask it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

import msgspec
from aiohttp import web

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.relay.client_side import ClientSide, repeated_fields
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.server_tools.request_tools import (
    find_server_tools,
    given_texts,
    has_server_tools,
    may_be_server_tools,
    reports_missing_search,
    runs_server_tools,
    start_rounds,
)
from interlingua.gateway.server_tools.server_tool import Json, ServerTool
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.state import GatewayState
from interlingua.translation.undecoded_request import TOOLS

__all__ = ["MAX_ROUNDS", "ServerToolLoop", "find_tools_to_run"]

MAX_ROUNDS = 10
"""Number of times that the model is asked within one request of the client."""


async def find_tools_to_run(
    gateway: GatewayState, settings: Settings, client_request: ClientRequest, route: Route, exchange_id: str
) -> dict[str, ServerTool]:
    """Return the tools that the gateway has to run, by name. An upstream of the same API may run them itself."""
    undecoded, wire = client_request.body.undecoded, client_request.wire
    encoded = undecoded.encoded(TOOLS) if undecoded is not None else b""
    if undecoded is not None and not _may_have_server_tools(gateway, client_request, encoded):
        return {}
    is_same_wire = route.upstream.api == wire
    if is_same_wire and runs_server_tools(wire, route.profile):
        return {}
    if undecoded is None:
        tools = client_request.body.decode().get(TOOLS)
    elif not has_at_most_values(encoded, settings.limits.values):
        return {}  # the request is refused when it is translated
    else:
        share_tools, client_id = gateway.request_cache.share_tools, client_request.client_id
        try:
            tools = await gateway.work_threads.run(client_id, len(encoded), share_tools, client_id, encoded)
        except (ValueError, RecursionError):
            return {}  # the same
    is_offered = settings.web_search.engine != "off" or (reports_missing_search(wire) and not is_same_wire)
    web_access = _web_access(gateway, settings, client_request, exchange_id) if is_offered else None
    return find_server_tools(wire, tools, web_access)


def _may_have_server_tools(gateway: GatewayState, client_request: ClientRequest, encoded: bytes) -> bool:
    """Return whether it is worth decoding these tools. The gateway knows it of tools that it has seen before."""
    if not has_server_tools(client_request.wire):
        return False
    known = gateway.request_cache.find_tools(client_request.client_id, encoded)
    if known is None:
        return may_be_server_tools(encoded)
    return known.derive(may_be_server_tools, lambda: may_be_server_tools(encoded))


def _web_access(
    gateway: GatewayState, settings: Settings, client_request: ClientRequest, exchange_id: str
) -> WebAccess:
    return WebAccess(
        gateway.search_engine(settings.web_search),
        settings.web_search.results,
        settings.web_fetch,
        lambda problem: gateway.log.error("web search failed", id=exchange_id, problem=problem),
        lambda: given_texts(client_request.body.decode()),
    )


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
        self._is_stream = client_request.stream
        self._rounds = start_rounds(client_request.wire, body, tools, client_request.seal_key, max_seal_bytes)
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
        if error is not None or rounds.has_failed:
            client.exchange.outcome = "upstream-failed"
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
            for call in rounds.calls:
                await self._send(rounds.write_outcome(call, await call.tool.run(call.arguments)))
            if not rounds.calls or rounds.needs_client or number == MAX_ROUNDS:
                break
        is_paused = bool(rounds.calls) and not rounds.needs_client
        await self._send(rounds.finish(is_paused=is_paused))
        return None

    async def _ask(self) -> ErrorResponse | None:
        """Ask the model for one round. Only the first has the id of the reply: the ids of items are made from it."""
        body = encode_json(self._rounds.start_round())
        stream = _RoundStream(self._client.request, body, self._reply_id, self._echo, self._deliver)
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
