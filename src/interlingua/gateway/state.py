"""What all requests of one process share: settings, connections, and those who keep account."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

import aiohttp
import msgspec

from interlingua.gateway.http.auth import Authenticator
from interlingua.gateway.http.request_body import ToolListCache
from interlingua.gateway.observability.capture_writer import CaptureWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.observability.metrics import Metrics
from interlingua.gateway.observability.tracing import Tracer
from interlingua.gateway.observability.traffic_observers import LogObserver, ObserverGroup, TrafficObserver
from interlingua.gateway.routing.routes import Routes, routes_for
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.settings.schema import Capture, Settings
from interlingua.gateway.tokens.calibration import EstimateCalibration
from interlingua.gateway.upstream.connector import make_connector
from interlingua.gateway.upstream.retry_policy import RetryPolicies

__all__ = ["ActiveConfig", "ActiveRequest", "GatewayState"]


class ActiveConfig(msgspec.Struct, frozen=True):
    """What follows from the settings. A reload makes a new one: requests that are under way keep theirs."""

    settings: Settings
    routes: Routes
    authenticator: Authenticator
    redactor: Redactor
    captures: CaptureWriter | None
    seal_key: bytes


class ActiveRequest(Protocol):
    """A request that is under way."""

    @property
    def buffered_chars(self) -> int:
        """How many characters wait for what follows them."""

    def stop(self) -> None:
        """The gateway stops: ends the reply as its wire says."""


class GatewayState:
    def __init__(self, loaded: LoadedSettings, seal_key: bytes, demo_url: str, worker: str = "") -> None:
        settings = loaded.settings
        self.log = GatewayLog(settings.log, loaded.all_secrets)
        self.tracer = Tracer.from_settings(settings)
        self.active_requests: set[ActiveRequest] = set()
        self.metrics = Metrics(
            worker,
            held_back_bytes=lambda: sum(request.buffered_chars for request in self.active_requests),
            lost_log_lines=lambda: self.log.dropped,
            lost_captures=lambda: sum(one.dropped for one in self._captures.values()),
        )
        self.token_calibration = EstimateCalibration()
        self.retry_policies = RetryPolicies(self._on_circuit_change)
        self.session: aiohttp.ClientSession | None = None
        self.tool_list_cache = ToolListCache()
        self.ready = True
        """Whether more requests should come. Off while the gateway stops."""
        self._seal_key = seal_key
        self._demo_url = demo_url
        self._background_tasks: set[asyncio.Task[None]] = set()
        self._captures: dict[
            tuple[Capture, frozenset[str]], CaptureWriter
        ] = {}  # by where they go, and what they leave out
        self.config = self.build_config(loaded)

    def build_config(self, loaded: LoadedSettings) -> ActiveConfig:
        """Raises if these settings cannot be used."""
        settings, redactor = loaded.settings, Redactor(loaded.all_secrets)
        routes, authenticator = routes_for(loaded, self._demo_url), Authenticator(settings)
        captures = self._captures_for(loaded, redactor)
        self.log.add_secrets(loaded.all_secrets)
        return ActiveConfig(
            settings, routes, authenticator, redactor, captures, settings.seal_key.encode() or self._seal_key
        )

    def _captures_for(self, loaded: LoadedSettings, redactor: Redactor) -> CaptureWriter | None:
        """The same as before, as long as they go to the same place and leave out the same."""
        capture = loaded.settings.capture
        if capture is None:
            return None
        key = (capture, frozenset(loaded.all_secrets))
        if key not in self._captures:
            self._captures[key] = CaptureWriter(capture, redactor)
        return self._captures[key]

    def observer_for(self, config: ActiveConfig, exchange: ExchangeRecord) -> TrafficObserver | None:
        """Who sees what goes by, if anybody does."""
        observers: list[TrafficObserver] = [config.captures.start_recording(exchange)] if config.captures else []
        if self.log.is_debug:
            observers.append(LogObserver(self.log, exchange.id, config.redactor))
        return ObserverGroup(*observers) if observers else None

    def _on_circuit_change(self, upstream: str, model: str, failures: int) -> None:
        if failures:
            self.metrics.record_circuit_open(upstream)
            self.log.error("a model of an upstream is left alone", upstream=upstream, model=model, failures=failures)
        else:
            self.log.info("a model of an upstream answers again", upstream=upstream, model=model)

    def run_in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """What is left to do once a client has its answer. It does not take long."""
        task = asyncio.ensure_future(coroutine)
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    async def connect(self) -> None:
        self.session = aiohttp.ClientSession(
            connector=make_connector(),
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
