"""Models of upstreams whose last request failed, with the reason, for the operator of the gateway.

A fallback hides a failing upstream from clients. All workers report the same failures: each one is an event that all of
them apply (`shared_memory/event_log.py`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection

import msgspec

from interlingua.gateway.observability.exchange_record import FailedAttempt
from interlingua.gateway.observability.gateway_status import FailingModelStatus
from interlingua.gateway.shared_memory.event_log import EventLog
from interlingua.gateway.upstream.circuit_breaker import tracked

__all__ = ["CIRCUIT_OPEN", "FailingModels"]

MAX_FAILING_MODELS = 100
"""Maximum number of failing models: clients can send any model name."""
MAX_MODEL_BYTES = 100
MAX_REASON_BYTES = 300
"""Longer texts are cut, so that an event has room for them (`MAX_EVENT_BYTES`)."""
FORGET_AFTER_SECONDS = 3600.0
"""Time after its last failure at which a model is forgotten, if no request has succeeded meanwhile."""
REQUEST_ERRORS = frozenset({"400", "413", "415", "422"})
"""HTTP statuses for which the client's request is the reason."""
CIRCUIT_OPEN = "circuit-open"


class ModelFailed(msgspec.Struct, array_like=True, frozen=True):
    """An attempt has failed."""

    upstream: str
    model: str
    kind: str
    reason: str


class ModelRecovered(msgspec.Struct, array_like=True, frozen=True):
    """An upstream has sent a complete reply of a model that failed before."""

    upstream: str
    model: str


class _Failures:
    """Failures of one model since its last complete reply."""

    __slots__ = ("attempts", "first_at", "last", "last_at")

    def __init__(self) -> None:
        self.attempts = 0
        self.first_at = self.last_at = 0.0
        self.last = ModelFailed("", "", "", "")

    def add(self, event: ModelFailed, at: float) -> None:
        self.first_at = self.first_at if self.attempts else at
        self.attempts += 1
        self.last, self.last_at = event, at

    def describe(self, now: float) -> FailingModelStatus:
        last = self.last
        return FailingModelStatus(
            upstream=last.upstream,
            model=last.model,
            attempts=self.attempts,
            kind=last.kind,
            reason=last.reason,
            seconds=round(now - self.first_at, 1),
            last_seconds=round(now - self.last_at, 1),
        )


class FailingModels:
    """Failing models of all upstreams, as one worker records and lists them.

    Args:
        on_failing: Called with the first failure of a model, by the worker that records it.
        on_recovered: Called with the failing model when it has replied again.
        clock: Monotonic clock in seconds, the same in all workers.
        events: The events of all workers. None if this process is the only worker.
    """

    def __init__(
        self,
        on_failing: Callable[[FailedAttempt], None],
        on_recovered: Callable[[FailingModelStatus], None],
        clock: Callable[[], float] = time.monotonic,
        events: EventLog | None = None,
    ) -> None:
        self._on_failing = on_failing
        self._on_recovered = on_recovered
        self._clock = clock
        self._events = events or EventLog()
        self._models: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._events.subscribe(ModelFailed, lambda at, event: self._add(event, at))
        self._events.subscribe(ModelRecovered, lambda _, event: self._remove(event))

    def record_failure(self, attempt: FailedAttempt) -> None:
        """Record a failed attempt, unless the client's request or an open circuit breaker is its reason."""
        if attempt.kind in REQUEST_ERRORS or attempt.kind == CIRCUIT_OPEN:
            return
        self._events.poll()
        now = self._clock()
        event = ModelFailed(
            attempt.upstream,
            _shorten(attempt.model, MAX_MODEL_BYTES),
            attempt.kind,
            _shorten(attempt.reason, MAX_REASON_BYTES),
        )
        is_new = self._find(event.upstream, event.model, now) is None
        self._add(event, now)
        self._events.publish(event, now)
        if is_new:
            self._on_failing(attempt)

    def record_success(self, upstream: str, model: str) -> None:
        """Record a complete reply."""
        self._events.poll()
        if not self._models:
            return
        now = self._clock()
        event = ModelRecovered(upstream, _shorten(model, MAX_MODEL_BYTES))
        failures = self._find(event.upstream, event.model, now)
        self._remove(event)
        if failures is not None:
            self._events.publish(event, now)
            self._on_recovered(failures.describe(now))

    def list(self, upstreams: Collection[str]) -> list[FailingModelStatus]:
        """Return the failing models of these upstreams. The one that failed last comes first."""
        self._events.poll()
        now = self._clock()
        failing = [failures.describe(now) for failures in self._models.values() if not _is_old(failures, now)]
        return [model for model in reversed(failing) if model.upstream in upstreams]

    def _find(self, upstream: str, model: str, now: float) -> _Failures | None:
        failures = self._models.get((upstream, model))
        return None if failures is None or _is_old(failures, now) else failures

    def _add(self, event: ModelFailed, at: float) -> None:
        key = (event.upstream, event.model)
        if self._find(*key, at) is None:
            self._models.pop(key, None)
        tracked(self._models, key, _Failures, MAX_FAILING_MODELS).add(event, at)

    def _remove(self, event: ModelRecovered) -> None:
        self._models.pop((event.upstream, event.model), None)


def _is_old(failures: _Failures, now: float) -> bool:
    return now - failures.last_at > FORGET_AFTER_SECONDS


def _shorten(text: str, max_bytes: int) -> str:
    """Return the text, cut after `max_bytes` bytes of UTF-8 and with valid characters only."""
    data = text.encode("utf-8", "replace")
    return data.decode() if len(data) <= max_bytes else data[:max_bytes].decode("utf-8", "ignore") + "…"
