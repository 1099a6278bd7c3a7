"""Tests of the text of `interlingua status`. The tests with real processes are in `test_daemon.py`."""

from __future__ import annotations

import socket
import threading

import msgspec
import pytest

from interlingua.cli.gateway.daemon import health_client
from interlingua.cli.gateway.status import gateway_lines
from interlingua.gateway.observability.gateway_status import FailingModelStatus, LimitUse, RetryBudgetStatus
from tests.support.gateway_status import IDLE, circuit_status, worker_status


def test_lines_of_a_gateway_with_problems() -> None:
    one_client = msgspec.structs.replace(circuit_status("two", "glm\n"), all_clients=False, clients=1, seconds=0)
    status = msgspec.structs.replace(
        IDLE,
        workers=[worker_status("ready"), worker_status("not responding", restarts=2)],
        finished_requests=120,
        requests=LimitUse(3, 4096),
        connections=LimitUse(5, 8192),
        memory_bytes=LimitUse(12_900_000, 1 << 30),
        open_circuits=[circuit_status("one", "k2"), one_client],
        more_open_circuits=4,
        retry_budgets=[
            RetryBudgetStatus(upstream="one", retries=0.4, capacity=10),
            RetryBudgetStatus(upstream="two", retries=10, capacity=10),
        ],
        failing_models=[
            FailingModelStatus(
                upstream="one",
                model="k2",
                attempts=12,
                kind="unreachable",
                reason="cannot connect to http://127.0.0.1:9/v1: Connection refused",
                seconds=190.0,
                last_seconds=1.5,
            )
        ],
    )
    assert gateway_lines(status) == [
        "  workers   1 of 2 ready, worker 0 not responding, 2 restarted",
        "  requests  120 finished, 3 open (limit 4096)",
        "  clients   5 connections (limit 8192)",
        "  memory    12.3 MiB of 1024 MiB",
        "  failing   k2 at one: 12 failed attempts in 3 minutes, the last 1 second ago: cannot connect to "
        "http://127.0.0.1:9/v1: Connection refused",
        "  circuits  k2 at one: open for all clients, 10 failures; next probe in 1.5 s",
        "            glm\\n at two: open for 1 client, 10 failures; the next request is the probe",
        "            and 4 more",
        "  retries   one: 0.4 of 10 left",
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(None, "no answer within 0.2 s"), (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP")],
)
def test_reason_why_a_gateway_has_no_status(monkeypatch: pytest.MonkeyPatch, answer: bytes | None, reason: str) -> None:
    monkeypatch.setattr(health_client, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        if answer is None:
            assert health_client.readiness(address) == health_client.fetch_status(address) == reason
            return
        thread = threading.Thread(target=_answer_once, args=(server, answer))
        thread.start()
        assert health_client.readiness(address) == reason
        thread.join()


def _answer_once(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(answer)
        connection.recv(65536)
