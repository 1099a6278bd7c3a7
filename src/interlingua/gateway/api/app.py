"""aiohttp application: maps paths to handlers and sets the response headers."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from interlingua.gateway.api.endpoints import Endpoints, unknown_endpoint
from interlingua.gateway.api.inspector_proxy import InspectorProxy
from interlingua.gateway.api.openapi import BASE_PATHS
from interlingua.gateway.api.search import SearchEndpoint
from interlingua.gateway.api.stored_responses import Conversations, StoredResponses
from interlingua.gateway.api.websocket import WebSocketEndpoint
from interlingua.gateway.http.error_responses import SERVER_NAME
from interlingua.gateway.relay.relay import Relay
from interlingua.gateway.state import GatewayState
from interlingua.wires import WIRES, get_wire
from interlingua.wires.http_api import HttpApi

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
            if api.compact_path:
                handler = endpoints.report_errors(partial(Relay.compact, gateway, wire))
                app.router.add_post(base + api.compact_path, handler)
            if api.search_path:
                handler = endpoints.report_errors(SearchEndpoint(gateway, wire).handle)
                app.router.add_post(base + api.search_path, handler)
            if api.has_websocket:
                websocket = WebSocketEndpoint(gateway, wire)
                app.router.add_get(base + api.path, endpoints.report_errors(websocket.handle), allow_head=False)
                app.on_shutdown.append(websocket.close)
            if api.stores_replies:
                _add_stored_replies(app, gateway, endpoints, base, api)
        app.router.add_get(f"{base}/models", endpoints.require_auth(endpoints.models))
        app.router.add_get(f"{base}/models/{{id:.+}}", endpoints.require_auth(endpoints.model))
    app.router.add_get("/openapi.json", endpoints.require_auth(endpoints.openapi))
    app.router.add_get("/status", endpoints.require_auth(endpoints.status))
    app.router.add_get("/metrics", endpoints.require_auth(endpoints.metrics))
    for path, endpoint in (("/", endpoints.home), ("/healthz", endpoints.health), ("/readyz", endpoints.readiness)):
        app.router.add_get(path, endpoint)  # no authentication: these responses contain no private data
    if gateway.inspector_folder:
        inspector = InspectorProxy(gateway, gateway.inspector_folder)
        app.router.add_get("/inspector{path:(?:/.*)?}", inspector.handle, allow_head=False)
        app.on_cleanup.append(inspector.close)
    app.router.add_route("*", "/{path:.*}", unknown_endpoint(gateway.log, list(app.router.resources())))
    return app


def _id_pattern(*other_paths: str) -> str:
    """Return the pattern of an id in a path, which the last part of no other path matches."""
    names = "|".join(path.rpartition("/")[2] for path in other_paths if path)
    return f"{{id:(?!(?:{names})(?:/|$))[^/]+}}"


async def _set_response_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set security headers. A browser must not interpret a response as a page; the inspector's has its own policy."""
    response.headers["server"] = SERVER_NAME
    response.headers["x-content-type-options"] = "nosniff"
    response.headers.setdefault("content-security-policy", "default-src 'none'")


def _add_stored_replies(
    app: web.Application, gateway: GatewayState, endpoints: Endpoints, base: str, api: HttpApi
) -> None:
    """Add the endpoints for stored replies and conversations. They check the key themselves."""
    stored, conversations, report_errors = StoredResponses(gateway), Conversations(gateway), endpoints.report_errors
    reply_path = f"{base}{api.path}/{_id_pattern(api.compact_path, api.count_path)}"
    conversation_path = f"{base}/conversations"
    app.router.add_get(reply_path, report_errors(stored.get))
    app.router.add_delete(reply_path, report_errors(stored.delete))
    app.router.add_get(f"{reply_path}/input_items", report_errors(stored.input_items))
    app.router.add_post(f"{reply_path}/cancel", report_errors(stored.cancel))
    app.router.add_post(conversation_path, report_errors(conversations.create))
    app.router.add_get(f"{conversation_path}/{{id}}", report_errors(conversations.get))
    app.router.add_delete(f"{conversation_path}/{{id}}", report_errors(conversations.delete))
    app.router.add_get(f"{conversation_path}/{{id}}/items", report_errors(conversations.items))
