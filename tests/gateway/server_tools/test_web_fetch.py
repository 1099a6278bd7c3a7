"""Tests of fetching: what is fetched, what is refused, and the blocks that clients receive."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from interlingua.gateway.server_tools.server_tool import Outcome
from interlingua.gateway.server_tools.web_fetch import PublicResolver, WebFetchTool, is_public, read_html
from interlingua.gateway.server_tools.web_search import DomainFilter
from interlingua.gateway.settings.schema import WebFetch
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer
from tests.support.web_server import WebServer, run_web_server

Json = dict[str, Any]
HTML = b"""<!doctype html><html><head><title>Rain &amp; sun</title><style>p {}</style></head>
<body><script>alert("<p>no</p>")</script><h1>Weather</h1><p>It <b>rains</b> on
Monday.</p><!-- hidden --><ul><li>a &lt; b</li></ul></body></html>"""
CONFIG = """
upstreams:
  chat: {{url: {url}}}
web_fetch: {{enabled: true, private: [127.0.0.1]}}
"""


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with run_web_server() as server:
        server.answer("/page", HTML)
        yield server


def fetch(url: str, is_known: bool = True, definition: Json | None = None, tokens: int = 0, **settings: Any) -> Outcome:
    chosen = WebFetch(**{"enabled": True, "private": ["127.0.0.1"], "timeout": 5, **settings})
    domains = DomainFilter.read(definition or {})
    tool = WebFetchTool("web_fetch", chosen, lambda _: is_known, domains, 0, tokens)
    return asyncio.run(tool.run({"url": url}))


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_text_of_a_page(web: WebServer) -> None:
    (page,) = fetch(f"{web.url}/page").pages
    assert (page.title, page.text) == ("Rain & sun", "Weather\nIt rains on\nMonday.\na < b")
    (page,) = fetch(f"{web.url}/page", tokens=2).pages
    assert page.text == "Weather\n"


@pytest.mark.parametrize(
    "document", ["<" * 200_000, "<!--" * 100_000, "<script>" * 60_000, "<a " * 100_000, "<p>" * 100_000]
)
def test_time_to_read_hostile_html_is_linear(document: str) -> None:
    started = time.monotonic()
    read_html(document)
    assert time.monotonic() - started < 5


def test_plain_text_and_redirects_are_followed(web: WebServer) -> None:
    web.answer("/text", "Grüße".encode("latin-1"), type="text/plain; charset=iso-8859-1")
    web.answer("/moved", b"", status=301, location="/text")
    (page,) = fetch(f"{web.url}/moved").pages
    assert (page.text, page.url) == ("Grüße", f"{web.url}/text")


def test_limits_of_size_type_status_and_redirects(web: WebServer) -> None:
    web.answer("/large", b"x" * 5000)
    compressed: Any = {"content-encoding": "gzip"}
    web.answer("/bomb", gzip.compress(b"x" * 1_000_000), **compressed)
    web.answer("/image", b"x", type="image/png")
    web.answer("/loop", b"", status=302, location="/loop")
    codes = [fetch(f"{web.url}/{path}", size=4096).error for path in ("large", "bomb", "image", "gone", "loop")]
    assert codes == [*2 * ["content_too_large"], "unsupported_content_type", *2 * ["url_not_accessible"]]


def test_slow_page_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # it accepts no connection
        outcome = fetch(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout=0.2)
    assert outcome.error == "url_not_accessible"


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1:2::", "127.1", "localhost", "",
    ],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]", "0177.0.0.1"],
)
def test_private_hosts_are_not_fetched(web: WebServer, host: str) -> None:
    web.requests.clear()
    outcome = fetch(f"http://{host}:{web.server_address[1]}/page", private=[])
    assert (outcome.pages, web.requests) == ([], [])
    assert outcome.error in ("url_not_allowed", "url_not_accessible")


def test_name_that_resolves_to_a_private_address_is_refused(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(_: Any, host: str, port: int, *_args: Any) -> list[Json]:
        answers = {"mixed.example": ["93.184.215.14", "127.0.0.1"], "rebound.example": ["127.0.0.1"]}
        fields = {"hostname": host, "port": port, "family": 2, "proto": 0, "flags": 0}
        return [{**fields, "host": address} for address in answers[host]]

    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver.resolve", resolve)
    web.requests.clear()
    for host in ("mixed.example", "rebound.example"):
        assert fetch(f"http://{host}:{web.server_address[1]}/page", private=[]).error == "url_not_allowed"
    assert web.requests == []
    assert fetch(f"http://rebound.example:{web.server_address[1]}/page", private=["rebound.example"]).pages


@pytest.mark.parametrize("target", ["http://localhost:{}/page", "http://[::1]:{}/page", "file:///etc/passwd"])
def test_redirect_to_a_private_address_is_refused(web: WebServer, target: str) -> None:
    web.answer("/away", b"", status=302, location=target.format(web.server_address[1]))
    web.requests.clear()
    assert fetch(f"{web.url}/away").error == "url_not_allowed"
    assert [path for path, _, _ in web.requests] == ["/away"]


@pytest.mark.parametrize(
    ("url", "fields", "code"),
    [
        ("{}/page", {"enabled": False}, "unavailable"),
        ("{}/page", {"is_known": False}, "url_not_in_prior_context"),
        ("{}/page?" + "x" * 300, {}, "url_too_long"),
        ("ftp://example.com/", {}, "url_not_allowed"),
        ("http://user:password@127.0.0.1/", {}, "url_not_allowed"),
        ("{}/page", {"definition": {"allowed_domains": ["example.com"]}}, "url_not_allowed"),
        ("", {}, "invalid_tool_input"),
    ],
)
def test_pages_that_are_not_fetched(web: WebServer, url: str, fields: Json, code: str) -> None:
    web.requests.clear()
    assert fetch(url.format(web.url), **fields).error == code
    assert web.requests == []


def test_environment_proxy_is_not_used(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetch(f"{web.url}/page").pages


def test_resolver_is_closed() -> None:
    async def close() -> None:
        await PublicResolver(()).close()

    asyncio.run(close())


# ── clients ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as process:
        yield process


def fetches(url: str) -> tuple[up.Step, ...]:
    stream = up.ROLE + up.call(json.dumps({"url": url}), name="web_fetch") + up.delta(finish="tool_calls") + up.DONE
    return up.stream_response(stream)


def ask(gateway: GatewayProcess, model: str, messages: Any) -> Json:
    client = anthropic.Anthropic(base_url=gateway.base, api_key="k", max_retries=0)
    tools: Any = [{"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3}]
    message: Json = client.messages.create(model=model, max_tokens=100, tools=tools, messages=messages).to_dict()
    return message


def test_page_is_a_document_for_the_client_and_a_text_for_the_model(
    gateway: GatewayProcess, upstream: UpstreamServer, web: WebServer
) -> None:
    question = {"role": "user", "content": f"What does {web.url}/page say?"}
    upstream.add("fetch", *fetches(f"{web.url}/page"))
    upstream.add("fetch", up.chat_stream("Rain."))
    message = ask(gateway, "fetch", [question])
    use, result, text = message["content"]
    assert (use["type"], result["type"], text["text"]) == ("server_tool_use", "web_fetch_tool_result", "Rain.")
    assert result["content"]["url"] == f"{web.url}/page"
    assert result["content"]["content"]["source"]["data"].startswith("Weather\n")
    assert message["usage"]["server_tool_use"]["web_fetch_requests"] == 1
    second = upstream.wait_for_requests("fetch", 2)[1].body["messages"]
    assert "It rains on" in second[-1]["content"]
    upstream.add("fetch", up.chat_stream("Yes."))
    ask(gateway, "fetch", [question, {"role": "assistant", "content": message["content"]}, question])
    assert upstream.wait_for_requests("fetch", 3)[2].body["messages"][: len(second)] == second


def test_url_that_only_the_model_has_written_is_not_fetched(
    gateway: GatewayProcess, upstream: UpstreamServer, web: WebServer
) -> None:
    url = f"{web.url}/page?secret"
    upstream.add("leak", *fetches(url))
    upstream.add("leak", up.chat_stream("no"))
    web.requests.clear()
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": f"I will fetch {url}"},
        {"role": "user", "content": "go on"},
    ]
    content = ask(gateway, "leak", messages)["content"]
    assert content[1]["content"]["error_code"] == "url_not_in_prior_context"
    assert web.requests == []


def test_url_with_an_unpaired_surrogate_is_an_error_for_the_model(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    upstream.add("surrogate", *fetches("http://example.com/\ud800"))
    upstream.add("surrogate", up.chat_stream("no"))
    content = ask(gateway, "surrogate", [{"role": "user", "content": "hi"}])["content"]
    assert content[1]["content"]["error_code"] == "url_not_in_prior_context"
    assert content[2]["text"] == "no"
