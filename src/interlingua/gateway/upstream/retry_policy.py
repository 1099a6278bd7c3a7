"""When is an upstream spared? Whoever fails is asked again by all who wait for it: just then it should hear less.

Three things see to that. Who asks again waits first, each for another while. Further attempts are a small share of all
requests. And a model of an upstream that has failed often in a row is left alone, until one request has found that it
answers.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable

from interlingua.gateway.routing.routes import Route
from interlingua.gateway.settings.schema import Rest, Retries
from interlingua.gateway.upstream.errors import UpstreamFailed

__all__ = ["RetryPolicies", "RetryPolicy", "backoff"]

RETRY_BUDGET_CAPACITY = 10.0
"""Further attempts that are always free at once, and one more each second: a single user is not to notice."""
MAX_TRACKED_MODELS = 1000
"""Of how many models is known how they fare: a client may call them what it likes."""
TOO_MANY_REQUESTS_STATUS = 429
"""Who says this works: it has its reasons not to answer."""


class RetryBudget:
    """Further attempts at one upstream: each request brings a share of one, and time does."""

    def __init__(self) -> None:
        self._available = RETRY_BUDGET_CAPACITY
        self._updated_at = 0.0

    def refill(self, share: float, now: float) -> None:
        self._available = min(RETRY_BUDGET_CAPACITY, self._available + share + max(0.0, now - self._updated_at))
        self._updated_at = now

    def has_retry(self, now: float) -> bool:
        self.refill(0.0, now)
        return self._available >= 1

    def spend(self, now: float) -> bool:
        if not self.has_retry(now):
            return False
        self._available -= 1
        return True


class CircuitBreaker:
    """How one model of an upstream fares. While it rests, one request may try it every so often."""

    def __init__(self) -> None:
        self.failures = 0
        """Attempts in a row: those of one request count, too."""
        self._open_until = 0.0

    def acquire_probe(self, rest: Rest, now: float) -> float:
        """How long it is still to be left alone. Who is told 0 has the turn; the others wait for the outcome."""
        if not rest.after or self.failures < rest.after:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        self._open_until = now + rest.seconds
        return 0.0

    def record_failure(self, rest: Rest, now: float) -> bool:
        """Whether it begins to rest with this."""
        self.failures += 1
        self._open_until = now + rest.seconds
        return self.failures == rest.after


class RetryPolicies:
    """Of all upstreams, for as long as the process lives. `begins` is told which upstream, and which model of it, is
    left alone from now on, and after how many failures; 0: it answers again."""

    def __init__(
        self, on_circuit_change: Callable[[str, str, int], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_circuit_change = on_circuit_change
        self._clock = clock
        self._budgets: dict[tuple[str, str], RetryBudget] = {}
        self._breakers: OrderedDict[tuple[str, str, str], CircuitBreaker] = OrderedDict()

    def for_route(self, route: Route) -> RetryPolicy:
        upstream_key = (route.name, route.upstream.url)
        budget = self._budgets.setdefault(upstream_key, RetryBudget())
        key = (*upstream_key, route.model)
        breaker = self._breakers.setdefault(key, CircuitBreaker())
        self._breakers.move_to_end(key)
        if len(self._breakers) > MAX_TRACKED_MODELS:
            self._breakers.popitem(last=False)
        return RetryPolicy(route, budget, breaker, self._on_circuit_change, self._clock)


class RetryPolicy:
    """Of one request to one upstream."""

    def __init__(
        self,
        route: Route,
        budget: RetryBudget,
        breaker: CircuitBreaker,
        on_circuit_change: Callable[[str, str, int], None],
        clock: Callable[[], float],
    ) -> None:
        self._route = route
        self._budget = budget
        self._breaker = breaker
        self._on_circuit_change = on_circuit_change
        self._clock = clock

    def start_request(self) -> None:
        """Before it is asked for the first time. Raises UpstreamFailed if it is to be left alone."""
        self._budget.refill(self._route.upstream.retries.budget, self._clock())
        if delay := self.acquire_probe():
            problem = f"{self._route.model} has failed in {self._breaker.failures} attempts in a row"
            message = f"{self._route.name}: {problem}, and is left alone for {delay:.1f} s"
            raise UpstreamFailed(message, 503, retry_after=delay)

    def acquire_probe(self) -> float:
        """How long the model is to be left alone; 0: it is this request's turn to ask."""
        return self._breaker.acquire_probe(self._route.upstream.rest, self._clock())

    @property
    def has_retry(self) -> bool:
        """Whether it may be asked again."""
        return self._budget.has_retry(self._clock())

    def acquire_retry(self) -> bool:
        """One more, and whether there was one left."""
        return self._budget.spend(self._clock())

    def record_success(self) -> None:
        rest = self._route.upstream.rest
        if rest.after and self._breaker.failures >= rest.after:
            self._on_circuit_change(self._route.name, self._route.model, 0)
        self._breaker.failures = 0

    def record_failure(self, error: UpstreamFailed) -> None:
        """What no other attempt would mend is an answer, too: the upstream lives."""
        if not error.retryable or error.status == TOO_MANY_REQUESTS_STATUS:
            self.record_success()
        elif self._breaker.record_failure(self._route.upstream.rest, self._clock()):
            self._on_circuit_change(self._route.name, self._route.model, self._breaker.failures)


def backoff(retries: Retries, attempt: int, error: UpstreamFailed) -> float | None:
    """How long to wait before the same upstream is asked again; None: not at all."""
    if not error.retryable or attempt >= retries.attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= retries.longest else None
    return float(min(retries.longest, retries.backoff * 2 ** (attempt - 1)) * random.uniform(0.5, 1))
