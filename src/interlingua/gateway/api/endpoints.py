"""What the gateway answers itself: which models there are, how it is and is asked, how many tokens a request has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from aiohttp import web

from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import InterlinguaError
from interlingua.gateway.api.model_list import Catalogue
from interlingua.gateway.api.openapi import description
from interlingua.gateway.api.token_counter import Counting
from interlingua.gateway.http.error_responses import Missing, error_body
from interlingua.gateway.http.request_body__bodies import decoded, read_body
from interlingua.gateway.observability.metrics import CONTENT_TYPE
from interlingua.gateway.state import Gateway
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES

__all__ = ["Handler", "Pages"]

SINCE = "2025-01-01T00:00:00Z"
SINCE_SECONDS = 1735689600
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._catalogue = Catalogue(gateway)
        self._counting = Counting(gateway)

    def closed(self, page: Handler) -> Handler:
        """The page for those who may ask: it tells something."""

        async def checked(request: web.Request) -> web.StreamResponse:
            self._gateway.setup.access.check_origin(request.headers)
            self._gateway.setup.access.check_key(request.headers)
            return await page(request)

        return checked

    async def told(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors in the client's words."""
        try:
            return await handler(request)
        except InterlinguaError as error:
            return _refused(request, error)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            known = "POST /v1/chat/completions, /v1/messages and /v1/responses"
            missing = Missing(f"there is no {request.method} {request.path[:200]}", f"there are {known}")
            missing.status = error.status
            return _refused(request, missing, {"allow": error.headers["allow"]} if "allow" in error.headers else {})

    async def home(self, _: web.Request) -> web.Response:
        return web.Response(text="interlingua\n")

    async def health(self, _: web.Request) -> web.Response:
        """Whether this process lives."""
        return web.Response(text="ok\n")

    async def readiness(self, _: web.Request) -> web.Response:
        """Whether more requests should come."""
        ready = self._gateway.ready
        return web.Response(status=200 if ready else 503, text="ready\n" if ready else "stopping\n")

    async def openapi(self, _: web.Request) -> web.Response:
        return _json(200, encode_json(description()))

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._gateway.metrics.render(), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: web.Request) -> web.Response:
        ids = await self._catalogue.ids(request.headers)
        ends = {"first_id": ids[0], "last_id": ids[-1]} if ids else {"first_id": None, "last_id": None}
        page = {"object": "list", "data": [_model(id) for id in ids], "has_more": False, **ends}
        return _json(200, encode_json(page))

    async def model(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        self._gateway.setup.routes.find(id)
        return _json(200, encode_json(_model(id)))

    async def count_tokens(self, request: web.Request) -> web.Response:
        """As Messages and Responses want to hear it."""
        wire = MESSAGES if "messages" in request.path else RESPONSES
        body = decoded(await read_body(request, self._gateway.setup.settings.limits))
        tokens, estimated = await self._counting.count(body, wire, request.headers)
        told: dict[str, Any] = {"input_tokens": tokens}
        told |= {"object": "response.input_tokens"} if wire == RESPONSES else {}
        if not estimated:
            return _json(200, encode_json(told))
        return _json(200, encode_json({**told, "estimated": True}), {"x-interlingua-estimate": "true"})


def _model(id: str) -> dict[str, Any]:
    """As clients of each wire read it: they look at different fields."""
    openai = {"id": id, "object": "model", "created": SINCE_SECONDS, "owned_by": "interlingua"}
    return openai | {"type": "model", "display_name": id, "created_at": SINCE}


def _wire(request: web.Request) -> str:
    return MESSAGES if "anthropic-version" in request.headers or "messages" in request.path else CHAT


def _refused(request: web.Request, error: InterlinguaError, headers: dict[str, str] | None = None) -> web.Response:
    id = f"req_{uuid4().hex}"
    return _json(error.status, error_body(_wire(request), error, id), {**(headers or {}), "x-interlingua-id": id})


def _json(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
