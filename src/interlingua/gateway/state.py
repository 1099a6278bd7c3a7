"""State shared by all requests of one process: settings, connections, log, metrics, captures."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Coroutine, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import msgspec

from interlingua.gateway.aiohttp_internals import UpstreamResponse
from interlingua.gateway.http.auth import Authenticator
from interlingua.gateway.http.client_limits import ClientLimiter
from interlingua.gateway.http.memory_budget import MemoryBudget
from interlingua.gateway.inspector.exchange_tap import InspectorFeed
from interlingua.gateway.inspector.socket_paths import feed_path
from interlingua.gateway.observability.capture_writer import CaptureWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord, FailedAttempt
from interlingua.gateway.observability.failing_models import FailingModels
from interlingua.gateway.observability.gateway_status import FailingModelStatus
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.observability.metrics import Metrics, ModelLabels
from interlingua.gateway.observability.tracing import Tracer
from interlingua.gateway.observability.traffic_observers import LogObserver, ObserverGroup, TrafficObserver
from interlingua.gateway.response_store.store import ResponseStore
from interlingua.gateway.routing.routes import Route, Routes, routes_for
from interlingua.gateway.server_tools.search_engine import MAX_COMMANDS, SearchEngine
from interlingua.gateway.settings.descriptor_limit import fit_limits
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.settings.schema import Capture, RequestLimits, Settings, WebSearch
from interlingua.gateway.settings.signing_key import CASSETTE_KEY
from interlingua.gateway.shared_memory.worker_memory import WorkerMemory
from interlingua.gateway.shared_memory.worker_table import SharedCount
from interlingua.gateway.token_calibration import EstimateCalibration
from interlingua.gateway.upstream.capabilities import CapabilityMemory
from interlingua.gateway.upstream.connector import make_connector
from interlingua.gateway.upstream.http_client import ConnectTimer
from interlingua.gateway.upstream.retry_policy import RetryPolicies
from interlingua.gateway.upstream.server_probe import ServerProbes
from interlingua.gateway.work_threads import WorkThreads
from interlingua.tokens.estimator import measure_conversation
from interlingua.translation.request_cache import RequestCache
from interlingua.upstreams.profile import Profile

if TYPE_CHECKING:
    from interlingua.gateway.cassettes.deck import CassetteDeck

__all__ = ["ActiveConfig", "ActiveRequest", "GatewayState"]


class ActiveConfig(msgspec.Struct, frozen=True):
    """Objects derived from the settings. A reload creates a new instance; active requests keep the old one."""

    settings: Settings
    worker_limits: RequestLimits
    """The limits of one process: those of the gateway, reduced if it may not open enough files."""
    routes: Routes
    authenticator: Authenticator
    redactor: Redactor
    captures: CaptureWriter | None
    seal_key: bytes

    def seal_key_for(self, client_id: str) -> bytes:
        """Return the key for the thinking of this client, which no other client can read or send.

        With fewer than two API keys there is only one client. Then its thinking stays valid if its API key changes, as
        `interlingua run` changes it at each start.
        """
        is_shared = len(set(self.settings.client_keys.values())) > 1
        return hmac.digest(self.seal_key, client_id.encode(), sha256) if is_shared else self.seal_key

    def owner_for(self, client_id: str) -> str:
        """Return the owner of the responses that are stored for this client. The API key cannot be derived from it."""
        return hmac.digest(self.seal_key_for(client_id), b"owner of stored responses", sha256).hex()


class ActiveRequest(Protocol):
    """A request that is being handled."""

    @property
    def buffered_chars(self) -> int:
        """Number of characters in the lookahead buffer: they may be the start of a marker."""

    def stop(self) -> None:
        """End the reply with an error in the format of its wire, because the gateway is stopping."""


class ActiveRequests:
    """Requests that this worker handles, counted over all workers."""

    def __init__(self, count: SharedCount) -> None:
        self._requests: set[ActiveRequest] = set()
        self._count = count
        self.change_count = 0
        """Number of requests that have begun, and of those that have ended."""

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[ActiveRequest]:
        return iter(self._requests)

    @property
    def total(self) -> int:
        """Number of requests of all workers."""
        return self._count.total

    def add(self, request: ActiveRequest) -> None:
        self._requests.add(request)
        self.change_count += 1
        self._count.add(1)

    def remove(self, request: ActiveRequest) -> None:
        self._requests.remove(request)
        self.change_count += 1
        self._count.add(-1)


class GatewayState:
    """State of one gateway process. All requests share it; `config` changes with a reload.

    Args:
        loaded: The settings to start with.
        seal_key: The key that encrypts reasoning, unless the settings contain one.
        demo_url: The URL of the demo model, or "".
        memory: The memory that several workers share. None if this process is the only worker.
        inspector_folder: The folder of the inspector's sockets; "" if there is no inspector.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        seal_key: bytes,
        demo_url: str,
        memory: WorkerMemory | None = None,
        inspector_folder: str = "",
    ) -> None:
        settings = loaded.settings
        self.memory = memory = memory or WorkerMemory()
        self.log = GatewayLog(settings.log, loaded.all_secrets)
        self.tracer = Tracer.from_settings(settings)
        self.active_requests = ActiveRequests(memory.open_requests)
        self.memory_budget = MemoryBudget(lambda: self.config.settings.limits.memory, memory.memory_bytes)
        self.metrics = Metrics(
            memory.series,
            held_back_bytes=lambda: sum(request.buffered_chars for request in self.active_requests),
            lost_log_lines=lambda: self.log.dropped,
            lost_captures=lambda: sum(writer.dropped for writer in self._captures.values()),
            model_labels=ModelLabels(
                lambda: self.config.routes.configured_models, lambda text: self.config.redactor.redact_text(text)
            ),
        )
        self.client_limiter = ClientLimiter(memory.series)
        self.token_calibration = EstimateCalibration(events=memory.events)
        self.retry_policies = RetryPolicies(self._on_circuit_change, events=memory.events)
        self.failing_models = FailingModels(self._on_model_failing, self._on_model_recovered, events=memory.events)
        self.capabilities = CapabilityMemory(self._on_capability_learned)
        self.server_probes = ServerProbes(self.run_in_background, self._on_server_detected)
        self.session: aiohttp.ClientSession | None = None
        self.request_cache = RequestCache(settings.limits.conversations, measure_conversation)
        self.work_threads = WorkThreads()
        self.response_store = ResponseStore.open(settings.state)
        self.inspector_folder = inspector_folder
        self._inspector_feed = (
            InspectorFeed(feed_path(inspector_folder), loaded.all_secrets) if inspector_folder else None
        )
        self.cassettes = self._open_cassettes(settings)
        self._search_slots = asyncio.Semaphore(MAX_COMMANDS)
        self.ready = True
        """True while this worker accepts new requests; False while it is stopping."""
        self._seal_key = seal_key
        self._demo_url = demo_url
        self._background_tasks: set[asyncio.Task[None]] = set()
        # Keyed by the capture settings (where captures go) and the secrets to redact (what they leave out).
        self._captures: dict[tuple[Capture, frozenset[str]], CaptureWriter] = {}
        self.config = self.build_config(loaded)

    def _open_cassettes(self, settings: Settings) -> CassetteDeck | None:
        """Return the recorded exchanges; None if none are used. Raises InterlinguaError if they cannot be read."""
        if settings.cassettes is None:
            return None
        from interlingua.gateway.cassettes.deck import CassetteDeck

        return CassetteDeck(settings, self.log, self.memory.events, self.memory.gateway_started_at)

    def build_config(self, loaded: LoadedSettings) -> ActiveConfig:
        """Build the configuration for these settings. Raises InterlinguaError if the settings cannot be used."""
        settings = loaded.settings
        redactor = Redactor(loaded.all_secrets)
        routes, authenticator = routes_for(loaded, self._demo_url), Authenticator(settings)
        captures = self._captures_for(loaded, redactor)
        self.log.add_secrets(loaded.all_secrets)
        if self._inspector_feed is not None:
            self._inspector_feed.set_secrets(loaded.all_secrets)
        self.request_cache.resize(settings.limits.conversations)
        return ActiveConfig(
            settings=settings,
            worker_limits=fit_limits(settings.limits),
            routes=routes,
            authenticator=authenticator,
            redactor=redactor,
            captures=captures,
            seal_key=settings.seal_key.encode() or (CASSETTE_KEY if settings.cassettes else self._seal_key),
        )

    def _captures_for(self, loaded: LoadedSettings, redactor: Redactor) -> CaptureWriter | None:
        """Return the capture writer. It is reused as long as destination and redacted secrets are the same."""
        capture = loaded.settings.capture
        if capture is None:
            return None
        key = (capture, frozenset(loaded.all_secrets))
        if key not in self._captures:
            self._captures[key] = CaptureWriter(capture, redactor)
        return self._captures[key]

    def observer_for(self, config: ActiveConfig, exchange: ExchangeRecord) -> TrafficObserver | None:
        """Return the observer for the traffic of this exchange, or None if nothing is recorded."""
        observers: list[TrafficObserver] = [config.captures.start_recording(exchange)] if config.captures else []
        if self._inspector_feed is not None and (tap := self._inspector_feed.observe(exchange)) is not None:
            observers.append(tap)
        if self.log.is_debug:
            observers.append(LogObserver(self.log, exchange.id, config.redactor))
        return ObserverGroup(*observers) if len(observers) > 1 else next(iter(observers), None)

    @property
    def is_ready(self) -> bool:
        """True while the gateway accepts new requests. False in all workers as soon as the supervisor stops it."""
        return self.ready and not self.memory.table.is_stopping

    def _on_circuit_change(self, upstream: str, model: str, failures: int) -> None:
        if failures:
            self.metrics.record_circuit_open(upstream)
            self.log.error("circuit breaker opened", upstream=upstream, model=model, failures=failures)
        else:
            self.log.info("circuit breaker closed", upstream=upstream, model=model)

    def _on_model_failing(self, attempt: FailedAttempt) -> None:
        self.log.error(
            "upstream failing",
            upstream=attempt.upstream,
            model=attempt.model,
            kind=attempt.kind,
            reason=attempt.reason,
        )

    def _on_model_recovered(self, failing: FailingModelStatus) -> None:
        self.log.info(
            "upstream recovered",
            upstream=failing.upstream,
            model=failing.model,
            failed_attempts=failing.attempts,
            seconds=failing.seconds,
        )

    def _on_capability_learned(self, route: Route, message: str, hint: str) -> None:
        self.log.info(message, upstream=route.name, model=route.model, hint=hint)

    def _on_server_detected(self, route: Route, profile: Profile) -> None:
        self.log.info("model server detected", upstream=route.name, profile=profile.name)

    def search_engine(self, settings: WebSearch) -> SearchEngine:
        """Return the search engine of these settings."""
        assert self.session is not None, "the session is opened before the gateway listens"
        return SearchEngine(settings, self.session, self._search_slots)

    def run_in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run short clean-up work after the client has received its response."""
        task = asyncio.ensure_future(coroutine)
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    @property
    def _records_connections(self) -> bool:
        """True if the time to open connections is measured. A reload of the settings does not change it."""
        return self.config.settings.capture is not None or self._inspector_feed is not None

    async def connect(self) -> None:
        if self._inspector_feed is not None:
            await self._inspector_feed.start()
        self.session = aiohttp.ClientSession(
            connector=make_connector(),
            response_class=UpstreamResponse,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=64 * 1024,
            trace_configs=[ConnectTimer.trace_config()] if self._records_connections else None,
        )

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()
        if self.cassettes is not None:
            await self.cassettes.close()
        self.work_threads.close()
        if self._inspector_feed is not None:
            await self._inspector_feed.close()
        if self.response_store is not None:
            self.response_store.close()
        for captures in self._captures.values():
            captures.close()
        self.tracer.close()
        self.log.close()
