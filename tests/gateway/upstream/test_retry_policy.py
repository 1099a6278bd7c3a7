"""Retry budgets and circuit breakers of several workers: they count together, also if a worker is replaced."""

from __future__ import annotations

import pytest

from interlingua.gateway.routing.routes import Route, Routes
from interlingua.gateway.settings.schema import Rest, Retries, Settings, Upstream
from interlingua.gateway.shared_memory.event_log import EventLog, EventRings
from interlingua.gateway.upstream.circuit_breaker import OpenCircuit
from interlingua.gateway.upstream.retry_policy import RetryPolicies, RetryPolicy
from interlingua.translation.upstream_errors import UpstreamFailed

REFUSED = UpstreamFailed("connection refused", unreachable=True)
ERROR_500 = UpstreamFailed("oh", 500, upstream_status=500)
UPSTREAM = Upstream(url="http://127.0.0.1:9/v1", retries=Retries(budget=0.1), rest=Rest(after=4, seconds=5))
BREAKER_OFF = Upstream(url="http://127.0.0.1:9/v1", rest=Rest(after=0))


class Gateway:
    """Workers with a common clock and shared memory, and the changes of circuits that they report."""

    def __init__(self, workers: int = 2, upstream: Upstream = UPSTREAM) -> None:
        self.now = 100.0
        self.upstream = upstream
        self.changes: list[tuple[str, int]] = []
        self._rings = EventRings(workers)
        self._routes = Routes(Settings(upstreams={"one": upstream}))
        self.policies = [self._start(worker) for worker in range(workers)]

    def replace(self, worker: int) -> None:
        """Replace a worker that was killed."""
        self.policies[worker] = self._start(worker)

    def _start(self, worker: int) -> RetryPolicies:
        on_change = lambda _, model, failures: self.changes.append((model, failures))  # noqa: E731
        return RetryPolicies(on_change, lambda: self.now, EventLog(self._rings, worker))

    def policy(self, worker: int, client: str = "alice", model: str = "m") -> RetryPolicy:
        return self.policies[worker].for_route(self.route(model), client)

    def route(self, model: str) -> Route:
        (route,) = self._routes.find(model)
        return route

    def delays(self, client: str = "alice", model: str = "m") -> list[float]:
        """Return the seconds that the next request has to wait at each worker. A request that may be sent is sent."""
        return [self.policy(worker, client, model).acquire_probe() for worker in range(len(self.policies))]

    def open_circuits(self) -> list[dict[tuple[str, str], OpenCircuit]]:
        return [policies.open_circuits({"one": self.upstream}) for policies in self.policies]


def fail(gateway: Gateway, times: int, error: UpstreamFailed = ERROR_500, client: str = "alice") -> None:
    """Let requests fail at the workers in turn."""
    for number in range(times):
        gateway.policy(number % len(gateway.policies), client).record_failure(error)


@pytest.mark.parametrize("error", [REFUSED, ERROR_500], ids=str)
def test_failures_at_all_workers_together_open_the_circuit_at_each(error: UpstreamFailed) -> None:
    gateway = Gateway()
    fail(gateway, 3, error)
    assert gateway.delays() == [0, 0]
    fail(gateway, 1, error)
    assert gateway.delays() == [5, 5]
    assert gateway.changes == [("m", 4)], "one worker reports it"
    with pytest.raises(UpstreamFailed, match="m failed in 4 consecutive attempts"):
        gateway.policy(1).start_request()


def test_success_at_one_worker_closes_the_circuit_at_all() -> None:
    gateway = Gateway(workers=3)
    fail(gateway, 4)
    gateway.policy(2).record_success()
    assert gateway.delays() == [0, 0, 0]
    assert gateway.changes == [("m", 4), ("m", 0)]
    fail(gateway, 3)
    assert gateway.delays() == [0, 0, 0], "the failures before the success do not count"


def test_failures_of_a_client_at_all_workers_refuse_no_other_client() -> None:
    gateway = Gateway()
    fail(gateway, 100, client="mallory")
    assert (gateway.delays("mallory"), gateway.delays("alice")) == ([5, 5], [0, 0])


def test_one_worker_sends_the_probe_of_an_interval() -> None:
    gateway = Gateway(workers=3)
    fail(gateway, 4)
    gateway.now += 5
    assert gateway.delays() == [0, 5, 5]
    gateway.now += 5
    assert gateway.delays() == [0, 5, 5]


def test_workers_that_decide_at_the_same_moment_send_one_probe_each() -> None:
    """The bound of the race: a worker sees its own probe, so that it never sends two in an interval."""
    gateway = Gateway()
    fail(gateway, 4)
    gateway.now += 5
    gateway.delays("bob")  # both workers have read all events
    for policies in gateway.policies:
        policies.update = lambda: None  # type: ignore[method-assign]  # so that neither sees the probe of the other
    assert gateway.delays() == [0, 0]
    assert gateway.delays() == [5, 5]


def test_probe_of_a_killed_worker_blocks_no_later_probe() -> None:
    gateway = Gateway()
    fail(gateway, 4)
    gateway.now += 5
    assert gateway.policy(0).acquire_probe() == 0
    gateway.replace(0)
    assert gateway.delays() == [5, 5], "the replacement knows the state of the circuit"
    gateway.now += 5
    assert gateway.policy(1).acquire_probe() == 0
    gateway.policy(1).record_success()
    assert gateway.delays() == [0, 0]


def test_replacement_knows_that_a_circuit_was_closed() -> None:
    gateway = Gateway()
    fail(gateway, 4)
    gateway.now += 5
    gateway.policy(1).record_success()
    gateway.replace(0)
    assert gateway.delays() == [0, 0]


def test_retry_budget_is_shared() -> None:
    gateway = Gateway()
    taken = [gateway.policy(number % 2).acquire_retry() for number in range(21)]
    assert taken == [True] * 20 + [False], "ten that all clients share, ten of this client"
    assert [gateway.policy(worker).has_retry for worker in range(2)] == [False, False]
    assert [gateway.policy(number % 2, "bob").acquire_retry() for number in range(11)] == [True] * 10 + [False]


def test_retry_budget_refills_with_the_requests_at_all_workers() -> None:
    gateway = Gateway()
    while gateway.policy(0).acquire_retry():
        pass
    for number in range(10):
        assert not gateway.policy(0).has_retry
        gateway.policy(number % 2).start_request()
    gateway.policy(0).start_request()
    assert [gateway.policy(number % 2).acquire_retry() for number in range(2)] == [True, False]


def test_retry_budget_refills_with_time_once() -> None:
    gateway = Gateway()
    while gateway.policy(0).acquire_retry():
        pass
    gateway.now += 1
    assert [gateway.policy(number % 2).acquire_retry() for number in range(2)] == [True, False]


def test_replacement_knows_the_retry_budget() -> None:
    gateway = Gateway()
    while gateway.policy(0).acquire_retry():
        pass
    gateway.replace(0)
    gateway.replace(1)
    assert [gateway.policy(worker).has_retry for worker in range(2)] == [False, False]


def test_full_retry_budget_and_disabled_circuit_breaker_need_no_events() -> None:
    gateway = Gateway(upstream=BREAKER_OFF)
    for _ in range(100):
        gateway.policy(0).start_request()
        gateway.policy(0).record_failure(ERROR_500)
        gateway.policy(0).record_success()
    assert list(gateway._rings.ends) == [0, 0]


def test_open_circuits_are_reported_by_every_worker() -> None:
    gateway = Gateway()
    assert gateway.open_circuits() == [{}, {}]
    fail(gateway, 4, REFUSED)
    fail(gateway, 6, client="mallory")
    gateway.policy(0, model="other").record_failure(REFUSED)
    gateway.now += 2
    circuit = OpenCircuit(failures=6, all_clients=True, clients=1, seconds=3)
    assert gateway.open_circuits() == [{("one", "m"): circuit}] * 2
    gateway.now += 10
    assert gateway.open_circuits()[1]["one", "m"].seconds == 0, "the next request is the probe"
    gateway.policy(1).record_success()
    assert gateway.open_circuits() == [{}, {}]


def test_available_retries_are_reported_by_every_worker() -> None:
    gateway = Gateway()
    assert [policies.available_retries("one", UPSTREAM) for policies in gateway.policies] == [10, 10]
    for number in range(3):
        gateway.policy(number % 2).acquire_retry()
    gateway.now += 0.5
    assert [policies.available_retries("one", UPSTREAM) for policies in gateway.policies] == [7.5, 7.5]


def test_circuits_of_upstreams_that_a_reload_removed_are_not_reported() -> None:
    gateway = Gateway()
    fail(gateway, 4, REFUSED)
    moved = Upstream(url="http://127.0.0.1:10/v1", rest=UPSTREAM.rest)
    for upstreams in ({}, {"one": moved}):
        assert gateway.policies[0].open_circuits(upstreams) == {}
