"""Retry policy: exponential backoff with jitter, a retry budget per upstream, a circuit breaker per upstream and model.

Retries of all clients together would increase the load on an upstream just when it fails. Three measures prevent that.
Each retry waits for a random time. Retries are limited to a small share of all requests. After several consecutive
failures of a model, the circuit breaker opens, and only single probe requests are sent until one of them succeeds.

A client can send requests that make an upstream fail. Such failures refuse no requests of other clients. They can use
up the retries that all clients share, so each client also has a few of its own.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Rest, Retries
from interlingua.translation.upstream_errors import UpstreamFailed

__all__ = ["RetryPolicies", "RetryPolicy", "backoff"]

RETRY_BUDGET_CAPACITY = 10.0
"""Maximum number of saved retries."""
SHARED_RETRIES_PER_SECOND = 1.0
"""So many that a single user is not limited."""
OWN_RETRIES_PER_SECOND = 0.1
"""So few that the retries of many clients do not add much load to an upstream that fails."""
MAX_TRACKED_MODELS = 1000
"""Maximum number of circuit breakers: clients can send any model name."""
MAX_TRACKED_CLIENTS = 1000
"""Maximum number of clients per circuit breaker, and of retry budgets: without `keys`, clients can send any key."""
TOO_MANY_REQUESTS_STATUS = 429
"""Does not count as a failure: the upstream works and limits its rate."""

K = TypeVar("K")
V = TypeVar("V")


class RetryBudget:
    """Token bucket for the retries at one upstream, refilled by requests (a share each) and by time."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._available = RETRY_BUDGET_CAPACITY
        self._updated_at = 0.0

    def refill(self, share: float, now: float) -> None:
        added = share + max(0.0, now - self._updated_at) * self._per_second
        self._available = min(RETRY_BUDGET_CAPACITY, self._available + added)
        self._updated_at = now

    def has_retry(self, now: float) -> bool:
        self.refill(0.0, now)
        return self._available >= 1

    def spend(self, now: float) -> bool:
        if not self.has_retry(now):
            return False
        self._available -= 1
        return True


class FailureCount:
    """Number of consecutive failures. If there are too many, one probe request is allowed per interval."""

    def __init__(self) -> None:
        self.failures = 0
        """Consecutive failed attempts; one request can contribute several."""
        self._open_until = 0.0

    def is_open(self, rest: Rest) -> bool:
        return 0 < rest.after <= self.failures

    def delay(self, rest: Rest, now: float) -> float:
        """Return the seconds until the next probe; 0 if a request may be sent now."""
        return max(0.0, self._open_until - now) if self.is_open(rest) else 0.0

    def reserve_interval(self, rest: Rest, now: float) -> None:
        """Make other requests wait for the result of this one."""
        self._open_until = now + rest.seconds

    def add(self, rest: Rest, now: float) -> None:
        self.failures += 1
        self.reserve_interval(rest, now)


class CircuitBreaker:
    """Circuit breaker of one model of an upstream.

    A failed connection counts for all clients: no request can be its reason. All other failures, such as a status 500
    or a timeout, count only for the client that sent the request. A success of any client closes the circuit for all.
    """

    def __init__(self) -> None:
        self._connection_failures = FailureCount()
        self._client_failures: OrderedDict[str, FailureCount] = OrderedDict()

    @property
    def _has_failures(self) -> bool:
        return bool(self._client_failures) or self._connection_failures.failures > 0

    def failures(self, client_id: str) -> int:
        return max(count.failures for count in self._counts(client_id))

    def acquire_probe(self, client_id: str, rest: Rest, now: float) -> float:
        """Return 0 if this client may send a request, otherwise the seconds to wait.

        While the circuit is open, 0 also reserves the probe: other requests wait for its result.
        """
        if not self._has_failures:
            return 0.0
        counts = self._counts(client_id)
        if delay := max(count.delay(rest, now) for count in counts):
            return delay
        for count in counts:
            count.reserve_interval(rest, now)
        return 0.0

    def record_failure(self, client_id: str, unreachable: bool, rest: Rest, now: float) -> bool:
        """Count a failure, and return whether it opens the circuit."""
        if unreachable:
            count = self._connection_failures
        else:
            count = _tracked(self._client_failures, client_id, FailureCount, MAX_TRACKED_CLIENTS)
        was_open = count.is_open(rest)
        count.add(rest, now)
        return count.is_open(rest) and not was_open

    def record_success(self, rest: Rest) -> bool:
        """Forget all failures, and return whether that closes the circuit for a client."""
        if not self._has_failures:
            return False
        was_open = any(count.is_open(rest) for count in (self._connection_failures, *self._client_failures.values()))
        self._connection_failures.failures = 0
        self._client_failures.clear()
        return was_open

    def _counts(self, client_id: str) -> list[FailureCount]:
        client_failures = self._client_failures.get(client_id)
        return [self._connection_failures, *([client_failures] if client_failures is not None else [])]


class RetryPolicies:
    """Retry budgets and circuit breakers of all upstreams, kept as long as the process runs.

    Args:
        on_circuit_change: Called with upstream, model and number of failures when a circuit opens, for one client or
            for all; with 0 failures when it closes.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self, on_circuit_change: Callable[[str, str, int], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_circuit_change = on_circuit_change
        self._clock = clock
        self._shared_budgets: dict[tuple[str, str], RetryBudget] = {}
        self._client_budgets: OrderedDict[tuple[str, str, str], RetryBudget] = OrderedDict()
        self._breakers: OrderedDict[tuple[str, str, str], CircuitBreaker] = OrderedDict()

    def for_route(self, route: Route, client_id: str) -> RetryPolicy:
        upstream_key = (route.name, route.upstream.url)
        shared_budget = self._shared_budgets.setdefault(upstream_key, RetryBudget(SHARED_RETRIES_PER_SECOND))
        client_key = (*upstream_key, client_id)
        own_budget = _tracked(
            self._client_budgets, client_key, lambda: RetryBudget(OWN_RETRIES_PER_SECOND), MAX_TRACKED_CLIENTS
        )
        breaker = _tracked(self._breakers, (*upstream_key, route.model), CircuitBreaker, MAX_TRACKED_MODELS)
        budgets = (shared_budget, own_budget)
        return RetryPolicy(route, client_id, budgets, breaker, self._on_circuit_change, self._clock)


class RetryPolicy:
    """Retry policy for one request of one client to one upstream."""

    def __init__(
        self,
        route: Route,
        client_id: str,
        budgets: tuple[RetryBudget, RetryBudget],
        breaker: CircuitBreaker,
        on_circuit_change: Callable[[str, str, int], None],
        clock: Callable[[], float],
    ) -> None:
        self._route = route
        self._client_id = client_id
        self._shared_budget, self._own_budget = budgets
        self._breaker = breaker
        self._on_circuit_change = on_circuit_change
        self._clock = clock

    def start_request(self) -> None:
        """Record the first attempt of a request. Raises UpstreamFailed if the circuit is open."""
        self._shared_budget.refill(self._route.upstream.retries.budget, self._clock())
        if delay := self.acquire_probe():
            problem = f"{self._route.model} failed in {self._breaker.failures(self._client_id)} consecutive attempts"
            message = f"{self._route.name}: {problem}; the circuit breaker is open for another {delay:.1f} s"
            raise UpstreamFailed(message, 503, retry_after=delay)

    def acquire_probe(self) -> float:
        """Return 0 if this request may be sent, otherwise the seconds for which the circuit stays open."""
        return self._breaker.acquire_probe(self._client_id, self._route.upstream.rest, self._clock())

    @property
    def has_retry(self) -> bool:
        """True if the retry budget allows another attempt."""
        now = self._clock()
        return self._shared_budget.has_retry(now) or self._own_budget.has_retry(now)

    def acquire_retry(self) -> bool:
        """Take a retry from the budget of all clients, or else from the client's own; return whether one was left."""
        now = self._clock()
        return self._shared_budget.spend(now) or self._own_budget.spend(now)

    def record_success(self) -> None:
        if self._breaker.record_success(self._route.upstream.rest):
            self._on_circuit_change(self._route.name, self._route.model, 0)

    def record_failure(self, error: UpstreamFailed) -> None:
        """Record a failed attempt. An error that only the client can solve counts as success: the upstream responds."""
        if not error.failover or error.status == TOO_MANY_REQUESTS_STATUS:
            self.record_success()
        elif self._breaker.record_failure(self._client_id, error.unreachable, self._route.upstream.rest, self._clock()):
            self._on_circuit_change(self._route.name, self._route.model, self._breaker.failures(self._client_id))


def _tracked(entries: OrderedDict[K, V], key: K, make: Callable[[], V], maximum: int) -> V:
    """Return the entry with this key, made if there is none. Beyond the maximum, forget the least recently used."""
    if key not in entries:
        entries[key] = make()
    entries.move_to_end(key)
    if len(entries) > maximum:
        entries.popitem(last=False)
    return entries[key]


def backoff(retries: Retries, attempt: int, error: UpstreamFailed) -> float | None:
    """Return the seconds to wait before the same upstream is tried again, or None if it must not be tried again."""
    if not error.retryable or attempt >= retries.attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= retries.longest else None
    return float(min(retries.longest, retries.backoff * 2 ** (attempt - 1)) * random.uniform(0.5, 1))
