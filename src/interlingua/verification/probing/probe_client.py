"""Probe client: requests of a verification, with the connection settings of a route of the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.errors import InterlinguaError
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.upstream.connector import make_connector
from interlingua.gateway.upstream.http_client import (
    broken_reply,
    endpoint_url,
    headers_for,
    models_url,
    send_request,
)
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.verification.probing.sender import Json
from interlingua.verification.recording import Arrival, Recording

__all__ = ["ProbeClient", "open_session"]

MAX_SERVER_SECONDS = 3.0
"""Longest time for a GET request to a path outside the API: servers that have it answer at once."""
REDIRECT_STATUSES = range(300, 400)
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Larger replies are cut here. The token limit of the requests keeps them far below."""


def open_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=make_connector(), cookie_jar=aiohttp.DummyCookieJar())


class ProbeClient:
    """Sends requests to the upstream of one route. It is a `Sender`.

    Args:
        session: The HTTP session.
        route: The upstream, its key and its connection settings.
        timeout_seconds: Longest time for one request, including its reply.
    """

    def __init__(self, session: aiohttp.ClientSession, route: Route, timeout_seconds: float) -> None:
        self._session = session
        self._route = route
        self._timeout_seconds = timeout_seconds
        self.requests = 0
        """Number of requests for a reply so far."""

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        route = self._with_wire(wire)
        self.requests += 1
        headers = headers_for(route, "", {}, "", stream=stream)
        return await self._exchange(route, endpoint_url(route.upstream, "", ""), encode_json(body), headers, stream)

    async def list_models(self) -> Recording:
        headers = headers_for(self._route, "", {}, "", stream=False)
        return await self._exchange(self._route, models_url(self._route.upstream), None, headers, stream=False)

    async def call_server(self, path: str, body: Json | None = None) -> Json | None:
        base = models_url(self._route.upstream)
        root = str(base).removesuffix("/models").removesuffix("/v1")
        url = URL(f"{root}{path}", encoded=True)
        headers = headers_for(self._route, "", {}, "", stream=False)
        data = None if body is None else encode_json(body)
        seconds = min(self._timeout_seconds, MAX_SERVER_SECONDS if data is None else self._timeout_seconds)
        recording = await self._exchange(self._route, url, data, headers, stream=False, seconds=seconds)
        return read_full_object(recording.body.decode("utf-8", "replace")) if recording.is_success else None

    def _with_wire(self, wire: str | None) -> Route:
        if wire is None or wire == self._route.upstream.api:
            return self._route
        upstream = msgspec.structs.replace(self._route.upstream, api=wire)
        return msgspec.structs.replace(self._route, upstream=upstream)

    async def _exchange(
        self,
        route: Route,
        url: URL,
        data: bytes | None,
        headers: Mapping[str, str],
        stream: bool,
        seconds: float | None = None,
    ) -> Recording:
        limit = seconds or self._timeout_seconds
        start = time.monotonic()
        response = _Response(start)
        fields: dict[str, Any] = {}
        try:
            async with asyncio.timeout(limit):
                async with await send_request(self._session, route, url, data, headers) as reply:
                    fields = {"status": reply.status, "content_type": reply.headers.get("content-type", "")}
                    await response.read(reply)
            if response.is_cut:
                fields["error"] = f"the reply has more than {MAX_BODY_BYTES // 2**20} MiB: the rest was not read"
        except TimeoutError:
            fields |= {"error": f"no complete reply within {limit:g} s", "has_timed_out": True}
        except UpstreamFailed as error:
            fields |= {"error": _describe(error), "retry_after": error.retry_after}
            fields["is_unreachable"] = error.unreachable
            fields.setdefault("status", error.upstream_status)
        except InterlinguaError as error:
            fields["error"] = str(error)
        return Recording(
            wire=route.upstream.api,
            stream=stream,
            body=_mask_key(b"".join(response.pieces), route.upstream.key),
            arrivals=tuple(response.arrivals),
            seconds=time.monotonic() - start,
            **fields,
        )


class _Response:
    """Body of a response as it arrives."""

    def __init__(self, start: float) -> None:
        self._start = start
        self.pieces: list[bytes] = []
        self.arrivals: list[Arrival] = []
        self.is_cut = False
        """True if the body is longer than what was read."""

    async def read(self, response: aiohttp.ClientResponse) -> None:
        size = 0
        try:
            while size < MAX_BODY_BYTES and (piece := await response.content.readany()):
                self.pieces.append(piece)
                self.arrivals.append(Arrival(len(piece), time.monotonic() - self._start))
                size += len(piece)
        except (aiohttp.ClientError, OSError) as error:
            raise broken_reply(error) from error
        self.is_cut = size >= MAX_BODY_BYTES and not response.content.at_eof()


def _describe(error: UpstreamFailed) -> str:
    """Return the message of an error. That of a redirect names its target, without query, which may be secret."""
    target = error.headers.get("location", "") if error.upstream_status in REDIRECT_STATUSES else ""
    if not target:
        return str(error)
    return f"the server redirects to {target.partition('?')[0]}, which is not followed: use the final address"


def _mask_key(body: bytes, key: str) -> bytes:
    """Hide the API key, if the reply repeats it. The length stays the same, so that the arrivals still fit."""
    return body.replace(key.encode(), b"*" * len(key.encode())) if len(key) >= 6 else body
