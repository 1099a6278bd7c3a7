"""Unusual and slow HTTP clients (rows 21 and 24 of the fault table)."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interlingua.gateway.settings.descriptor_limit import HEALTH_DESCRIPTORS
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    WIRES,
    RawResponse,
    build_request,
    connect,
    get,
    minimal_body,
    parse_complete,
    read_to_end,
    reply_text,
)
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams: {{test: {{url: "{url}"}}}}
limits: {{head: 1, rate: 100000, connections: 40, send: 60}}
"""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


@pytest.fixture
def hello(upstream: UpstreamServer) -> str:
    return upstream.add("hello", up.chat_stream("Hello"))


def encode_body(wire: str, model: str, stream: bool = True) -> bytes:
    return json.dumps(minimal_body(wire, model, stream)).encode()


def chunked(body: bytes, size: int = 7) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def read_one(sock: socket.socket, end: bytes) -> RawResponse:
    """Read one of several responses, up to these bytes."""
    data = b""
    while not data.endswith(end):
        piece = sock.recv(1)
        assert piece, data
        data += piece
    return parse_complete(data)


# ── 21: half-closed, HTTP/1.0, pipelined, 100-continue, chunked ───────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_21_half_closed_client_gets_an_error(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool
) -> None:
    """The gateway cannot distinguish it from a disconnected client, so it cancels the request to the model."""
    model = upstream.add(f"21-half-{wire}-{stream}", up.wait(20))
    sock = connect(gateway)
    sock.sendall(build_request(f"/v1/{wire}", encode_body(wire, model, stream)))
    received = upstream.wait_for_requests(model)[0]
    sock.shutdown(socket.SHUT_WR)
    began = time.monotonic()
    got = read_to_end(sock)
    assert got.status == 400
    assert "closed its side" in got.json["error"]["message"]
    assert received.finished.wait(5)
    assert received.client_left_at is not None
    assert received.client_left_at - began < 1
    gateway.wait_for_log(rf"499 client-left .*{model}")


@pytest.mark.parametrize("seconds", [0, 0.02], ids=["at once", "later"])
@pytest.mark.parametrize("path", ["/health", "/v1/models", "/metrics", "/nothing"])
def test_21_half_closed_client_gets_the_response_to_a_get_request(
    gateway: GatewayProcess, path: str, seconds: float
) -> None:
    expected = get(gateway, path)
    with connect(gateway) as sock:
        sock.sendall(build_request(path, method="GET", headers={"connection": "keep-alive"}))
        time.sleep(seconds)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock).status == expected.status


@pytest.mark.parametrize("wire", WIRES)
def test_21_client_that_closes_its_side_at_once_gets_an_error(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    with connect(gateway) as sock:
        sock.sendall(build_request(f"/v1/{wire}", encode_body(wire, upstream.add(f"21-at-once-{wire}", up.wait(20)))))
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock).status == 400


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_21_http_1_0_response_ends_with_the_connection(
    gateway: GatewayProcess, hello: str, wire: str, stream: bool
) -> None:
    data = build_request(f"/v1/{wire}", encode_body(wire, hello, stream), {"connection": ""}).replace(
        b"HTTP/1.1", b"HTTP/1.0", 1
    )
    with connect(gateway) as sock:
        sock.sendall(data)
        got = read_to_end(sock)
    assert (got.status, got.header("transfer-encoding")) == (200, None)
    assert reply_text(got, wire) == "Hello"


@pytest.mark.parametrize("stream", [True, False])
def test_21_pipelined_requests_are_answered_in_order(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool
) -> None:
    slow = upstream.add(f"21-slow-{stream}", up.wait(0.3), up.chat_stream("first"))
    fast = upstream.add(f"21-fast-{stream}", up.chat_stream("second"))
    first = build_request("/v1/chat/completions", encode_body(CHAT, slow, stream), {"connection": "keep-alive"})
    with connect(gateway) as sock:
        sock.sendall(first + build_request("/v1/chat/completions", encode_body(CHAT, fast, stream)))
        data = b""
        while piece := sock.recv(1 << 16):
            data += piece
    assert data.count(b"HTTP/1.1 200") == 2
    assert data.index(b"first") < data.index(b"second")


@pytest.mark.parametrize("wire", WIRES)
def test_21_expect_100_continue(gateway: GatewayProcess, hello: str, wire: str) -> None:
    body = encode_body(wire, hello)
    whole = build_request(f"/v1/{wire}", body, {"expect": "100-continue"})
    with connect(gateway) as sock:
        sock.sendall(whole[: -len(body)])
        assert sock.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert reply_text(read_to_end(sock), wire) == "Hello"


def test_21_unknown_expect_header_is_refused(gateway: GatewayProcess, hello: str) -> None:
    with connect(gateway) as sock:
        sock.sendall(build_request("/v1/messages", encode_body(MESSAGES, hello), {"expect": "wonders"}))
        assert read_to_end(sock).status == 417


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("packed", [False, True])
def test_21_chunked_request_body(gateway: GatewayProcess, hello: str, wire: str, packed: bool) -> None:
    body = gzip.compress(encode_body(wire, hello)) if packed else encode_body(wire, hello)
    headers = {"transfer-encoding": "chunked", "content-encoding": "gzip" if packed else ""}
    with connect(gateway) as sock:
        sock.sendall(build_request(f"/v1/{wire}", None, headers) + chunked(body))
        assert reply_text(read_to_end(sock), wire) == "Hello"


@pytest.mark.parametrize("body", [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}", b"-1\r\n{}\r\n"])
def test_21_malformed_chunks_are_400(gateway: GatewayProcess, body: bytes) -> None:
    with connect(gateway) as sock:
        sock.sendall(build_request("/v1/messages", None, {"transfer-encoding": "chunked"}) + body)
        time.sleep(0.3)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock).status == 400


def test_21_content_length_with_chunked_encoding_is_refused(gateway: GatewayProcess, hello: str) -> None:
    """Otherwise one server could read a body where another reads a request (request smuggling)."""
    with connect(gateway) as sock:
        sock.sendall(build_request("/v1/messages", encode_body(MESSAGES, hello), {"transfer-encoding": "chunked"}))
        assert read_to_end(sock).status == 400


# ── 24: slow clients, many connections ────────────────────────────────────────────────────────────────────────────


def drip(sock: socket.socket, data: bytes, seconds: float) -> tuple[RawResponse, float]:
    """Send single bytes until a response arrives. Returns the response and the elapsed time."""
    began = time.monotonic()
    sock.settimeout(0.1)
    for at in range(len(data)):
        assert time.monotonic() - began < seconds
        sock.sendall(data[at : at + 1])
        try:
            data_read = sock.recv(1 << 16)
        except TimeoutError:
            continue
        sock.settimeout(10)
        while piece := sock.recv(1 << 16):
            data_read += piece
        return parse_complete(data_read), time.monotonic() - began
    raise AssertionError("no response arrived")


def test_24_slow_request_headers_time_out(gateway: GatewayProcess) -> None:
    with connect(gateway) as sock:
        got, seconds = drip(sock, build_request("/v1/messages", b"", {"x-more": "y" * 200}), 5)
    assert (got.status, got.json["error"]["message"]) == (408, "the request headers took longer than 1 s")
    assert 0.9 <= seconds < 3


def test_24_slow_headers_of_a_second_request_time_out(gateway: GatewayProcess) -> None:
    with connect(gateway) as sock:
        sock.sendall(build_request("/healthz", None, {"connection": "keep-alive"}, "GET"))
        assert read_one(sock, b"ok\n").status == 200
        time.sleep(1.5)  # idle time between two requests does not count
        got, seconds = drip(sock, build_request("/v1/messages", b"", {"x-more": "y" * 200}), 5)
    assert got.status == 408
    assert 0.9 <= seconds < 3


def test_24_body_below_the_minimum_rate_times_out(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url)
    with run_gateway(config=config) as started, connect(started) as sock:
        began = time.monotonic()
        sock.sendall(build_request("/v1/messages", None, {"content-length": "1000000"}) + b" " * 1000)
        got = read_to_end(sock)
    assert got.status == 400
    assert "took longer than 10.01 s; 1,000 bytes arrived" in got.json["error"]["message"]
    assert 9 < time.monotonic() - began < 15


@pytest.mark.slow
def test_24_body_above_the_minimum_rate_may_take_longer(gateway: GatewayProcess, hello: str) -> None:
    body = encode_body(MESSAGES, hello).ljust(1_200_000)
    with connect(gateway) as sock:
        sock.sendall(build_request("/v1/messages", None, {"content-length": str(len(body))}))
        for at in range(0, len(body), 100_000):
            sock.sendall(body[at : at + 100_000])
            time.sleep(0.9)
        assert reply_text(read_to_end(sock), MESSAGES) == "Hello"


def test_24_connections_over_the_limit_are_refused(gateway: GatewayProcess) -> None:
    with ExitStack() as stack:
        socks = [stack.enter_context(connect(gateway)) for _ in range(40)]
        got = get(gateway, "/v1/models")
        assert (got.status, got.header("retry-after")) == (503, "1")
        assert "too many connections" in got.json["error"]["message"]
        assert get(gateway, "/healthz").status == 200, "health checks are answered over the limit"
        del socks
    until = time.monotonic() + 5
    while get(gateway, "/v1/models").status != 200:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_24_connections_over_the_limit_are_closed_after_a_second(gateway: GatewayProcess) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(gateway))
        silent, healthy = (stack.enter_context(connect(gateway)) for _ in range(2))
        healthy.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        began = time.monotonic()
        assert read_to_end(silent).status == 503
        assert read_to_end(healthy).status == 200
        assert 0.5 < time.monotonic() - began < 4
        many = [stack.enter_context(connect(gateway)) for _ in range(HEALTH_DESCRIPTORS + 20)]
        assert not any(map(received, many[:20])), "the oldest are closed at once, without a response"
        assert get(gateway, "/healthz").status == 200


def received(sock: socket.socket) -> bytes:
    try:
        return sock.recv(1000)
    except ConnectionError:
        return b""
