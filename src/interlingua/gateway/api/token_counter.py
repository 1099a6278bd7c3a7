"""Token counts for requests that are counted but not answered: by the upstream if possible, otherwise estimated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.options import Options
from interlingua.errors import InterlinguaError
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.state import GatewayState
from interlingua.gateway.upstream.http_client import (
    OutOfDescriptors,
    count_tokens_url,
    headers_for,
    read_full_body,
    send_request,
)
from interlingua.translation.request_translation import prepare_request
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.wires import get_wire

__all__ = ["TokenCounter"]

COUNT_TIMEOUT_SECONDS = 3.0
"""Seconds to wait for the count of an upstream. Clients count before each request, and some send fifty at once."""
UNSUPPORTED_FOR_SECONDS = 300.0
"""Seconds for which no count is requested from an upstream that could not count."""
MAX_COUNT_REPLY_BYTES = 64 * 1024
UNSUPPORTED_STATUSES = frozenset({404, 405, 501})
"""Statuses of a server that does not have the endpoint."""


class TokenCounter:
    """Counts the input tokens of requests, and remembers upstreams that cannot count."""

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway
        self._unsupported_until: dict[str, float] = {}  # by URL

    async def count(
        self, body: dict[str, Any], body_size: int, wire: str, client_headers: Mapping[str, str], client_id: str
    ) -> tuple[int, bool]:
        """Count the input tokens of a request. Never raises: if the upstream cannot count, the tokens are estimated.

        Returns:
            The number of tokens, and whether it is an estimate.
        """
        route = self._find_route(body.get("model"))
        if route is not None and self._can_count_upstream(route):
            tokens = await self._count_upstream(body, body_size, wire, route, client_headers, client_id)
            if tokens is not None:
                return tokens, False
        names = (route.name, route.model) if route is not None else ("", "")
        calibration = self._gateway.token_calibration
        return await self._gateway.work_threads.run(client_id, body_size, calibration.count, body, *names), True

    def _find_route(self, model: Any) -> Route | None:
        try:
            return self._gateway.config.routes.find(model)[0] if isinstance(model, str) and model else None
        except InterlinguaError:
            return None

    def _can_count_upstream(self, route: Route) -> bool:
        upstream = route.upstream
        api = get_wire(upstream.api).HTTP_API
        enabled = {"auto": api.counts_by_default, "upstream": bool(api.count_path), "estimate": False}
        return (
            enabled[upstream.count_tokens]
            and self._unsupported_until.get(str(count_tokens_url(upstream)), 0.0) < time.monotonic()
        )

    async def _count_upstream(
        self,
        body: dict[str, Any],
        body_size: int,
        wire: str,
        route: Route,
        client_headers: Mapping[str, str],
        client_id: str,
    ) -> int | None:
        config, session = self._gateway.config, self._gateway.session
        assert session is not None, "the session is opened before the gateway listens"
        url = count_tokens_url(route.upstream)
        try:
            seal_key = config.seal_key_for(client_id)
            options = Options(seal_key=seal_key, upstream=route.target.identity)
            request_body = await self._gateway.work_threads.run(
                client_id, body_size, _count_request, body, wire, route, options
            )
        except InterlinguaError:
            return None
        headers = headers_for(
            route, wire, client_headers, config.authenticator.passthrough_key(client_headers), stream=False
        )
        try:
            async with asyncio.timeout(COUNT_TIMEOUT_SECONDS):
                async with await send_request(session, route, url, request_body, headers) as response:
                    reply = (
                        read_full_object(
                            (await read_full_body(response, MAX_COUNT_REPLY_BYTES)).decode("utf-8", "replace")
                        )
                        or {}
                    )
        except (TimeoutError, UpstreamFailed, OutOfDescriptors) as error:
            self._gateway.log.debug("cannot get a token count from an upstream", upstream=route.name, error=str(error))
            status = error.upstream_status if isinstance(error, UpstreamFailed) else None
            if isinstance(error, TimeoutError) or status in UNSUPPORTED_STATUSES:
                self._unsupported_until[str(url)] = time.monotonic() + UNSUPPORTED_FOR_SECONDS
            return None
        tokens = reply.get("input_tokens")
        return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else None


def _count_request(body: dict[str, Any], wire: str, route: Route, options: Options) -> bytes:
    """Return the body of the request for a token count. Raises InterlinguaError if it cannot be translated."""
    api = route.upstream.api
    translated = prepare_request(body, wire, api, route.model, route.profile, options).body
    counted_fields = get_wire(api).HTTP_API.counted_fields
    return encode_json({name: translated[name] for name in counted_fields if name in translated})
