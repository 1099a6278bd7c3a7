"""Connections without a request, or with a malformed one."""

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
from interlingua.gateway.settings.schema import RequestLimits
from tests.support.gateway_process import GatewayProcess, run_gateway

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
