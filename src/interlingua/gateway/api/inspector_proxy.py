"""Path `/inspector` of the gateway: forwards requests for the page to the inspector's process."""

from __future__ import annotations

import aiohttp
import msgspec
from aiohttp import web

from interlingua.errors import InterlinguaError
from interlingua.gateway.inspector.page_access import PageAccess, page_key
from interlingua.gateway.inspector.socket_paths import http_path
from interlingua.gateway.state import GatewayState

__all__ = ["InspectorProxy"]

FORWARDED_RESPONSE_HEADERS = ("content-type", "content-disposition", "location", "cache-control", "referrer-policy")
POLICY_HEADERS = ("content-security-policy", "cross-origin-opener-policy", "cross-origin-resource-policy")


class InspectorProxy:
    """Forwards GET requests. A slow page slows down only its own connection."""

    def __init__(self, gateway: GatewayState, folder: str) -> None:
        self._gateway = gateway
        self._path = http_path(folder)
        self._session: aiohttp.ClientSession | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        settings = self._gateway.config.settings
        try:
            PageAccess(settings, page_key(settings)).check(request.path, request.headers)
        except InterlinguaError as error:
            return _error_response(error.status, str(error), error.hint)
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
            self._session = aiohttp.ClientSession(connector=aiohttp.UnixConnector(self._path), timeout=timeout)
        url = f"http://{request.host}{request.raw_path}"
        try:
            async with self._session.get(url, allow_redirects=False) as response:
                return await _forward(request, response)
        except aiohttp.ClientConnectorError:
            return _error_response(503, "the inspector's process is not ready", "try again in a second")
        except (aiohttp.ClientError, OSError) as error:
            return _error_response(502, f"the inspector's process failed: {error}", "reload the page")

    async def close(self, _: web.Application) -> None:
        if self._session is not None:
            await self._session.close()


async def _forward(request: web.Request, response: aiohttp.ClientResponse) -> web.StreamResponse:
    names = (*FORWARDED_RESPONSE_HEADERS, *POLICY_HEADERS)
    headers = {name: response.headers[name] for name in names if name in response.headers}
    forwarded = web.StreamResponse(status=response.status, headers=headers)
    await forwarded.prepare(request)
    try:
        async for block in response.content.iter_any():
            await forwarded.write(block)
        await forwarded.write_eof()
    except aiohttp.ClientError:  # the process has died: the browser must not take this for the whole response
        if request.transport is not None:
            request.transport.abort()
    return forwarded


def _error_response(status: int, message: str, hint: str) -> web.Response:
    body = msgspec.json.encode({"error": message, "hint": hint})
    return web.Response(status=status, body=body, content_type="application/json")
