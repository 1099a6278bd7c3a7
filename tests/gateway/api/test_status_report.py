"""Tests of the status: the state of each worker, and what it reports of circuits that clients can name."""

from __future__ import annotations

import time

import pytest

from interlingua.gateway.api.status_report import MAX_LISTED_CIRCUITS, MAX_MODEL_CHARS, gateway_status
from interlingua.gateway.observability.gateway_status import WorkerStateName
from interlingua.gateway.settings.loader import LoadedSettings
from interlingua.gateway.settings.schema import Rest, Settings, Upstream
from interlingua.gateway.shared_memory.worker_memory import SharedMemory, WorkerMemory
from interlingua.gateway.shared_memory.worker_table import WorkerState
from interlingua.gateway.state import GatewayState
from interlingua.translation.upstream_errors import UpstreamFailed

KEY = "sk-upstream-0123456789abcdef"
SETTINGS = Settings(upstreams={"one": Upstream(url="http://127.0.0.1:9/v1", key=KEY, rest=Rest(after=1))})
NOW = 1000.0


def state_of(memory: WorkerMemory) -> GatewayState:
    return GatewayState(LoadedSettings(SETTINGS, "", [KEY], {}), b"", "", memory)


@pytest.mark.parametrize(
    ("process", "state", "last_beat", "stopping", "expected"),
    [
        (0, WorkerState.STARTING, 0, False, "starting"),
        (7, WorkerState.STARTING, NOW - 1, False, "starting"),
        (7, WorkerState.READY, NOW - 1, False, "ready"),
        (7, WorkerState.READY, 0, False, "ready"),
        (7, WorkerState.READY, NOW - 6, False, "not responding"),
        (7, WorkerState.STOPPING, NOW - 1, True, "stopping"),
        (0, WorkerState.STARTING, 0, True, "stopping"),
    ],
)
def test_state_of_a_worker(
    monkeypatch: pytest.MonkeyPatch,
    process: int,
    state: WorkerState,
    last_beat: float,
    stopping: bool,
    expected: WorkerStateName,
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: NOW)
    shared = SharedMemory(2)
    shared.table.process[1], shared.table.state[1], shared.table.last_beat[1] = process, state, last_beat
    if stopping:
        shared.table.set_stopping()
    status = gateway_status(state_of(WorkerMemory(shared, 0)))
    assert (status.workers[1].state, status.state) == (expected, "stopping" if stopping else "ready")


def test_circuits_that_clients_can_name_are_bounded_and_redacted() -> None:
    gateway = state_of(WorkerMemory())
    for number in range(MAX_LISTED_CIRCUITS + 5):
        model = f"{number}-{KEY}-" + "x" * 300
        (route,) = gateway.config.routes.find(model)
        gateway.retry_policies.for_route(route, "").record_failure(UpstreamFailed("oh"))
    status = gateway_status(gateway)
    assert (len(status.open_circuits), status.more_open_circuits) == (MAX_LISTED_CIRCUITS, 5)
    assert {len(circuit.model) for circuit in status.open_circuits} == {MAX_MODEL_CHARS}
    assert not any(KEY in circuit.model for circuit in status.open_circuits)
