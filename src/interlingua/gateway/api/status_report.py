"""Status of the gateway, made by one worker for all workers."""

from __future__ import annotations

import time

import msgspec

from interlingua import __version__
from interlingua.gateway.observability.gateway_status import (
    CircuitStatus,
    FailingModelStatus,
    GatewayStatus,
    LimitUse,
    RetryBudgetStatus,
    WorkerStateName,
    WorkerStatus,
)
from interlingua.gateway.shared_memory.worker_table import WorkerState, WorkerTable
from interlingua.gateway.state import GatewayState
from interlingua.gateway.upstream.retry_policy import RETRY_BUDGET_CAPACITY

__all__ = ["gateway_status"]

MAX_LISTED_CIRCUITS = 100
MAX_MODEL_CHARS = 200
"""Longer model ids are cut."""
MAX_HEARTBEAT_AGE_SECONDS = 5.0
"""Age of the last heartbeat from which on a worker counts as not responding: five heartbeats are missing."""
_STATE_NAMES: dict[WorkerState, WorkerStateName] = {
    WorkerState.STARTING: "starting",
    WorkerState.READY: "ready",
    WorkerState.STOPPING: "stopping",
}


def gateway_status(gateway: GatewayState) -> GatewayStatus:
    """Return the status of the gateway. Every worker returns the same."""
    limits, table, memory = gateway.config.settings.limits, gateway.memory.table, gateway.memory
    circuits = _open_circuits(gateway)
    return GatewayStatus(
        version=__version__,
        state="ready" if gateway.is_ready else "stopping",
        workers=[_worker_status(table, worker, time.monotonic()) for worker in range(len(table.process))],
        requests=LimitUse(memory.open_requests.total, limits.streams),
        finished_requests=gateway.metrics.finished_requests,
        connections=LimitUse(memory.connections.total, limits.connections),
        memory_bytes=LimitUse(memory.memory_bytes.total, limits.memory),
        open_circuits=circuits[:MAX_LISTED_CIRCUITS],
        more_open_circuits=len(circuits[MAX_LISTED_CIRCUITS:]),
        retry_budgets=[
            RetryBudgetStatus(
                upstream=name,
                retries=round(gateway.retry_policies.available_retries(name, upstream), 1),
                capacity=RETRY_BUDGET_CAPACITY,
            )
            for name, upstream in gateway.config.settings.upstreams.items()
        ],
        failing_models=_failing_models(gateway),
    )


def _worker_status(table: WorkerTable, worker: int, now: float) -> WorkerStatus:
    process, last_beat = int(table.process[worker]), table.last_beat[worker]
    state = _STATE_NAMES[WorkerState(int(table.state[worker]))]
    if not process and table.is_stopping:
        state = "stopping"
    elif process and last_beat and now - last_beat > MAX_HEARTBEAT_AGE_SECONDS:  # a single worker has no heartbeat
        state = "not responding"
    return WorkerStatus(
        worker=worker,
        state=state,
        process=process,
        seconds=round(now - table.started_at[worker]) if process else 0,
        restarts=int(table.restarts[worker]),
        requests=int(table.requests[worker]),
        connections=int(table.connections[worker]),
        memory_bytes=int(table.memory_bytes[worker]),
    )


def _failing_models(gateway: GatewayState) -> list[FailingModelStatus]:
    config = gateway.config
    return [
        msgspec.structs.replace(failing, model=config.redactor.redact_text(failing.model))
        for failing in gateway.failing_models.list(config.settings.upstreams)
    ]


def _open_circuits(gateway: GatewayState) -> list[CircuitStatus]:
    """Return the open circuits: first those of all clients, then by the number of failures."""
    config = gateway.config
    circuits = [
        CircuitStatus(
            upstream=upstream,
            model=config.redactor.redact_text(model)[:MAX_MODEL_CHARS],
            **msgspec.structs.asdict(circuit),
        )
        for (upstream, model), circuit in gateway.retry_policies.open_circuits(config.settings.upstreams).items()
    ]
    return sorted(circuits, key=lambda one: (not one.all_clients, -one.failures, one.upstream, one.model))
