"""Recording of one exchange: what the upstream sends is collected, and stored when the reply has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp.hdrs import CONTENT_TYPE

from interlingua.captures.capture_format import RouteFacts
from interlingua.cassettes.recorded_exchange import RecordedExchange, RecordedUpstream, record_exchange
from interlingua.common.redaction import Redactor
from interlingua.errors import InterlinguaError
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.routing.routes import Route
from interlingua.parsing.dialect import Dialect
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.upstreams.profile import UNKNOWN

__all__ = ["CassetteRecording"]

MAX_RECORDED_BYTES = 64 * 1024 * 1024
"""Largest reply that is recorded."""
RECORDED_ERRORS = frozenset({400, 404, 405, 410, 411, 413, 414, 415, 422})
"""Statuses that are recorded: the request is the reason, and the next one like it will get the same. A wrong key or a
busy server is not worth a recording."""


class CassetteRecording:
    """Observer of one exchange, see `TrafficObserver`. No method blocks or raises.

    Args:
        wire: The client's wire.
        body: The client's request.
        headers: The headers of the request, whose credentials are not recorded.
        redactor: Finds secrets.
        reply_id: The id from which the ids in the reply are made.
        created: Unix time of the request, in seconds.
        store: Receives a function that returns the recording, to be called in another thread, and its size in bytes.
        report: Receives the reason why an exchange is not recorded.
    """

    def __init__(
        self,
        *,
        wire: str,
        body: dict[str, Any],
        headers: Mapping[str, str],
        redactor: Redactor,
        reply_id: str,
        created: int,
        store: Callable[[Callable[[], RecordedExchange], int], None],
        report: Callable[[str], None],
    ) -> None:
        self._wire = wire
        self._body = body
        self._redactor = redactor.with_credentials(headers)
        self._reply_id = reply_id
        self._created = created
        self._store = store
        self._report = report
        self._pieces: list[tuple[float, bytes]] = []
        self._size = 0
        self._sent_at = time.monotonic()
        self._route: Route | None = None
        self._content_type = ""
        self._input_tokens = 0
        self._failure: InterlinguaError | None = None
        self._completed = 0.0

    def clock(self) -> float:
        """Return the time, and record it: a reply of Responses contains the time at which it was complete."""
        self._completed = time.time()
        return self._completed

    # ── traffic ───────────────────────────────────────────────────────────────────────────────────────────────────

    def on_request(self, headers: Mapping[str, str], body: bytes) -> None:
        """Do nothing: the request is known."""

    def on_upstream_request(
        self,
        url: str,  # noqa: ARG002
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes,  # noqa: ARG002
        route: RouteFacts,  # noqa: ARG002
    ) -> None:
        """Start over: an earlier attempt has failed."""
        self._pieces.clear()
        self._size, self._sent_at = 0, time.monotonic()

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        """Do nothing: `on_reply` and `on_failure` receive the result."""

    def on_received(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_RECORDED_BYTES:
            self._pieces.append((time.monotonic() - self._sent_at, data))

    def on_sent(self, data: bytes) -> None:
        """Do nothing: it follows from what is received."""

    def on_forwarded(self, received: bytes, sent: bytes) -> None:  # noqa: ARG002
        self.on_received(received)

    def on_reply(self, route: Route, content_type: str, input_tokens: int) -> None:
        """Record how the reply is read."""
        self._route, self._content_type, self._input_tokens = route, content_type, input_tokens

    def on_failure(self, failure: InterlinguaError) -> None:
        """Record an error that ends the exchange."""
        self._failure = failure

    def on_finish(self, exchange: ExchangeRecord) -> None:
        """Store the exchange, or report why it is not recorded."""
        failure, route = self._failure, self._route
        upstream = recorded_upstream(route) if route is not None else None
        if self._size > MAX_RECORDED_BYTES:
            self._report(f"the reply is larger than {MAX_RECORDED_BYTES:,} bytes")
        elif isinstance(failure, UpstreamFailed) and failure.upstream_status in RECORDED_ERRORS:
            self._pieces = [(time.monotonic() - self._sent_at, failure.body)]
            self._content_type = failure.headers.get(CONTENT_TYPE, "")
            failed = RecordedUpstream(
                wire=exchange.upstream_wire, model=exchange.upstream_model, name=exchange.upstream
            )
            self._record(failed, failure.upstream_status)
        elif exchange.outcome == "ok" and upstream is not None:
            self._record(upstream)
        elif exchange.outcome == "client-left" and upstream is not None and self._pieces:
            self._record(upstream, is_complete=False)
        else:
            self._report(exchange.error or f"the reply is not complete ({exchange.outcome})")

    def _record(self, upstream: RecordedUpstream, status: int = 200, *, is_complete: bool = True) -> None:
        completed = int(self._completed or time.time())
        dialect = self._route.dialect if self._route is not None else None

        def build() -> RecordedExchange:
            return record_exchange(
                wire=self._wire,
                body=self._body,
                upstream=upstream,
                pieces=self._pieces,
                status=status,
                content_type=self._content_type,
                reply_id=self._reply_id,
                created=self._created,
                completed=completed,
                input_tokens=self._input_tokens,
                is_complete=is_complete,
                redactor=self._redactor,
                dialect=dialect if isinstance(dialect, Dialect) else None,
            )

        self._store(build, self._size)


def recorded_upstream(route: Route) -> RecordedUpstream:
    """Return what a replay needs to know of the route. A detected profile does not change how a reply is read."""
    return RecordedUpstream(
        wire=route.upstream.api,
        model=route.model,
        name=route.name,
        profile=UNKNOWN if route.is_profile_detected else route.profile.name,
        dialect=route.dialect_name,
        prefill=route.prefill,
        delivery=route.delivery,
        arguments=route.arguments,
        reasoning=route.reasoning,
    )
