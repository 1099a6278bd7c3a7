"""File descriptors that run out: the gateway stays reachable, and blames no upstream."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interlingua.gateway.settings import descriptor_limit
from interlingua.gateway.settings.schema import RequestLimits
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    RawResponse,
    build_request,
    connect,
    get,
    minimal_body,
    open_request,
    parse_response,
    request_reply,
)
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  test: {{url: "{url}", rest: {{after: 2, seconds: 60}}, retries: {{attempts: 1}}}}
  by-name: {{url: "{url_by_name}", rest: {{after: 2, seconds: 60}}, retries: {{attempts: 1}}}}
models:
  named: {{upstream: by-name}}
default: test
keepalive: 60
"""


@pytest.mark.parametrize(
    ("soft", "hard", "streams", "connections"),
    [
        (1024, 20_000, 4096, 8192),
        (1024, resource.RLIM_INFINITY, 4096, 8192),
        (256, 10_100, 4096, 5904),
        (256, 2000, 950, 950),
        (64, 64, 1, 1),
    ],
)
def test_limits_fit_the_raised_descriptor_limit(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, streams: int, connections: int
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    descriptor_limit.raise_descriptor_limit()
    assert limits[-1] == (hard, hard)
    fitting = descriptor_limit.fit_limits(RequestLimits())
    assert (fitting.streams, fitting.connections) == (streams, connections)
    note = descriptor_limit.describe_reduced_limits(RequestLimits())
    assert (f"at most {streams} concurrent requests (limits.streams is 4096)" in note) == (connections < 8192)


@pytest.fixture
def upstream() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    yield server
    server.stop()


def config(upstream: UpstreamServer) -> str:
    return CONFIG.format(url=upstream.url, url_by_name=upstream.url.replace("127.0.0.1", "localhost"))


def test_gateway_with_few_descriptors_stays_reachable(upstream: UpstreamServer) -> None:
    """120 files allow ten streams, as the gateway says at the start. Further clients are refused."""
    go = threading.Event()
    end = up.delta(finish="stop") + up.DONE
    model = upstream.add(
        "m", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(end)
    )
    with run_gateway(config=config(upstream), max_files="120") as gateway, ExitStack() as stack:
        gateway.wait_for_log(r"note: at most 120 files can be open \(ulimit -n\): .* at most 10 concurrent requests")
        socks = [stack.enter_context(open_request(gateway, CHAT, model)) for _ in range(10)]
        while upstream.count(model) < 10:  # the connection that checked the start may still have been open
            socks.append(stack.enter_context(open_request(gateway, CHAT, model)))
            time.sleep(0.5)
        for _ in range(100):
            socks.append(stack.enter_context(open_request(gateway, CHAT, model)))
            if len(socks) % 10 == 0:
                assert get(gateway, "/healthz").status == 200
        time.sleep(0.5)  # until all are refused
        go.set()
        replies = [read_response(sock) for sock in socks]
        assert sum(b"[DONE]" in reply for reply in replies) == 10, "open streams are not disturbed"
        refusals = [parse_response(reply) for reply in replies if reply and b"[DONE]" not in reply]
        assert {(got.status, got.header("retry-after")) for got in refusals} == {(503, "1")}
        assert upstream.count(model) == 10
        assert get(gateway, "/healthz").status == 200


def read_response(sock: socket.socket) -> bytes:
    """Return the response; b"" if the connection is closed without one."""
    sock.settimeout(10)
    data = b""
    try:
        while piece := sock.recv(1 << 16):
            data += piece
    except ConnectionError:
        pass
    return data


@pytest.mark.parametrize("model", ["m", "named"])
def test_upstream_is_not_blamed_if_descriptors_run_out(upstream: UpstreamServer, model: str) -> None:
    upstream.add(model, up.chat_stream("Hello"))
    with run_gateway(config=config(upstream)) as gateway, connect(gateway) as sock:
        assert reply_on(sock, model).status == 200
        free = lowest_free_descriptor(gateway)
        set_soft_file_limit(gateway, free)
        for _ in range(3):
            got = reply_on(sock, model)
            assert (got.status, got.header("retry-after")) == (503, "1")
            assert "cannot open more than" in got.json["error"]["message"]
        gateway.wait_for_log("out of file descriptors .*ulimit -n")
        set_soft_file_limit(gateway, free + 100)
        assert reply_on(sock, model).status == 200, "the circuit breaker is closed"
        assert "circuit breaker opened" not in gateway.log.read_text("utf-8")


def test_last_descriptors_are_kept_for_health_checks(upstream: UpstreamServer) -> None:
    model = upstream.add("m", up.chat_stream("Hello"))
    with run_gateway(config=config(upstream)) as gateway:
        assert request_reply(gateway, CHAT, model).status == 200
        set_soft_file_limit(gateway, lowest_free_descriptor(gateway) + descriptor_limit.HEALTH_DESCRIPTORS)
        got = request_reply(gateway, CHAT, model)
        assert (got.status, got.header("retry-after")) == (503, "1")
        assert get(gateway, "/healthz").status == 200
        assert get(gateway, "/metrics").status == 200
        gateway.wait_for_log("almost out of file descriptors .*ulimit -n")
        assert request_reply(gateway, CHAT, model).status == 503
        assert gateway.log.read_text("utf-8").count("almost out of file descriptors") == 1


def reply_on(sock: socket.socket, model: str) -> RawResponse:
    """Send a request on this connection and return the response. The connection stays open."""
    body = json.dumps(minimal_body(CHAT, model, stream=False)).encode()
    sock.sendall(build_request(f"/v1/{CHAT}", body, {"connection": ""}))
    data = b""
    while not (match := re.search(rb"content-length: (\d+)\r\n.*?\r\n\r\n", data, re.I | re.S)) or len(
        data
    ) < match.end() + int(match[1]):
        piece = sock.recv(1 << 16)
        assert piece, data
        data += piece
    return parse_response(data)


def lowest_free_descriptor(gateway: GatewayProcess) -> int:
    """Return the number of the next descriptor that the gateway gets, after its short-lived ones are closed."""
    time.sleep(0.3)
    used = {int(name) for name in os.listdir(f"/proc/{gateway.process.pid}/fd")}
    return next(number for number in range(len(used) + 1) if number not in used)


def set_soft_file_limit(gateway: GatewayProcess, number: int) -> None:
    _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (number, hard))
