"""Memory of open streams that are silent, as most are while a model works: per stream, and of many at once."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.traffic import agent_request, http_requests, small_request
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import MESSAGES
from tests.support.upstream_server import ReceivedRequest, Step, UpstreamServer

CONFIG = """
limits: {{streams: 4000}}
upstreams:
  test:
    url: {url}
    timeouts: {{first_event: 60, idle: 60}}
overrides: {{"*": kimi_k2}}
"""
WIRE = "anthropic-messages"
MANY = 2000
WARM_UP = 50
MEASURED = 500
MAX_STREAM_BYTES = 30 * 1024
"""About a quarter more than what one stream takes, because memory is not handed out in such small pieces."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[UpstreamServer]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * MANY + 200)), hard))
    server = UpstreamServer()
    yield server
    server.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def wait_until_set(event: threading.Event) -> Step:
    async def step(_: ReceivedRequest) -> None:
        while not event.is_set():
            await asyncio.sleep(0.2)

    return step


def private_memory(gateway: GatewayProcess) -> int:
    """Return the memory of the gateway in bytes that it shares with no other process."""
    lines = Path(f"/proc/{gateway.process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))) * 1024


class Streams:
    """Streams of one gateway, all with the same request. They are open when they have received some text."""

    def __init__(self, gateway: GatewayProcess, body: dict[str, Any]) -> None:
        self._host, _, self._port = gateway.base.removeprefix("http://").rpartition(":")
        self._request = http_requests(f"/v1/{MESSAGES}", body)
        self._connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, count: int) -> None:
        """Open this many streams, at most as many at once as an agent would."""
        places = asyncio.Semaphore(16)

        async def open_one() -> None:
            async with places:
                reader, writer = await asyncio.open_connection(self._host, int(self._port))
                writer.write(self._request)
                await asyncio.wait_for(reader.readuntil(b"Hello"), 60)
                self._connections.append((reader, writer))

        await asyncio.gather(*(open_one() for _ in range(count)))

    async def read(self, expected: bytes) -> None:
        """Read from each stream until the expected bytes arrive."""
        for reader, _ in self._connections:
            await asyncio.wait_for(reader.readuntil(expected), 60)

    async def close(self) -> None:
        for _, writer in self._connections:
            writer.transport.abort()
        self._connections.clear()
        await asyncio.sleep(0.5)


async def measure_stream(gateway: GatewayProcess, body: dict[str, Any]) -> float:
    """Return the memory of one stream in bytes."""
    streams = Streams(gateway, body)
    await streams.open(WARM_UP)
    await streams.close()
    before = private_memory(gateway)
    await streams.open(MEASURED)
    grown = private_memory(gateway) - before
    await streams.close()
    return grown / MEASURED


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")
@pytest.mark.parametrize("size", [pytest.param(0, marks=pytest.mark.slow), 40_000])
def test_silent_stream_takes_little_memory_also_after_a_long_request(upstream: UpstreamServer, size: int) -> None:
    go = threading.Event()
    model = upstream.add(
        f"memory-{size}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), wait_until_set(go), up.reset()
    )
    body = agent_request(WIRE, model, size) if size else small_request(WIRE, model)
    try:
        with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway:
            assert asyncio.run(measure_stream(gateway, body)) < MAX_STREAM_BYTES
    finally:
        go.set()


@pytest.mark.slow
def test_many_open_streams_in_one_worker(upstream: UpstreamServer) -> None:
    """Each of them receives its events."""
    go = threading.Event()
    end = up.delta(" and good bye") + up.delta(finish="stop") + up.DONE
    model = upstream.add(
        "many", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), wait_until_set(go), up.send(end)
    )

    async def run(gateway: GatewayProcess) -> None:
        streams = Streams(gateway, agent_request(WIRE, model, 40_000))
        before = private_memory(gateway)
        await streams.open(MANY)
        assert (private_memory(gateway) - before) / MANY < MAX_STREAM_BYTES
        go.set()
        await streams.read(b"good bye")
        await streams.read(b"message_stop")
        await streams.close()

    with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway:
        asyncio.run(run(gateway))
        gateway.wait_for_log(r"many")
