"""Endpoints that the gateway answers itself: model list, token counts, health, status, metrics, OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import closing
from itertools import chain
from typing import Any
from uuid import uuid4

from aiohttp import web

from interlingua.common.jsontext.codec import encode_json
from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.errors import InterlinguaError
from interlingua.gateway.api.model_list import ModelList, model_object
from interlingua.gateway.api.openapi import openapi_document
from interlingua.gateway.api.status_report import gateway_status
from interlingua.gateway.api.token_counter import TokenCounter
from interlingua.gateway.http.client_limits import RateLimited
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.error_responses import NotFound, error_body, retry_after_header
from interlingua.gateway.http.memory_budget import decoded_size
from interlingua.gateway.http.request_body import decode_body, read_body
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.observability.metrics import CONTENT_TYPE
from interlingua.gateway.state import GatewayState
from interlingua.wires import WIRES, get_wire
from interlingua.wires.http_api import VERSION_PATH

__all__ = ["Endpoints", "Handler", "unknown_endpoint"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoints:
    """Handlers of the endpoints that the gateway answers itself."""

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway
        self._model_list = ModelList(gateway)
        self._token_counter = TokenCounter(gateway)

    def require_auth(self, handler: Handler) -> Handler:
        """Wrap a handler so that it checks the origin and the API key of the request first, and reports errors."""

        async def authenticated(request: web.Request) -> web.StreamResponse:
            self._authenticate(request)
            return await handler(request)

        return self.report_errors(authenticated)

    def _authenticate(self, request: web.Request) -> str:
        """Check the origin and the API key of the request, and return the id of the client."""
        authenticator = self._gateway.config.authenticator
        authenticator.check_origin(request.headers)
        return authenticator.check_key(request.headers)

    def report_errors(self, handler: Handler) -> Handler:
        """Wrap a handler so that its exceptions become error responses in the format of the client's wire."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except InterlinguaError as error:
                if isinstance(error, RateLimited):
                    self._gateway.metrics.record_rate_limited(error.limit)
                return _error_response(self._gateway.log, request, error, retry_after_header(error))

        return handle

    async def home(self, _: web.Request) -> web.Response:
        return web.Response(text="interlingua\n")

    async def health(self, _: web.Request) -> web.Response:
        """Liveness check: the process is running."""
        return web.Response(text="ok\n")

    async def readiness(self, _: web.Request) -> web.Response:
        """Readiness check: 503 while the gateway is stopping."""
        ready = self._gateway.is_ready
        return web.Response(status=200 if ready else 503, text="ready\n" if ready else "stopping\n")

    async def openapi(self, _: web.Request) -> web.Response:
        return _json_response(200, encode_json(openapi_document()))

    async def metrics(self, _: web.Request) -> web.Response:
        metrics, known_models = self._gateway.metrics, self._gateway.config.routes.configured_targets
        metrics.publish_callbacks()
        status = gateway_status(self._gateway)
        if self._gateway.memory.has_several_workers:
            # The series of many workers take some milliseconds: a thread keeps the event loop free.
            body = await asyncio.to_thread(metrics.render, status, known_models)
        else:
            body = metrics.render(status, known_models)
        return web.Response(body=body, headers={"content-type": CONTENT_TYPE})

    async def status(self, _: web.Request) -> web.Response:
        return _json_response(200, encode_json(gateway_status(self._gateway)))

    async def models(self, request: web.Request) -> web.Response:
        with closing(self._gateway.memory_budget.open_share()) as memory:
            body = await self._model_list.encode(request.headers, memory)
            memory.resize(len(body))
            response = _json_response(200, body)
            await self._send(request, response)
        return response

    async def _send(self, request: web.Request, response: web.Response) -> None:
        """Send a response that may be large, and abort the connection of a client that does not read it."""
        await response.prepare(request)
        try:
            with MovingDeadline() as deadline:
                deadline.set_timeout("the client", self._gateway.config.settings.limits.send)
                await response.write_eof()
        except DeadlineExceeded:
            if request.transport is not None:
                request.transport.abort()

    async def model(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        self._gateway.config.routes.find(id)
        return _json_response(200, encode_json(model_object(id)))

    def count_tokens(self, wire: str) -> Handler:
        """Return the handler that counts the input tokens of a request of this wire, if its API key is valid."""

        async def handle(request: web.Request) -> web.Response:
            client_id = self._authenticate(request)
            limits, work_threads = self._gateway.config.settings.limits, self._gateway.work_threads
            with self._token_counter.admit(), closing(self._gateway.memory_budget.open_share()) as memory:
                data = await read_body(request, limits, memory)
                memory.resize(await work_threads.run(client_id, len(data), decoded_size, data))
                body = await work_threads.run(client_id, len(data), decode_body, data, limits)
                tokens, estimated = await self._token_counter.count(body, len(data), wire, request.headers, client_id)
            result: dict[str, Any] = {"input_tokens": tokens, **get_wire(wire).HTTP_API.count_reply}
            if not estimated:
                return _json_response(200, encode_json(result))
            return _json_response(200, encode_json({**result, "estimated": True}), {"x-interlingua-estimate": "true"})

        return handle


def unknown_endpoint(log: GatewayLog, resources: Collection[web.AbstractResource]) -> Handler:
    """Return the handler for paths and methods that none of these resources has: 404, or 405 with the methods."""

    async def handle(request: web.Request) -> web.StreamResponse:
        methods: set[str] = set()
        for resource in resources:
            methods |= (await resource.resolve(request))[1]
        available = f"POST {', '.join(VERSION_PATH + get_wire(wire).HTTP_API.path for wire in WIRES)}"
        error = NotFound(f"no endpoint {request.method} {request.path[:200]}", f"available: {available}")
        error.status = 405 if methods else 404
        return _error_response(log, request, error, {"allow": ",".join(sorted(methods))} if methods else {})

    return handle


def _client_wire(request: web.Request) -> str:
    """Return the wire of a client by its headers, else by its path, else the default wire."""
    apis = {wire: get_wire(wire).HTTP_API for wire in WIRES}
    by_header = (wire for wire, api in apis.items() if api.client_header and api.client_header in request.headers)
    by_path = (wire for wire, api in apis.items() if api.path in request.path)
    return next(chain(by_header, by_path), DEFAULT_WIRE)


def _error_response(
    log: GatewayLog, request: web.Request, error: InterlinguaError, headers: dict[str, str]
) -> web.Response:
    id = f"req_{uuid4().hex}"
    resource = request.match_info.route.resource  # a path itself may contain a secret, by mistake
    endpoint = resource.canonical if resource is not None else ""
    fields = {"id": id, "method": request.method, "endpoint": endpoint, "status": error.status}
    if error.internal_reason:
        log.error("request failed", **fields, error=error.log_message)
    else:
        log.info("request refused", **fields)
    return _json_response(
        error.status, error_body(_client_wire(request), error, id), {**headers, "x-interlingua-id": id}
    )


def _json_response(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
