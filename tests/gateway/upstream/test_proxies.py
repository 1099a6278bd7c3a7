"""Proxies from the environment. The scripted upstream also plays the proxy."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from interlingua.gateway.upstream.connector import proxy_for
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer

REMOTE_URL = "http://model.example/v1"
REPLY = {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}}]}


@pytest.fixture
def upstream() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    server.add("m", up.send_response("200 OK", json.dumps(REPLY).encode()))
    yield server
    server.stop()


def gets_reply(gateway: GatewayProcess) -> bool:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    with urllib.request.urlopen(
        urllib.request.Request(f"{gateway.base}/v1/chat/completions", body), timeout=20
    ) as response:
        return b"hello" in response.read()


def test_proxy_from_environment_is_used(upstream: UpstreamServer) -> None:
    proxy = f"http://user:word@127.0.0.1:{upstream.port}"
    with run_gateway("--upstream", REMOTE_URL, HTTP_PROXY=proxy, http_proxy=proxy, NO_PROXY="", no_proxy="") as gateway:
        assert gets_reply(gateway)
    (received,) = upstream.wait_for_requests("m")
    assert received.path == f"{REMOTE_URL}/chat/completions"
    assert received.headers["proxy-authorization"].startswith("Basic ")


def test_no_proxy_hosts_are_contacted_directly(upstream: UpstreamServer) -> None:
    unreachable = "http://127.0.0.1:9"
    with run_gateway(
        "--upstream", upstream.url, HTTP_PROXY=unreachable, http_proxy=unreachable, NO_PROXY="127.0.0.1"
    ) as gateway:
        assert gets_reply(gateway)
    assert upstream.wait_for_requests("m")[0].path == "/v1/chat/completions"


def test_loopback_is_contacted_directly(upstream: UpstreamServer) -> None:
    """A proxy would look for the upstream or the demo model on its own machine."""
    unreachable = "http://127.0.0.1:9"
    with run_gateway(
        "--upstream", upstream.url, HTTP_PROXY=unreachable, http_proxy=unreachable, NO_PROXY="", no_proxy=""
    ) as gateway:
        assert gets_reply(gateway)
    assert upstream.wait_for_requests("m")[0].path == "/v1/chat/completions"


def test_netrc_passwords_are_not_used(upstream: UpstreamServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login user password word\n", encoding="utf-8")
    netrc.chmod(0o600)
    args = ("--upstream", upstream.url, "--upstream-key-env", "KEY")
    with run_gateway(*args, NETRC=str(netrc), KEY="sk-1") as gateway:
        assert gets_reply(gateway)
    assert upstream.wait_for_requests("m")[0].headers["authorization"] == "Bearer sk-1"


def test_each_scheme_has_its_own_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy_for.cache_clear()
    for name in ("http_proxy", "HTTP_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert proxy_for("https", "model.example") == "http://proxy.example:3128"
    assert proxy_for("http", "model.example") is None
    proxy_for.cache_clear()
