"""Tests of web searches for an upstream of the client's own API: most of them run none, and the gateway does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from interlingua.faults.apis import MESSAGES_PATH, RESPONSES_PATH
from interlingua.faults.upstream.reply_writers import reply_writer_for
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer
from tests.support.web_server import WebServer, run_web_server

Json = dict[str, Any]

APIS = {"anthropic-messages": MESSAGES_PATH, "openai-responses": RESPONSES_PATH}
OTHER_SERVERS = {"unknown": "", "vllm": ", profile: vllm"}
PROVIDERS = {"anthropic-messages": "anthropic", "openai-responses": "openai"}
SEARCH: dict[str, Json] = {
    "anthropic-messages": {"type": "web_search_20250305", "name": "web_search"},
    "openai-responses": {"type": "web_search"},
}
READ: dict[str, Json] = {
    "anthropic-messages": {"name": "read", "input_schema": {"type": "object"}},
    "openai-responses": {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False},
}
RESULT = {"url": "https://example.com/rain", "title": "Rain", "content": "It rains on Monday."}


def config(upstream: UpstreamServer) -> str:
    """Return settings with an upstream for each server and API. Its models are called `SERVER-API/…`."""
    upstreams, models = [f"  chat: {{url: {upstream.url}}}"], ["  chat/*: {upstream: chat}"]
    for api in APIS:
        provider = f", profile: {PROVIDERS[api]}"
        for server, more in {**OTHER_SERVERS, "provider": provider, "configured": ", server_tools: upstream"}.items():
            upstreams.append(f"  {server}-{api}: {{url: {upstream.url}, api: {api}{more}}}")
            models.append(f"  {server}-{api}/*: {{upstream: {server}-{api}}}")
    return "\n".join(["upstreams:", *upstreams, "models:", *models, ""])


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with run_web_server() as server:
        server.answer("/search", {"results": [RESULT]})
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer, web: WebServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=f"{config(upstream)}web_search: {{engine: searxng, url: {web.url}}}\n") as process:
        yield process


@pytest.fixture(scope="module")
def gateway_without_engine(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=config(upstream)) as process:
        yield process


def send(gateway: GatewayProcess, api: str, model: str, stream: bool, **fields: Any) -> httpx.Response:
    field = "messages" if api == "anthropic-messages" else "input"
    body = {"model": model, "stream": stream, field: [{"role": "user", "content": "Will it rain?"}], **fields}
    if api == "anthropic-messages":
        body["max_tokens"] = 100
    return httpx.post(f"{gateway.base}/v1/{APIS[api]}", json=body, timeout=30)


def add_reply(upstream: UpstreamServer, api: str, model: str, text: str, *calls: tuple[str, str]) -> None:
    writer = reply_writer_for(APIS[api])
    data = writer.begin() + (writer.text(text) if text else b"")
    data += b"".join(writer.call(name, arguments) for name, arguments in calls)
    upstream.add(model, *up.stream_response(data + writer.end()))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("server", OTHER_SERVERS)
@pytest.mark.parametrize("api", APIS)
def test_gateway_searches_for_other_servers(
    gateway: GatewayProcess, upstream: UpstreamServer, api: str, server: str, stream: bool
) -> None:
    model = f"{server}-{api}/searched-{stream}"
    add_reply(upstream, api, model, "", ("web_search", '{"query": "rain"}'))
    add_reply(upstream, api, model, "On Monday.")
    response = send(gateway, api, model, stream, tools=[SEARCH[api], READ[api]])
    assert response.status_code == 200, response.text
    assert ("On Monday." in response.text, RESULT["url"] in response.text) == (True, True)
    first, second = (request.body for request in upstream.wait_for_requests(model, 2))
    assert [tool.get("name") for tool in first["tools"]] == ["web_search", "read"]
    assert not [tool for tool in first["tools"] if str(tool.get("type")).startswith("web_search")]
    assert RESULT["content"] in json.dumps(second)


@pytest.mark.parametrize("server", ["provider", "configured"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("has_engine", [True, False])
def test_upstream_that_searches_itself_gets_the_tool_unchanged(
    gateway: GatewayProcess,
    gateway_without_engine: GatewayProcess,
    upstream: UpstreamServer,
    api: str,
    server: str,
    has_engine: bool,
) -> None:
    model = f"{server}-{api}/{has_engine}"
    add_reply(upstream, api, model, "On Monday.")
    process = gateway if has_engine else gateway_without_engine
    response = send(process, api, model, True, tools=[SEARCH[api]])
    assert response.status_code == 200, response.text
    assert upstream.wait_for_requests(model)[0].body["tools"] == [SEARCH[api]]


@pytest.mark.parametrize("server", OTHER_SERVERS)
def test_messages_without_an_engine_get_an_error(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer, server: str
) -> None:
    api, model = "anthropic-messages", f"{server}-anthropic-messages/no-engine"
    add_reply(upstream, api, model, "", ("web_search", '{"query": "rain"}'))
    add_reply(upstream, api, model, "I cannot search.")
    body = send(gateway_without_engine, api, model, False, tools=[SEARCH[api]]).json()
    assert body["content"][1]["content"] == {"type": "web_search_tool_result_error", "error_code": "unavailable"}


FORCED: Json = {"type": "web_search"}
NAMED: Json = {"type": "function", "name": "read"}


def allowed(*tools: Json) -> Json:
    return {"type": "allowed_tools", "mode": "auto", "tools": list(tools)}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("auto", "auto"), (FORCED, None), (allowed(FORCED), None), (allowed(FORCED, NAMED), allowed(NAMED))],
    ids=["auto", "search", "only the search", "search and function"],
)
@pytest.mark.parametrize("server", OTHER_SERVERS)
def test_responses_without_an_engine_are_not_offered_a_search(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer, server: str, choice: Any, sent: Any
) -> None:
    api, model = "openai-responses", f"{server}-openai-responses/not-offered-{len(str(choice))}"
    add_reply(upstream, api, model, "hi")
    tools = [SEARCH[api], READ[api]]
    response = send(gateway_without_engine, api, model, True, tools=tools, tool_choice=choice)
    assert response.status_code == 200, response.text
    body = upstream.wait_for_requests(model)[0].body
    assert [tool["name"] for tool in body["tools"]] == ["read"]
    assert body.get("tool_choice") == sent
    gateway_without_engine.wait_for_log(f"{model}.*hosted-tool|hosted-tool.*{model}")


EARLIER_SEARCH: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}


@pytest.mark.parametrize(
    "fields",
    [{"tools": [FORCED], "tool_choice": "required"}, {"input": [{"role": "user", "content": "hi"}, EARLIER_SEARCH]}],
    ids=["the search is the only tool", "an earlier search, and no tools"],
)
def test_request_without_tools_has_no_empty_list_of_them(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer, fields: Json
) -> None:
    api, model = "openai-responses", f"unknown-openai-responses/no-tools-{'tools' in fields}"
    add_reply(upstream, api, model, "hi")
    response = send(gateway_without_engine, api, model, True, **fields)
    assert response.status_code == 200, response.text
    assert {"tools", "tool_choice"} & upstream.wait_for_requests(model)[0].body.keys() == set()
    lines = gateway_without_engine.wait_for_log(f"{model}.*\n").splitlines()
    assert any("hosted-tool" in line for line in lines if model in line) == ("tools" in fields)


def test_chat_request_with_a_byte_order_mark_has_no_empty_list_of_tools(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer
) -> None:
    """Such a request is decoded as a whole."""
    model = "chat/byte-order-mark"
    upstream.add(model, up.chat_stream("hi"))
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    url = f"{gateway_without_engine.base}/v1/chat/completions"
    response = httpx.post(url, content=body.encode("utf-8-sig"), headers={"content-type": "application/json"})
    assert response.status_code == 200, response.text
    assert "tools" not in upstream.wait_for_requests(model)[0].body


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (FORCED, {"type": "function", "name": "web_search"}),
        (allowed(FORCED, NAMED), allowed({"type": "function", "name": "web_search"}, NAMED)),
    ],
)
def test_chosen_search_of_responses_is_the_function(
    gateway: GatewayProcess, upstream: UpstreamServer, choice: Json, sent: Json
) -> None:
    api, model = "openai-responses", f"unknown-openai-responses/{choice['type']}"
    add_reply(upstream, api, model, "", ("web_search", '{"query": "rain"}'))
    add_reply(upstream, api, model, "On Monday.")
    send(gateway, api, model, True, tools=[SEARCH[api], READ[api]], tool_choice=choice)
    first, second = (request.body for request in upstream.wait_for_requests(model, 2))
    assert first["tool_choice"] == sent
    assert second["tool_choice"] == "auto"


@pytest.mark.parametrize("server", OTHER_SERVERS)
def test_codex_search_is_not_forwarded_to_other_servers(
    gateway_without_engine: GatewayProcess, upstream: UpstreamServer, server: str
) -> None:
    body = {"model": f"{server}-openai-responses/codex", "commands": {"search_query": [{"q": "rain"}]}}
    response = httpx.post(f"{gateway_without_engine.base}/v1/alpha/search", json=body)
    assert (response.status_code, "unavailable" in response.json()["output"]) == (200, True)
    assert upstream.count("codex") == 0


def test_malformed_choice_of_tools_is_refused(gateway: GatewayProcess) -> None:
    """An empty list of tools in its place would hide the client's mistake."""
    api, choice = "openai-responses", {"type": "allowed_tools", "tools": "x"}
    response = send(gateway, api, "vllm-openai-responses/malformed", False, tools=[SEARCH[api]], tool_choice=choice)
    assert response.status_code == 400
    assert "tool_choice" in response.json()["error"]["message"]
