"""aiohttp application: maps paths to handlers and sets the response headers."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from interlingua.gateway.api.endpoints import Endpoints, unknown_endpoint
from interlingua.gateway.api.openapi import BASE_PATHS
from interlingua.gateway.http.error_responses import SERVER_NAME
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.state import GatewayState
from interlingua.wires import WIRES, get_wire

__all__ = ["make_app"]


def make_app(gateway: GatewayState) -> web.Application:
    """Return the application. It has no middleware: one would hold memory as long as a stream lasts."""
    endpoints = Endpoints(gateway)
    app = web.Application()
    app.on_response_prepare.append(_set_response_headers)
    for base in BASE_PATHS:
        for wire in WIRES:
            api = get_wire(wire).HTTP_API
            app.router.add_post(base + api.path, partial(Relay.handle, gateway, wire))  # it reports errors itself
            if api.count_path:  # it checks the key itself
                app.router.add_post(base + api.count_path, endpoints.report_errors(endpoints.count_tokens(wire)))
        app.router.add_get(f"{base}/models", endpoints.require_auth(endpoints.models))
        app.router.add_get(f"{base}/models/{{id:.+}}", endpoints.require_auth(endpoints.model))
    app.router.add_get("/openapi.json", endpoints.require_auth(endpoints.openapi))
    app.router.add_get("/status", endpoints.require_auth(endpoints.status))
    app.router.add_get("/metrics", endpoints.require_auth(endpoints.metrics))
    for path, endpoint in (("/", endpoints.home), ("/healthz", endpoints.health), ("/readyz", endpoints.readiness)):
        app.router.add_get(path, endpoint)  # no authentication: these responses contain no private data
    app.router.add_route("*", "/{path:.*}", unknown_endpoint(list(app.router.resources())))
    return app


async def _set_response_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set security headers. The gateway serves no pages, and a browser must not interpret a response as a page."""
    response.headers["server"] = SERVER_NAME
    response.headers["x-content-type-options"] = "nosniff"
    response.headers["content-security-policy"] = "default-src 'none'"
