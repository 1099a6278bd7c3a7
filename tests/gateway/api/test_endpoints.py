"""Endpoints that the gateway answers itself."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import openai
import pytest

from tests.support.gateway_process import GatewayProcess, run_gateway


class Upstream(BaseHTTPRequestHandler):
    """Upstream that lists its models and records the requests."""

    paths: list[str]

    def do_GET(self) -> None:
        type(self).paths.append(self.path)
        presented_key = self.headers.get("authorization", "its-own").removeprefix("Bearer ")
        body = json.dumps({"object": "list", "data": [{"id": presented_key}, {"id": "kimi"}, {"no": "id"}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    Upstream.paths = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture(scope="module")
def gateway(url: str) -> Iterator[GatewayProcess]:
    with run_gateway(config=f"upstreams: {{one: {{url: '{url}'}}}}\nmodels: {{kimi: {{upstream: one}}}}\n") as started:
        yield started


def fetch(
    gateway: GatewayProcess, path: str, method: str = "GET", data: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    request = urllib.request.Request(gateway.base + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_model_list_has_configured_models_and_those_of_default_upstream(gateway: GatewayProcess) -> None:
    client = openai.OpenAI(base_url=f"{gateway.base}/v1", api_key="any")
    assert [model.id for model in client.models.list()] == ["kimi", "its-own"]
    other = anthropic.Anthropic(base_url=gateway.base, api_key="any")
    assert [model.id for model in other.models.list()] == ["kimi", "its-own"]
    assert client.models.retrieve("provider/any-model").id == "provider/any-model"
    assert Upstream.paths == ["/v1/models"]  # the list is cached


def test_model_list_with_passthrough_key_is_not_shared_between_clients(url: str) -> None:
    """With passthrough, each client uses its own key, and the upstream may return a different list for each key."""
    with run_gateway(config=f"upstreams: {{one: {{url: '{url}', passthrough: true}}}}\n") as gateway:
        for key in ("anna", "bob", "anna"):
            client = openai.OpenAI(base_url=f"{gateway.base}/v1", api_key=key)
            assert [model.id for model in client.models.list()] == [key, "kimi"]


def test_key_in_the_model_list_of_an_upstream_is_redacted(url: str) -> None:
    """The test upstream lists the key of the request as a model."""
    key = "upstream-secret-0123456789abcdef"
    with run_gateway(config=f"upstreams: {{one: {{url: '{url}', key: {key}}}}}\n") as gateway:
        client = openai.OpenAI(base_url=f"{gateway.base}/v1", api_key="any")
        assert [model.id for model in client.models.list()] == ["***", "kimi"]


def test_health_readiness_and_metrics(gateway: GatewayProcess) -> None:
    assert fetch(gateway, "/healthz") == (200, b"ok\n")
    assert fetch(gateway, "/readyz") == (200, b"ready\n")
    assert fetch(gateway, "/", "HEAD") == (200, b"")
    assert b"interlingua_streams_open 0" in fetch(gateway, "/metrics")[1]
    with urllib.request.urlopen(f"{gateway.base}/metrics", timeout=10) as response:
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_token_count_is_an_estimate_and_never_an_error(gateway: GatewayProcess) -> None:
    client = anthropic.Anthropic(base_url=gateway.base, api_key="any")
    text = "the quick brown fox jumps over the lazy dog " * 20
    tool: Any = {"name": "ls", "description": text, "input_schema": {"type": "object"}}
    ask: Any = [{"role": "user", "content": text}]
    alone = client.messages.count_tokens(model="kimi", messages=ask).input_tokens
    assert 150 < alone < 300  # the text has 180 words
    assert (
        alone * 1.8 < client.messages.count_tokens(model="kimi", messages=ask, tools=[tool]).input_tokens < alone * 2.3
    )
    odd = json.dumps({"model": 7, "messages": {"a": [None, 1.5, {"type": "image", "source": {"data": "x" * 5000}}]}})
    status, body = fetch(gateway, "/v1/messages/count_tokens", "POST", odd.encode())
    assert status == 200
    assert 1500 <= json.loads(body)["input_tokens"] < 1600


def test_unknown_endpoint_returns_error_in_client_format(gateway: GatewayProcess) -> None:
    status, body = fetch(gateway, "/v1/completions", "POST", b"{}")
    assert status == 404
    assert "available: POST /v1/chat/completions" in json.loads(body)["error"]["message"]
    status, body = fetch(gateway, "/v1/messages", "GET")
    assert status == 405
    assert json.loads(body)["type"] == "error"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(f"{gateway.base}/v1/models", method="DELETE"), timeout=10)
    with caught.value as error:
        assert (error.code, error.headers["allow"]) == (405, "GET,HEAD")
    assert fetch(gateway, "/v1/messages/count_tokens", "POST", b"[1]")[0] == 400


@pytest.mark.parametrize(("path", "endpoint"), [("/v1/nothing", "/{path}"), ("/v1/models", "/v1/models")])
def test_refused_requests_are_in_the_log(gateway: GatewayProcess, path: str, endpoint: str) -> None:
    """The response has an id, and the log has it, too. A path that does not exist may contain anything, also a key."""
    request = urllib.request.Request(gateway.base + path, headers={"Origin": "https://page.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    id, status = refused.value.headers["x-interlingua-id"], refused.value.code
    refused.value.close()
    line = next(line for line in gateway.wait_for_log(id).splitlines() if id in line)
    assert line.endswith(f"request refused id={id} method=GET endpoint={endpoint} status={status}")
