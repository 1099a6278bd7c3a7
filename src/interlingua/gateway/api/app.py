"""Which path is what: the application that clients talk to."""

from __future__ import annotations

from aiohttp import web

from interlingua.gateway.api.endpoints import Handler, Pages
from interlingua.gateway.api.openapi import BASES
from interlingua.gateway.http.error_responses import SERVER
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.state import Gateway
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES

__all__ = ["make_app"]

ENDPOINTS = {"/chat/completions": CHAT, "/messages": MESSAGES, "/responses": RESPONSES}


def make_app(gateway: Gateway) -> web.Application:
    pages = Pages(gateway)

    @web.middleware
    async def told(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await pages.told(request, handler)

    app = web.Application(middlewares=[told])
    app.on_response_prepare.append(_named)
    for base in BASES:
        for path, wire in ENDPOINTS.items():
            app.router.add_post(base + path, _relayed(gateway, wire))
        for path in ("/messages/count_tokens", "/responses/input_tokens"):
            app.router.add_post(base + path, pages.closed(pages.count_tokens))
        app.router.add_get(f"{base}/models", pages.closed(pages.models))
        app.router.add_get(f"{base}/models/{{id:.+}}", pages.closed(pages.model))
    app.router.add_get("/openapi.json", pages.closed(pages.openapi))
    app.router.add_get("/metrics", pages.closed(pages.metrics))
    for path, page in (("/", pages.home), ("/healthz", pages.health), ("/readyz", pages.readiness)):
        app.router.add_get(path, page)  # for anyone who can reach this port: they tell nothing
    return app


async def _named(_: web.Request, response: web.StreamResponse) -> None:
    """There is no page here, and no browser should take anything for one."""
    response.headers["server"] = SERVER
    response.headers["x-content-type-options"] = "nosniff"
    response.headers["content-security-policy"] = "default-src 'none'"


def _relayed(gateway: Gateway, wire: str) -> Handler:
    async def relayed(request: web.Request) -> web.StreamResponse:
        return await Relay(gateway, request, wire).run()

    return relayed
