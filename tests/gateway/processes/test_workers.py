"""Several workers act as one gateway: limits, budgets, circuit breakers, status and metrics of all of them together."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from interlingua.gateway.upstream.retry_policy import RETRY_BUDGET_CAPACITY
from tests.gateway.observability.test_metrics import by_labels, parse_metrics
from tests.gateway.processes.test_server import begun, eventually, workers_of
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    build_request,
    connect,
    get,
    minimal_body,
    open_request,
    parse_response,
    read_to_end,
    reply_text,
    request_reply,
    send_bytes,
)
from tests.support.upstream_server import UpstreamServer

CONFIG = """
workers: 2
upstreams:
  one: {{url: "{url}", retries: {{attempts: 1}}, rest: {{after: 10, seconds: {seconds}}}}}
  patient: {{url: "{url}", retries: {{attempts: 3, backoff: 0.01}}, rest: {{after: 0}}}}
default: one
models:
  listed: {{upstream: one}}
  patient-*: {{upstream: patient}}
limits: {limits}
"""
OH = up.send_response("500 Oh", b'{"error": {"message": "oh"}}')
BOTH_WORKERS = 24
"""Number of requests that reach both workers: the kernel chooses one for each connection."""


@contextmanager
def two_workers(upstream: UpstreamServer, limits: str = "{}", seconds: float = 60) -> Iterator[GatewayProcess]:
    """Run a gateway with these limits and this `rest.seconds`, from the moment when both workers are idle."""
    with run_gateway(config=CONFIG.format(url=upstream.url, limits=limits, seconds=seconds)) as gateway:

        def is_idle() -> bool:
            status = gateway_status(gateway)
            own_connection = 1
            is_ready = all(worker["state"] == "ready" for worker in status["workers"])
            return is_ready and status["connections"]["used"] == own_connection

        eventually(is_idle)
        yield gateway


def statuses(gateway: GatewayProcess, model: str, count: int = BOTH_WORKERS) -> list[int]:
    return [request_reply(gateway, CHAT, model, False).status for _ in range(count)]


def gateway_status(gateway: GatewayProcess) -> Any:
    return get(gateway, "/status").json


def kill_worker(gateway: GatewayProcess, index: int) -> None:
    """Kill a worker, and wait until its replacement is ready."""
    victim = gateway_status(gateway)["workers"][index]["process"]
    os.kill(victim, signal.SIGKILL)

    def is_replaced() -> bool:
        worker = gateway_status(gateway)["workers"][index]
        return worker["state"] == "ready" and worker["process"] not in (0, victim)

    eventually(is_replaced)


def test_failures_at_both_workers_together_open_the_circuit(upstream: UpstreamServer) -> None:
    model = upstream.add("dead", OH)
    with two_workers(upstream) as gateway:
        assert statuses(gateway, model) == [500] * 10 + [503] * (BOTH_WORKERS - 10)
        assert upstream.count(model) == 10
        kill_worker(gateway, 0)
        kill_worker(gateway, 1)
        assert statuses(gateway, model) == [503] * BOTH_WORKERS, "replacements continue with the state of the others"
        (circuit,) = gateway_status(gateway)["open_circuits"]
        assert circuit | {"seconds": 0} == {
            "upstream": "one",
            "model": "dead",
            "failures": 10,
            "all_clients": False,
            "clients": 1,
            "seconds": 0,
        }
        assert 0 < circuit["seconds"] <= 60


def test_success_at_one_worker_closes_the_circuit_at_both(upstream: UpstreamServer) -> None:
    model = upstream.add("recovers", OH)
    with two_workers(upstream, seconds=1) as gateway:
        assert statuses(gateway, model)[-1] == 503
        upstream.add(model, up.chat_stream("Hello"))
        eventually(lambda: request_reply(gateway, CHAT, model).status == 200)
        assert [request_reply(gateway, CHAT, model).status for _ in range(BOTH_WORKERS)] == [200] * BOTH_WORKERS
        assert gateway_status(gateway)["open_circuits"] == []


def test_one_probe_is_sent_per_interval(upstream: UpstreamServer) -> None:
    model = upstream.add("probed", OH)
    with two_workers(upstream, seconds=1) as gateway:
        statuses(gateway, model)
        sent_before, began = upstream.count(model), time.monotonic()
        while time.monotonic() < began + 3:
            request_reply(gateway, CHAT, model, False)
        seconds = time.monotonic() - began
        assert 2 <= upstream.count(model) - sent_before <= seconds + 1, "requests come one after the other: no race"


def test_retry_budget_is_shared(upstream: UpstreamServer) -> None:
    model, requests = upstream.add("patient-dead", OH), 100
    with two_workers(upstream) as gateway:
        began = time.monotonic()
        assert statuses(gateway, model, requests) == [500] * requests
        budget = 2 * RETRY_BUDGET_CAPACITY + 0.1 * requests + 1.1 * (time.monotonic() - began)
        retries = upstream.count(model) - requests
        assert 2 * RETRY_BUDGET_CAPACITY <= retries <= budget + 1, "a budget for each worker would be twice as many"
        budgets = {budget["upstream"]: budget["retries"] for budget in gateway_status(gateway)["retry_budgets"]}
        assert budgets["one"] == RETRY_BUDGET_CAPACITY
        assert budgets["patient"] < RETRY_BUDGET_CAPACITY


def test_limit_of_streams_applies_to_all_workers_together(upstream: UpstreamServer) -> None:
    model = upstream.add("held", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with two_workers(upstream, "{streams: 6}") as gateway, ExitStack() as stack:
        streams = [stack.enter_context(begun(gateway, CHAT, model)[0]) for _ in range(6)]
        refused = request_reply(gateway, CHAT, model)
        assert (refused.status, refused.header("retry-after")) == (529, "1")
        assert "already handles 6 requests (limits.streams)" in refused.json["error"]["message"]
        assert statuses(gateway, model, 12) == [529] * 12
        assert gateway_status(gateway)["requests"] == {"used": 6, "limit": 6}
        streams[0].close()
        eventually(lambda: gateway_status(gateway)["requests"]["used"] == 5)
        stack.enter_context(begun(gateway, CHAT, model)[0])


def test_streams_of_killed_workers_do_not_count(upstream: UpstreamServer) -> None:
    model = upstream.add("lost", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with two_workers(upstream, "{streams: 6}") as gateway, ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(begun(gateway, CHAT, model)[0])
        for index in range(2):
            kill_worker(gateway, index)
        status = gateway_status(gateway)
        assert (status["requests"]["used"], status["memory_bytes"]["used"]) == (0, 0)
        assert [worker["restarts"] for worker in status["workers"]] == [1, 1]
        for _ in range(6):
            stack.enter_context(begun(gateway, CHAT, model)[0])


def test_memory_budget_applies_to_all_workers_together(upstream: UpstreamServer) -> None:
    go = threading.Event()
    model = upstream.add("large", up.wait_for_event(go), up.chat_stream("Hello"))
    body = minimal_body(CHAT, model, True)
    body["messages"] = [{"role": "user", "content": "x" * 2_000_000}]  # needs 6 MB
    data = build_request("/v1/chat/completions", json.dumps(body).encode())
    with two_workers(upstream, "{memory: 16777216}") as gateway, ExitStack() as stack:
        admitted = [stack.enter_context(connect(gateway)) for _ in range(2)]
        for number, sock in enumerate(admitted):
            sock.sendall(data)
            upstream.wait_for_requests(model, number + 1)
        assert gateway_status(gateway)["memory_bytes"]["used"] >= 12_000_000
        assert [send_bytes(gateway, data).status for _ in range(8)] == [503] * 8
        assert upstream.count(model) == 2
        go.set()
        for sock in admitted:
            assert reply_text(read_to_end(sock), CHAT) == "Hello"
        assert send_bytes(gateway, data).status == 200


def test_limit_of_connections_applies_to_all_workers_together(upstream: UpstreamServer) -> None:
    model = upstream.add("fine", up.chat_stream("Hello"))
    with two_workers(upstream, "{connections: 6}") as gateway, ExitStack() as stack:
        idle = [stack.enter_context(connect(gateway)) for _ in range(6)]
        time.sleep(0.5)  # a request for the status would be one of the first six
        assert gateway_status(gateway)["connections"] == {"used": 6, "limit": 6}
        assert statuses(gateway, model, 12) == [503] * 12
        assert {get(gateway, "/healthz").status for _ in range(12)} == {200}
        idle[0].close()
        eventually(lambda: request_reply(gateway, CHAT, model).status == 200)


def test_every_worker_answers_for_all(upstream: UpstreamServer) -> None:
    upstream.add("listed", OH)
    held = upstream.add("open", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with two_workers(upstream) as gateway, ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(begun(gateway, CHAT, held)[0])
        assert statuses(gateway, "listed")[-1] == 503
        connections = connections_to_both_workers(gateway, stack)
        reported = [without_times(answer_on(sock, "/status").json) for sock in connections]
        assert reported[0] == reported[1]
        assert sum(worker["requests"] for worker in reported[0]["workers"]) == reported[0]["requests"]["used"] == 5
        assert reported[0]["finished_requests"] == BOTH_WORKERS
        assert [worker["process"] for worker in reported[0]["workers"]] == workers_of(gateway)
        pages = [answer_on(sock, "/metrics").body.decode() for sock in connections]
        assert pages[0] == pages[1]
        circuits = by_labels(parse_metrics(pages[0])["interlingua_circuit_open"])
        assert circuits == {("one", "listed"): 1}
        assert by_labels(parse_metrics(pages[0])["interlingua_workers"])["ready",] == 2


def connections_to_both_workers(gateway: GatewayProcess, stack: ExitStack) -> list[socket.socket]:
    """Return an open connection to each worker."""
    found: dict[int, socket.socket] = {}
    while len(found) < 2:
        before = [worker["connections"] for worker in gateway_status(gateway)["workers"]]
        sock = stack.enter_context(connect(gateway))
        workers = answer_on(sock, "/status").json["workers"]
        # The connection that asked for the numbers before may still be counted.
        risen = [n for n in range(2) if workers[n]["connections"] > before[n]]
        if len(risen) == 1:
            found.setdefault(risen[0], sock)
    return list(found.values())


def answer_on(sock: socket.socket, path: str) -> Any:
    """Send a request on this connection and return the response. The connection stays open."""
    sock.sendall(build_request(path, headers={"connection": ""}, method="GET"))
    data = b""
    while not is_complete(data):
        piece = sock.recv(1 << 16)
        assert piece, data
        data += piece
    return parse_response(data)


def is_complete(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"")
    return bool(end) and len(body) >= int(length.partition(b":")[2])


def without_times(status: dict[str, Any]) -> dict[str, Any]:
    for item in (*status["workers"], *status["open_circuits"]):
        del item["seconds"]
    return status


def test_stopping_gateway_is_not_ready_at_any_worker(upstream: UpstreamServer) -> None:
    model = upstream.add("stopping", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with two_workers(upstream) as gateway, ExitStack() as stack:
        streams = [stack.enter_context(open_request(gateway, CHAT, model)) for _ in range(12)]
        upstream.wait_for_requests(model, len(streams))
        connections = connections_to_both_workers(gateway, stack)
        assert [answer_on(sock, "/readyz").status for sock in connections] == [200, 200]
        gateway.send_signal(signal.SIGTERM)
        gateway.wait_for_log("stopping")
        answers = [answer_on(sock, "/readyz") for sock in connections]
        assert [(answer.status, answer.body) for answer in answers] == [(503, b"stopping\n")] * 2
