"""Circuit breaker of one model of an upstream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlingua.gateway.settings.schema import Rest

__all__ = ["CircuitBreaker", "OpenCircuit", "tracked"]

MAX_TRACKED_CLIENTS = 1000
"""Maximum number of clients per circuit breaker: without `keys`, clients can send any key."""

K = TypeVar("K")
V = TypeVar("V")


class OpenCircuit(msgspec.Struct, frozen=True, kw_only=True):
    """State of a circuit breaker that is open, for operators."""

    failures: int
    """Consecutive failed attempts."""
    all_clients: bool
    """True if it is open for all clients, because connections fail."""
    clients: int
    """Number of clients for which it is open because of their own requests."""
    seconds: float
    """Seconds until the next request is sent as a probe; 0 if the next request is the probe."""


class FailureCount:
    """Number of consecutive failures. If there are too many, one probe request is allowed per interval."""

    __slots__ = ("failures", "open_until")

    def __init__(self) -> None:
        self.failures = 0
        """Consecutive failed attempts; one request can contribute several."""
        self.open_until = 0.0

    def is_open(self, rest: Rest) -> bool:
        return 0 < rest.after <= self.failures

    def delay(self, rest: Rest, now: float) -> float:
        """Return the seconds until the next probe; 0 if a request may be sent now."""
        return max(0.0, self.open_until - now) if self.is_open(rest) else 0.0


class CircuitBreaker:
    """Circuit breaker of one model of an upstream.

    A failed connection counts for all clients: no request can be its reason. All other failures, such as a status 500
    or a timeout, count only for the client that sent the request. A success of any client closes the circuit for all.
    """

    def __init__(self) -> None:
        self._connection_failures = FailureCount()
        self._client_failures: OrderedDict[str, FailureCount] = OrderedDict()

    @property
    def has_failures(self) -> bool:
        return bool(self._client_failures) or self._connection_failures.failures > 0

    def failures(self, client_id: str) -> int:
        return max(count.failures for count in self._counts(client_id))

    def is_open(self, client_id: str, rest: Rest) -> bool:
        """Return whether the circuit is open for this client, also while a probe may be sent."""
        return any(count.is_open(rest) for count in self._counts(client_id))

    def delay(self, client_id: str, rest: Rest, now: float) -> float:
        """Return the seconds for which this client may send no request."""
        return max(count.delay(rest, now) for count in self._counts(client_id))

    def is_open_by(self, client_id: str | None, rest: Rest) -> bool:
        """Return whether failures of this client have opened the circuit, or (None) failed connections."""
        count = self._connection_failures if client_id is None else self._client_failures.get(client_id)
        return count is not None and count.is_open(rest)

    def is_open_for_any(self, rest: Rest) -> bool:
        """Return whether the circuit is open for at least one client."""
        return any(count.is_open(rest) for count in (self._connection_failures, *self._client_failures.values()))

    def add_failure(self, client_id: str | None, open_until: float) -> None:
        """Count a failure for this client, or for all clients (None)."""
        if client_id is None:
            count = self._connection_failures
        else:
            count = tracked(self._client_failures, client_id, FailureCount, MAX_TRACKED_CLIENTS)
        count.failures += 1
        count.open_until = open_until

    def reserve_probe(self, client_id: str, open_until: float) -> None:
        """Make other requests wait for the result of a probe of this client."""
        for count in self._counts(client_id):
            count.open_until = open_until

    def reset(self) -> None:
        """Forget all failures."""
        self._connection_failures = FailureCount()
        self._client_failures.clear()

    def describe_open(self, rest: Rest, now: float) -> OpenCircuit | None:
        """Return the state for operators; None if the circuit is open for no client."""
        clients = [count for count in self._client_failures.values() if count.is_open(rest)]
        all_clients = self._connection_failures.is_open(rest)
        counts = [self._connection_failures, *clients] if all_clients else clients
        if not counts:
            return None
        return OpenCircuit(
            failures=max(count.failures for count in counts),
            all_clients=all_clients,
            clients=len(clients),
            seconds=max(count.delay(rest, now) for count in counts),
        )

    def _counts(self, client_id: str) -> list[FailureCount]:
        client_failures = self._client_failures.get(client_id)
        return [self._connection_failures, *([client_failures] if client_failures is not None else [])]


def tracked(entries: OrderedDict[K, V], key: K, make: Callable[[], V], maximum: int) -> V:
    """Return the entry with this key, made if there is none. Beyond the maximum, forget the least recently used."""
    if key not in entries:
        entries[key] = make()
    entries.move_to_end(key)
    if len(entries) > maximum:
        entries.popitem(last=False)
    return entries[key]
