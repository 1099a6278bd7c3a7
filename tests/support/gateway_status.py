"""Status of a gateway, for tests of what reports it."""

from __future__ import annotations

from interlingua.gateway.observability.gateway_status import (
    CircuitStatus,
    GatewayStatus,
    LimitUse,
    WorkerStateName,
    WorkerStatus,
)

__all__ = ["IDLE", "circuit_status", "worker_status"]

IDLE = GatewayStatus(
    version="1",
    state="ready",
    workers=[],
    finished_requests=0,
    requests=LimitUse(0, 1),
    connections=LimitUse(0, 1),
    memory_bytes=LimitUse(0, 1),
    open_circuits=[],
    more_open_circuits=0,
    retry_budgets=[],
)


def worker_status(state: WorkerStateName, restarts: int = 0) -> WorkerStatus:
    return WorkerStatus(
        worker=0, state=state, process=1, seconds=1, restarts=restarts, requests=0, connections=0, memory_bytes=0
    )


def circuit_status(upstream: str, model: str) -> CircuitStatus:
    return CircuitStatus(upstream=upstream, model=model, failures=10, all_clients=True, clients=0, seconds=1.5)
