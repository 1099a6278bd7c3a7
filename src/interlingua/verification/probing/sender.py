"""Interface for sending requests to one upstream. Tests and scripted engines implement it without a socket."""

from __future__ import annotations

from typing import Any, Protocol

from interlingua.verification.recording import Recording

__all__ = ["Json", "Sender"]

Json = dict[str, Any]


class Sender(Protocol):
    """Sends requests to one upstream. It never raises for an upstream that fails: the recording states the error."""

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        """Send a request for a reply, to the endpoint of `wire`; by default that of the upstream."""
        ...

    async def list_models(self) -> Recording:
        """Request the model list."""
        ...

    async def call_server(self, path: str, body: Json | None = None) -> Json | None:
        """Send a request to a path outside the API, such as /tokenize. GET if there is no body.

        Returns:
            The JSON of the answer; None if there is none.
        """
        ...
