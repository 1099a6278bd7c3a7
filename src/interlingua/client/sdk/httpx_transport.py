"""Translating transports for an SDK's HTTP client. SDKs use httpx or its successor httpx2."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from interlingua.client.sdk.session import SdkResponse, SdkSession, error_response
from interlingua.client.sdk.upstream_config import UpstreamConfig, count_wire_for_path, wire_for_path
from interlingua.errors import UsageError
from interlingua.events import Failure

__all__ = ["make_async_transport_class", "make_self_closing_class", "make_transport_class"]

DISCONNECTED_MESSAGE = "the upstream closed the connection in the middle of its reply"
NOT_FOUND_STATUS = 404


@cache
def make_transport_class(httpx: ModuleType) -> Any:
    """Return the transport class for this httpx module.

    Its constructor takes the upstream configuration and the HTTP client that sends the requests.
    """

    class Stream(httpx.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, session: SdkSession, response: Any) -> None:
            self._session, self._response = session, response

        def __iter__(self) -> Iterator[bytes]:
            disconnect_reason = ""
            try:
                for data in (
                    self._response.iter_bytes()
                ):  # not iter_raw: some upstreams compress despite `accept-encoding: identity`
                    if output := self._session.feed(data):
                        yield output
            except httpx.RequestError as error:
                disconnect_reason = f"{DISCONNECTED_MESSAGE}: {error}"
            yield self._session.close(disconnect_reason)

        def close(self) -> None:
            self._session.finish()
            self._response.close()

    class Transport(httpx.BaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: UpstreamConfig, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner

        def handle_request(self, request: Any) -> Any:
            upstream = self._upstream
            _require_same_origin(httpx, upstream, request)
            wire = _request_wire(request)
            if wire is None:
                return _unsupported_response(httpx, upstream, request) or self._inner.send(
                    _forwarded_request(httpx, upstream, request), stream=True
                )
            session = SdkSession(upstream, wire, request.read(), _query_string(request), int(time.time()))
            response = self._inner.send(_upstream_request(httpx, session, request), stream=True)
            if _opens_stream(session, response):
                return _stream_response(httpx, session, response, Stream(session, response))
            return _body_response(httpx, session, response, response.read())

        def close(self) -> None:
            self._inner.close()

    return Transport


@cache
def make_async_transport_class(httpx: ModuleType) -> Any:
    """Return the async transport class for this httpx module. See `make_transport_class`."""

    class AsyncStream(httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, session: SdkSession, response: Any) -> None:
            self._session, self._response = session, response

        async def __aiter__(self) -> AsyncIterator[bytes]:
            disconnect_reason = ""
            try:
                async for data in self._response.aiter_bytes():
                    if output := self._session.feed(data):
                        yield output
            except httpx.RequestError as error:
                disconnect_reason = f"{DISCONNECTED_MESSAGE}: {error}"
            yield self._session.close(disconnect_reason)

        async def aclose(self) -> None:
            self._session.finish()
            await self._response.aclose()

    class AsyncTransport(httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: UpstreamConfig, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner

        async def handle_async_request(self, request: Any) -> Any:
            upstream = self._upstream
            _require_same_origin(httpx, upstream, request)
            wire = _request_wire(request)
            if wire is None:
                return _unsupported_response(httpx, upstream, request) or await self._inner.send(
                    _forwarded_request(httpx, upstream, request), stream=True
                )
            session = SdkSession(upstream, wire, await request.aread(), _query_string(request), int(time.time()))
            response = await self._inner.send(_upstream_request(httpx, session, request), stream=True)
            if _opens_stream(session, response):
                return _stream_response(httpx, session, response, AsyncStream(session, response))
            return _body_response(httpx, session, response, await response.aread())

        async def aclose(self) -> None:
            await self._inner.aclose()

    return AsyncTransport


@cache
def make_self_closing_class(client_type: type) -> type:
    """Return a subclass of an SDK's HTTP client that closes its connections when it is garbage-collected.

    The HTTP clients that the SDKs create internally behave the same.
    """

    class SelfClosingClient(client_type):  # type: ignore[misc]
        def __del__(self) -> None:
            with suppress(Exception):  # __init__ may have failed, or the event loop may be gone
                if self.is_closed:
                    return
                if hasattr(self, "aclose"):
                    asyncio.get_running_loop().create_task(self.aclose())
                else:
                    self.close()

    return SelfClosingClient


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _require_same_origin(httpx: ModuleType, upstream: UpstreamConfig, request: Any) -> None:
    """Raise UsageError if the SDK's base_url was changed later: its key is not meant for this upstream."""
    configured, requested = httpx.URL(upstream.url), request.url
    if (configured.scheme, configured.host, configured.port) != (requested.scheme, requested.host, requested.port):
        raise UsageError(
            f"this client is for {configured.scheme}://{configured.netloc.decode()} and cannot send requests to {requested.scheme}://{requested.netloc.decode()}",
            "for another base_url create another client: interlingua.client.openai(base_url=…)",
        )


def _request_wire(request: Any) -> str | None:
    return wire_for_path(request.url.path) if request.method == "POST" else None


def _query_string(request: Any) -> str:
    return str(request.url.query.decode())


def _upstream_request(httpx: ModuleType, session: SdkSession, request: Any) -> Any:
    headers = session.headers(request.headers)
    return httpx.Request("POST", session.url, headers=headers, content=session.body, extensions=request.extensions)


def _forwarded_request(httpx: ModuleType, upstream: UpstreamConfig, request: Any) -> Any:
    """Return a request for an endpoint that is not translated: only address and authentication change."""
    url = upstream.other_url(request.url.path) + upstream.query_string(_query_string(request))
    headers = upstream.with_auth(request.headers)
    return httpx.Request(request.method, url, headers=headers, stream=request.stream, extensions=request.extensions)


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _unsupported_response(httpx: ModuleType, upstream: UpstreamConfig, request: Any) -> Any | None:
    """Return the error response for a request that this upstream does not support, or None if it does."""
    reason, wire = upstream.unsupported_reason(request.url.path), count_wire_for_path(request.url.path)
    if not reason or wire is None:
        return None
    return _httpx_response(httpx, error_response(wire, NOT_FOUND_STATUS, Failure(reason)), [])


def _opens_stream(session: SdkSession, response: Any) -> bool:
    return session.opens_stream(response.status_code, response.headers.get("content-type", ""))


def _stream_response(httpx: ModuleType, session: SdkSession, response: Any, stream: Any) -> Any:
    headers = session.response_headers(response.headers.multi_items())
    headers.append(("content-type", response.headers["content-type"]))
    return httpx.Response(response.status_code, headers=headers, stream=stream)


def _body_response(httpx: ModuleType, session: SdkSession, response: Any, body: bytes) -> Any:
    translated = session.translate_body(response.status_code, response.headers.get("content-type", ""), body)
    return _httpx_response(httpx, translated, session.response_headers(response.headers.multi_items()))


def _httpx_response(httpx: ModuleType, sdk_response: SdkResponse, headers: list[tuple[str, str]]) -> Any:
    """Convert to an httpx response with a stream, because httpx sets `elapsed` only on bodies that it reads itself."""
    all_headers = [
        *headers,
        ("content-type", sdk_response.content_type),
        ("content-length", str(len(sdk_response.body))),
    ]
    return httpx.Response(sdk_response.status, headers=all_headers, stream=httpx.ByteStream(sdk_response.body))
