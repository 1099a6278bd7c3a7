"""One question to one upstream: where it goes, with which headers, and what a failure to answer is called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

import aiohttp
from aiohttp import hdrs
from yarl import URL

from interlingua import __version__
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Upstream
from interlingua.gateway.upstream.connector import proxy_for, ssl_context_for
from interlingua.gateway.upstream.errors import MAX_ERROR_BODY_BYTES, UpstreamFailed, error_from_response
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES

__all__ = [
    "connection_lost",
    "count_tokens_url",
    "drain",
    "endpoint_url",
    "headers_for",
    "is_stream",
    "models_url",
    "read_full_body",
    "send_request",
]

ENDPOINT_PATHS = {CHAT: "/chat/completions", MESSAGES: "/messages", RESPONSES: "/responses"}
COUNT_TOKENS_PATHS = {MESSAGES: "/count_tokens", RESPONSES: "/input_tokens"}
BETA_QUERY = "beta=true"
ANTHROPIC_PROFILE = "anthropic"
"""The upstream that has defined Messages. Others that speak it take keys in either header."""
ANTHROPIC_VERSION = "2023-06-01"
USER_AGENT = f"interlingua/{__version__}"
DRAIN_TIMEOUT_SECONDS = 0.5
"""Seconds for the end of a body behind the end of what is in it."""
FORWARDED_HEADERS = ("anthropic-beta", "anthropic-version")
"""What a client of Messages says to a server of Messages in its headers."""
ERROR_BODY_TIMEOUT_SECONDS = 1.0
"""How long is waited for what an upstream has to say of its error."""


def endpoint_url(upstream: Upstream, wire: str, query: str) -> URL:
    """Where it is asked. Of a client's query, what asks for trial features of Messages goes on to servers of it."""
    url = URL(_base_url(upstream) + ENDPOINT_PATHS[upstream.api], encoded=True)
    return url.with_query(BETA_QUERY) if wire == upstream.api == MESSAGES and query == BETA_QUERY else url


def _base_url(upstream: Upstream) -> str:
    """Its address may lack the version, or have the path already, as people copy addresses."""
    base = upstream.url.rstrip("/").removesuffix(ENDPOINT_PATHS[upstream.api])
    url = URL(base, encoded=True)
    versioned = any(part[:1] == "v" and part[1:2].isdigit() for part in url.parts)
    lacks_version = not versioned and (upstream.api == MESSAGES or url.path in ("", "/"))
    return f"{base}/v1" if lacks_version else base


def count_tokens_url(upstream: Upstream) -> URL:
    """Where it counts the tokens of a request, if it does."""
    return URL(
        _base_url(upstream) + ENDPOINT_PATHS[upstream.api] + COUNT_TOKENS_PATHS.get(upstream.api, ""), encoded=True
    )


def models_url(upstream: Upstream) -> URL:
    """Where it lists its models."""
    return URL(f"{_base_url(upstream)}/models", encoded=True)


def headers_for(
    route: Route, wire: str, client_headers: Mapping[str, str], passthrough_key: str, stream: bool
) -> dict[str, str]:
    """The headers for an upstream. Of the client's own, only what is known to be meant for it goes on, and its key only
    where that is set."""
    upstream = route.upstream
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if stream else "application/json",
        "accept-encoding": "identity",
        "user-agent": USER_AGENT,
    }
    if upstream.api == MESSAGES:
        headers["anthropic-version"] = ANTHROPIC_VERSION
        if wire == MESSAGES:
            headers |= {name: client_headers[name] for name in FORWARDED_HEADERS if name in client_headers}
    if key := passthrough_key if upstream.passthrough else upstream.key:
        if upstream.api == MESSAGES:
            headers["x-api-key"] = key
        if upstream.api != MESSAGES or route.profile.name != ANTHROPIC_PROFILE:
            headers["authorization"] = f"Bearer {key}"
    return headers | {name.lower(): value for name, value in upstream.headers.items()}


async def send_request(
    session: aiohttp.ClientSession, route: Route, url: URL, body: bytes | None, headers: Mapping[str, str]
) -> aiohttp.ClientResponse:
    """Its answer, once the headers are there and say that there is one. UpstreamFailed in every other case.

    Whatever goes to an upstream goes through here: by its proxy, and to no other place that it may name.
    """
    timeout = aiohttp.ClientTimeout(total=None, connect=route.timeouts.connect)
    ssl_context = ssl_context_for(route.upstream.ca)
    proxy = proxy_for(url.scheme, url.host or "")
    method = "GET" if body is None else "POST"
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
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:  # aiohttp's timeouts are OSErrors
        raise connection_error(error, route) from error
    if 200 <= response.status < 300:
        return response
    pieces: list[bytes] = []
    try:  # its status counts, even if the rest cannot be read or never comes
        with suppress(aiohttp.ClientError, OSError):
            async with asyncio.timeout(ERROR_BODY_TIMEOUT_SECONDS):
                await _collect_pieces(response, MAX_ERROR_BODY_BYTES, pieces)
    finally:
        response.close()
    raise error_from_response(response.status, response.headers, b"".join(pieces), time.time())


def connection_error(error: Exception, route: Route) -> UpstreamFailed:
    """What kept the upstream from answering, in words for whoever runs the gateway."""
    url = route.upstream.url
    match error:
        case aiohttp.ConnectionTimeoutError():
            return UpstreamFailed(f"no connection to {url} within {route.timeouts.connect:g} s", 504)
        case aiohttp.ClientConnectorCertificateError():
            return _permanent_failure(
                f"the certificate of {url} is not valid: {_describe_error(error.certificate_error)}"
            )
        case aiohttp.ClientConnectorSSLError():
            return _permanent_failure(
                f"{url} does not speak TLS as we do: {_describe_error(error.os_error)}; should it be http://?"
            )
        case aiohttp.ClientProxyConnectionError():
            return UpstreamFailed(
                f"the proxy for {url} cannot be reached: {_describe_error(error.os_error)}; see HTTPS_PROXY"
            )
        case aiohttp.ClientHttpProxyError():
            return _permanent_failure(f"the proxy for {url} refuses: {error.status}; see HTTPS_PROXY and NO_PROXY")
        case aiohttp.ClientConnectorDNSError():
            return UpstreamFailed(f"no address is known for {url}: is its name right, and the network there?")
        case aiohttp.ClientConnectorError():
            return UpstreamFailed(f"cannot connect to {url}: {error.os_error.strerror or error.os_error}")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionResetError():
            return UpstreamFailed(f"{url} closed the connection without an answer")
        case aiohttp.InvalidURL() | ValueError():
            return UpstreamFailed(f"{url} cannot be asked: {error}", retryable=False)
    if isinstance(error, aiohttp.ClientResponseError) and error.status == 400:  # so says aiohttp itself
        return _permanent_failure(f"what {url} sends is no HTTP; should it be https://?")
    return UpstreamFailed(f"{url} did not answer: {str(error) or type(error).__name__}")


def _permanent_failure(message: str) -> UpstreamFailed:
    """The same would happen again, but another upstream may answer."""
    return UpstreamFailed(message, retryable=False, failover=True)


def _describe_error(error: Exception) -> str:
    """In the words of OpenSSL or the system, and what to do if the certificate is one that nobody here trusts."""
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or getattr(error, "strerror", "")
    if "self-signed" in str(reason) or "local issuer" in str(reason):
        return f"{reason}; if it is your own, name its file with `ca`, or in SSL_CERT_FILE"
    if "expired" in str(reason) or "not yet valid" in str(reason):
        return f"{reason}; are the clocks right?"
    return str(reason or error)


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Whether events are coming. Servers that name no type are taken at their first byte, by whoever reads it."""
    return response.headers.get(hdrs.CONTENT_TYPE, "").lower().startswith("text/event-stream")


async def read_full_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body, or UpstreamFailed."""
    pieces: list[bytes] = []
    try:
        await _collect_pieces(response, limit + 1, pieces)
    except (aiohttp.ClientError, OSError) as error:
        raise connection_lost(error) from error
    if sum(map(len, pieces)) > limit:
        raise UpstreamFailed(f"the upstream's reply has more than {limit:,} bytes", retryable=False)
    return b"".join(pieces)


def connection_lost(error: Exception) -> UpstreamFailed:
    """The upstream had begun to answer. What aiohttp says of it is for those who know its parser."""
    detail = f": {error}" if "decode" in str(error) else ""
    return UpstreamFailed(f"it broke off in the middle of its reply{detail}")


async def _collect_pieces(response: aiohttp.ClientResponse, limit: int, pieces: list[bytes]) -> None:
    """What comes, until it is over or that much."""
    size = 0
    while size < limit and (piece := await response.content.readany()):
        pieces.append(piece)
        size += len(piece)


async def drain(response: aiohttp.ClientResponse) -> None:
    """All has been said, and only the end of the body is to come, mostly at once: then the connection can be used
    again."""
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(DRAIN_TIMEOUT_SECONDS):
            while await response.content.readany():
                pass
    response.close()
