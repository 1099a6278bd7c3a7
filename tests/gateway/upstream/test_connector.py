"""Connections to upstreams are reused, also after a stream."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlingua.gateway.upstream.connector import make_connector
from tests.support.gateway_process import run_gateway
from tests.support.upstream_server import DONE, ROLE, delta


class Upstream(BaseHTTPRequestHandler):
    """Upstream with keep-alive connections that ends a stream shortly after its last event."""

    protocol_version = "HTTP/1.1"
    connections: set[int]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).connections.add(self.client_address[1])
        self.send_response(200)
        if body["stream"]:
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            reply = ROLE + delta("Hello") + delta(finish="stop") + DONE
            self.wfile.write(b"%x\r\n%s\r\n" % (len(reply), reply))
            self.wfile.flush()
            time.sleep(0.05)
            self.wfile.write(b"0\r\n\r\n")
        else:
            message = {"role": "assistant", "content": "Hello"}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            reply = json.dumps({"id": "x", "object": "chat.completion", "choices": choices}).encode()
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("stream", [True, False])
def test_connection_is_reused_for_the_next_request(stream: bool) -> None:
    Upstream.connections = set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with run_gateway("--upstream", f"http://127.0.0.1:{server.server_port}/v1") as gateway:
            for _ in range(4):
                body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
                request = urllib.request.Request(f"{gateway.base}/v1/chat/completions", json.dumps(body).encode())
                with urllib.request.urlopen(request, timeout=10) as response:
                    assert b"Hello" in response.read()
                time.sleep(0.15)
            assert len(Upstream.connections) == 1
            gateway.stop()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_long_reply_is_complete_when_reading_is_paused() -> None:
    """Reading is paused when the buffer is full, and resumed only if it was paused."""

    async def send_long_body(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 5_000_000)

    async def read() -> int:
        app = web.Application()
        app.router.add_get("/", send_long_body)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        size = 0
        async with (
            aiohttp.ClientSession(connector=make_connector(), read_bufsize=1024) as session,
            session.get(f"http://{host}:{port}/") as response,
        ):
            while piece := await response.content.readany():
                size += len(piece)
                await asyncio.sleep(0)
        await runner.cleanup()
        return size

    assert asyncio.run(asyncio.wait_for(read(), 30)) == 5_000_000


# ── unasked data ──────────────────────────────────────────────────────────────────────────────────────────────────


def http_response(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n"
UNASKED = http_response("of nobody")
UNASKED_DATA: dict[str, list[bytes]] = {
    "a response": [http_response("first"), UNASKED],
    "a response behind a chunked one": [CHUNKED, UNASKED],
    "two responses": [http_response("first"), UNASKED + UNASKED],
    "the start of a response": [http_response("first"), UNASKED[:20]],
    "a response in two pieces": [http_response("first"), UNASKED[:20], UNASKED[20:]],
    "a byte": [http_response("first"), b"x"],
    "an interim response": [http_response("first"), b"HTTP/1.1 100 Continue\r\n\r\n"],
    "a response in the same packet": [http_response("first") + UNASKED],
    "the start of a response in the same packet": [http_response("first") + UNASKED[:20]],
    "one byte of a response in the same packet": [http_response("first") + UNASKED[:1]],
    "the start of a response behind a chunked one, in the same packet": [CHUNKED + UNASKED[:20]],
}
"""Packets that an upstream sends for its first request."""


async def get_twice(packets: list[bytes]) -> tuple[list[str], int]:
    """Return the bodies of two requests, and the number of connections. The upstream's first reply is `packets`."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                for packet in packets:
                    writer.write(packet)
                    await writer.drain()
                    await asyncio.sleep(0.03)
                packets[:] = [http_response("second")]
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    bodies = []
    async with aiohttp.ClientSession(connector=make_connector()) as session:
        for _ in range(2):
            async with session.get(f"http://{host}:{port}/") as response:
                try:
                    bodies.append(await response.text())
                except aiohttp.ClientError:
                    bodies.append("an error")
            await asyncio.sleep(0.15)
    server.close()
    await server.wait_closed()
    return bodies, connections


def run_get_twice(packets: list[bytes]) -> tuple[list[str], int]:
    return asyncio.run(asyncio.wait_for(get_twice(packets), 10))


@pytest.mark.parametrize("packets", UNASKED_DATA.values(), ids=UNASKED_DATA)
def test_connection_with_unasked_data_is_not_reused(packets: list[bytes]) -> None:
    assert run_get_twice([*packets]) == (["first", "second"], 2)


@pytest.mark.parametrize("packet", [http_response("first"), CHUNKED], ids=["with length", "chunked"])
def test_connection_without_unasked_data_is_reused(packet: bytes) -> None:
    assert run_get_twice([packet]) == (["first", "second"], 1)


ODD_RESPONSES: dict[str, bytes] = {
    "a chunk without a size": CHUNKED.replace(b"5\r\n", b"xyz\r\n"),
    "a chunk that is longer than its size": CHUNKED.replace(b"5\r\n", b"4\r\n"),
    "garbage behind the last chunk": CHUNKED + b"garbage",
    "garbage behind the body": http_response("first") + b"garbage",
}


@pytest.mark.parametrize("packet", ODD_RESPONSES.values(), ids=ODD_RESPONSES)
def test_connection_with_an_odd_response_is_not_reused(packet: bytes) -> None:
    head, separator, body = packet.partition(b"\r\n\r\n")  # the head alone, so that the response starts
    bodies, connections = run_get_twice([head + separator, body])
    assert (bodies[1], connections) == ("second", 2)
