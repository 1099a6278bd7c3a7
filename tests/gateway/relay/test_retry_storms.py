"""Retry budget and circuit breaker (row 41 of the fault table): no retry storm on a failing upstream."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from interlingua.gateway.routing.routes import Routes
from interlingua.gateway.settings.schema import Rest, Retries, Settings, Upstream
from interlingua.gateway.upstream.circuit_breaker import MAX_TRACKED_CLIENTS
from interlingua.gateway.upstream.retry_policy import RETRY_BUDGET_CAPACITY, RetryPolicies, RetryPolicy
from interlingua.translation.upstream_errors import UpstreamFailed
from tests.support import raw_client as raw
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, MESSAGES
from tests.support.upstream_server import UpstreamServer

CONFIG = """
log: {{format: json}}
upstreams:
  first: {{url: "{url}", retries: {{attempts: 3, backoff: 0.01}}, rest: {{seconds: 1}}}}
  patient: {{url: "{url}", retries: {{attempts: 3, backoff: 0.01}}, rest: {{after: 0}}}}
  second: {{url: "{url}"}}
default: first
models:
  patient-*: {{upstream: patient}}
  with-fallback: {{upstream: first, fallback: [second]}}
  second: {{upstream: second}}
"""
OH = up.send_response("500 Oh", b'{"error": {"message": "oh"}}')
MANY = 200


@pytest.fixture
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def send_many(gateway: GatewayProcess, model: str, concurrency: int) -> list[int]:
    with ThreadPoolExecutor(concurrency) as pool:
        return [got.status for got in pool.map(lambda _: raw.request_reply(gateway, CHAT, model, False), range(MANY))]


def metric(gateway: GatewayProcess, name: str) -> float:
    found = re.search(rf"^interlingua_{name} (\S+)$", raw.get(gateway, "/metrics").body.decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_41_retries_are_limited_by_the_retry_budget(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    model = upstream.add("patient-dead", OH)
    began = time.monotonic()
    assert send_many(gateway, model, concurrency=50) == [500] * MANY
    seconds = time.monotonic() - began
    free = 2 * RETRY_BUDGET_CAPACITY + 1.1 * seconds  # shared by all clients, and of this client alone
    assert MANY < upstream.count(model) <= MANY * 1.1 + free + 1, "three attempts for each would be 600"
    kind = 'findings_total{kind="not-asked-again",severity="error"}'
    assert metric(gateway, kind) > MANY / 2


def test_41_circuit_breaker_opens_after_consecutive_failures(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    model = upstream.add("dead", OH)
    began = time.monotonic()
    results = send_many(gateway, model, concurrency=5)
    seconds = time.monotonic() - began
    probes = seconds + 1
    assert upstream.count(model) <= 10 + 5 + probes, "ten failures, concurrent requests, and one probe per second"
    assert results.count(503) > MANY * 0.8
    assert metric(gateway, 'rests_total{upstream="first"}') == 1
    gateway.wait_for_log('"circuit breaker opened", "upstream": "first", "model": "dead", "failures": 10')


@pytest.mark.one_row_in(2)
@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_41_open_circuit_returns_retry_after(upstream: UpstreamServer, gateway: GatewayProcess, wire: str) -> None:
    model = upstream.add(f"resting-{wire}", OH)
    send_many(gateway, model, concurrency=5)
    got = raw.request_reply(gateway, wire, model, True)
    assert (got.status, got.header("retry-after")) == (503, "1")
    assert re.fullmatch(
        r"first: resting-\S+ failed in \d+ consecutive attempts; the circuit breaker is open for another .* s",
        got.json["error"]["message"],
    )


def test_41_successful_probe_closes_the_circuit(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    model = upstream.add("recovers", OH)
    while raw.request_reply(gateway, CHAT, model, False).status != 503:
        pass
    upstream.add(model, up.chat_stream("Hello"))
    until = time.monotonic() + 10
    while (got := raw.request_reply(gateway, CHAT, model, True)).status == 503:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert raw.reply_text(got, CHAT) == "Hello"
    gateway.wait_for_log('"circuit breaker closed", "upstream": "first", "model": "recovers"')
    assert raw.request_reply(gateway, CHAT, model, True).status == 200


def test_41_open_circuit_fails_over_at_once(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    upstream.add("with-fallback", OH)
    upstream.add("second", up.chat_stream("Hello"))
    for _ in range(30):
        got = raw.request_reply(gateway, CHAT, "with-fallback", True)
        assert (got.status, raw.reply_text(got, CHAT)) == (200, "Hello")
    assert upstream.count("with-fallback") <= 15, "ten failures, and a few probes"
    assert upstream.count("second") == 30


def test_41_circuit_breakers_of_models_are_independent(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    dead, well = upstream.add("dead too", OH), upstream.add("well", up.chat_stream("Hello"))
    send_many(gateway, dead, concurrency=5)
    assert raw.request_reply(gateway, CHAT, dead, True).status == 503
    assert raw.request_reply(gateway, CHAT, well, True).status == 200


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("status", ["400 Bad", "401 No", "429 Slow"])
def test_41_client_errors_do_not_open_the_circuit(
    upstream: UpstreamServer, gateway: GatewayProcess, status: str
) -> None:
    model = upstream.add(
        f"refuses {status}", up.send_response(status, b'{"error": {"message": "no"}}', "x", "retry-after: 60")
    )
    assert {raw.request_reply(gateway, CHAT, model, True).status for _ in range(30)} == {int(status[:3])}


ALICE, MALLORY = "sk-alice-0123456789abcdef", "sk-mallory-0123456789abcdef"
HOSTILE_REQUESTS = 6


def test_41_failures_of_one_client_do_not_refuse_another(upstream: UpstreamServer) -> None:
    config = f"keys: [{ALICE}, {MALLORY}]\n" + CONFIG.format(url=upstream.url)
    model = upstream.add("shared", OH)
    with run_gateway(config=config) as gateway:
        statuses = [request_as(gateway, MALLORY, model) for _ in range(HOSTILE_REQUESTS)]
        assert statuses == [500] * 4 + [503] * 2, "ten failed attempts open the circuit for this client"
        assert request_as(gateway, ALICE, model) == 500, "the upstream's own answer"
        upstream.add(model, up.chat_stream("Hello"))
        assert request_as(gateway, ALICE, model) == 200
        assert request_as(gateway, MALLORY, model) == 200, "a success of any client closes the circuit for all"


def request_as(gateway: GatewayProcess, key: str, model: str) -> int:
    body = json.dumps(raw.minimal_body(CHAT, model, True)).encode()
    return raw.send_bytes(gateway, raw.build_request(f"/v1/{CHAT}", body, {"x-api-key": key})).status


# ── retry policy without sockets ──────────────────────────────────────────────────────────────────────────────────────


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def make_policies(clock: Clock, *clients: str, budget: float = 0.1, after: int = 3) -> list[RetryPolicy]:
    upstream = Upstream(url="http://127.0.0.1:9/v1", retries=Retries(budget=budget), rest=Rest(after=after, seconds=5))
    (route,) = Routes(Settings(upstreams={"one": upstream})).find("m")
    policies = RetryPolicies(lambda *_: None, clock)
    return [policies.for_route(route, client) for client in clients]


def test_41_retry_budget_capacity_and_refill() -> None:
    clock = Clock()
    (policy,) = make_policies(clock, "alice")
    policy.start_request()
    assert [policy.acquire_retry() for _ in range(21)] == [True] * 20 + [False], "ten shared ones, ten of its own"
    clock.now += 1
    assert [policy.acquire_retry() for _ in range(2)] == [True, False]
    for _ in range(11):
        policy.start_request()
    assert [policy.acquire_retry() for _ in range(2)] == [True, False]


def test_41_client_that_uses_up_the_retry_budget_leaves_some_retries_for_others() -> None:
    clock = Clock()
    alice, mallory = make_policies(clock, "alice", "mallory")
    while mallory.acquire_retry():
        pass
    assert (mallory.has_retry, alice.has_retry) == (False, True)
    assert [alice.acquire_retry() for _ in range(11)] == [True] * 10 + [False]
    clock.now += 10
    while mallory.acquire_retry():
        pass
    assert [alice.acquire_retry() for _ in range(2)] == [True, False], "a client gets one of its own in ten seconds"


def test_41_retry_budgets_of_many_clients_are_bounded() -> None:
    (route,) = Routes(Settings(upstreams={"one": Upstream(url="http://127.0.0.1:9/v1")})).find("m")
    policies = RetryPolicies(lambda *_: None, Clock())
    while policies.for_route(route, "first").acquire_retry():
        pass
    for client in range(MAX_TRACKED_CLIENTS - 1):
        assert policies.for_route(route, str(client)).has_retry
    assert not policies.for_route(route, "first").has_retry
    for client in range(MAX_TRACKED_CLIENTS):
        assert policies.for_route(route, str(client)).has_retry
    assert policies.for_route(route, "first").has_retry, "it was forgotten"


def test_41_open_circuit_allows_one_probe_per_interval() -> None:
    clock = Clock()
    (policy,) = make_policies(clock, "alice")
    for _ in range(3):
        assert policy.acquire_probe() == 0
        policy.record_failure(UpstreamFailed("oh"))
    assert policy.acquire_probe() == 5
    clock.now += 5
    assert (policy.acquire_probe(), policy.acquire_probe()) == (0, 5), "one probe, the others wait for its result"
    policy.record_failure(UpstreamFailed("oh"))
    clock.now += 4
    assert policy.acquire_probe() == 1
    clock.now += 1
    assert policy.acquire_probe() == 0
    policy.record_success()
    assert [policy.acquire_probe() for _ in range(3)] == [0, 0, 0]


CERTIFICATE_EXPIRED = UpstreamFailed("expired", retryable=False, failover=True, unreachable=True)
REFUSED = UpstreamFailed("connection refused", unreachable=True)
ERROR_500, TIMEOUT = UpstreamFailed("oh", 500, upstream_status=500), UpstreamFailed("no first event", 504)


@pytest.mark.parametrize("error", [CERTIFICATE_EXPIRED, REFUSED], ids=str)
def test_41_failed_connections_open_the_circuit_for_all_clients(error: UpstreamFailed) -> None:
    alice, mallory = make_policies(Clock(), "alice", "mallory")
    for _ in range(3):
        assert (alice.acquire_probe(), mallory.acquire_probe()) == (0, 0)
        mallory.record_failure(error)
    assert (alice.acquire_probe(), mallory.acquire_probe()) == (5, 5)
    with pytest.raises(UpstreamFailed, match="m failed in 3 consecutive attempts") as refusal:
        alice.start_request()
    assert (refusal.value.status, refusal.value.retry_after) == (503, 5)


@pytest.mark.parametrize("error", [ERROR_500, TIMEOUT], ids=str)
def test_41_failures_that_a_request_can_cause_count_for_its_client(error: UpstreamFailed) -> None:
    alice, mallory = make_policies(Clock(), "alice", "mallory")
    for _ in range(100):
        mallory.record_failure(error)
    assert (alice.acquire_probe(), mallory.acquire_probe()) == (0, 5)
    alice.record_success()
    assert mallory.acquire_probe() == 0, "no client is refused while others succeed"


def test_41_failures_of_many_clients_are_bounded() -> None:
    policies = make_policies(Clock(), *map(str, range(2 * MAX_TRACKED_CLIENTS)), after=1)
    for policy in policies:
        policy.record_failure(ERROR_500)
    assert len([policy for policy in policies if policy.acquire_probe()]) == MAX_TRACKED_CLIENTS
