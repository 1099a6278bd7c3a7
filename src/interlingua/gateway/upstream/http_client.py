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
from interlingua.gateway.upstream.connector__certificates import trusted
from interlingua.gateway.upstream.connector__proxies import proxy_for
from interlingua.gateway.upstream.errors import LONGEST, UpstreamFailed, refused
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES

__all__ = [
    "ask",
    "broken_off",
    "counting_url",
    "endpoint",
    "headers_for",
    "is_stream",
    "let_end",
    "models_url",
    "read_whole",
]

PATHS = {CHAT: "/chat/completions", MESSAGES: "/messages", RESPONSES: "/responses"}
COUNTS = {MESSAGES: "/count_tokens", RESPONSES: "/input_tokens"}
BETA = "beta=true"
OWN = "anthropic"
"""The upstream that has defined Messages. Others that speak it take keys in either header."""
VERSION = "2023-06-01"
AGENT = f"interlingua/{__version__}"
ENDING = 0.5
"""Seconds for the end of a body behind the end of what is in it."""
PASSED_ON = ("anthropic-beta", "anthropic-version")
"""What a client of Messages says to a server of Messages in its headers."""
SOON = 1.0
"""How long is waited for what an upstream has to say of its error."""


def endpoint(upstream: Upstream, wire: str, query: str) -> URL:
    """Where it is asked. Of a client's query, what asks for trial features of Messages goes on to servers of it."""
    url = URL(_base(upstream) + PATHS[upstream.api], encoded=True)
    return url.with_query(BETA) if wire == upstream.api == MESSAGES and query == BETA else url


def _base(upstream: Upstream) -> str:
    """Its address may lack the version, or have the path already, as people copy addresses."""
    base = upstream.url.rstrip("/").removesuffix(PATHS[upstream.api])
    url = URL(base, encoded=True)
    versioned = any(part[:1] == "v" and part[1:2].isdigit() for part in url.parts)
    bare = not versioned and (upstream.api == MESSAGES or url.path in ("", "/"))
    return f"{base}/v1" if bare else base


def counting_url(upstream: Upstream) -> URL:
    """Where it counts the tokens of a request, if it does."""
    return URL(_base(upstream) + PATHS[upstream.api] + COUNTS.get(upstream.api, ""), encoded=True)


def models_url(upstream: Upstream) -> URL:
    """Where it lists its models."""
    return URL(f"{_base(upstream)}/models", encoded=True)


def headers_for(route: Route, wire: str, client: Mapping[str, str], own_key: str, stream: bool) -> dict[str, str]:
    """The headers for an upstream. Of the client's own, only what is known to be meant for it goes on, and its key only
    where that is set."""
    upstream = route.upstream
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if stream else "application/json",
        "accept-encoding": "identity",
        "user-agent": AGENT,
    }
    if upstream.api == MESSAGES:
        headers["anthropic-version"] = VERSION
        if wire == MESSAGES:
            headers |= {name: client[name] for name in PASSED_ON if name in client}
    if key := own_key if upstream.passthrough else upstream.key:
        if upstream.api == MESSAGES:
            headers["x-api-key"] = key
        if upstream.api != MESSAGES or route.profile.name != OWN:
            headers["authorization"] = f"Bearer {key}"
    return headers | {name.lower(): value for name, value in upstream.headers.items()}


async def ask(
    session: aiohttp.ClientSession, route: Route, url: URL, body: bytes | None, headers: Mapping[str, str]
) -> aiohttp.ClientResponse:
    """Its answer, once the headers are there and say that there is one. UpstreamFailed in every other case.

    Whatever goes to an upstream goes through here: by its proxy, and to no other place that it may name.
    """
    timeout = aiohttp.ClientTimeout(total=None, connect=route.timeouts.connect)
    trust = trusted(route.upstream.ca)
    proxy = proxy_for(url.scheme, url.host or "")
    method = "GET" if body is None else "POST"
    try:
        response = await session.request(
            method, url, data=body, headers=headers, allow_redirects=False, timeout=timeout, proxy=proxy, ssl=trust
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:  # aiohttp's timeouts are OSErrors
        raise unreachable(error, route) from error
    if 200 <= response.status < 300:
        return response
    said: list[bytes] = []
    try:  # its status counts, even if the rest cannot be read or never comes
        with suppress(aiohttp.ClientError, OSError):
            async with asyncio.timeout(SOON):
                await _collect(response, LONGEST, said)
    finally:
        response.close()
    raise refused(response.status, response.headers, b"".join(said), time.time())


def unreachable(error: Exception, route: Route) -> UpstreamFailed:
    """What kept the upstream from answering, in words for whoever runs the gateway."""
    where = route.upstream.url
    match error:
        case aiohttp.ConnectionTimeoutError():
            return UpstreamFailed(f"no connection to {where} within {route.timeouts.connect:g} s", 504)
        case aiohttp.ClientConnectorCertificateError():
            return _for_good(f"the certificate of {where} is not valid: {_why(error.certificate_error)}")
        case aiohttp.ClientConnectorSSLError():
            return _for_good(f"{where} does not speak TLS as we do: {_why(error.os_error)}; should it be http://?")
        case aiohttp.ClientProxyConnectionError():
            return UpstreamFailed(f"the proxy for {where} cannot be reached: {_why(error.os_error)}; see HTTPS_PROXY")
        case aiohttp.ClientHttpProxyError():
            return _for_good(f"the proxy for {where} refuses: {error.status}; see HTTPS_PROXY and NO_PROXY")
        case aiohttp.ClientConnectorDNSError():
            return UpstreamFailed(f"no address is known for {where}: is its name right, and the network there?")
        case aiohttp.ClientConnectorError():
            return UpstreamFailed(f"cannot connect to {where}: {error.os_error.strerror or error.os_error}")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionResetError():
            return UpstreamFailed(f"{where} closed the connection without an answer")
        case aiohttp.InvalidURL() | ValueError():
            return UpstreamFailed(f"{where} cannot be asked: {error}", again=False)
    if isinstance(error, aiohttp.ClientResponseError) and error.status == 400:  # so says aiohttp itself
        return _for_good(f"what {where} sends is no HTTP; should it be https://?")
    return UpstreamFailed(f"{where} did not answer: {str(error) or type(error).__name__}")


def _for_good(message: str) -> UpstreamFailed:
    """The same would happen again, but another upstream may answer."""
    return UpstreamFailed(message, again=False, elsewhere=True)


def _why(error: Exception) -> str:
    """In the words of OpenSSL or the system, and what to do if the certificate is one that nobody here trusts."""
    why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or getattr(error, "strerror", "")
    if "self-signed" in str(why) or "local issuer" in str(why):
        return f"{why}; if it is your own, name its file with `ca`, or in SSL_CERT_FILE"
    if "expired" in str(why) or "not yet valid" in str(why):
        return f"{why}; are the clocks right?"
    return str(why or error)


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Whether events are coming. Servers that name no type are taken at their first byte, by whoever reads it."""
    return response.headers.get(hdrs.CONTENT_TYPE, "").lower().startswith("text/event-stream")


async def read_whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body, or UpstreamFailed."""
    pieces: list[bytes] = []
    try:
        await _collect(response, limit + 1, pieces)
    except (aiohttp.ClientError, OSError) as error:
        raise broken_off(error) from error
    if sum(map(len, pieces)) > limit:
        raise UpstreamFailed(f"the upstream's reply has more than {limit:,} bytes", again=False)
    return b"".join(pieces)


def broken_off(error: Exception) -> UpstreamFailed:
    """The upstream had begun to answer. What aiohttp says of it is for those who know its parser."""
    why = f": {error}" if "decode" in str(error) else ""
    return UpstreamFailed(f"it broke off in the middle of its reply{why}")


async def _collect(response: aiohttp.ClientResponse, limit: int, pieces: list[bytes]) -> None:
    """What comes, until it is over or that much."""
    size = 0
    while size < limit and (piece := await response.content.readany()):
        pieces.append(piece)
        size += len(piece)


async def let_end(response: aiohttp.ClientResponse) -> None:
    """All has been said, and only the end of the body is to come, mostly at once: then the connection can be used
    again."""
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(ENDING):
            while await response.content.readany():
                pass
    response.close()
