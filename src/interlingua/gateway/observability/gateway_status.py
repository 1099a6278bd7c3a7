"""Status of the gateway over all workers, as `GET /status` returns it and metrics report it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

__all__ = [
    "WORKER_STATES",
    "CircuitStatus",
    "FailingModelStatus",
    "GatewayStatus",
    "LimitUse",
    "RetryBudgetStatus",
    "WorkerStateName",
    "WorkerStatus",
]

WorkerStateName: TypeAlias = Literal["starting", "ready", "not responding", "stopping"]
WORKER_STATES: tuple[WorkerStateName, ...] = get_args(WorkerStateName)


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of one worker process."""

    worker: int
    """Index of the worker."""
    state: WorkerStateName
    """starting: also a worker that has died and is not replaced yet. stopping: also one that has ended because the
    gateway stops. not responding: see `watchdog`."""
    process: int
    """Process id; 0 if there is no process."""
    seconds: float
    """Seconds since the start of the process."""
    restarts: int
    """Number of times that this worker was replaced because it died."""
    requests: int
    connections: int
    memory_bytes: int


class LimitUse(msgspec.Struct, frozen=True):
    """Number over all workers, and its limit."""

    used: int
    limit: int


class CircuitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Circuit breaker that is open."""

    upstream: str
    model: str
    failures: int
    """Consecutive failed attempts."""
    all_clients: bool
    """True if it is open for all clients, because connections fail."""
    clients: int
    """Number of clients for which it is open because of their own requests."""
    seconds: float
    """Seconds until a request is sent as a probe; 0 if the next request is the probe."""


class FailingModelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Model of an upstream whose last request failed, also if a fallback answered the client."""

    upstream: str
    model: str
    attempts: int
    """Failed attempts since the last complete reply."""
    kind: str
    """HTTP status, unreachable, timeout, no-answer, or stream (the reply broke off)."""
    reason: str
    """Error message of the last failure, without secrets."""
    seconds: float
    """Seconds since the first of these failures."""
    last_seconds: float
    """Seconds since the last failure."""


class RetryBudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Retries that all clients share at an upstream."""

    upstream: str
    retries: float
    capacity: float


class GatewayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of the gateway over all workers."""

    version: str
    state: Literal["ready", "stopping"]
    workers: list[WorkerStatus]
    finished_requests: int
    """Number of finished requests since the start of the gateway."""
    requests: LimitUse
    """Requests in progress (`limits.streams`)."""
    connections: LimitUse
    """Open connections of clients (`limits.connections`)."""
    memory_bytes: LimitUse
    """Memory budget in use by requests in progress (`limits.memory`)."""
    open_circuits: list[CircuitStatus]
    """At most 100."""
    more_open_circuits: int
    """Number of open circuits that are not listed."""
    retry_budgets: list[RetryBudgetStatus]
    failing_models: list[FailingModelStatus] = []
    """At most 100; the one that failed last comes first. A failure is forgotten after an hour."""
