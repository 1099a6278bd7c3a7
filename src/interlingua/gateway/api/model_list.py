"""Which models can be asked for: those of the settings, and those that the default upstream lists itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from interlingua.common.jsontext.codec import read_values
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.state import Gateway
from interlingua.gateway.upstream.errors import UpstreamFailed
from interlingua.gateway.upstream.http_client import ask, headers_for, models_url, read_whole
from interlingua.upstreams.profile import CHAT

__all__ = ["Catalogue"]

KEPT = 60.0
"""Seconds for which an upstream's list is taken to be the same."""
LONGEST = 4 * 1024 * 1024
PATIENCE = 5.0


class Catalogue:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._listed: dict[str, tuple[float, list[str]]] = {}  # by address: when, and which

    async def ids(self, client: Mapping[str, str]) -> list[str]:
        """Never fails: an upstream that lists nothing may still answer."""
        routes = self._gateway.setup.routes
        known, default = routes.ids(), routes.default
        listed = await self._upstreams(default, client) if default else []
        return list(dict.fromkeys([*known, *listed]))

    async def _upstreams(self, route: Route, client: Mapping[str, str]) -> list[str]:
        address = str(models_url(route.upstream))
        since, listed = self._listed.get(address, (0.0, []))
        if not since or time.monotonic() - since > KEPT:
            listed = await self._ask(route, client)
            if not route.upstream.passthrough:  # else the list may be one client's own
                self._listed[address] = (time.monotonic(), listed)
        return listed

    async def _ask(self, route: Route, client: Mapping[str, str]) -> list[str]:
        session = self._gateway.session
        assert session is not None, "the gateway is connected before it listens"
        own_key = self._gateway.setup.access.own_key(client)
        headers = headers_for(route, CHAT, client, own_key, stream=False)
        try:
            async with asyncio.timeout(PATIENCE):
                async with await ask(session, route, models_url(route.upstream), None, headers) as response:
                    body = read_values((await read_whole(response, LONGEST)).decode("utf-8", "replace"))
        except (TimeoutError, UpstreamFailed) as error:
            self._gateway.log.debug("an upstream does not list its models", upstream=route.name, error=str(error))
            return []
        models = body.get("data") if body else None
        named = [one.get("id") for one in models if isinstance(one, dict)] if isinstance(models, list) else []
        return [id for id in named if isinstance(id, str) and id]
