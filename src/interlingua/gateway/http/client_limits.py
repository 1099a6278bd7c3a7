"""Limits per client: requests and streams at once, requests and tokens per minute, over all workers.

Each worker counts its own requests, in memory that all workers can read (`shared_memory/series.py`), and checks the
sum. A request is counted before the check: workers that check at the same time may refuse one request too many, but
never admit one.

Requests and tokens are counted in slots of ten seconds. Seven slots cover the last minute, wherever it begins: a client
never exceeds its limit of requests in any minute, and it waits for at most ten seconds longer than necessary.

The tokens of a request are known when its reply ends. Until then it counts with an estimate of its input, and with
`EXPECTED_OUTPUT_TOKENS`. Otherwise a client could begin any number of requests at once.
"""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Literal, TypeAlias

from interlingua.errors import InterlinguaError
from interlingua.gateway.settings.schema import ClientLimits
from interlingua.gateway.shared_memory.series import SeriesIndex, SeriesMemory, SeriesRegion

__all__ = ["EXPECTED_OUTPUT_TOKENS", "ClientLimiter", "CountedRequest", "RateLimited", "reset_open_requests"]

LimitName: TypeAlias = Literal["requests", "streams", "requests_per_minute", "tokens_per_minute"]
NO_LIMITS = ClientLimits()
CONCURRENCY_RETRY_SECONDS = 1
EXPECTED_OUTPUT_TOKENS = 1000
"""Tokens of output with which a request counts while it is in progress. The limit that the client sets for the output
(such as `max_tokens`) is no estimate: agents always send the same large number."""
KEY_PREFIX = b"client:"
SLOT_SECONDS = 10.0
SLOTS = 7
OPEN_REQUESTS, OPEN_STREAMS, OPEN_TOKENS, FIRST_SLOT = range(4)
"""Positions in the series of a client."""
SLOT_TIME, SLOT_REQUESTS, SLOT_TOKENS = range(3)
"""Positions in a slot. The time is in units of `SLOT_SECONDS`, since the start of the machine."""
SLOT_WIDTH = 3
SERIES_WIDTH = FIRST_SLOT + SLOTS * SLOT_WIDTH


class RateLimited(InterlinguaError):
    """A client has reached one of its limits."""

    status = 429
    type = "rate_limit_error"

    def __init__(self, limit: LimitName, allowed: int, retry_after: int) -> None:
        kind = limit.replace("_", " ") if "minute" in limit else f"concurrent {limit}"
        problem = f"limit reached: {allowed:,} {kind} (client_limits.{limit})"
        super().__init__(problem, f"retry in {retry_after} s")
        self.limit = limit
        self.retry_after = retry_after


class ClientLimiter:
    """Counts the requests and tokens of each client, and refuses requests over its limits.

    Args:
        memory: The regions of all workers. None if this process is the only worker.
        clock: Monotonic clock in seconds, the same in all workers.
    """

    def __init__(self, memory: SeriesMemory | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        memory = memory or SeriesMemory([SeriesRegion()], 0)
        self._own_region = memory.own
        self._indexes = [SeriesIndex(region, KEY_PREFIX) for region in memory.regions]
        self._own_index = self._indexes[memory.worker]
        self._unshared: dict[bytes, memoryview[float]] = {}  # series for which the region has no room
        self.clock = clock

    def begin(self, client_id: str, limits: ClientLimits) -> CountedRequest | None:
        """Count a request. Raises RateLimited if it is over a limit.

        Returns:
            The request, which the caller has to end; None if there are no limits.
        """
        if limits == NO_LIMITS:
            return None
        key = KEY_PREFIX + client_id.encode()
        request = CountedRequest(self, key, self._own_series(key))
        request.begin(limits)
        return request

    def all_series(self, key: bytes) -> list[memoryview[float]]:
        """Return the series of a client in all workers, including this one."""
        found = [series for index in self._indexes if (series := index.find(key)) is not None]
        return [*found, self._unshared[key]] if key in self._unshared else found

    def _own_series(self, key: bytes) -> memoryview[float]:
        series = self._own_index.find(key) or self._unshared.get(key) or self._own_region.append(key, SERIES_WIDTH)
        if series is None:
            series = self._unshared[key] = memoryview(array("d", [0.0] * SERIES_WIDTH))
        return series


class CountedRequest:
    """One request of a client, counted from `begin` to `end`."""

    def __init__(self, limiter: ClientLimiter, key: bytes, own_series: memoryview[float]) -> None:
        self._limiter = limiter
        self._key = key
        self._own_series = own_series
        self._is_stream = False
        self._expected_tokens = 0
        self._begun_at = 0  # time of the slot in which the request is counted

    def begin(self, limits: ClientLimits) -> None:
        """Count the request. Raises RateLimited, and does not count it, if it is over a limit."""
        self._own_series[OPEN_REQUESTS] += 1
        self._begun_at = self._slot_time()
        self._add(SLOT_REQUESTS, 1)
        try:
            self._check_open("requests", OPEN_REQUESTS, limits.requests)
            self._check_rate("requests_per_minute", SLOT_REQUESTS, limits.requests_per_minute, own=1)
            self._check_tokens(limits.tokens_per_minute)
        except RateLimited:
            self._uncount_request()
            self.end(tokens=0)
            raise

    def reserve_tokens(self, input_tokens: int, limits: ClientLimits) -> None:
        """Count the expected tokens until the request ends. Raises RateLimited if none are left for this request."""
        self._expected_tokens = input_tokens + EXPECTED_OUTPUT_TOKENS
        self._own_series[OPEN_TOKENS] += self._expected_tokens
        try:
            self._check_tokens(limits.tokens_per_minute)
        except RateLimited:
            self._uncount_request()
            raise

    def begin_stream(self, limits: ClientLimits) -> None:
        """Count the request also as a stream. Raises RateLimited if it is over the limit."""
        self._own_series[OPEN_STREAMS] += 1
        self._is_stream = True
        try:
            self._check_open("streams", OPEN_STREAMS, limits.streams)
        except RateLimited:
            self._uncount_request()
            raise

    def end(self, tokens: int) -> None:
        """End the request, and count its tokens."""
        self._own_series[OPEN_REQUESTS] -= 1
        self._own_series[OPEN_STREAMS] -= self._is_stream
        self._own_series[OPEN_TOKENS] -= self._expected_tokens
        self._add(SLOT_TOKENS, tokens)

    def _add(self, field: int, number: int) -> None:
        """Add to a number of the current slot, which is emptied first if it is more than a minute old."""
        time_now = self._slot_time()
        slot = FIRST_SLOT + time_now % SLOTS * SLOT_WIDTH
        if self._own_series[slot + SLOT_TIME] != time_now:
            self._own_series[slot + SLOT_REQUESTS] = self._own_series[slot + SLOT_TOKENS] = 0.0
            self._own_series[slot + SLOT_TIME] = time_now
        self._own_series[slot + field] += number

    def _uncount_request(self) -> None:
        """Remove the request from the slot in which it was counted: another slot leaves the last minute later."""
        slot = FIRST_SLOT + self._begun_at % SLOTS * SLOT_WIDTH
        if self._own_series[slot + SLOT_TIME] == self._begun_at:
            self._own_series[slot + SLOT_REQUESTS] -= 1

    def _check_open(self, limit: LimitName, position: int, allowed: int) -> None:
        if allowed and sum(series[position] for series in self._limiter.all_series(self._key)) > allowed:
            raise RateLimited(limit, allowed, CONCURRENCY_RETRY_SECONDS)

    def _check_tokens(self, allowed: int) -> None:
        """Raise RateLimited if other requests have used up the tokens, or will probably do so."""
        self._check_rate("tokens_per_minute", SLOT_TOKENS, allowed, own=0)
        expected = sum(series[OPEN_TOKENS] for series in self._limiter.all_series(self._key)) - self._expected_tokens
        if allowed and sum(self._used_by_time(SLOT_TOKENS).values()) + expected >= allowed:
            raise RateLimited("tokens_per_minute", allowed, CONCURRENCY_RETRY_SECONDS)

    def _check_rate(self, limit: LimitName, field: int, allowed: int, *, own: int) -> None:
        """Raise RateLimited if nothing is left for this request, for which `own` is already counted."""
        if not allowed:
            return
        used = self._used_by_time(field)
        excess = sum(used.values()) - own + 1 - allowed
        if excess <= 0:
            return
        for slot_time in sorted(used):
            excess -= used[slot_time]
            if excess <= 0:
                break
        seconds = (slot_time + SLOTS) * SLOT_SECONDS - self._limiter.clock()
        raise RateLimited(limit, allowed, max(1, math.ceil(seconds)))

    def _used_by_time(self, field: int) -> Counter[int]:
        """Return the sums over all workers for each slot of the last minute, by its time."""
        oldest = self._slot_time() - SLOTS + 1
        used: Counter[int] = Counter()
        for series in self._limiter.all_series(self._key):
            for slot in range(FIRST_SLOT, SERIES_WIDTH, SLOT_WIDTH):
                if series[slot + SLOT_TIME] >= oldest:
                    used[int(series[slot + SLOT_TIME])] += int(series[slot + field])
        return used

    def _slot_time(self) -> int:
        return int(self._limiter.clock() // SLOT_SECONDS)


def reset_open_requests(region: SeriesRegion) -> None:
    """Forget the open requests of a worker that has ended. Its requests and tokens per minute remain."""
    for key, series in region.series():
        if key.startswith(KEY_PREFIX):
            series[OPEN_REQUESTS] = series[OPEN_STREAMS] = series[OPEN_TOKENS] = 0.0
