"""Limits per client: concurrent requests and streams, requests and tokens per minute, over all workers."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import ExitStack

import pytest

from interlingua.gateway.http.client_limits import (
    EXPECTED_OUTPUT_TOKENS,
    ClientLimiter,
    CountedRequest,
    RateLimited,
    reset_open_requests,
)
from interlingua.gateway.observability.metrics import Metrics
from interlingua.gateway.settings.schema import ClientLimits
from interlingua.gateway.shared_memory.series import SeriesMemory, SeriesRegion
from tests.support import raw_client as raw
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.gateway_status import IDLE
from tests.support.raw_client import CHAT, MESSAGES, WIRES, RawResponse
from tests.support.upstream_server import UpstreamServer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def limiters(clock: Clock, workers: int = 2, size: int = 1 << 16) -> list[ClientLimiter]:
    regions = [SeriesRegion(size) for _ in range(workers)]
    return [ClientLimiter(SeriesMemory(regions, worker), clock) for worker in range(workers)]


def begin(limiter: ClientLimiter, client: str, limits: ClientLimits) -> CountedRequest:
    request = limiter.begin(client, limits)
    assert request is not None
    return request


def test_without_limits_nothing_is_counted() -> None:
    (limiter,) = limiters(Clock(), workers=1)
    assert limiter.begin("alice", ClientLimits()) is None
    assert limiter.all_series(b"client:alice") == []


def test_concurrent_requests_of_a_client_are_limited_over_all_workers() -> None:
    first, second = limiters(Clock())
    limits = ClientLimits(requests=2)
    open_requests = [begin(first, "alice", limits), begin(second, "alice", limits)]
    for limiter in (first, second):
        with pytest.raises(RateLimited, match=r"reached: 2 concurrent requests \(client_limits.requests\)") as raised:
            limiter.begin("alice", limits)
        assert raised.value.retry_after == 1
    begin(first, "bob", limits)
    open_requests.pop().end(0)
    begin(first, "alice", limits)


def test_concurrent_streams_of_a_client_are_limited_over_all_workers() -> None:
    first, second = limiters(Clock())
    limits = ClientLimits(streams=1)
    stream, request = begin(first, "alice", limits), begin(first, "alice", limits)
    stream.begin_stream(limits)
    other = begin(second, "alice", limits)
    with pytest.raises(RateLimited, match="1 concurrent streams"):
        other.begin_stream(limits)
    for ended in (other, request, stream):
        ended.end(0)
    begin(second, "alice", limits).begin_stream(limits)


def test_requests_per_minute_are_limited_in_every_minute() -> None:
    clock = Clock()
    both = limiters(clock)
    limits = ClientLimits(requests_per_minute=10)
    admitted: list[float] = []
    waits: list[int] = []
    for number in range(3000):
        clock.now = 1000 + number / 10
        try:
            begin(both[number % 2], "alice", limits).end(0)
            admitted.append(clock.now)
        except RateLimited as error:
            waits.append(error.retry_after)
    assert max(sum(start <= at < start + 60 for at in admitted) for start in admitted) == 10
    assert len(admitted) >= 40, "ten in each 60 to 70 seconds"
    assert 1 <= min(waits) <= max(waits) <= 70


def test_client_that_waits_as_told_is_admitted() -> None:
    clock = Clock()
    (limiter,) = limiters(clock, workers=1)
    limits = ClientLimits(requests_per_minute=3, tokens_per_minute=100)
    for _ in range(50):
        clock.now += 7.3
        try:
            begin(limiter, "alice", limits).end(30)
        except RateLimited as error:
            clock.now += error.retry_after
            begin(limiter, "alice", limits).end(30)


def test_tokens_per_minute_are_limited_over_all_workers() -> None:
    clock = Clock()
    first, second = limiters(clock)
    limits = ClientLimits(tokens_per_minute=1000)
    begin(first, "alice", limits).end(999)
    begin(second, "alice", limits).end(5000)
    for limiter in (first, second):
        with pytest.raises(RateLimited, match="1,000 tokens per minute") as raised:
            limiter.begin("alice", limits)
    begin(first, "bob", limits)
    clock.now += raised.value.retry_after - 1
    with pytest.raises(RateLimited):
        first.begin("alice", limits)
    clock.now += 1
    begin(first, "alice", limits)


def test_tokens_of_requests_in_progress_are_limited_over_all_workers() -> None:
    first, second = limiters(Clock())
    limits = ClientLimits(tokens_per_minute=3 * EXPECTED_OUTPUT_TOKENS)
    requests = [begin(limiter, "alice", limits) for limiter in (first, second, first, second)]
    for request in requests[:3]:
        request.reserve_tokens(10, limits)
    with pytest.raises(RateLimited, match="3,000 tokens per minute") as raised:
        requests[3].reserve_tokens(10, limits)
    assert raised.value.retry_after == 1, "the requests in progress may end soon"
    with pytest.raises(RateLimited):
        begin(first, "alice", limits)
    for request in requests:
        request.end(tokens=100)
    begin(first, "alice", limits).reserve_tokens(10_000, limits)


def test_refused_requests_do_not_count() -> None:
    clock = Clock()
    (limiter,) = limiters(clock, workers=1)
    limits = ClientLimits(requests_per_minute=1, requests=1)
    begin(limiter, "alice", limits).end(0)
    for _ in range(100):
        with pytest.raises(RateLimited):
            limiter.begin("alice", limits)
    clock.now += 70
    begin(limiter, "alice", limits)


def test_stream_refused_after_a_slow_body_does_not_admit_more_later() -> None:
    clock = Clock()
    (limiter,) = limiters(clock, workers=1)
    limits = ClientLimits(requests_per_minute=10, streams=1)
    clock.now = 1000.0
    begin(limiter, "a", limits).begin_stream(limits)
    slow_bodies = [begin(limiter, "a", limits) for _ in range(9)]
    clock.now = 1019.9  # another slot
    for request in slow_bodies:
        with pytest.raises(RateLimited):
            request.begin_stream(limits)
        request.end(tokens=0)
    for _ in range(9):
        begin(limiter, "a", limits).end(tokens=0)
    clock.now = 1070.0  # the slot of the first requests has expired
    begin(limiter, "a", limits).end(tokens=0)
    with pytest.raises(RateLimited):
        begin(limiter, "a", limits)


def test_open_requests_of_a_dead_worker_are_forgotten() -> None:
    clock = Clock()
    regions = [SeriesRegion(1 << 16), SeriesRegion(1 << 16)]
    first, second = (ClientLimiter(SeriesMemory(regions, worker), clock) for worker in range(2))
    limits = ClientLimits(requests=1, requests_per_minute=2, tokens_per_minute=1)
    begin(first, "alice", limits).reserve_tokens(1, limits)
    reset_open_requests(regions[0])
    begin(second, "alice", limits).end(0)
    replacement = ClientLimiter(SeriesMemory(regions, 0), clock)
    with pytest.raises(RateLimited, match="2 requests per minute"):
        replacement.begin("alice", limits)


def test_limits_without_room_in_the_shared_memory_apply_to_the_worker() -> None:
    limiter, _ = limiters(Clock(), size=64)
    begin(limiter, "alice", ClientLimits(requests=1))
    with pytest.raises(RateLimited):
        limiter.begin("alice", ClientLimits(requests=1))


def test_metrics_in_the_same_memory_are_unchanged() -> None:
    region = SeriesRegion()
    memory = SeriesMemory([region], 0)
    metrics = Metrics(memory)
    begin(ClientLimiter(memory), "alice", ClientLimits(requests=1))
    before = metrics.render(IDLE)
    assert Metrics(memory).render(IDLE) == before
    assert b"alice" not in before


# ── gateway ───────────────────────────────────────────────────────────────────────────────────────────────────────────

ALICE, BOB = "sk-alice-0123456789abcdef", "sk-bob-0123456789abcdef"
CONFIG = """
keys: [{alice}, {bob}]
workers: {workers}
client_limits: {limits}
upstreams: {{test: {{url: "{url}", retries: {{attempts: 1}}}}}}
"""
USAGE = {"prompt_tokens": 70, "completion_tokens": 50, "total_tokens": 120}


def config(upstream: UpstreamServer, limits: str, workers: int = 1) -> str:
    return CONFIG.format(alice=ALICE, bob=BOB, url=upstream.url, limits=limits, workers=workers)


def request_bytes(key: str, wire: str, model: str, stream: bool = True) -> bytes:
    body = json.dumps(raw.minimal_body(wire, model, stream)).encode()
    return raw.build_request(f"/v1/{wire}", body, {"x-api-key": key})


def post(gateway: GatewayProcess, key: str, wire: str, model: str, stream: bool = True) -> RawResponse:
    return raw.send_bytes(gateway, request_bytes(key, wire, model, stream))


@pytest.mark.parametrize("wire", WIRES)
def test_client_over_its_limit_gets_429_and_others_are_served(upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add("m", up.chat_stream("Hello"))
    with run_gateway(config=config(upstream, "{requests_per_minute: 3}", workers=2)) as gateway:
        assert [post(gateway, ALICE, wire, model).status for _ in range(5)] == [200] * 3 + [429] * 2
        refused = post(gateway, ALICE, wire, model)
        assert 1 <= int(refused.header("retry-after") or 0) <= 70
        error = refused.json["error"]
        assert (error["type"], refused.json.get("type")) == ("rate_limit_error", "error" if wire == MESSAGES else None)
        assert "3 requests per minute (client_limits.requests_per_minute)" in error["message"]
        assert post(gateway, BOB, wire, model).status == 200
        page = raw.get(gateway, "/metrics", x_api_key=BOB).body.decode()
        assert re.search(r'^interlingua_rate_limited_total\{limit="requests_per_minute"\} 3$', page, re.M)
        assert ALICE not in page


def test_concurrent_streams_are_limited_over_all_workers(upstream: UpstreamServer) -> None:
    go = threading.Event()
    model = upstream.add(
        "slow", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(up.DONE)
    )
    data = request_bytes(ALICE, CHAT, model)
    with run_gateway(config=config(upstream, "{streams: 4}", workers=2)) as gateway, ExitStack() as stack:
        before = upstream.count(model)
        for _ in range(4):
            sock = stack.enter_context(raw.connect(gateway))
            sock.sendall(data)
        upstream.wait_for_requests(model, before + 4)
        assert [raw.send_bytes(gateway, data).status for _ in range(6)] == [429] * 6
        assert upstream.count(model) == before + 4
        sock.close()
        until = time.monotonic() + 5
        go.set()
        while (status := post(gateway, ALICE, CHAT, model).status) != 200:
            assert (status, time.monotonic() < until) == (429, True)


@pytest.mark.parametrize("stream", [True, False])
def test_reported_tokens_are_limited(upstream: UpstreamServer, stream: bool) -> None:
    reply = {
        "id": "c",
        "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    streamed = up.delta("Hi") + up.delta(finish="stop") + up.event({"id": "c", "choices": [], "usage": USAGE}) + up.DONE
    script = (
        up.stream_response(up.ROLE + streamed) if stream else (up.send_response("200 OK", json.dumps(reply).encode()),)
    )
    model = upstream.add(f"counts-{stream}", *script)
    with run_gateway(config=config(upstream, "{tokens_per_minute: 200}")) as gateway:
        assert [post(gateway, ALICE, CHAT, model, stream).status for _ in range(4)] == [200, 200, 429, 429]
        assert post(gateway, BOB, CHAT, model, stream).status == 200


def test_tokens_of_concurrent_streams_are_limited(upstream: UpstreamServer) -> None:
    go = threading.Event()
    model = upstream.add(
        "slow tokens", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(up.DONE)
    )
    with run_gateway(config=config(upstream, "{tokens_per_minute: 3000}", workers=2)) as gateway, ExitStack() as stack:
        for number in range(3):
            stack.enter_context(raw.connect(gateway)).sendall(request_bytes(ALICE, CHAT, model))
            upstream.wait_for_requests(model, number + 1)
        refused = post(gateway, ALICE, CHAT, model)
        assert (refused.status, refused.header("retry-after")) == (429, "1")
        assert post(gateway, BOB, CHAT, upstream.add("quick", up.chat_stream("Hello"))).status == 200
        go.set()
        until = time.monotonic() + 5
        while (status := post(gateway, ALICE, CHAT, model).status) != 200:
            assert (status, time.monotonic() < until) == (429, True)


def test_tokens_of_a_client_that_disconnects_count(upstream: UpstreamServer) -> None:
    model = upstream.add("long", up.send_headers(), up.send(up.ROLE + up.delta("word " * 1000)), up.wait(20))
    data = request_bytes(ALICE, CHAT, model)
    with run_gateway(config=config(upstream, "{tokens_per_minute: 1000}")) as gateway:
        with raw.connect(gateway) as sock:
            sock.sendall(data)
            received = b""
            while b"word" not in received:
                received += sock.recv(1 << 16)
        gateway.wait_for_log("client-left")
        assert post(gateway, ALICE, CHAT, model).status == 429
