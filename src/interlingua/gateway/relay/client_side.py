"""The client's side of a relay, as far as a reply needs it that the gateway composes from other requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

from aiohttp import web

from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.http.response_stream import EarlyKeepAlive
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.translation.request_translation import echo_request
from interlingua.wires import get_wire

__all__ = ["ClientSide", "InnerRelay", "repeated_fields"]

P = ParamSpec("P")
T = TypeVar("T")


class InnerRelay(Protocol):
    """Relay of a request that the gateway makes in place of the client's own."""

    async def run(self) -> web.StreamResponse:
        """Handle the request."""

    def cancel(self) -> None:
        """End the reply without an error, because no client waits for it any more."""


class ClientSide(Protocol):
    """Sends a composed reply to the client, and requests the replies that it is composed of."""

    @property
    def request(self) -> web.Request: ...

    @property
    def exchange(self) -> ExchangeRecord: ...

    @property
    def has_begun(self) -> bool:
        """True if a part of the response is sent: it can no longer have another status."""

    async def work_on(
        self, client_request: ClientRequest, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of the function, which works on the whole request: in a thread if that is long."""

    def relay_to(self, stream: EventStream) -> InnerRelay:
        """Return a relay for the request of this stream, which is a part of the client's own: it is not counted, and
        what it uses is added to the exchange."""

    def hand_over_to(self, stream: EventStream) -> InnerRelay:
        """Return a relay for the request of this stream, which takes the place of the client's own: it is counted and
        logged instead."""

    def early_keepalive(self) -> EarlyKeepAlive:
        """Return the context manager that sends keep-alive comments until a stream begins."""

    async def send_frames(self, frames: bytes) -> None:
        """Send frames of a stream, and the headers before the first of them."""

    async def end_stream(self) -> web.StreamResponse:
        """End a stream, which may be empty."""

    async def send_reply(self, reply: dict[str, Any]) -> web.StreamResponse:
        """Send a whole reply, and store it before if it is to be stored."""

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
        """Send a complete response, such as an error."""


def repeated_fields(client_request: ClientRequest) -> dict[str, Any]:
    """Return what the reply repeats of the client's request, for requests of the gateway in its place.

    They have another tool choice than the client's, which is `auto` if it sent none.
    """
    sent = echo_request(client_request.body.decode(), get_wire(client_request.wire))
    return {"tool_choice": "auto", **sent, **client_request.echo} if sent or client_request.echo else {}
