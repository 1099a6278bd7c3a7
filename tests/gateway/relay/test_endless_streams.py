"""Streams that never end: the gateway ends them after a time and a size, with an error event."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import WIRES, reply_text, request_reply
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 20, idle: 20, stream: 1}}
    retries: {{attempts: 1}}
limits: {{stream: 1048576}}
"""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


@pytest.mark.parametrize("wire", WIRES)
def test_stream_has_a_longest_duration(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"slow-{wire}", up.send_headers(), up.send_pieces([up.ROLE, *[up.delta("x")] * 100], 0.1))
    got = request_reply(gateway, wire, model)
    assert b"the stream took longer than 1 s" in got.body
    assert set(reply_text(got, wire)) == {"x"}


def test_stream_without_content_has_a_longest_duration(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("empty", up.send_headers(), up.send_pieces([up.ROLE] * 100, 0.1))
    assert b"the stream took longer than 1 s" in request_reply(gateway, WIRES[0], model).body


@pytest.mark.parametrize("wire", WIRES)
def test_stream_has_a_largest_size(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"long-{wire}", up.send_headers(), up.send(up.ROLE + up.delta("x" * 100) * 20_000))
    got = request_reply(gateway, wire, model)
    assert b"limits.stream" in got.body
    assert set(reply_text(got, wire)) == {"x"}
