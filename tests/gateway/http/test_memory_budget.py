"""The memory budget of a worker: what requests in progress hold, and what happens when it is used up."""

from __future__ import annotations

import json
import re
import socket
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from interlingua.gateway.http.error_responses import OutOfMemory, TooLarge
from interlingua.gateway.http.memory_budget import UNCHECKED_BYTES, MemoryBudget, decoded_size
from interlingua.gateway.http.request_body import decode_body
from interlingua.gateway.settings.schema import RequestLimits
from interlingua.gateway.shared_memory.worker_table import SharedCount, WorkerTable
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WIRES,
    RawResponse,
    build_request,
    connect,
    get,
    minimal_body,
    open_request,
    parse_response,
    read_to_end,
    reply_text,
    request_reply,
)
from tests.support.upstream_server import UpstreamServer

MIB = 1024 * 1024
CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 20, idle: 20}}
    retries: {{attempts: 2, backoff: 0.01, budget: 1}}
limits: {{memory: 8388608}}
"""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


@pytest.fixture(autouse=True)
def assert_everything_is_released(gateway: GatewayProcess) -> Iterator[None]:
    yield
    wait_until(lambda: memory_used(gateway) == 0)
    assert "internal gateway error" not in gateway.log.read_text(encoding="utf-8", errors="replace")


def memory_used(gateway: GatewayProcess) -> int:
    found = re.search(r"^interlingua_memory_bytes (\d+)$", get(gateway, "/metrics").body.decode(), re.MULTILINE)
    assert found
    return int(found[1])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ── the budget ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shares_of_a_budget() -> None:
    budget = MemoryBudget(lambda: MIB)
    first, second, small = budget.open_share(), budget.open_share(), budget.open_share()
    first.grow(MIB // 2)
    first.grow(MIB // 4)
    with pytest.raises(OutOfMemory) as refused:
        second.grow(MIB // 2)
    assert (refused.value.status, refused.value.retry_after) == (503, 1)
    assert (first.size, second.size, budget.used) == (3 * MIB // 4, 0, 3 * MIB // 4)
    second.grow(MIB // 4)
    small.grow(UNCHECKED_BYTES)
    assert budget.used == MIB + UNCHECKED_BYTES
    first.close()
    second.resize(MIB - UNCHECKED_BYTES)
    assert budget.used == MIB
    second.close()
    small.close()
    assert budget.used == 0


def test_budget_of_several_workers() -> None:
    table = WorkerTable(2)
    first, second = (MemoryBudget(lambda: MIB, SharedCount(table.memory_bytes, worker)) for worker in range(2))
    one, other = first.open_share(), second.open_share()
    one.grow(3 * MIB // 4)
    with pytest.raises(OutOfMemory):
        other.grow(MIB // 2)
    assert (first.used, second.used) == (3 * MIB // 4, 3 * MIB // 4)
    one.close()
    other.grow(MIB // 2)
    assert (first.used, second.used) == (MIB // 2, MIB // 2)


def test_request_that_alone_exceeds_the_budget_is_too_large() -> None:
    limit = [MIB]
    share = MemoryBudget(lambda: limit[0]).open_share()
    with pytest.raises(TooLarge, match="needs more than 1,048,576 bytes"):
        share.grow(MIB + 1)
    share.grow(MIB)
    limit[0] = MIB // 2  # a reload
    share.resize(MIB - 1)
    share.close()


SHAPES = {
    "text": '"abcdefgh "',
    "empty text": '""',
    "short text": '"ab"',
    "number": "1.5",
    "large number": "12345678901234567890",
    "empty list": "[]",
    "empty object": "{}",
    "lists": "[[[]]]",
    "object": '{"a":1}',
    "objects": '{"a":{"b":{}}}',
    "message": '{"role":"user","content":"x"}',
    "wide text": '"\U0001f600\U0001f600"',
    "escaped wide text": r'"\ud83d\ude00\n"',
    "one wide character": json.dumps("\U0001f600" + "a" * 100, ensure_ascii=False),
    "one escaped wide character": json.dumps("\U0001f600" + "a" * 100),
}


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("shape", SHAPES)
def test_estimate_is_not_less_than_the_memory_of_decoded_json(shape: str) -> None:
    data = ('{"messages":[' + ",".join([SHAPES[shape]] * 20_000) + "]}").encode()
    tracemalloc.start()
    try:
        body = decode_body(data, RequestLimits())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(body["messages"]) == 20_000
    assert len(data) + peak <= decoded_size(data)


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_body(gateway: GatewayProcess, wire: str, data: bytes, **headers: str) -> socket.socket:
    """Send the beginning of a chunked body that never ends."""
    sock = connect(gateway)
    given = {"transfer-encoding": "chunked", **{name.replace("_", "-"): value for name, value in headers.items()}}
    sock.sendall(build_request(f"/v1/{wire}", headers=given) + b"%x\r\n%b\r\n" % (len(data), data))
    return sock


def assert_refused(response: RawResponse, wire: str) -> None:
    assert (response.status, response.header("retry-after")) == (503, "1"), response.body
    assert "limits.memory" in response.json["error"]["message"]
    assert ("type" in response.json) is (wire == MESSAGES)


def half_of_a_body(megabytes: int) -> bytes:
    return b'{"model": "m", "x": "' + b"abc " * (megabytes * MIB // 4)


def gzip_stream(data: bytes) -> bytes:
    pack = zlib.compressobj(wbits=31)
    return pack.compress(data) + pack.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("wire", [*WIRES, f"{MESSAGES}/count_tokens"])
def test_bodies_that_never_end_fill_the_budget(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, packed: bool
) -> None:
    lines = [b"%d. abc abc abc abc abc abc abc\n" % number for number in range(3 * MIB // 30)]
    body = b"".join(lines)
    data, headers = (gzip_stream(body), {"content_encoding": "gzip"}) if packed else (body, {})
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(open_body(gateway, wire, data, **headers))
        wait_until(lambda: memory_used(gateway) == 2 * len(body))
        refused = stack.enter_context(open_body(gateway, wire, data, **headers))
        assert_refused(parse_response(refused.recv(MIB)), MESSAGES if MESSAGES in wire else wire)
        model = upstream.add(f"small-{wire}-{packed}", up.chat_stream("Hello"))
        assert reply_text(request_reply(gateway, CHAT, model), CHAT) == "Hello"


@pytest.mark.parametrize("wire", WIRES)
def test_compression_ratio_is_limited(gateway: GatewayProcess, wire: str) -> None:
    with open_body(gateway, wire, gzip_stream(half_of_a_body(7)), content_encoding="gzip") as sock:
        refused = parse_response(sock.recv(MIB))
    assert refused.status == 413
    assert "more than 100 times as large as its compressed data" in refused.json["error"]["message"]


def test_small_bodies_may_have_any_compression_ratio(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("ratio", up.chat_stream("Hello"))
    body = json.dumps(minimal_body(CHAT, model)).encode() + b" " * (MIB - 1000)
    pack = zlib.compressobj(9, wbits=31)
    data = pack.compress(body) + pack.flush()
    assert len(body) > 500 * len(data)
    sock = connect(gateway)
    sock.sendall(build_request(f"/v1/{CHAT}", data, {"content-encoding": "gzip"}))
    assert reply_text(read_to_end(sock), CHAT) == "Hello"


def test_body_that_alone_exceeds_the_budget_is_413(gateway: GatewayProcess) -> None:
    body = json.dumps({"model": "m", "messages": [[]] * 100_000}).encode()
    sock = connect(gateway)
    sock.sendall(build_request(f"/v1/{CHAT}", body))
    refused = read_to_end(sock)
    assert (refused.status, refused.header("retry-after")) == (413, None)
    assert "limits.memory" in refused.json["error"]["message"]


def test_request_is_counted_until_its_reply_begins(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("waiting", up.send_headers(), up.wait(1), up.send(up.ROLE + up.delta("x")), up.wait(20))
    with open_request(gateway, CHAT, model, user="x" * MIB):
        wait_until(lambda: memory_used(gateway) > 3 * MIB)
        wait_until(lambda: memory_used(gateway) < MIB)


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def whole_reply(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("wire", WIRES)
def test_whole_replies_are_counted(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    reply = whole_reply("x" * (3 * MIB // 2))
    headers = up.send_headers("200 OK", "application/json")
    slow = upstream.add(f"slow-{wire}", headers, up.send(reply[:-1]), up.wait(20))
    refused = upstream.add(f"refused-{wire}", up.send_response("200 OK", reply))
    with open_request(gateway, wire, slow, stream=False):
        wait_until(lambda: memory_used(gateway) > 4 * MIB)
        assert_refused(request_reply(gateway, wire, refused, stream=False), wire)
    wait_until(lambda: memory_used(gateway) == 0)
    accepted = upstream.add(f"accepted-{wire}", up.send_response("200 OK", reply))
    assert len(reply_text(request_reply(gateway, wire, accepted, stream=False), wire)) == 3 * MIB // 2


@pytest.mark.parametrize("stream", [True, False])
def test_reply_that_alone_exceeds_the_budget_is_502(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool
) -> None:
    model = upstream.add(f"huge-{stream}", up.send_response("200 OK", whole_reply("x" * 4 * MIB)))
    failed = request_reply(gateway, CHAT, model, stream)
    assert (failed.status, upstream.count(model)) == (502, 1)
    assert "too large: this request needs more than 8,388,608 bytes of memory" in failed.json["error"]["message"]


def test_reply_of_a_failed_attempt_is_released(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    failure = json.dumps({"error": {"message": "x" * 2 * MIB, "type": "server_error"}}).encode()
    model = upstream.add("retried", up.send_response("200 OK", failure))
    upstream.add(model, up.send_response("200 OK", whole_reply("x" * (2 * MIB))))
    assert len(reply_text(request_reply(gateway, CHAT, model, stream=False), CHAT)) == 2 * MIB


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("wire", WIRES)
def test_events_that_never_end_fill_the_budget(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    half_event = b'data: {"x": "' + b"x" * (6 * MIB)
    steps = [up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.send(half_event), up.wait(20)]
    first, second = (upstream.add(f"half-{number}-{wire}", *steps) for number in range(2))
    with open_request(gateway, wire, first):
        wait_until(lambda: memory_used(gateway) > 5 * MIB)
        cut = request_reply(gateway, wire, second)
    assert cut.status == 200
    assert reply_text(cut, wire) == "Hello"
    assert b"limits.memory" in cut.body[-1000:]
    gateway.wait_for_log(rf" 200 cut-off .*half-1-{wire}")


def test_text_that_a_responses_client_gets_again_at_the_end_is_counted(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    steps = [up.send_headers(), up.send(up.ROLE), up.send(b"".join([up.delta("x" * 1000)] * 3000)), up.wait(20)]
    model = upstream.add("kept", *steps)
    with open_request(gateway, RESPONSES, model) as sock:
        received = 0
        while received < 3 * MIB:
            received += len(sock.recv(MIB))
        wait_until(lambda: memory_used(gateway) > 2 * MIB)


def test_end_of_a_stream_that_exceeds_the_budget_is_sent(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    """The last frames of a Responses stream repeat its text four times. A stream without them has no end."""
    steps = [up.send_headers(), up.send(up.ROLE), up.send(b"".join([up.delta("x" * 1000)] * 3000)), up.send(up.DONE)]
    got = request_reply(gateway, RESPONSES, upstream.add("long-end", *steps))
    assert len(got.body) > 12 * MIB
    assert b"event: response.completed" in got.body
