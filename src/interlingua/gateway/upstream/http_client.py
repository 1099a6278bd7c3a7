"""HTTP requests to upstreams: URLs, headers, sending, and errors for failed connections."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Protocol

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from interlingua import __version__
from interlingua.errors import InterlinguaError
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.descriptor_limit import descriptor_limit, descriptors_exhausted
from interlingua.gateway.settings.schema import Upstream
from interlingua.gateway.upstream.connector import proxy_for, ssl_context_for
from interlingua.translation.upstream_errors import MAX_ERROR_BODY_BYTES, UpstreamFailed, error_from_response
from interlingua.wires import get_wire
from interlingua.wires.http_api import HttpApi

__all__ = [
    "ConnectTimer",
    "OutOfDescriptors",
    "ResponseObserver",
    "broken_reply",
    "count_tokens_url",
    "drain",
    "endpoint_url",
    "headers_for",
    "models_url",
    "read_full_body",
    "send_request",
]

ANTHROPIC_PROFILE = "anthropic"
"""Profile of Anthropic itself. Other servers of the Messages API accept the key in either header."""
USER_AGENT = f"interlingua/{__version__}"
MAX_CACHED_URLS = 1000
DRAIN_TIMEOUT_SECONDS = 0.5
"""Seconds to wait for the end of the HTTP body after the end of the reply in it."""
ERROR_BODY_TIMEOUT_SECONDS = 1.0
"""Seconds to wait for the body of an error response."""


class OutOfDescriptors(InterlinguaError):
    """The gateway cannot open a connection, because it has no file descriptor left. No upstream is at fault."""

    status = 503
    type = "overloaded_error"
    retry_after = 1.0

    def __init__(self) -> None:
        super().__init__(f"the gateway cannot open more than {descriptor_limit()} files", "retry in a second")


class ResponseObserver(Protocol):
    """Observer of the response to one request. Its methods must not block or raise."""

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None: ...

    def on_received(self, data: bytes) -> None: ...


class ConnectTimer:
    """Time that one request needs to open its connection, if the session has the `trace_config` of this class."""

    __slots__ = ("_started", "seconds")

    def __init__(self) -> None:
        self._started = 0.0
        self.seconds: float | None = None
        """Seconds to open the connection; None if an open one was used."""

    def start(self) -> None:
        self._started = time.monotonic()

    def stop(self) -> None:
        self.seconds = round(time.monotonic() - self._started, 6)

    @staticmethod
    def trace_config() -> aiohttp.TraceConfig:
        async def start(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
            if isinstance(timer := context.trace_request_ctx, ConnectTimer):
                timer.start()

        async def stop(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
            if isinstance(timer := context.trace_request_ctx, ConnectTimer):
                timer.stop()

        config = aiohttp.TraceConfig()
        config.on_connection_create_start.append(start)
        config.on_connection_create_end.append(stop)
        return config


def endpoint_url(upstream: Upstream, wire: str, query: str) -> URL:
    """Return the URL for requests. A query that asks for beta features is forwarded on the same wire."""
    url = _endpoint(upstream.api, upstream.url)
    is_forwarded = query and wire == upstream.api and query == get_wire(wire).HTTP_API.forwarded_query
    return url.with_query(query) if is_forwarded else url


@lru_cache(MAX_CACHED_URLS)
def _endpoint(wire: str, url: str) -> URL:
    return URL(get_wire(wire).HTTP_API.endpoint(url), encoded=True)


def count_tokens_url(upstream: Upstream) -> URL:
    """Return the URL for token counts. Not every upstream has this endpoint."""
    api = get_wire(upstream.api).HTTP_API
    return URL(api.base_url(upstream.url) + (api.count_path or api.path), encoded=True)


def models_url(upstream: Upstream) -> URL:
    """Return the URL of the model list."""
    return URL(f"{get_wire(upstream.api).HTTP_API.base_url(upstream.url)}/models", encoded=True)


def headers_for(
    route: Route, wire: str, client_headers: Mapping[str, str], passthrough_key: str, stream: bool
) -> dict[str, str]:
    """Return the headers for an upstream.

    Only headers of the API are forwarded. The client's own key is forwarded only with `passthrough`.

    Args:
        route: The route to the upstream.
        wire: The wire of the client.
        client_headers: The headers of the client's request.
        passthrough_key: The client's own API key; "" if there is none.
        stream: Whether a stream is requested.
    """
    upstream = route.upstream
    api = get_wire(upstream.api).HTTP_API
    headers = {**api.request_headers(stream=stream), "user-agent": USER_AGENT}
    if wire == upstream.api:
        headers |= _forwarded_headers(client_headers, api.forwarded_header_prefix)
    key = passthrough_key if upstream.passthrough else upstream.key
    if key and upstream.passthrough and _is_login(headers, api):
        headers["authorization"] = f"Bearer {key}"
    elif key:
        if api.key_header == "x-api-key":
            headers["x-api-key"] = key
        if api.key_header == "authorization" or route.profile.name != ANTHROPIC_PROFILE:
            headers["authorization"] = f"Bearer {key}"
    return headers | {name.lower(): value for name, value in upstream.headers.items()}


def _forwarded_headers(client_headers: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the headers with this prefix. Several of one name become a list, as HTTP allows it."""
    forwarded: dict[str, str] = {}
    for name, value in client_headers.items() if prefix else ():
        key = name.lower()
        if key.startswith(prefix):
            forwarded[key] = f"{forwarded[key]},{value}" if key in forwarded else value
    return forwarded


def _is_login(headers: Mapping[str, str], api: HttpApi) -> bool:
    """Return whether these headers mark the client's key as a login, which is valid only as a bearer token."""
    return api.login_header != "" and api.login_marker in headers.get(api.login_header, "")


async def send_request(
    session: aiohttp.ClientSession,
    route: Route,
    url: URL,
    body: bytes | None,
    headers: Mapping[str, str],
    observer: ResponseObserver | None = None,
) -> aiohttp.ClientResponse:
    """Send a request and return the response as soon as its headers have arrived.

    All requests to upstreams are sent here, so that all of them use the proxy and none follows a redirect.

    Args:
        session: The HTTP session of the gateway.
        route: The route to the upstream.
        url: The URL of the endpoint.
        body: The body of a POST request; None sends a GET request.
        headers: The complete request headers.
        observer: Observes the headers of the response, and the body of an error. The body of a success is left to the
            caller.

    Raises:
        UpstreamFailed: The connection failed, or the status is not a success.
        OutOfDescriptors: The gateway cannot open a connection.
    """
    timeout = aiohttp.ClientTimeout(total=None, connect=route.timeouts.connect)
    ssl_context = ssl_context_for(route.upstream.ca)
    proxy = proxy_for(url.scheme, url.host or "")
    method = "GET" if body is None else "POST"
    timer = ConnectTimer() if observer is not None else None
    try:
        response = await session.request(
            method,
            url,
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=timeout,
            proxy=proxy,
            ssl=ssl_context,
            trace_request_ctx=timer,
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:  # aiohttp's timeouts are OSErrors
        raise _request_error(error, route) from error
    if observer is not None and timer is not None:
        observer.on_response(response.status, response.headers, timer.seconds)
    if 200 <= response.status < 300:
        return response
    pieces: list[bytes] = []
    try:  # the status is enough, even if the body cannot be read or never arrives
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_SECONDS):
            await _collect_pieces(response, MAX_ERROR_BODY_BYTES, pieces)
    except (aiohttp.ClientError, OSError) as error:
        _drop_tracebacks(error)
    finally:
        response.close()
    if observer is not None and pieces:
        observer.on_received(b"".join(pieces))
    raise error_from_response(response.status, response.headers, b"".join(pieces), time.time())


def _request_error(error: Exception, route: Route) -> InterlinguaError:
    """Return the error for a request without a response."""
    failure = connection_error(error, route)
    return OutOfDescriptors() if failure.unreachable and descriptors_exhausted(error) else failure


def connection_error(error: Exception, route: Route) -> UpstreamFailed:
    """Return the error for a failed connection, with a message for the operator of the gateway."""
    _drop_tracebacks(error)
    url = route.upstream.url
    match error:
        case aiohttp.ConnectionTimeoutError():
            return UpstreamFailed(
                f"could not connect to {url} within {route.timeouts.connect:g} s", 504, unreachable=True
            )
        case aiohttp.ClientConnectorCertificateError():
            return _permanent_failure(
                f"the certificate of {url} is not valid: {_describe_error(error.certificate_error)}", unreachable=True
            )
        case aiohttp.ClientConnectorSSLError():
            return _permanent_failure(
                f"TLS handshake with {url} failed: {_describe_error(error.os_error)}; should the URL be http://?",
                unreachable=True,
            )
        case aiohttp.ClientProxyConnectionError():
            return UpstreamFailed(
                f"the proxy for {url} cannot be reached: {_describe_error(error.os_error)}; check HTTPS_PROXY",
                unreachable=True,
            )
        case aiohttp.ClientHttpProxyError():
            return _permanent_failure(
                f"the proxy for {url} returned status {error.status}; check HTTPS_PROXY and NO_PROXY", unreachable=True
            )
        case aiohttp.ClientConnectorDNSError():
            return UpstreamFailed(
                f"cannot resolve the host name of {url}; check the name and the network", unreachable=True
            )
        case aiohttp.ClientConnectorError():
            return UpstreamFailed(f"cannot connect to {url}: {_system_reason(error.os_error)}", unreachable=True)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionResetError():
            return UpstreamFailed(f"{url} closed the connection without a response")
        case aiohttp.InvalidURL() | ValueError():
            return UpstreamFailed(f"cannot send a request to {url}: {error}", retryable=False)
    if isinstance(error, aiohttp.ClientResponseError) and error.status == 400:  # malformed response
        if "content-encoding" in error.message:
            return _permanent_failure(f"{url} returned a response that cannot be decoded: {error.message}")
        return _permanent_failure(f"the response of {url} is not HTTP; should the URL be https://?")
    return UpstreamFailed(f"the request to {url} failed: {str(error) or type(error).__name__}")


def _system_reason(error: OSError) -> str:
    """Return the system's own words. The message of asyncio has the address instead."""
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)


def _permanent_failure(message: str, *, unreachable: bool = False) -> UpstreamFailed:
    """Return an error that a retry cannot solve, but another upstream may."""
    return UpstreamFailed(message, retryable=False, failover=True, unreachable=unreachable)


def _describe_error(error: Exception) -> str:
    """Return the reason from OpenSSL or the system, with a hint for untrusted and expired certificates."""
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or getattr(error, "strerror", "")
    if "self-signed" in str(reason) or "local issuer" in str(reason):
        return f"{reason}; if you trust it, set `ca` or SSL_CERT_FILE to its file"
    if "expired" in str(reason) or "not yet valid" in str(reason):
        return f"{reason}; check the system clocks"
    return str(reason or error)


async def read_full_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the complete body. Raises UpstreamFailed if the connection is lost or the body exceeds `limit` bytes."""
    pieces: list[bytes] = []
    try:
        await _collect_pieces(response, limit + 1, pieces)
    except (aiohttp.ClientError, OSError) as error:
        raise broken_reply(error) from error
    if sum(map(len, pieces)) > limit:
        raise UpstreamFailed(f"the upstream's reply is larger than {limit:,} bytes", retryable=False)
    return b"".join(pieces)


def broken_reply(error: Exception) -> UpstreamFailed:
    """Return the error for a reply that cannot be decoded, or whose connection is lost.

    aiohttp's own message is included only for decoding errors; otherwise it describes internals of its parser.
    """
    _drop_tracebacks(error)
    if isinstance(error.__cause__, ContentEncodingError):
        return UpstreamFailed(f"the reply cannot be decoded: {error.__cause__.message}")
    return UpstreamFailed("the connection was lost in the middle of the reply")


def _drop_tracebacks(error: BaseException) -> None:
    """Remove the tracebacks of an error that aiohttp keeps, in the body of a response or in a variable of a frame.

    The frames refer to the error, the request and the response: a reference cycle with all that these hold.
    """
    causes: list[BaseException | None] = [error]
    for cause in causes:
        if cause is not None and cause.__traceback__ is not None:
            cause.__traceback__ = None
            causes += [cause.__cause__, cause.__context__]


async def _collect_pieces(response: aiohttp.ClientResponse, limit: int, pieces: list[bytes]) -> None:
    """Append the body to `pieces` until it ends or `limit` bytes are reached."""
    size = 0
    while size < limit and (piece := await response.content.readany()):
        pieces.append(piece)
        size += len(piece)


async def drain(response: aiohttp.ClientResponse) -> None:
    """Read the rest of a body after the end of the reply, so that the connection can be reused.

    Usually only the end of the body is left and arrives at once.
    """
    try:
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with asyncio.timeout(DRAIN_TIMEOUT_SECONDS):
                while await response.content.readany():
                    pass
    finally:
        response.close()
