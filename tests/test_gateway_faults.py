"""What a gateway must survive, on real sockets: each test is a row of the table of faults, by its number."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests import upstream_server as up
from tests.gateway_process import Running, running
from tests.upstream_server import UpstreamServer

FAST = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 2, first_event: 1.5, idle: 1.5}}
    retries: {{attempts: 2, backoff: 0.05}}
keepalive: 0.5
"""


@pytest.fixture(scope="module")
def upstream() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[Running]:
    with running(config=FAST.format(url=upstream.url)) as started:
        yield started


def ask(
    gateway: Running, model: str, stream: bool = True, wire: str = "chat/completions", **more: Any
) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a request for this model."""
    body: dict[str, Any] = {"model": model, "stream": stream, **more}
    if wire == "responses":
        body["input"] = "hi"
    else:
        body["messages"] = [{"role": "user", "content": "hi"}]
        body |= {"max_tokens": 100} if wire == "messages" else {}
    request = urllib.request.Request(
        f"{gateway.base}/v1/{wire}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.read(), {k.lower(): v for k, v in response.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {k.lower(): v for k, v in error.headers.items()}


def test_01_reset_before_headers_is_asked_again(gateway: Running, upstream: UpstreamServer) -> None:
    model = upstream.add("01", up.reset())
    upstream.add(model, up.chat("Hello"))
    status, body, _ = ask(gateway, model)
    assert status == 200
    assert b"Hello" in body
    assert upstream.count(model) == 2
    gateway.told("asked-again")
