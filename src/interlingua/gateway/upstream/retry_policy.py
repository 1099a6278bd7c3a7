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

__all__ = ["Restraint", "Restraints", "pause"]

FREE = 10.0
"""Further attempts that are always free at once, and one more each second: a single user is not to notice."""
KEPT = 1000
"""Of how many models is known how they fare: a client may call them what it likes."""
BUSY = 429
"""Who says this works: it has its reasons not to answer."""


class _Budget:
    """Further attempts at one upstream: each request brings a share of one, and time does."""

    def __init__(self) -> None:
        self._left = FREE
        self._then = 0.0

    def earn(self, share: float, now: float) -> None:
        self._left = min(FREE, self._left + share + max(0.0, now - self._then))
        self._then = now

    def has_one(self, now: float) -> bool:
        self.earn(0.0, now)
        return self._left >= 1

    def spend(self, now: float) -> bool:
        if not self.has_one(now):
            return False
        self._left -= 1
        return True


class _Breaker:
    """How one model of an upstream fares. While it rests, one request may try it every so often."""

    def __init__(self) -> None:
        self.failures = 0
        """Attempts in a row: those of one request count, too."""
        self._until = 0.0

    def take_turn(self, rest: Rest, now: float) -> float:
        """How long it is still to be left alone. Who is told 0 has the turn; the others wait for the outcome."""
        if not rest.after or self.failures < rest.after:
            return 0.0
        if now < self._until:
            return self._until - now
        self._until = now + rest.seconds
        return 0.0

    def fail(self, rest: Rest, now: float) -> bool:
        """Whether it begins to rest with this."""
        self.failures += 1
        self._until = now + rest.seconds
        return self.failures == rest.after


class Restraints:
    """Of all upstreams, for as long as the process lives. `begins` is told which upstream, and which model of it, is
    left alone from now on, and after how many failures; 0: it answers again."""

    def __init__(self, begins: Callable[[str, str, int], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._begins = begins
        self._clock = clock
        self._budgets: dict[tuple[str, str], _Budget] = {}
        self._breakers: OrderedDict[tuple[str, str, str], _Breaker] = OrderedDict()

    def of(self, route: Route) -> Restraint:
        where = (route.name, route.upstream.url)
        budget = self._budgets.setdefault(where, _Budget())
        key = (*where, route.model)
        breaker = self._breakers.setdefault(key, _Breaker())
        self._breakers.move_to_end(key)
        if len(self._breakers) > KEPT:
            self._breakers.popitem(last=False)
        return Restraint(route, budget, breaker, self._begins, self._clock)


class Restraint:
    """Of one request to one upstream."""

    def __init__(
        self,
        route: Route,
        budget: _Budget,
        breaker: _Breaker,
        begins: Callable[[str, str, int], None],
        clock: Callable[[], float],
    ) -> None:
        self._route = route
        self._budget = budget
        self._breaker = breaker
        self._begins = begins
        self._clock = clock

    def begin(self) -> None:
        """Before it is asked for the first time. Raises UpstreamFailed if it is to be left alone."""
        self._budget.earn(self._route.upstream.retries.budget, self._clock())
        if wait := self.take_turn():
            failed = f"{self._route.model} has failed in {self._breaker.failures} attempts in a row"
            message = f"{self._route.name}: {failed}, and is left alone for {wait:.1f} s"
            raise UpstreamFailed(message, 503, retry_after=wait)

    def take_turn(self) -> float:
        """How long the model is to be left alone; 0: it is this request's turn to ask."""
        return self._breaker.take_turn(self._route.upstream.rest, self._clock())

    @property
    def has_more(self) -> bool:
        """Whether it may be asked again."""
        return self._budget.has_one(self._clock())

    def take_attempt(self) -> bool:
        """One more, and whether there was one left."""
        return self._budget.spend(self._clock())

    def answered(self) -> None:
        rest = self._route.upstream.rest
        if rest.after and self._breaker.failures >= rest.after:
            self._begins(self._route.name, self._route.model, 0)
        self._breaker.failures = 0

    def failed(self, error: UpstreamFailed) -> None:
        """What no other attempt would mend is an answer, too: the upstream lives."""
        if not error.again or error.status == BUSY:
            self.answered()
        elif self._breaker.fail(self._route.upstream.rest, self._clock()):
            self._begins(self._route.name, self._route.model, self._breaker.failures)


def pause(retries: Retries, attempt: int, error: UpstreamFailed) -> float | None:
    """How long to wait before the same upstream is asked again; None: not at all."""
    if not error.again or attempt >= retries.attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= retries.longest else None
    return float(min(retries.longest, retries.backoff * 2 ** (attempt - 1)) * random.uniform(0.5, 1))
