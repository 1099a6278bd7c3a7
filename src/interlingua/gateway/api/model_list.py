"""Model list: the models of the settings, and the models that the default upstream lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from interlingua.common.jsontext.codec import read_full_object
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.state import GatewayState
from interlingua.gateway.upstream.http_client import (
    OutOfDescriptors,
    headers_for,
    models_url,
    read_full_body,
    send_request,
)
from interlingua.gateway.upstream.secret_filter import SecretFilter
from interlingua.translation.upstream_errors import UpstreamFailed

__all__ = ["ModelList"]

MODEL_LIST_TTL_SECONDS = 60.0
"""Seconds for which the model list of an upstream is cached."""
NO_WIRE = ""
"""Wire of the client: all APIs share the path of the model list, so no header of one API is forwarded."""
MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024
MODEL_LIST_TIMEOUT_SECONDS = 5.0


class ModelList:
    """Model ids of the settings and of the default upstream. The list of the upstream is cached."""

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway
        self._cached_ids: dict[str, tuple[float, list[str]]] = {}  # by URL: time of the request, model ids

    async def ids(self, client_headers: Mapping[str, str]) -> list[str]:
        """Return all model ids. Never raises: an upstream that fails to list its models may still serve them."""
        routes = self._gateway.config.routes
        configured, default = routes.model_ids(), routes.default
        upstream_ids = await self._upstream_ids(default, client_headers) if default else []
        return list(dict.fromkeys([*configured, *upstream_ids]))

    async def _upstream_ids(self, route: Route, client_headers: Mapping[str, str]) -> list[str]:
        url = str(models_url(route.upstream))
        fetched_at, ids = self._cached_ids.get(url, (0.0, []))
        if not fetched_at or time.monotonic() - fetched_at > MODEL_LIST_TTL_SECONDS:
            ids = await self._fetch_ids(route, client_headers)
            if not route.upstream.passthrough:  # with the client's own key the list may be specific to that client
                self._cached_ids[url] = (time.monotonic(), ids)
        return ids

    async def _fetch_ids(self, route: Route, client_headers: Mapping[str, str]) -> list[str]:
        session = self._gateway.session
        assert session is not None, "the session is opened before the gateway listens"
        passthrough_key = self._gateway.config.authenticator.passthrough_key(client_headers)
        headers = headers_for(route, NO_WIRE, client_headers, passthrough_key, stream=False)
        try:
            async with asyncio.timeout(MODEL_LIST_TIMEOUT_SECONDS):
                async with await send_request(session, route, models_url(route.upstream), None, headers) as response:
                    data = await read_full_body(response, MAX_MODEL_LIST_BYTES)
        except (TimeoutError, UpstreamFailed, OutOfDescriptors) as error:
            self._gateway.log.debug("cannot get the model list of an upstream", upstream=route.name, error=str(error))
            return []
        secret_filter = SecretFilter(route.upstream)
        body = read_full_object((secret_filter.feed(data) + secret_filter.flush()).decode("utf-8", "replace"))
        models = body.get("data") if body else None
        ids = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
        return [id for id in ids if isinstance(id, str) and id]
