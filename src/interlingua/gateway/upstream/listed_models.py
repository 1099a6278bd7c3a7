"""Model list of an upstream: the ids in it, and the model server that it shows."""

from __future__ import annotations

import asyncio

import aiohttp
import msgspec

from interlingua.common.jsontext.codec import read_full_object
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Upstream
from interlingua.gateway.upstream.connector import make_connector
from interlingua.gateway.upstream.http_client import headers_for, models_url, read_full_body, send_request
from interlingua.gateway.upstream.secret_filter import SecretFilter
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.upstreams.server_detection import ServerAnswer, detect_by_models

__all__ = ["MAX_MODEL_LIST_BYTES", "MISSING_STATUSES", "NO_WIRE", "ListedModels", "fetch_models", "read_models"]

NO_WIRE = ""
"""Wire of the client: all APIs share the path of the model list, so no header of one API is forwarded."""
HTML_TYPE = "text/html"
MISSING_STATUSES = frozenset({404, 405, 501})
"""Statuses of a path that a server does not have. A model list is usual, and not required."""
MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024
MAX_MODEL_LIST_VALUES = 1_000_000


class ListedModels(msgspec.Struct, frozen=True):
    """Models that an upstream lists."""

    ids: list[str] = []
    server: str = ""
    """Profile of the model server, as the list shows it; "" if it is unknown."""
    is_web_page: bool = False
    """True if the upstream answered with an HTML page: its URL is probably wrong."""


def fetch_models(route: Route, connect_seconds: float, total_seconds: float) -> ListedModels:
    """Ask an upstream for its models, outside a gateway. The list is empty if it is not readable.

    Raises:
        UpstreamFailed: The upstream cannot be reached, or answers with an error.
        TimeoutError: The answer takes longer than `total_seconds`.
    """
    timeouts = msgspec.structs.replace(route.timeouts, connect=connect_seconds)
    hasty_route = msgspec.structs.replace(route, timeouts=timeouts)

    async def fetch() -> ListedModels:
        headers = headers_for(hasty_route, NO_WIRE, {}, "", stream=False)
        async with asyncio.timeout(total_seconds), aiohttp.ClientSession(connector=make_connector()) as session:
            response = await send_request(session, hasty_route, models_url(route.upstream), None, headers)
            async with response:
                data = await read_full_body(response, MAX_MODEL_LIST_BYTES)
            response_headers = {name.lower(): value for name, value in response.headers.items()}
            if response.content_type == HTML_TYPE:
                return ListedModels(is_web_page=True)
            return read_models(data, route.upstream, MAX_MODEL_LIST_VALUES, response_headers)

    return asyncio.run(fetch())


def read_models(
    data: bytes, upstream: Upstream, max_values: int, headers: dict[str, str] | None = None
) -> ListedModels:
    """Return the models in the list of an upstream, without its key. Raises UpstreamFailed if the list is too large."""
    if not has_at_most_values(data, max_values):
        raise UpstreamFailed(f"the list has more than {max_values:,} JSON values (limits.values)", retryable=False)
    secret_filter = SecretFilter(upstream)
    body = read_full_object((secret_filter.feed(data) + secret_filter.flush()).decode("utf-8", "replace")) or {}
    models = body.get("data")
    ids = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    server = detect_by_models(ServerAnswer(body, headers or {}))
    return ListedModels([id for id in ids if isinstance(id, str) and id], server)
