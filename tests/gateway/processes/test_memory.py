"""Memory of a gateway process after floods of requests that fail: it returns to what it was before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, MESSAGES, RESPONSES, build_request, connect, open_request, request_reply
from tests.support.upstream_server import UpstreamServer

MIB = 1024 * 1024
CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 20, idle: 20}}
    retries: {{attempts: 2, backoff: 0.01, budget: 1}}
    rest: {{after: 0}}
"""
FLOOD_SIZE = 12
LARGE = "0123456789abcdef" * (20 * MIB // 16)
"""Text of 20 MiB."""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


@pytest.fixture(scope="module")
def baseline(gateway: GatewayProcess, upstream: UpstreamServer) -> int:
    """Memory after one small request."""
    model = upstream.add("small", up.chat_stream("Hello"))
    assert request_reply(gateway, CHAT, model).status == 200
    return gateway.resident_memory


def fail_with(reply: bytes) -> Callable[[GatewayProcess, UpstreamServer, str], None]:
    def send(gateway: GatewayProcess, upstream: UpstreamServer, model: str) -> None:
        for _ in range(2):
            upstream.add(model, up.send_response("200 OK", reply))
        assert request_reply(gateway, CHAT, model, stream=False).status == 502

    return send


def cut_stream(gateway: GatewayProcess, upstream: UpstreamServer, model: str) -> None:
    upstream.add(model, up.send_headers(), up.send(up.ROLE + up.delta(LARGE)), up.reset())
    with open_request(gateway, RESPONSES, model) as sock:
        while sock.recv(MIB):
            pass


def leave(gateway: GatewayProcess, upstream: UpstreamServer, model: str) -> None:
    upstream.add(model, up.send_headers(), up.send(up.ROLE + up.delta(LARGE)), up.wait(20))
    with open_request(gateway, RESPONSES, model) as sock:
        sock.recv(MIB)


def leave_within_request(gateway: GatewayProcess, upstream: UpstreamServer, model: str) -> None:  # noqa: ARG001
    with connect(gateway) as sock:
        sock.sendall(build_request(f"/v1/{MESSAGES}", LARGE.encode(), length=str(2 * len(LARGE))))


def refuse(gateway: GatewayProcess, upstream: UpstreamServer, model: str) -> None:
    upstream.add(model, up.send_response("400 Bad", b"{}"))
    assert request_reply(gateway, MESSAGES, model, user=LARGE).status == 400


FLOODS: dict[str, Callable[[GatewayProcess, UpstreamServer, str], None]] = {
    "errors": fail_with(json.dumps({"error": {"message": LARGE, "type": "server_error"}}).encode()),
    "junk": fail_with(LARGE.encode()),
    "cut JSON": fail_with(b'{"choices": "' + LARGE.encode()),
    "cut streams": cut_stream,
    "clients that leave": leave,
    "clients that leave within the request": leave_within_request,
    "refused requests": refuse,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOODS)
def test_memory_returns_after_a_flood(
    gateway: GatewayProcess, upstream: UpstreamServer, baseline: int, name: str
) -> None:
    for number in range(FLOOD_SIZE):
        FLOODS[name](gateway, upstream, f"{name}-{number}")
    deadline = time.monotonic() + 10
    while gateway.resident_memory > 1.5 * baseline:
        assert time.monotonic() < deadline, (baseline, gateway.resident_memory)
        time.sleep(0.1)
