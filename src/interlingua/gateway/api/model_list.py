"""Model list: the models of the settings, and the models that the default upstream lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from interlingua.common.jsontext.codec import encode_json
from interlingua.gateway.http.error_responses import TooLarge
from interlingua.gateway.http.memory_budget import MemoryShare, decoded_size
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.state import GatewayState
from interlingua.gateway.upstream.http_client import (
    OutOfDescriptors,
    headers_for,
    models_url,
    read_full_body,
    send_request,
)
from interlingua.gateway.upstream.listed_models import MAX_MODEL_LIST_BYTES, NO_WIRE, read_models
from interlingua.translation.upstream_errors import UpstreamFailed

__all__ = ["ModelList", "model_object"]

MODEL_LIST_TTL_SECONDS = 60.0
"""Seconds for which the model list of an upstream is cached."""
MAX_UPSTREAM_MODELS = 5000
MAX_MODEL_ID_CHARS = 256
MODEL_LIST_TIMEOUT_SECONDS = 1.5
"""Seconds to wait for the list of an upstream. Claude Code gives up after three."""

MODEL_CREATED_AT = "2025-01-01T00:00:00Z"
MODEL_CREATED_SECONDS = 1735689600
MODEL_OBJECT_BYTES = 200
"""Approximate size of a model object in JSON."""


class ModelList:
    """Model ids of the settings and of the default upstream. The list of the upstream is cached."""

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway
        self._cached_ids: dict[str, tuple[float, list[str]]] = {}  # by URL: time of the request, model ids
        self._encoded: tuple[list[str], bytes] = ([], _encode_list([]))  # the last list, and its JSON

    async def encode(self, client_headers: Mapping[str, str], memory: MemoryShare) -> bytes:
        """Return the list as JSON. An upstream that fails to list its models may still serve them: it is no error, and
        its last list is used.

        Raises:
            OutOfMemory: The memory budget is used up.
        """
        routes = self._gateway.config.routes
        configured, default = routes.model_ids(), routes.default
        if self._gateway.cassettes is not None:
            configured += self._gateway.cassettes.model_ids
        upstream_ids = await self._upstream_ids(default, client_headers, memory) if default else []
        ids = list(dict.fromkeys([*configured, *upstream_ids]))
        encoded_ids, encoded = self._encoded
        if ids != encoded_ids:
            encoded = await self._gateway.work_threads.run(
                "model list", MODEL_OBJECT_BYTES * len(ids), _encode_list, ids
            )
            self._encoded = ids, encoded
        return encoded

    async def _upstream_ids(self, route: Route, client_headers: Mapping[str, str], memory: MemoryShare) -> list[str]:
        url = str(models_url(route.upstream))
        fetched_at, ids = self._cached_ids.get(url, (0.0, []))
        if not fetched_at or time.monotonic() - fetched_at > MODEL_LIST_TTL_SECONDS:
            ids = await self._fetch_ids(route, client_headers, memory) or ids
            if not route.upstream.passthrough:  # with the client's own key the list may be specific to that client
                self._cached_ids[url] = (time.monotonic(), ids)
        return ids

    async def _fetch_ids(self, route: Route, client_headers: Mapping[str, str], memory: MemoryShare) -> list[str]:
        session, log = self._gateway.session, self._gateway.log
        assert session is not None, "the session is opened before the gateway listens"
        passthrough_key = self._gateway.config.authenticator.passthrough_key(client_headers)
        headers = headers_for(route, NO_WIRE, client_headers, passthrough_key, stream=False)
        report = log.debug  # many servers have no model list
        try:
            async with asyncio.timeout(MODEL_LIST_TIMEOUT_SECONDS):
                async with await send_request(session, route, models_url(route.upstream), None, headers) as response:
                    report = log.error
                    data = await read_full_body(response, MAX_MODEL_LIST_BYTES)
            memory.grow(decoded_size(data))
            max_values = self._gateway.config.settings.limits.values
            models = await self._gateway.work_threads.run(
                "model list", len(data), read_models, data, route.upstream, max_values
            )
        except (TimeoutError, UpstreamFailed, OutOfDescriptors, TooLarge) as error:
            report("cannot get the model list of an upstream", upstream=route.name, error=str(error))
            return []
        accepted = [id for id in models.ids if len(id) <= MAX_MODEL_ID_CHARS][:MAX_UPSTREAM_MODELS]
        if len(accepted) < len(models.ids):
            limits = f"{MAX_UPSTREAM_MODELS:,} models, ids of {MAX_MODEL_ID_CHARS} characters"
            left_out = len(models.ids) - len(accepted)
            log.error("the model list of an upstream is shortened", upstream=route.name, left_out=left_out, max=limits)
        return accepted


def _encode_list(ids: list[str]) -> bytes:
    id_range = {"first_id": ids[0], "last_id": ids[-1]} if ids else {"first_id": None, "last_id": None}
    return encode_json({"object": "list", "data": list(map(model_object, ids)), "has_more": False, **id_range})


def model_object(id: str) -> dict[str, Any]:
    """Return the model object with the fields of OpenAI and of Anthropic: clients read different fields."""
    openai = {"id": id, "object": "model", "created": MODEL_CREATED_SECONDS, "owned_by": "interlingua"}
    return openai | {"type": "model", "display_name": id, "created_at": MODEL_CREATED_AT}
