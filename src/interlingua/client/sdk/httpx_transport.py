"""Translating transports for an SDK's HTTP client. SDKs use httpx or its successor httpx2."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType
from typing import Any

from interlingua.client.sdk.body_decoder import BodyDecoder
from interlingua.client.sdk.session import SdkResponse, SdkSession, error_response
from interlingua.client.sdk.upstream_config import UpstreamConfig, count_wire_for_path, wire_for_path
from interlingua.errors import UpstreamError, UsageError
from interlingua.events import Failure
from interlingua.translation.exchange import MAX_BODY_BYTES
from interlingua.translation.refusal_correction import RefusalMemory

__all__ = ["make_async_transport_class", "make_self_closing_class", "make_transport_class"]

DISCONNECTED_MESSAGE = "the upstream closed the connection in the middle of its reply"
NOT_FOUND_STATUS = 404
MAX_REDIRECTS = 5
MAX_STREAM_BYTES = 512 * 1024 * 1024
"""Limit for a whole stream. A long reply has less than a tenth of it."""


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
                for data in _decoded_pieces(self._response, MAX_STREAM_BYTES):
                    if output := self._session.feed(data):
                        yield output
            except (httpx.RequestError, UpstreamError) as error:
                disconnect_reason = _disconnect_reason(error)
            yield self._session.close(disconnect_reason)

        def close(self) -> None:
            self._session.finish()
            self._response.close()

    class Transport(httpx.BaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: UpstreamConfig, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner
            self._memory = RefusalMemory(time.monotonic)

        def handle_request(self, request: Any) -> Any:
            upstream = self._upstream
            _require_same_origin(httpx, upstream, request)
            wire = _request_wire(request)
            if wire is None:
                return _unsupported_response(httpx, upstream, request) or _forward(
                    httpx, upstream, self._inner, request
                )
            session = _open_session(upstream, wire, request, request.read(), self._memory)
            with _connection_hint(httpx, request):
                return _exchange(httpx, self._inner, session, request, Stream)

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
                async for data in _decoded_async_pieces(self._response, MAX_STREAM_BYTES):
                    if output := self._session.feed(data):
                        yield output
            except (httpx.RequestError, UpstreamError) as error:
                disconnect_reason = _disconnect_reason(error)
            yield self._session.close(disconnect_reason)

        async def aclose(self) -> None:
            self._session.finish()
            await self._response.aclose()

    class AsyncTransport(httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        def __init__(self, upstream: UpstreamConfig, inner: Any) -> None:
            self._upstream, self._inner = upstream, inner
            self._memory = RefusalMemory(time.monotonic)

        async def handle_async_request(self, request: Any) -> Any:
            upstream = self._upstream
            _require_same_origin(httpx, upstream, request)
            wire = _request_wire(request)
            if wire is None:
                return _unsupported_response(httpx, upstream, request) or await _forward_async(
                    httpx, upstream, self._inner, request
                )
            session = _open_session(upstream, wire, request, await request.aread(), self._memory)
            with _connection_hint(httpx, request):
                return await _exchange_async(httpx, self._inner, session, request, AsyncStream)

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


def _open_session(upstream: UpstreamConfig, wire: str, request: Any, body: bytes, memory: RefusalMemory) -> SdkSession:
    return SdkSession(upstream, wire, body, _query_string(request), int(time.time()), memory)


def _upstream_request(httpx: ModuleType, session: SdkSession, request: Any) -> Any:
    headers = session.headers(request.headers)
    return httpx.Request("POST", session.url, headers=headers, content=session.body, extensions=request.extensions)


def _exchange(httpx: ModuleType, inner: Any, session: SdkSession, request: Any, stream_class: Any) -> Any:
    """Send the request until the upstream no longer refuses what the session can change. Return the response to the
    SDK."""
    while True:
        response = _send(inner, _upstream_request(httpx, session, request))
        if _opens_stream(session, response):
            return _stream_response(httpx, session, response, stream_class(session, response))
        translated = _body_response(httpx, session, response)
        if translated is not None:
            return translated


async def _exchange_async(httpx: ModuleType, inner: Any, session: SdkSession, request: Any, stream_class: Any) -> Any:
    while True:
        response = await _send_async(inner, _upstream_request(httpx, session, request))
        if _opens_stream(session, response):
            return _stream_response(httpx, session, response, stream_class(session, response))
        translated = await _body_response_async(httpx, session, response)
        if translated is not None:
            return translated


def _forwarded_request(httpx: ModuleType, upstream: UpstreamConfig, request: Any) -> Any:
    """Return a request for an endpoint that is not translated: only address and authentication change."""
    url = upstream.other_url(request.url.path) + upstream.query_string(_query_string(request))
    headers = upstream.with_auth(request.headers)
    return httpx.Request(request.method, url, headers=headers, stream=request.stream, extensions=request.extensions)


def _forward(httpx: ModuleType, upstream: UpstreamConfig, inner: Any, request: Any) -> Any:
    """Send a request that is not translated, and return the upstream's own response."""
    response = _send(inner, _forwarded_request(httpx, upstream, request))
    if problem := _redirect_problem(response):
        response.close()
        return _redirect_response(httpx, upstream, response, problem)
    return response


async def _forward_async(httpx: ModuleType, upstream: UpstreamConfig, inner: Any, request: Any) -> Any:
    response = await _send_async(inner, _forwarded_request(httpx, upstream, request))
    if problem := _redirect_problem(response):
        await response.aclose()
        return _redirect_response(httpx, upstream, response, problem)
    return response


# ── redirects ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _send(inner: Any, request: Any) -> Any:
    """Send the request, and follow redirects to the same server. Any other redirect is returned."""
    response = inner.send(request, stream=True, follow_redirects=False)
    for _ in range(MAX_REDIRECTS):
        if not _may_follow(inner, response):
            break
        response.close()
        response = inner.send(response.next_request, stream=True, follow_redirects=False)
    return response


async def _send_async(inner: Any, request: Any) -> Any:
    response = await inner.send(request, stream=True, follow_redirects=False)
    for _ in range(MAX_REDIRECTS):
        if not _may_follow(inner, response):
            break
        await response.aclose()
        response = await inner.send(response.next_request, stream=True, follow_redirects=False)
    return response


def _may_follow(inner: Any, response: Any) -> bool:
    """Return whether the response is a redirect to the same server.

    Prompt and API key are meant for this server alone. httpx would send the prompt to any other, and the key in
    `x-api-key`, too.
    """
    target = response.next_request
    return target is not None and inner.follow_redirects and _is_same_server(response.url, target.url)


def _redirect_problem(response: Any) -> str:
    """Return why a redirect was not followed; "" if the response is no redirect."""
    if response.next_request is None:
        return ""
    server, target = response.url, response.next_request.url
    if _is_same_server(server, target):
        return f"{_origin(server)} redirects more than {MAX_REDIRECTS} times; set base_url to the final address"
    return (
        f"{_origin(server)} redirects to {_origin(target)}, which is not followed: it would receive the prompt and the "
        "API key; if you trust it, set base_url to it"
    )


def _is_same_server(server: Any, target: Any) -> bool:
    """Return whether both URLs have the same origin, or `target` is the same host with https instead of http."""
    is_upgrade = (server.scheme, target.scheme) == ("http", "https") and server.port is target.port is None
    return server.host == target.host and ((server.scheme, server.port) == (target.scheme, target.port) or is_upgrade)


@contextmanager
def _connection_hint(httpx: ModuleType, request: Any) -> Iterator[None]:
    """Add the address of the server to a connection error. The SDKs raise it as "Connection error."."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        error.add_note(
            f"hint: cannot connect to {_origin(request.url)}; check base_url, and that the server is running"
        )
        raise


def _origin(url: Any) -> str:
    return f"{url.scheme}://{url.netloc.decode()}"


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _unsupported_response(httpx: ModuleType, upstream: UpstreamConfig, request: Any) -> Any | None:
    """Return the error response for a request that this upstream does not support, or None if it does."""
    reason, wire = upstream.unsupported_reason(request.url.path), count_wire_for_path(request.url.path)
    if not reason or wire is None:
        return None
    return _httpx_response(httpx, error_response(wire, NOT_FOUND_STATUS, Failure(reason)), [])


def _redirect_response(httpx: ModuleType, upstream: UpstreamConfig, response: Any, problem: str) -> Any:
    """Return the error response for a redirect of a request that is not translated."""
    return _httpx_response(httpx, error_response(upstream.api, response.status_code, Failure(problem)), [])


def _decoded_pieces(response: Any, max_bytes: int) -> Iterator[bytes]:
    """Yield the body. Some upstreams compress it despite `accept-encoding: identity`."""
    if response.is_stream_consumed:  # a hook of the program has read it already
        yield from response.iter_bytes()
        return
    decoder = BodyDecoder(response.headers.get("content-encoding", ""), max_bytes)
    for data in response.iter_raw():
        yield from decoder.feed(data)


async def _decoded_async_pieces(response: Any, max_bytes: int) -> AsyncIterator[bytes]:
    if response.is_stream_consumed:
        async for data in response.aiter_bytes():
            yield data
        return
    decoder = BodyDecoder(response.headers.get("content-encoding", ""), max_bytes)
    async for data in response.aiter_raw():
        for piece in decoder.feed(data):
            yield piece


def _opens_stream(session: SdkSession, response: Any) -> bool:
    return session.opens_stream(response.status_code, response.headers.get("content-type", ""))


def _stream_response(httpx: ModuleType, session: SdkSession, response: Any, stream: Any) -> Any:
    headers = session.response_headers(response.headers.multi_items())
    headers.append(("content-type", response.headers["content-type"]))
    return httpx.Response(response.status_code, headers=headers, stream=stream)


def _body_response(httpx: ModuleType, session: SdkSession, response: Any) -> Any | None:
    """Return the response to the SDK for one that is not streamed; None if the request should be sent again, because
    the session has removed what the upstream refused."""
    try:
        body = b"".join(_decoded_pieces(response, MAX_BODY_BYTES))
    except UpstreamError as error:
        return _httpx_response(httpx, session.fail(str(error)), [])
    finally:
        response.close()
    return _translated_response(httpx, session, response, body)


async def _body_response_async(httpx: ModuleType, session: SdkSession, response: Any) -> Any | None:
    try:
        body = b"".join([data async for data in _decoded_async_pieces(response, MAX_BODY_BYTES)])
    except UpstreamError as error:
        return _httpx_response(httpx, session.fail(str(error)), [])
    finally:
        await response.aclose()
    return _translated_response(httpx, session, response, body)


def _translated_response(httpx: ModuleType, session: SdkSession, response: Any, body: bytes) -> Any | None:
    if problem := _redirect_problem(response):
        return _httpx_response(httpx, session.refuse_redirect(response.status_code, problem), [])
    translated = session.translate_body(response.status_code, response.headers.get("content-type", ""), body)
    if translated is None:
        return None
    return _httpx_response(httpx, translated, session.response_headers(response.headers.multi_items()))


def _disconnect_reason(error: Exception) -> str:
    return str(error) if isinstance(error, UpstreamError) else f"{DISCONNECTED_MESSAGE}: {error}"


def _httpx_response(httpx: ModuleType, sdk_response: SdkResponse, headers: list[tuple[str, str]]) -> Any:
    """Convert to an httpx response with a stream, because httpx sets `elapsed` only on bodies that it reads itself."""
    all_headers = [
        *headers,
        ("content-type", sdk_response.content_type),
        ("content-length", str(len(sdk_response.body))),
    ]
    return httpx.Response(sdk_response.status, headers=all_headers, stream=httpx.ByteStream(sdk_response.body))
