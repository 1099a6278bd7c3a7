"""Connections without a request, with a malformed one, or with several."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator

import pytest
from aiohttp import web

from interlingua.gateway.http.connection_listener import ConnectionListener
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.settings import schema as settings
from interlingua.gateway.settings.schema import RequestLimits, Settings, Upstream
from tests.support import upstream_server as up
from tests.support.gateway_in_process import run_in_process
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, build_request, minimal_body
from tests.support.upstream_server import UpstreamServer

SECRET = "sk-SECRET-0123456789"
HEAD = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
BROKEN = {
    "a control character": f"{HEAD}Authorization: Bearer {SECRET}\x01\r\n\r\n",
    "a blank before the colon": f"{HEAD}Authorization : {SECRET}\r\n\r\n",
    "a long header": f"{HEAD}X-Api-Key: {SECRET}{'x' * 10_000}\r\n\r\n",
    "a length that is none": f"POST /{SECRET} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {SECRET}\r\n\r\n",
    "no HTTP": f"\x16\x03\x01 {SECRET}\r\n\r\n",
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayProcess]:
    with run_gateway("--demo", "--log-level", "debug") as started:
        yield started


@pytest.mark.parametrize("what", BROKEN)
def test_malformed_request_is_reported_without_quoting_it(gateway: GatewayProcess, what: str) -> None:
    host, port = gateway.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(BROKEN[what].encode("latin-1"))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400")), head
    assert json.loads(body)["error"]["type"] == "invalid_request_error"
    assert SECRET.encode() not in received
    log = gateway.wait_for_log("malformed HTTP request")
    assert SECRET not in log
    assert "Traceback" not in log


def test_connection_without_a_complete_request_is_closed() -> None:

    async def main() -> bytes:
        async def handler(_: web.BaseRequest) -> web.StreamResponse:
            return web.Response(text="ok")

        runner = web.ServerRunner(web.Server(handler))
        await runner.setup()
        assert runner.server is not None
        listener = socket.create_server(("127.0.0.1", 0))
        log = GatewayLog(settings.Log(), [])
        gateway_listener = ConnectionListener(runner.server, log, lambda: RequestLimits(head=0.2))
        await gateway_listener.open(listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: loc")
        async with asyncio.timeout(5):
            received = await reader.read()
        writer.close()
        gateway_listener.close()
        await runner.cleanup()
        log.close()
        return received

    assert asyncio.run(main()).startswith(b"HTTP/1.1 408 ")


CHAT_PATH = f"/v1/{CHAT}"
END_OF_STREAM = b"[DONE]\n\n\r\n0\r\n\r\n"


@pytest.mark.parametrize("when", ["with the first", "during the stream", "in parts during the stream", "after it"])
@pytest.mark.parametrize("filler", [0, 100_000])
def test_further_request_on_the_connection_of_a_stream(upstream: UpstreamServer, when: str, filler: int) -> None:
    model = upstream.add(
        f"{when}-{filler}",
        up.send_headers(),
        up.send(up.ROLE + up.delta("Hello")),
        up.wait(0.3),
        up.send(up.delta("bye") + up.delta(finish="stop") + up.DONE),
    )
    body = json.dumps(minimal_body(CHAT, model, user="x" * filler)).encode()
    request = build_request(CHAT_PATH, body, {"connection": "keep-alive"})
    half = len(request) // 2

    async def main() -> tuple[bytes, bytes]:
        test_settings = Settings(upstreams={"test": Upstream(url=upstream.url)}, default="test")
        async with run_in_process(test_settings) as gateway, asyncio.timeout(20):
            reader, writer = await gateway.open(request + (request if when == "with the first" else b""))
            start = await reader.readuntil(b"Hello")
            if when == "during the stream":
                writer.write(request)
            elif when == "in parts during the stream":
                writer.write(request[:half])
                await asyncio.sleep(0.1)
                writer.write(request[half:])
            first = start + await reader.readuntil(END_OF_STREAM)
            if when == "after it":
                writer.write(request)
            second = await reader.readuntil(END_OF_STREAM)
            writer.close()
            await gateway.settle()
        return first, second

    first, second = asyncio.run(main())
    assert first.count(b"HTTP/1.1 200 OK") == second.count(b"HTTP/1.1 200 OK") == 1
    assert b"bye" in first
    assert b"bye" in second
    assert upstream.count(model) == 2


def test_connection_with_the_beginning_of_another_request_is_closed_after_the_stream(upstream: UpstreamServer) -> None:
    model = upstream.add("beginning", up.chat_stream("Hello"))
    request = build_request(CHAT_PATH, json.dumps(minimal_body(CHAT, model)).encode(), {"connection": "keep-alive"})

    async def main() -> bytes:
        test_settings = Settings(upstreams={"test": Upstream(url=upstream.url)}, default="test")
        async with run_in_process(test_settings) as gateway, asyncio.timeout(20):
            reader, writer = await gateway.open(request + request[:50])
            start = await reader.readuntil(b"Hello")
            writer.write(request[50:])
            received = start + await reader.read()
            writer.close()
            await gateway.settle()
        return received

    received = asyncio.run(main())
    assert received.count(b"HTTP/1.1 200 OK") == 1
    assert received.endswith(END_OF_STREAM)
