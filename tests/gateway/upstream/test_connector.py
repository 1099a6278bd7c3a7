"""Connections to upstreams are reused, also after a stream."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
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
