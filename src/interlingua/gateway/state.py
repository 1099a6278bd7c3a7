"""What all requests of one process share: settings, connections, and those who keep account."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

import aiohttp
import msgspec

from interlingua.gateway.http.auth import Access
from interlingua.gateway.http.request_body__shared import Shared
from interlingua.gateway.observability.capture_writer import Captures
from interlingua.gateway.observability.exchange_record import Exchange
from interlingua.gateway.observability.log import Log
from interlingua.gateway.observability.metrics import Metrics
from interlingua.gateway.observability.tracing import Tracer
from interlingua.gateway.observability.traffic_observers import InLog, Witness, Witnesses
from interlingua.gateway.routing.routes import Routes, routes_for
from interlingua.gateway.settings.loader import Loaded
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.settings.schema import Capture, Settings
from interlingua.gateway.tokens.calibration import TokenCounts
from interlingua.gateway.upstream.connector__connections import connections
from interlingua.gateway.upstream.retry_policy import Restraints

__all__ = ["Gateway", "Open", "Setup"]


class Setup(msgspec.Struct, frozen=True):
    """What follows from the settings. A reload makes a new one: requests that are under way keep theirs."""

    settings: Settings
    routes: Routes
    access: Access
    redactor: Redactor
    captures: Captures | None
    seal_key: bytes


class Open(Protocol):
    """A request that is under way."""

    @property
    def held(self) -> int:
        """How many characters wait for what follows them."""

    def stop(self) -> None:
        """The gateway stops: ends the reply as its wire says."""


class Gateway:
    def __init__(self, loaded: Loaded, seal_key: bytes, demo_url: str, worker: str = "") -> None:
        settings = loaded.settings
        self.log = Log(settings.log, loaded.hidden)
        self.tracer = Tracer.of(settings)
        self.open: set[Open] = set()
        self.metrics = Metrics(
            worker,
            held_back=lambda: sum(one.held for one in self.open),
            lost_lines=lambda: self.log.dropped,
            lost_captures=lambda: sum(one.dropped for one in self._captures.values()),
        )
        self.tokens = TokenCounts()
        self.restraints = Restraints(self._rests)
        self.session: aiohttp.ClientSession | None = None
        self.shared = Shared()
        self.ready = True
        """Whether more requests should come. Off while the gateway stops."""
        self._seal_key = seal_key
        self._demo_url = demo_url
        self._rest: set[asyncio.Task[None]] = set()
        self._captures: dict[tuple[Capture, frozenset[str]], Captures] = {}  # by where they go, and what they leave out
        self.setup = self.made(loaded)

    def made(self, loaded: Loaded) -> Setup:
        """Raises if these settings cannot be used."""
        settings, redactor = loaded.settings, Redactor(loaded.hidden)
        routes, access = routes_for(loaded, self._demo_url), Access(settings)
        captures = self._captures_for(loaded, redactor)
        self.log.hide(loaded.hidden)
        return Setup(settings, routes, access, redactor, captures, settings.seal_key.encode() or self._seal_key)

    def _captures_for(self, loaded: Loaded, redactor: Redactor) -> Captures | None:
        """The same as before, as long as they go to the same place and leave out the same."""
        capture = loaded.settings.capture
        if capture is None:
            return None
        kind = (capture, frozenset(loaded.hidden))
        if kind not in self._captures:
            self._captures[kind] = Captures(capture, redactor)
        return self._captures[kind]

    def witness(self, setup: Setup, exchange: Exchange) -> Witness | None:
        """Who sees what goes by, if anybody does."""
        seen: list[Witness] = [setup.captures.open(exchange)] if setup.captures else []
        if self.log.tells_all:
            seen.append(InLog(self.log, exchange.id, setup.redactor))
        return Witnesses(*seen) if seen else None

    def _rests(self, upstream: str, model: str, failures: int) -> None:
        if failures:
            self.metrics.rest(upstream)
            self.log.error("a model of an upstream is left alone", upstream=upstream, model=model, failures=failures)
        else:
            self.log.note("a model of an upstream answers again", upstream=upstream, model=model)

    def afterwards(self, rest: Coroutine[Any, Any, None]) -> None:
        """What is left to do once a client has its answer. It does not take long."""
        task = asyncio.ensure_future(rest)
        self._rest.add(task)
        task.add_done_callback(self._rest.discard)

    async def connect(self) -> None:
        self.session = aiohttp.ClientSession(
            connector=connections(),
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=64 * 1024,
        )

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()
        for captures in self._captures.values():
            captures.close()
        self.tracer.close()
        self.log.close()
