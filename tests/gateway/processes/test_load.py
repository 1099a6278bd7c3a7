"""Much, slow, and many: rows 18–20 of the table of faults, by their number, on real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import Running, running
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WIRES,
    Got,
    ask,
    begin,
    body_for,
    calls_of,
    offered,
    request,
    text_of,
    whole_answer,
)
from tests.support.upstream_server import Asked, Step, UpstreamServer

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
def gateway(upstream: UpstreamServer) -> Iterator[Running]:
    with running(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def most_memory(gateway: Running) -> int:
    """The most that the process has ever had, in bytes."""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def work_of(gateway: Running) -> float:
    """How long the process has had a processor, in seconds: a busy machine makes no difference."""
    fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def args_delta(piece: str) -> bytes:
    return up.delta(tool_calls=[{"index": 0, "function": {"arguments": piece}}])


def call_of(*pieces: str) -> list[bytes]:
    """The events of a reply with one call, whose arguments come in these pieces."""
    start = up.delta(
        tool_calls=[{"index": 0, "id": "c0", "type": "function", "function": {"name": "write", "arguments": ""}}]
    )
    return [up.ROLE + start, *map(args_delta, pieces), up.delta(finish="tool_calls") + up.DONE]


def gathered(events: list[bytes], size: int = 64 * 1024) -> list[bytes]:
    """The same bytes in reads of this size."""
    data = b"".join(events)
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_18_ten_megabytes_in_one_argument(gateway: Running, upstream: UpstreamServer, wire: str) -> None:
    args = json.dumps({"text": "0123456789abcde\n" * (10 * MIB // 17)})
    model = upstream.add(f"18-{wire}", up.head(), up.each(gathered(call_of(args))))
    before = work_of(gateway)
    got = ask(gateway, wire, model, **offered(wire, "write", TEXT))
    assert calls_of(got, wire) == [("write", args)]
    assert work_of(gateway) - before < 5


@pytest.mark.parametrize("wire", WIRES)
def test_18_a_hundred_thousand_tiny_pieces(gateway: Running, upstream: UpstreamServer, wire: str) -> None:
    count = 100_000 if wire == MESSAGES else 20_000
    args = ['{"text": "', *(f"{n % 10}" for n in range(count)), '"}']
    model = upstream.add(f"18-tiny-{wire}", up.head(), up.each(gathered(call_of(*args))))
    before = work_of(gateway)
    got = ask(gateway, wire, model, **offered(wire, "write", TEXT))
    assert calls_of(got, wire) == [("write", "".join(args))]
    assert work_of(gateway) - before < count / 10_000


def test_18_arguments_beyond_all_limits_end_the_reply_and_not_the_gateway(
    gateway: Running, upstream: UpstreamServer
) -> None:
    piece = "x" * 60_000
    pieces = ['{"text": "', *([piece] * (20 * MIB // len(piece))), '"}']
    model = upstream.add("18-over", up.head(), up.each(call_of(*pieces)))
    got = ask(gateway, MESSAGES, model, **offered(MESSAGES, "write", TEXT))
    assert got.status == 200
    assert got.events[-1]["type"] in ("error", "message_stop")
    with pytest.raises(ValueError, match=r"."):
        json.loads(calls_of(got, MESSAGES)[0][1])  # never a call that looks whole
    assert ask(gateway, CHAT, upstream.add("18-after", up.chat("well"))).status == 200


def test_18_an_event_without_end_is_cut_off(gateway: Running, upstream: UpstreamServer) -> None:
    endless = [up.ROLE + up.delta("so"), b"data: ", *([b"x" * MIB] * 40)]
    got = ask(gateway, MESSAGES, upstream.add("18-endless", up.head(), up.each(endless)))
    assert got.events[-1]["type"] == "error"
    assert "event of more than" in got.events[-1]["error"]["message"]


def test_19_a_slow_client_holds_the_upstream_back_and_fills_no_memory(upstream: UpstreamServer) -> None:
    piece = up.delta("y" * 16_000)
    count = 100 * MIB // len(piece) + 1
    model = upstream.add("19", up.head(), up.send(up.ROLE), up.each([piece] * count), up.send(up.DONE))
    with running(config=CONFIG.format(url=upstream.url)) as gateway:
        sock = begin(gateway, MESSAGES, model)
        read = len(sock.recv(1024))
        asked = upstream.asked(model)[0]
        paused = until_it_stops(asked)
        assert paused < 20 * MIB  # buffers of the system are most of it
        while read < 5 * MIB:
            read += len(sock.recv(MIB))
        assert until_it_stops(asked) < paused + 20 * MIB
        while data := sock.recv(MIB):
            read += len(data)
        assert asked.sent > 100 * MIB
        assert read > 95 * MIB  # frames of Messages have shorter heads
        assert most_memory(gateway) < 96 * MIB
        sock.close()


def until_it_stops(asked: Asked) -> int:
    """How much the upstream has sent, once it can send no more."""
    until = time.monotonic() + 20
    sent = -1
    while sent != asked.sent:
        assert time.monotonic() < until, "it never stops"
        sent = asked.sent
        time.sleep(0.4)
    return sent


def test_19_a_client_that_reads_nothing_counts_as_gone(upstream: UpstreamServer) -> None:
    piece = up.delta("y" * 16_000)
    model = upstream.add("19-dead", up.head(), up.send(up.ROLE), up.each([piece] * 2000), up.wait(20))
    with running(config=CONFIG.format(url=upstream.url) + "limits: {send: 1}\n") as gateway:
        sock = begin(gateway, MESSAGES, model)
        asked = upstream.asked(model)[0]
        assert asked.done.wait(10)
        assert asked.left is not None
        gateway.told(r"499 client-left")
        sock.close()


def leaves_within_a_second(asked: Asked, now: float) -> None:
    assert asked.done.wait(5)
    assert asked.left is not None
    assert asked.left - now < 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_20_client_leaves_before_the_headers(
    gateway: Running, upstream: UpstreamServer, wire: str, stream: bool
) -> None:
    model = upstream.add(f"20-{wire}-{stream}", up.wait(20))
    sock = begin(gateway, wire, model, stream)
    asked = upstream.asked(model)[0]
    sock.close()
    leaves_within_a_second(asked, time.monotonic())
    gateway.told(rf"499 client-left .*{model}")
    assert upstream.count(model) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_20_client_leaves_before_the_first_word(gateway: Running, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"20-first-{wire}", up.head(), up.send(up.ROLE), up.wait(20))
    sock = begin(gateway, wire, model)
    asked = upstream.asked(model)[0]
    time.sleep(0.1)
    sock.close()
    leaves_within_a_second(asked, time.monotonic())
    gateway.told(rf"499 client-left .*{model}")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("more", ["nothing", "words"])
def test_20_client_leaves_in_the_middle(gateway: Running, upstream: UpstreamServer, wire: str, more: str) -> None:
    rest = up.wait(20) if more == "nothing" else up.each([up.delta("more ")] * 2000, 0.01)
    model = upstream.add(f"20-mid-{wire}-{more}", up.head(), up.send(up.ROLE + up.delta("Hello")), rest)
    sock = begin(gateway, wire, model)
    got = b""
    while b"Hello" not in got:
        got += sock.recv(1 << 16)
    asked = upstream.asked(model)[0]
    sock.close()
    leaves_within_a_second(asked, time.monotonic())
    gateway.told(rf"499 client-left .*{model}")


@pytest.mark.parametrize("wire", WIRES)
def test_20_client_leaves_in_the_middle_of_a_whole_reply(gateway: Running, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"20-whole-{wire}", up.head(type="application/json"), up.send(b'{"choices": ['), up.wait(20))
    sock = begin(gateway, wire, model, stream=False)
    asked = upstream.asked(model)[0]
    time.sleep(0.1)
    sock.close()
    leaves_within_a_second(asked, time.monotonic())
    gateway.told(rf"499 client-left .*{model}")


def test_20_client_leaves_between_two_attempts(upstream: UpstreamServer) -> None:
    config = CONFIG.replace("attempts: 1", "attempts: 3, backoff: 5").format(url=upstream.url)
    model = upstream.add("20-again", up.reset())
    with running(config=config) as gateway:
        sock = begin(gateway, CHAT, model)
        upstream.asked(model)
        time.sleep(0.1)
        sock.close()
        gateway.told(rf"499 client-left .*{model}", seconds=2)
    assert upstream.count(model) == 1


def held_until(event: threading.Event) -> Step:
    async def step(_: Asked) -> None:
        while not event.is_set():
            await asyncio.sleep(0.2)

    return step


def test_a_thousand_streams_at_once(upstream: UpstreamServer) -> None:
    go = threading.Event()
    end = up.delta(" and good bye") + up.delta(finish="stop") + up.DONE
    model = upstream.add("many", up.head(), up.send(up.ROLE + up.delta("Hello")), held_until(go), up.send(end))
    with running(config=CONFIG.format(url=upstream.url)) as gateway:
        replies = asyncio.run(many_at_once(gateway, upstream, model, go))
        gateway.told(r"many", seconds=5)
        assert most_memory(gateway) < 200 * MIB
    assert upstream.count(model) == MANY
    assert [got.status for _, got in replies] == [200] * MANY
    assert {text_of(got, wire) for wire, got in replies} == {"Hello and good bye"}
    last = {CHAT: b"[DONE]", MESSAGES: b"message_stop", RESPONSES: b"response.completed"}
    assert all(last[wire] in got.body for wire, got in replies)


async def many_at_once(
    gateway: Running, upstream: UpstreamServer, model: str, go: threading.Event
) -> list[tuple[str, Got]]:
    host, port = gateway.base.removeprefix("http://").rsplit(":", 1)

    async def one(number: int) -> tuple[str, Got]:
        wire = WIRES[number % 3]
        await asyncio.sleep(number / MANY)  # a backlog is not what is tried here
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request(f"/v1/{wire}", json.dumps(body_for(wire, model)).encode()))
        data = await reader.read(-1)
        writer.close()
        await writer.wait_closed()
        return wire, whole_answer(data)

    asking = asyncio.gather(*map(one, range(MANY)))
    for _ in range(300):
        if upstream.count(model) == MANY or asking.done():
            break
        await asyncio.sleep(0.1)
    assert upstream.count(model) == MANY
    go.set()
    return await asyncio.wait_for(asking, 30)
