"""How many tokens has a request that nobody wants answered? Its upstream may know; otherwise it is an estimate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from interlingua.common.jsontext.codec import encode_json, read_values
from interlingua.core.options import Options
from interlingua.errors import InterlinguaError
from interlingua.gateway.relay.upstream_request import known_as
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.state import Gateway
from interlingua.gateway.upstream.errors import UpstreamFailed
from interlingua.gateway.upstream.http_client import ask, counting_url, headers_for, read_whole
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams.profile import MESSAGES, RESPONSES

__all__ = ["Counting"]

PATIENCE = 3.0
"""Seconds for an upstream's count. Clients ask for it before each request, and some for fifty at once."""
DEAF = 300.0
"""Seconds for which one that could not count is not asked again."""
LONGEST = 64 * 1024
UNABLE = frozenset({404, 405, 501})
"""How a server says that it has no such path."""
_COUNTED = {
    MESSAGES: ("model", "messages", "system", "tools", "tool_choice", "thinking"),
    RESPONSES: ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text", "parallel_tool_calls"),
}
"""What servers of each wire take where nothing but a count is asked for; they refuse whatever else comes."""


class Counting:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._deaf: dict[str, float] = {}  # by address: until when

    async def count(self, body: dict[str, Any], wire: str, client: Mapping[str, str]) -> tuple[int, bool]:
        """The tokens, and whether they are an estimate. Never fails: an upstream that cannot count is not missed."""
        route = self._route(body.get("model"))
        if route is not None and self._is_asked(route):
            counted = await self._ask(body, wire, route, client)
            if counted is not None:
                return counted, False
        names = (route.name, route.model) if route is not None else ("", "")
        return self._gateway.tokens.count(body, *names), True

    def _route(self, model: Any) -> Route | None:
        try:
            return self._gateway.setup.routes.find(model)[0] if isinstance(model, str) and model else None
        except InterlinguaError:
            return None

    def _is_asked(self, route: Route) -> bool:
        upstream = route.upstream
        asked = {"auto": upstream.api == MESSAGES, "upstream": upstream.api in _COUNTED, "estimate": False}
        return asked[upstream.count_tokens] and self._deaf.get(str(counting_url(upstream)), 0.0) < time.monotonic()

    async def _ask(self, body: dict[str, Any], wire: str, route: Route, client: Mapping[str, str]) -> int | None:
        setup, session = self._gateway.setup, self._gateway.session
        assert session is not None, "the gateway is connected before it listens"
        url, upstream = counting_url(route.upstream), route.upstream
        try:
            options = Options(seal_key=setup.seal_key, upstream=known_as(route))
            said = prepare_request(body, wire, upstream.api, route.model, route.profile, options).body
        except InterlinguaError:
            return None
        asked = encode_json({name: said[name] for name in _COUNTED[upstream.api] if name in said})
        headers = headers_for(route, wire, client, setup.access.own_key(client), stream=False)
        try:
            async with asyncio.timeout(PATIENCE):
                async with await ask(session, route, url, asked, headers) as response:
                    told = read_values((await read_whole(response, LONGEST)).decode("utf-8", "replace")) or {}
        except (TimeoutError, UpstreamFailed) as error:
            self._gateway.log.debug("an upstream does not count tokens", upstream=route.name, error=str(error))
            if not isinstance(error, UpstreamFailed) or error.answered in UNABLE:
                self._deaf[str(url)] = time.monotonic() + DEAF
            return None
        tokens = told.get("input_tokens")
        return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else None
