"""The loop of a reply with tools that the gateway runs: ask the model, run what it calls, ask it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from interlingua.common.jsontext.codec import encode_json, read_json
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.server_tools.server_tool import Rounds

__all__ = ["ErrorResponse", "RoundStream", "run_rounds"]

MAX_ROUNDS = 10
"""Number of times that the model is asked within one request of the client."""


class ErrorResponse(msgspec.Struct, frozen=True):
    """Response of a round that failed before its reply began."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class RoundStream(EventStream):
    """Gives the events of one round to the rounds of the reply, and sends what they write to the client.

    Args:
        request: The client's HTTP request.
        rounds: The rounds of the reply.
        send: Sends frames to the client.
        reply_id: Id of the reply, for the first round only: the ids of items are made from it, and must not repeat.
        echo: Fields of the client's request that the reply repeats: a round has other tools.
    """

    def __init__(
        self,
        request: web.Request,
        rounds: Rounds,
        send: Callable[[bytes], Awaitable[None]],
        reply_id: str,
        echo: Mapping[str, Any],
    ) -> None:
        super().__init__(request, encode_json(rounds.start_round()), reply_id, echo)
        self.error_response: ErrorResponse | None = None
        self._rounds = rounds
        self._send = send

    async def deliver(self, event: str) -> None:
        frames = self._rounds.read_event(read_json(event, dict[str, Any]) or {})
        if frames:
            await self._send(frames)

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        self.error_response = ErrorResponse(status, body, headers)
        return web.StreamResponse()


async def run_rounds(
    rounds: Rounds,
    ask: Callable[[], Awaitable[RoundStream]],
    send: Callable[[bytes], Awaitable[None]],
) -> ErrorResponse | None:
    """Run all rounds of a reply.

    Args:
        rounds: The rounds of the reply.
        ask: Asks the model for one round, and returns its stream at its end.
        send: Sends frames to the client.

    Returns: The error response of a round that failed before its reply began. None: all of the reply is sent.

    Raises:
        ConnectionError: The client has closed the connection.
    """
    for number in range(1, MAX_ROUNDS + 1):
        stream = await ask()
        if stream.error_response is not None:
            return stream.error_response
        if not rounds.is_complete:  # the relay of this round has ended without an error only because of the client
            raise ConnectionResetError("the client has closed the connection")
        if rounds.has_failed:
            return None
        for call in rounds.calls:
            await send(rounds.write_outcome(call, await call.tool.run(call.arguments)))
        if not rounds.calls or rounds.needs_client or number == MAX_ROUNDS:
            break
    is_paused = bool(rounds.calls) and not rounds.needs_client
    await send(rounds.finish(is_paused=is_paused))
    return None
