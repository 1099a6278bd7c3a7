"""Load tests on real sockets: large arguments, slow and disconnecting clients, many streams (fault rows 18–20)."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WIRES,
    RawResponse,
    build_request,
    minimal_body,
    open_request,
    parse_complete,
    reply_calls,
    reply_text,
    request_reply,
    tools_field,
)
from tests.support.upstream_server import ReceivedRequest, Step, UpstreamServer

CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 30, idle: 30}}
    retries: {{attempts: 1}}
"""
MIB = 1024 * 1024
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
MANY = 1000


@pytest.fixture(scope="module")
def upstream() -> Iterator[UpstreamServer]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * MANY + 200)), hard))
    server = UpstreamServer()
    yield server
    server.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def cpu_seconds(gateway: GatewayProcess) -> float:
    """Return the CPU time of the gateway process in seconds, which does not depend on the load of the machine."""
    fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def args_delta(piece: str) -> bytes:
    return up.delta(tool_calls=[{"index": 0, "function": {"arguments": piece}}])


def call_events(*pieces: str) -> list[bytes]:
    """Return the events of a reply with one call whose arguments are split into these pieces."""
    start = up.delta(
        tool_calls=[{"index": 0, "id": "c0", "type": "function", "function": {"name": "write", "arguments": ""}}]
    )
    return [up.ROLE + start, *map(args_delta, pieces), up.delta(finish="tool_calls") + up.DONE]


def split_into_reads(events: list[bytes], size: int = 64 * 1024) -> list[bytes]:
    """Return the same bytes in pieces of this size."""
    data = b"".join(events)
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_18_ten_megabyte_argument_within_cpu_limit(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    args = json.dumps({"text": "0123456789abcde\n" * (10 * MIB // 17)})
    model = upstream.add(f"18-{wire}", up.send_headers(), up.send_pieces(split_into_reads(call_events(args))))
    before = cpu_seconds(gateway)
    got = request_reply(gateway, wire, model, **tools_field(wire, "write", TEXT))
    assert reply_calls(got, wire) == [("write", args)]
    assert cpu_seconds(gateway) - before < 5


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("wire", WIRES)
def test_18_arguments_in_a_hundred_thousand_deltas_within_cpu_limit(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    count = 100_000 if wire == MESSAGES else 20_000
    args = ['{"text": "', *(f"{n % 10}" for n in range(count)), '"}']
    model = upstream.add(f"18-tiny-{wire}", up.send_headers(), up.send_pieces(split_into_reads(call_events(*args))))
    before = cpu_seconds(gateway)
    got = request_reply(gateway, wire, model, **tools_field(wire, "write", TEXT))
    assert reply_calls(got, wire) == [("write", "".join(args))]
    assert cpu_seconds(gateway) - before < count / 10_000


def test_18_arguments_over_the_limit_end_the_reply_not_the_gateway(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    piece = "x" * 60_000
    pieces = ['{"text": "', *([piece] * (20 * MIB // len(piece))), '"}']
    model = upstream.add("18-over", up.send_headers(), up.send_pieces(call_events(*pieces)))
    got = request_reply(gateway, MESSAGES, model, **tools_field(MESSAGES, "write", TEXT))
    assert got.status == 200
    assert got.events[-1]["type"] in ("error", "message_stop")
    with pytest.raises(ValueError, match=r"."):
        json.loads(reply_calls(got, MESSAGES)[0][1])  # a truncated call must never look complete
    assert request_reply(gateway, CHAT, upstream.add("18-after", up.chat_stream("well"))).status == 200


def test_18_event_over_the_size_limit_is_an_error(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    endless = [up.ROLE + up.delta("so"), b"data: ", *([b"x" * MIB] * 40)]
    got = request_reply(gateway, MESSAGES, upstream.add("18-endless", up.send_headers(), up.send_pieces(endless)))
    assert got.events[-1]["type"] == "error"
    assert "event of more than" in got.events[-1]["error"]["message"]


def kernel_buffer_bytes() -> int:
    """Return the most that the kernel buffers between upstream and client, besides the client's receive buffer.

    These are two send buffers and the gateway's receive buffer. The kernel enlarges them up to the limits of the
    machine, which differ widely.
    """
    send, receive = (int(Path(f"/proc/sys/net/ipv4/tcp_{name}").read_text().split()[2]) for name in ("wmem", "rmem"))
    return 2 * send + receive


def test_19_slow_client_applies_back_pressure_with_bounded_memory(upstream: UpstreamServer) -> None:
    allowed = kernel_buffer_bytes() + 12 * MIB  # what the gateway and the client may buffer
    total = max(100 * MIB, 2 * allowed)
    piece = up.delta("y" * 16_000)
    pieces = [piece] * (total // len(piece) + 1)
    model = upstream.add("19", up.send_headers(), up.send(up.ROLE), up.send_pieces(pieces), up.send(up.DONE))
    with (
        run_gateway(config=CONFIG.format(url=upstream.url) + f"limits: {{text: {2 * total}}}\n") as gateway,
        open_request(gateway, MESSAGES, model) as sock,
    ):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)  # a fixed size, so the kernel does not enlarge it
        read = len(sock.recv(1024))
        received = upstream.wait_for_requests(model)[0]
        assert wait_until_sending_stops(received) < read + allowed
        while read < 5 * MIB:
            read += len(sock.recv(MIB))
        assert wait_until_sending_stops(received) < read + allowed
        while data := sock.recv(MIB):
            read += len(data)
        assert received.bytes_sent > total
        assert read > 0.95 * total  # Messages frames have less overhead per event
        assert gateway.peak_memory < 96 * MIB


def wait_until_sending_stops(received: ReceivedRequest) -> int:
    """Return the number of bytes the upstream has sent, once it cannot send any more."""
    until = time.monotonic() + 20
    sent = -1
    while sent != received.bytes_sent:
        assert time.monotonic() < until, "the upstream never stops sending"
        sent = received.bytes_sent
        time.sleep(0.4)
    return sent


def test_19_client_that_does_not_read_counts_as_disconnected(upstream: UpstreamServer) -> None:
    piece = up.delta("y" * 16_000)
    model = upstream.add("19-dead", up.send_headers(), up.send(up.ROLE), up.send_pieces([piece] * 2000), up.wait(20))
    with (
        run_gateway(config=CONFIG.format(url=upstream.url) + "limits: {send: 1}\n") as gateway,
        open_request(gateway, MESSAGES, model),
    ):
        received = upstream.wait_for_requests(model)[0]
        assert received.finished.wait(10)
        assert received.client_left_at is not None
        gateway.wait_for_log(r"499 client-left")


def assert_disconnects_within_a_second(received: ReceivedRequest, now: float) -> None:
    assert received.finished.wait(5)
    assert received.client_left_at is not None
    assert received.client_left_at - now < 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_20_client_disconnects_before_the_headers(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool
) -> None:
    model = upstream.add(f"20-{wire}-{stream}", up.wait(20))
    sock = open_request(gateway, wire, model, stream)
    received = upstream.wait_for_requests(model)[0]
    sock.close()
    assert_disconnects_within_a_second(received, time.monotonic())
    gateway.wait_for_log(rf"499 client-left .*{model}")
    assert upstream.count(model) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_20_client_disconnects_before_the_first_content(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    model = upstream.add(f"20-first-{wire}", up.send_headers(), up.send(up.ROLE), up.wait(20))
    sock = open_request(gateway, wire, model)
    received = upstream.wait_for_requests(model)[0]
    time.sleep(0.1)
    sock.close()
    assert_disconnects_within_a_second(received, time.monotonic())
    gateway.wait_for_log(rf"499 client-left .*{model}")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("more", ["nothing", "words"])
def test_20_client_disconnects_during_a_stream(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, more: str
) -> None:
    rest = up.wait(20) if more == "nothing" else up.send_pieces([up.delta("more ")] * 2000, 0.01)
    model = upstream.add(f"20-mid-{wire}-{more}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), rest)
    sock = open_request(gateway, wire, model)
    got = b""
    while b"Hello" not in got:
        got += sock.recv(1 << 16)
    received = upstream.wait_for_requests(model)[0]
    sock.close()
    assert_disconnects_within_a_second(received, time.monotonic())
    gateway.wait_for_log(rf"499 client-left .*{model}")


@pytest.mark.parametrize("wire", WIRES)
def test_20_client_disconnects_during_a_complete_reply(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    model = upstream.add(
        f"20-whole-{wire}", up.send_headers(type="application/json"), up.send(b'{"choices": ['), up.wait(20)
    )
    sock = open_request(gateway, wire, model, stream=False)
    received = upstream.wait_for_requests(model)[0]
    time.sleep(0.1)
    sock.close()
    assert_disconnects_within_a_second(received, time.monotonic())
    gateway.wait_for_log(rf"499 client-left .*{model}")


def test_20_client_disconnects_between_two_attempts(upstream: UpstreamServer) -> None:
    config = CONFIG.replace("attempts: 1", "attempts: 3, backoff: 5").format(url=upstream.url)
    model = upstream.add("20-again", up.reset())
    with run_gateway(config=config) as gateway:
        sock = open_request(gateway, CHAT, model)
        upstream.wait_for_requests(model)
        time.sleep(0.1)
        sock.close()
        gateway.wait_for_log(rf"499 client-left .*{model}", seconds=2)
    assert upstream.count(model) == 1


def wait_until_set(event: threading.Event) -> Step:
    async def step(_: ReceivedRequest) -> None:
        while not event.is_set():
            await asyncio.sleep(0.2)

    return step


@pytest.mark.slow
def test_thousand_concurrent_streams(upstream: UpstreamServer) -> None:
    go = threading.Event()
    end = up.delta(" and good bye") + up.delta(finish="stop") + up.DONE
    model = upstream.add(
        "many", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), wait_until_set(go), up.send(end)
    )
    with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway:
        replies = asyncio.run(send_concurrently(gateway, upstream, model, go))
        gateway.wait_for_log(r"many", seconds=5)
        assert gateway.peak_memory < 200 * MIB
    assert upstream.count(model) == MANY
    assert [got.status for _, got in replies] == [200] * MANY
    assert {reply_text(got, wire) for wire, got in replies} == {"Hello and good bye"}
    last = {CHAT: b"[DONE]", MESSAGES: b"message_stop", RESPONSES: b"response.completed"}
    assert all(last[wire] in got.body for wire, got in replies)


async def send_concurrently(
    gateway: GatewayProcess, upstream: UpstreamServer, model: str, go: threading.Event
) -> list[tuple[str, RawResponse]]:
    host, port = gateway.base.removeprefix("http://").rsplit(":", 1)

    async def send_one(number: int) -> tuple[str, RawResponse]:
        wire = WIRES[number % 3]
        await asyncio.sleep(number / MANY)  # spread out: this test is not about the listen backlog
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(build_request(f"/v1/{wire}", json.dumps(minimal_body(wire, model)).encode()))
        data = await reader.read(-1)
        writer.close()
        await writer.wait_closed()
        return wire, parse_complete(data)

    pending_replies = asyncio.gather(*map(send_one, range(MANY)))
    for _ in range(300):
        if upstream.count(model) == MANY or pending_replies.done():
            break
        await asyncio.sleep(0.1)
    assert upstream.count(model) == MANY
    go.set()
    return await asyncio.wait_for(pending_replies, 30)
