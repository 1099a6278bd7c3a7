"""Token counts for requests that are counted but not answered: by the upstream if possible, otherwise estimated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.options import Options
from interlingua.errors import InterlinguaError
from interlingua.gateway.http.error_responses import TooManyRequests
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
"""Seconds for which no count is requested from an upstream that does not have the endpoint."""
SLOW_FOR_SECONDS = 10.0
"""Seconds for which no count is requested from an upstream that took too long."""
MAX_COUNT_REPLY_BYTES = 64 * 1024
UNSUPPORTED_STATUSES = frozenset({404, 405, 501})
"""Statuses of a server that does not have the endpoint."""


class TokenCounter:
    """Counts the input tokens of requests, and remembers upstreams that cannot count.

    Upstreams are remembered per client: a client can cause a slow count, or status 404 with an unknown model.
    """

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway
        self._open_counts = gateway.memory.open_token_counts
        self._estimated_until: dict[tuple[str, str], float] = {}  # by URL and client

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count a request for a count as open. Raises TooManyRequests if there are `limits.streams` already."""
        limit = self._gateway.config.settings.limits.streams
        self._open_counts.add(1)
        try:
            if self._open_counts.total > limit:
                raise TooManyRequests(
                    f"the gateway already counts {limit} requests (limits.streams)", "retry in a second"
                )
            yield
        finally:
            self._open_counts.add(-1)

    async def count(
        self, body: dict[str, Any], body_size: int, wire: str, client_headers: Mapping[str, str], client_id: str
    ) -> tuple[int, bool]:
        """Count the input tokens of a request. If the upstream cannot count, the tokens are estimated.

        Only a count of the upstream is a request for `client_limits`. An estimate needs no upstream.

        Returns:
            The number of tokens, and whether it is an estimate.

        Raises:
            RateLimited: The client has reached one of its limits.
        """
        route = self._find_route(body.get("model"), wire)
        config = self._gateway.config
        if route is not None and self._can_count_upstream(route, client_id):
            limited_client = client_id if config.settings.keys else ""
            counted_request = self._gateway.client_limiter.begin(limited_client, config.settings.client_limits)
            try:
                tokens = await self._count_upstream(body, body_size, wire, route, client_id, client_headers)
            finally:
                if counted_request is not None:
                    counted_request.end(tokens=0)
            if tokens is not None:
                return tokens, False
        names = (route.name, route.model) if route is not None else ("", "")
        calibration = self._gateway.token_calibration
        return await self._gateway.work_threads.run(client_id, body_size, calibration.count, body, *names), True

    def _find_route(self, model: Any, wire: str) -> Route | None:
        try:
            return self._gateway.config.routes.find(model, wire)[0] if isinstance(model, str) and model else None
        except InterlinguaError:
            return None

    def _can_count_upstream(self, route: Route, client_id: str) -> bool:
        upstream = route.upstream
        api = get_wire(upstream.api).HTTP_API
        enabled = {"auto": api.counts_by_default, "upstream": bool(api.count_path), "estimate": False}
        estimated_until = self._estimated_until.get((str(count_tokens_url(upstream)), client_id), 0.0)
        return enabled[upstream.count_tokens] and estimated_until < time.monotonic()

    async def _count_upstream(
        self,
        body: dict[str, Any],
        body_size: int,
        wire: str,
        route: Route,
        client_id: str,
        client_headers: Mapping[str, str],
    ) -> int | None:
        config, session = self._gateway.config, self._gateway.session
        assert session is not None, "the session is opened before the gateway listens"
        url = count_tokens_url(route.upstream)
        try:
            seal_key = config.seal_key_for(client_id)
            options = Options(seal_key=seal_key, upstream=route.target.identity, limits=config.settings.limits)
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
            pause = SLOW_FOR_SECONDS if isinstance(error, TimeoutError) else 0.0
            pause = UNSUPPORTED_FOR_SECONDS if status in UNSUPPORTED_STATUSES else pause
            self._estimated_until[str(url), client_id] = time.monotonic() + pause
            return None
        tokens = reply.get("input_tokens")
        return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else None


def _count_request(body: dict[str, Any], wire: str, route: Route, options: Options) -> bytes:
    """Return the body of the request for a token count. Raises InterlinguaError if it cannot be translated."""
    api = route.upstream.api
    translated = prepare_request(body, wire, api, route.model, route.profile, options).body
    counted_fields = get_wire(api).HTTP_API.counted_fields
    return encode_json({name: translated[name] for name in counted_fields if name in translated})
