"""Model list: tiers and aliases, and an upstream that lists far too many models, or none in time."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import get

LONG_ID = "m" * 240
MODELS = [{"id": "x" * 257}, *({"id": f"{LONG_ID}{number}"} for number in range(6000))]
LISTS = {"/large/models": [{"id": LONG_ID}] * 20_000, "/many/models": [{"id": ""}] * 260_000}


class Upstream(BaseHTTPRequestHandler):
    """Upstream that lists thousands of models."""

    def do_GET(self) -> None:
        if self.path == "/hangs/models":
            time.sleep(4)
        body = json.dumps({"data": LISTS.get(self.path, MODELS)}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def gateway(url: str) -> Iterator[GatewayProcess]:
    config = f"upstreams: {{one: {{url: '{url}'}}}}\nlimits: {{memory: 20000000, send: 2}}\n"
    with run_gateway(config=config) as started:
        yield started


def memory_used(gateway: GatewayProcess) -> int:
    found = re.search(r"^interlingua_memory_bytes (\d+)$", get(gateway, "/metrics").body.decode(), re.MULTILINE)
    assert found
    return int(found[1])


def read_log(gateway: GatewayProcess, expected: str) -> str:
    deadline = time.monotonic() + 5
    while expected not in (text := gateway.log.read_text(encoding="utf-8")) and time.monotonic() < deadline:
        time.sleep(0.02)
    return text


def test_long_list_is_shortened_and_reported(gateway: GatewayProcess) -> None:
    models = json.loads(get(gateway, "/v1/models").body)["data"]
    assert [model["id"] for model in models] == [f"{LONG_ID}{number}" for number in range(5000)]
    assert "the model list of an upstream is shortened upstream=one left_out=1001" in read_log(gateway, "shortened")


@pytest.mark.parametrize(
    ("path", "problem"), [("large", "larger than 4,194,304 bytes"), ("many", "more than 250,000 JSON values")]
)
def test_too_large_list_is_reported(url: str, path: str, problem: str) -> None:
    with run_gateway(config=f"upstreams: {{one: {{url: '{url}/{path}'}}}}\n") as gateway:
        assert json.loads(get(gateway, "/v1/models").body)["data"] == []
        assert problem in read_log(gateway, problem)


def test_upstream_that_hangs_does_not_delay_the_list(url: str) -> None:
    """Claude Code waits three seconds, and Anthropic's ids are the only ones that it shows."""
    config = f"""
upstreams: {{one: {{url: '{url}/hangs'}}}}
models: {{kimi: {{upstream: one}}, my-claude: kimi, "m*": {{upstream: one}}}}
tiers: {{opus: kimi, fable: kimi}}
"""
    with run_gateway(config=config) as gateway:
        started = time.monotonic()
        models = json.loads(get(gateway, "/v1/models?limit=1000").body)["data"]
        assert time.monotonic() - started < 2
        assert [model["id"] for model in models] == ["kimi", "my-claude", "claude-opus", "claude-fable"]
        assert get(gateway, "/v1/models/claude-fable").status == 200


def test_lists_that_clients_do_not_read_count_in_the_memory_budget(gateway: GatewayProcess) -> None:
    assert get(gateway, "/v1/models").status == 200
    connections = [socket.socket() for _ in range(12)]
    for connection in connections:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", urlsplit(gateway.base).port))
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    starts = [connection.recv(12) for connection in connections]
    assert starts.count(b"HTTP/1.1 503") >= 6
    assert 10_000_000 < memory_used(gateway) <= 20_000_000
    time.sleep(2.5)  # limits.send
    assert memory_used(gateway) == 0
    for connection in connections:
        connection.close()
