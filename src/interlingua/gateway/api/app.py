"""Which path is what: the application that clients talk to."""

from __future__ import annotations

from aiohttp import web

from interlingua.gateway.api.endpoints import Endpoints, Handler
from interlingua.gateway.api.openapi import BASE_PATHS
from interlingua.gateway.http.error_responses import SERVER_NAME
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.state import GatewayState
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES

__all__ = ["make_app"]

RELAY_ENDPOINTS = {"/chat/completions": CHAT, "/messages": MESSAGES, "/responses": RESPONSES}


def make_app(gateway: GatewayState) -> web.Application:
    endpoints = Endpoints(gateway)

    @web.middleware
    async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await endpoints.error_middleware(request, handler)

    app = web.Application(middlewares=[error_middleware])
    app.on_response_prepare.append(_set_response_headers)
    for base in BASE_PATHS:
        for path, wire in RELAY_ENDPOINTS.items():
            app.router.add_post(base + path, _relay_handler(gateway, wire))
        for path in ("/messages/count_tokens", "/responses/input_tokens"):
            app.router.add_post(base + path, endpoints.require_auth(endpoints.count_tokens))
        app.router.add_get(f"{base}/models", endpoints.require_auth(endpoints.models))
        app.router.add_get(f"{base}/models/{{id:.+}}", endpoints.require_auth(endpoints.model))
    app.router.add_get("/openapi.json", endpoints.require_auth(endpoints.openapi))
    app.router.add_get("/metrics", endpoints.require_auth(endpoints.metrics))
    for path, endpoint in (("/", endpoints.home), ("/healthz", endpoints.health), ("/readyz", endpoints.readiness)):
        app.router.add_get(path, endpoint)  # for anyone who can reach this port: they tell nothing
    return app


async def _set_response_headers(_: web.Request, response: web.StreamResponse) -> None:
    """There is no page here, and no browser should take anything for one."""
    response.headers["server"] = SERVER_NAME
    response.headers["x-content-type-options"] = "nosniff"
    response.headers["content-security-policy"] = "default-src 'none'"


def _relay_handler(gateway: GatewayState, wire: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await Relay(gateway, request, wire).run()

    return handle
