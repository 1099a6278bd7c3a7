"""Failing models of upstreams: counted over all workers, reported once, forgotten after a complete reply."""

from __future__ import annotations

import pytest

from interlingua.gateway.observability.exchange_record import FailedAttempt
from interlingua.gateway.observability.failing_models import (
    FORGET_AFTER_SECONDS,
    MAX_FAILING_MODELS,
    MAX_REASON_BYTES,
    FailingModels,
)
from interlingua.gateway.observability.gateway_status import FailingModelStatus
from interlingua.gateway.shared_memory.event_log import EventLog, EventRings


def attempt(model: str = "kimi", kind: str = "unreachable", reason: str = "Connection refused") -> FailedAttempt:
    return FailedAttempt(upstream="one", model=model, kind=kind, reason=reason)


class Gateway:
    """Workers with a common clock and shared memory, and the changes that they report."""

    def __init__(self, workers: int = 2) -> None:
        self.now = 100.0
        self.changes: list[tuple[str, str]] = []
        rings = EventRings(workers)
        self.workers = [
            FailingModels(
                lambda failed: self.changes.append(("failing", failed.model)),
                lambda failing: self.changes.append(("recovered", failing.model)),
                lambda: self.now,
                EventLog(rings, worker),
            )
            for worker in range(workers)
        ]

    def listed(self, worker: int = 0) -> list[FailingModelStatus]:
        return self.workers[worker].list(["one"])


def test_failures_of_all_workers_are_one_entry_with_the_last_reason() -> None:
    gateway = Gateway()
    gateway.workers[0].record_failure(attempt())
    gateway.now += 30
    gateway.workers[1].record_failure(attempt(kind="503", reason="overloaded"))
    gateway.now += 5
    expected = FailingModelStatus(
        upstream="one", model="kimi", attempts=2, kind="503", reason="overloaded", seconds=35, last_seconds=5
    )
    assert gateway.listed(0) == gateway.listed(1) == [expected]
    assert gateway.changes == [("failing", "kimi")], "only the first failure is reported"


def test_complete_reply_ends_the_failure_in_all_workers() -> None:
    gateway = Gateway()
    gateway.workers[0].record_failure(attempt())
    gateway.workers[1].record_success("one", "kimi")
    gateway.workers[1].record_success("one", "kimi")
    assert gateway.listed(0) == gateway.listed(1) == []
    assert gateway.changes == [("failing", "kimi"), ("recovered", "kimi")]


def test_other_models_and_upstreams_are_not_affected() -> None:
    gateway = Gateway(1)
    gateway.workers[0].record_failure(attempt())
    gateway.workers[0].record_success("one", "glm")
    assert [each.model for each in gateway.listed()] == ["kimi"]
    assert gateway.workers[0].list(["two"]) == [], "an upstream that the settings no longer have"


@pytest.mark.parametrize("kind", ["400", "413", "415", "422"])
def test_errors_of_the_request_are_not_failures_of_the_model(kind: str) -> None:
    gateway = Gateway(1)
    gateway.workers[0].record_failure(attempt(kind=kind))
    assert (gateway.listed(), gateway.changes) == ([], [])


def test_open_circuit_keeps_the_reason_for_which_it_opened() -> None:
    gateway = Gateway(1)
    gateway.workers[0].record_failure(attempt())
    gateway.workers[0].record_failure(attempt(kind="circuit-open", reason="the circuit breaker is open"))
    assert [(each.kind, each.attempts) for each in gateway.listed()] == [("unreachable", 1)]


def test_entries_are_bounded_and_forgotten() -> None:
    gateway = Gateway(1)
    for number in range(MAX_FAILING_MODELS + 5):
        gateway.workers[0].record_failure(attempt(f"model-{number}"))
    assert len(gateway.listed()) == MAX_FAILING_MODELS
    assert gateway.listed()[0].model == f"model-{MAX_FAILING_MODELS + 4}", "the newest comes first"
    gateway.now += FORGET_AFTER_SECONDS + 1
    assert gateway.listed() == []


def test_long_texts_are_cut_so_that_other_workers_receive_them() -> None:
    gateway = Gateway()
    gateway.workers[0].record_failure(attempt("界" * 500, reason="\ud800" + "界" * 5000))
    (failing,) = gateway.listed(1)
    assert len(failing.reason.encode()) <= MAX_REASON_BYTES + len("…".encode())
    assert failing.reason.startswith("?界界")
