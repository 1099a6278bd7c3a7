"""Retry policy: exponential backoff with jitter, a retry budget per upstream, a circuit breaker per upstream and model.

Retries of all clients together would increase the load on an upstream just when it fails. Three measures prevent that.
Each retry waits for a random time. Retries are limited to a small share of all requests. After several consecutive
failures of a model, the circuit breaker opens, and only single probe requests are sent until one of them succeeds.

A client can send requests that make an upstream fail. Such failures refuse no requests of other clients. They can use
up the retries that all clients share, so each client also has a few of its own.

All workers of a gateway have the same budgets and circuit breakers: each change is an event that all of them apply
(`shared_memory/event_log.py`). Workers that decide at the same moment do not see each other's event: then each worker
can send a probe, or use the last retry, instead of one of them.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Retries, Upstream
from interlingua.gateway.shared_memory.event_log import EventLog
from interlingua.gateway.upstream.circuit_breaker import MAX_TRACKED_CLIENTS, CircuitBreaker, OpenCircuit, tracked
from interlingua.translation.upstream_errors import UpstreamFailed

__all__ = ["RETRY_BUDGET_CAPACITY", "RetryPolicies", "RetryPolicy", "backoff"]

RETRY_BUDGET_CAPACITY = 10.0
"""Maximum number of saved retries."""
SHARED_RETRIES_PER_SECOND = 1.0
"""So many that a single user is not limited."""
OWN_RETRIES_PER_SECOND = 0.1
"""So few that the retries of many clients do not add much load to an upstream that fails."""
MAX_TRACKED_MODELS = 1000
"""Maximum number of circuit breakers: clients can send any model name."""
TOO_MANY_REQUESTS_STATUS = 429
"""Does not count as a failure: the upstream works and limits its rate."""


class UpstreamKey(NamedTuple):
    """Upstream, also identified by its URL: a reload may change the URL of a name."""

    name: str
    url: str


class ModelKey(NamedTuple):
    upstream: UpstreamKey
    model: str


class PolicyEvent(msgspec.Struct, array_like=True, frozen=True):
    """Change of a retry budget or a circuit breaker, which all workers apply."""

    def apply(self, policies: RetryPolicies, now: float) -> None:
        raise NotImplementedError


class AttemptFailed(PolicyEvent, frozen=True):
    """A failed attempt counts for a client, or for all clients (None)."""

    key: ModelKey
    client_id: str | None
    open_until: float

    def apply(self, policies: RetryPolicies, now: float) -> None:  # noqa: ARG002
        policies.breaker(self.key).add_failure(self.client_id, self.open_until)


class ProbeSent(PolicyEvent, frozen=True):
    """A client sends a request although the circuit is open. Other requests wait for its result."""

    key: ModelKey
    client_id: str
    open_until: float

    def apply(self, policies: RetryPolicies, now: float) -> None:  # noqa: ARG002
        policies.breaker(self.key).reserve_probe(self.client_id, self.open_until)


class AttemptSucceeded(PolicyEvent, frozen=True):
    """A success resets all failures of a model."""

    key: ModelKey

    def apply(self, policies: RetryPolicies, now: float) -> None:  # noqa: ARG002
        policies.breaker(self.key).reset()


class BudgetRefilled(PolicyEvent, frozen=True):
    """A request adds its share to the retries that all clients share."""

    key: UpstreamKey
    share: float

    def apply(self, policies: RetryPolicies, now: float) -> None:
        policies.budget(self.key, None).add(self.share, now)


class RetryTaken(PolicyEvent, frozen=True):
    """A retry is taken from the budget of a client, or from the one that all clients share (None)."""

    key: UpstreamKey
    client_id: str | None

    def apply(self, policies: RetryPolicies, now: float) -> None:
        policies.budget(self.key, self.client_id).add(-1, now)


POLICY_EVENTS: tuple[type[PolicyEvent], ...] = (
    AttemptFailed,
    ProbeSent,
    AttemptSucceeded,
    BudgetRefilled,
    RetryTaken,
)


class RetryBudget:
    """Token bucket for the retries at one upstream, refilled by requests (a share each) and by time."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._available = RETRY_BUDGET_CAPACITY  # below 0 if several workers took the last one at the same time
        self._updated_at = 0.0

    def available(self, now: float) -> float:
        """Return the number of retries, refilled up to now."""
        added = max(0.0, now - self._updated_at) * self._per_second
        self._available = min(RETRY_BUDGET_CAPACITY, self._available + added)
        self._updated_at = max(self._updated_at, now)
        return self._available

    def add(self, number: float, now: float) -> None:
        """Add retries, or take them if negative."""
        self._available = min(RETRY_BUDGET_CAPACITY, self.available(now) + number)


class RetryPolicies:
    """Retry budgets and circuit breakers of all upstreams, kept as long as the process runs.

    Args:
        on_circuit_change: Called with upstream, model and number of failures when a request of this worker opens a
            circuit, for one client or for all; with 0 failures when it closes one.
        clock: Monotonic clock in seconds, the same in all workers.
        events: The events of all workers. None if this process is the only worker.
    """

    def __init__(
        self,
        on_circuit_change: Callable[[str, str, int], None],
        clock: Callable[[], float] = time.monotonic,
        events: EventLog | None = None,
    ) -> None:
        self.on_circuit_change = on_circuit_change
        self.clock = clock
        self._events = events or EventLog()
        self._shared_budgets: dict[UpstreamKey, RetryBudget] = {}
        self._client_budgets: OrderedDict[tuple[UpstreamKey, str], RetryBudget] = OrderedDict()
        self._breakers: OrderedDict[ModelKey, CircuitBreaker] = OrderedDict()
        for event_type in POLICY_EVENTS:
            self._events.subscribe(event_type, lambda at, event: event.apply(self, at))

    def for_route(self, route: Route, client_id: str) -> RetryPolicy:
        return RetryPolicy(self, route, client_id)

    def update(self) -> None:
        """Apply the changes of other workers."""
        self._events.poll()

    def record(self, event: PolicyEvent, now: float) -> None:
        """Make a change in all workers."""
        event.apply(self, now)
        self._events.publish(event, now)

    def breaker(self, key: ModelKey) -> CircuitBreaker:
        return tracked(self._breakers, key, CircuitBreaker, MAX_TRACKED_MODELS)

    def budget(self, key: UpstreamKey, client_id: str | None) -> RetryBudget:
        """Return the budget of a client, or the one that all clients share (None)."""
        if client_id is None:
            if key not in self._shared_budgets:
                self._shared_budgets[key] = RetryBudget(SHARED_RETRIES_PER_SECOND)
            return self._shared_budgets[key]
        return tracked(
            self._client_budgets, (key, client_id), lambda: RetryBudget(OWN_RETRIES_PER_SECOND), MAX_TRACKED_CLIENTS
        )

    def open_circuits(self, upstreams: Mapping[str, Upstream]) -> dict[tuple[str, str], OpenCircuit]:
        """Return the open circuits of these upstreams, by the names of upstream and model."""
        self.update()
        now = self.clock()
        found = {}
        for key, breaker in self._breakers.items():
            upstream = upstreams.get(key.upstream.name)
            if upstream is not None and upstream.url == key.upstream.url and breaker.has_failures:
                found[key.upstream.name, key.model] = breaker.describe_open(upstream.rest, now)
        return {names: circuit for names, circuit in found.items() if circuit is not None}

    def available_retries(self, name: str, upstream: Upstream) -> float:
        """Return the retries that all clients share at an upstream."""
        self.update()
        budget = self._shared_budgets.get(UpstreamKey(name, upstream.url))
        return RETRY_BUDGET_CAPACITY if budget is None else max(0.0, budget.available(self.clock()))


class RetryPolicy:
    """Retry policy for one request of one client to one upstream."""

    def __init__(self, policies: RetryPolicies, route: Route, client_id: str) -> None:
        self._policies = policies
        self._route = route
        self._client_id = client_id
        self._rest_settings = route.upstream.rest
        self._upstream_key = UpstreamKey(route.name, route.upstream.url)
        self._model_key = ModelKey(self._upstream_key, route.model)
        self._breaker = policies.breaker(self._model_key)
        self._shared_budget = policies.budget(self._upstream_key, None)

    def start_request(self) -> None:
        """Record the first attempt of a request. Raises UpstreamFailed if the circuit is open."""
        policies, now = self._policies, self._policies.clock()
        policies.update()
        share = self._route.upstream.retries.budget
        if share and self._shared_budget.available(now) < RETRY_BUDGET_CAPACITY:
            policies.record(BudgetRefilled(self._upstream_key, share), now)
        if delay := self.acquire_probe():
            problem = f"{self._route.model} failed in {self._breaker.failures(self._client_id)} consecutive attempts"
            message = f"{self._route.name}: {problem}; the circuit breaker is open for another {delay:.1f} s"
            raise UpstreamFailed(message, 503, retry_after=delay)

    def acquire_probe(self) -> float:
        """Return 0 if this request may be sent, otherwise the seconds for which the circuit stays open.

        While the circuit is open, 0 also reserves the probe: other requests wait for its result.
        """
        policies, breaker = self._policies, self._breaker
        policies.update()
        if not breaker.has_failures or not breaker.is_open(self._client_id, self._rest_settings):
            return 0.0
        now = policies.clock()
        if delay := breaker.delay(self._client_id, self._rest_settings, now):
            return delay
        policies.record(ProbeSent(self._model_key, self._client_id, now + self._rest_settings.seconds), now)
        return 0.0

    @property
    def has_retry(self) -> bool:
        """True if the retry budget allows another attempt."""
        return self._find_retry(self._policies.clock()) is not None

    def acquire_retry(self) -> bool:
        """Take a retry from the budget of all clients, or else from the client's own; return whether one was left."""
        now = self._policies.clock()
        retry = self._find_retry(now)
        if retry is not None:
            self._policies.record(retry, now)
        return retry is not None

    def _find_retry(self, now: float) -> RetryTaken | None:
        self._policies.update()
        if self._shared_budget.available(now) >= 1:
            return RetryTaken(self._upstream_key, None)
        if self._policies.budget(self._upstream_key, self._client_id).available(now) >= 1:
            return RetryTaken(self._upstream_key, self._client_id)
        return None

    def record_success(self) -> None:
        policies = self._policies
        policies.update()
        if not self._breaker.has_failures:
            return
        was_open = self._breaker.is_open_for_any(self._rest_settings)
        policies.record(AttemptSucceeded(self._model_key), policies.clock())
        if was_open:
            policies.on_circuit_change(self._route.name, self._route.model, 0)

    def record_failure(self, error: UpstreamFailed) -> None:
        """Record a failed attempt. An error that only the client can solve counts as success: the upstream responds."""
        if not error.failover or error.status == TOO_MANY_REQUESTS_STATUS:
            self.record_success()
            return
        if not self._rest_settings.after:  # the circuit breaker is disabled
            return
        policies, breaker, now = self._policies, self._breaker, self._policies.clock()
        policies.update()
        client_id = None if error.unreachable else self._client_id
        was_open = breaker.is_open_by(client_id, self._rest_settings)
        policies.record(AttemptFailed(self._model_key, client_id, now + self._rest_settings.seconds), now)
        if breaker.is_open_by(client_id, self._rest_settings) and not was_open:
            policies.on_circuit_change(self._route.name, self._route.model, breaker.failures(self._client_id))


def backoff(retries: Retries, attempt: int, error: UpstreamFailed) -> float | None:
    """Return the seconds to wait before the same upstream is tried again, or None if it must not be tried again."""
    if not error.retryable or attempt >= retries.attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= retries.longest else None
    return float(min(retries.longest, retries.backoff * 2 ** (attempt - 1)) * random.uniform(0.5, 1))
