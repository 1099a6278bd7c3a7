"""Which path is what: the application that clients talk to."""

from __future__ import annotations

from aiohttp import web

from interlingua.gateway.gateway import Gateway
from interlingua.gateway.pages import Handler, Pages
from interlingua.gateway.relay import Relay
from interlingua.profile import CHAT, MESSAGES, RESPONSES

__all__ = ["make_app"]

ENDPOINTS = {"/chat/completions": CHAT, "/messages": MESSAGES, "/responses": RESPONSES}
BASES = ("/v1", "")
"""Clients differ in whether their base URL has the version in it, and so do the people who set it."""


def make_app(gateway: Gateway) -> web.Application:
    pages = Pages(gateway)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await pages.guard(request, handler)

    app = web.Application(middlewares=[guard])
    for base in BASES:
        for path, wire in ENDPOINTS.items():
            app.router.add_post(base + path, _relayed(gateway, wire))
        app.router.add_post(f"{base}/messages/count_tokens", pages.count_tokens)
        app.router.add_get(f"{base}/models", pages.models)
        app.router.add_get(f"{base}/models/{{id:.+}}", pages.model)
    for path, page in (("/", pages.home), ("/healthz", pages.health), ("/readyz", pages.readiness)):
        app.router.add_get(path, page)
    app.router.add_get("/metrics", pages.metrics)
    return app


def _relayed(gateway: Gateway, wire: str) -> Handler:
    async def relayed(request: web.Request) -> web.StreamResponse:
        return await Relay(gateway, request, wire).run()

    return relayed
