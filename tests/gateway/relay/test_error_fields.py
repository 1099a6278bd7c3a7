"""Tests of errors in requests that the gateway has changed: they name a field of the client's own request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer
from tests.support.web_server import run_web_server

CONFIG = """
upstreams:
  chat: {{url: {url}}}
web_search: {{engine: searxng, url: "{search}"}}
seal_key: seal-key-0123456789
"""
USER: Any = {"type": "message", "role": "user", "content": "hi"}
BAD: Any = {"type": "message", "role": "user", "content": 5}
SEARCH_CALL: Any = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}}
SEALED: Any = {"type": "compaction", "encrypted_content": "not made here"}
SEARCH_TOOL = {"type": "web_search"}
MESSAGES_TOOL = {"type": "web_search_20250305", "name": "web_search"}
SEARCH_TURN: Any = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "found"},
    ],
}


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_web_server() as web:
        web.answer("/search", {"results": []})
        with run_gateway(config=CONFIG.format(url=upstream.url, search=web.url)) as process:
            yield process


def post(gateway: GatewayProcess, path: str, **fields: Any) -> httpx.Response:
    return httpx.post(f"{gateway.base}/v1{path}", json={"model": "m", **fields}, timeout=30)


def stored_id(gateway: GatewayProcess, upstream: UpstreamServer, **fields: Any) -> str:
    upstream.add("stored", up.chat_stream("one"))
    response = post(gateway, "/responses", **{"model": "stored", "input": [USER, USER], **fields})
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def check_error(response: httpx.Response, path: str) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, path), error
    assert error["message"].startswith(f"{path}: ") or f": {path}: " in error["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["/responses", "/responses/compact"])
@pytest.mark.parametrize(
    ("items", "path"),
    [
        ([BAD], "input[0].content"),
        ([USER, BAD], "input[1].content"),
        ([USER, SEALED], "input[1].encrypted_content"),
        ([USER, {"type": "compaction_trigger"}, BAD], "input[2].content"),
    ],
)
def test_item_behind_a_stored_response(
    gateway: GatewayProcess, upstream: UpstreamServer, items: list[Any], path: str, endpoint: str, stream: bool
) -> None:
    id = stored_id(gateway, upstream)
    fields = {"stream": True} if stream else {}
    check_error(post(gateway, endpoint, input=items, previous_response_id=id, **fields), path)


def test_item_of_a_conversation(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    id = post(gateway, "/conversations", items=[USER]).json()["id"]
    stored_id(gateway, upstream, conversation=id)
    check_error(post(gateway, "/responses", input=[BAD], conversation=id), "input[0].content")
    bad_id = post(gateway, "/conversations", items=[BAD]).json()["id"]
    check_error(post(gateway, "/responses", input=[USER], conversation=bad_id), "conversation")


@pytest.mark.parametrize("stored", [False, True])
def test_item_behind_a_search(gateway: GatewayProcess, upstream: UpstreamServer, stored: bool) -> None:
    fields = {"previous_response_id": stored_id(gateway, upstream)} if stored else {}
    items = [USER, SEARCH_CALL, SEARCH_CALL, BAD]
    check_error(post(gateway, "/responses", input=items, tools=[SEARCH_TOOL], **fields), "input[3].content")


def test_tool_beside_a_search(gateway: GatewayProcess) -> None:
    tools = [SEARCH_TOOL, {"type": "function", "name": "f", "parameters": 5}]
    check_error(post(gateway, "/responses", input="hi", tools=tools), "tools[1].parameters")


@pytest.mark.parametrize("tools", [[], [MESSAGES_TOOL]])
def test_message_behind_a_search(gateway: GatewayProcess, tools: list[Any]) -> None:
    messages = [{"role": "user", "content": "hi"}, SEARCH_TURN, {"role": "user", "content": 5}]
    response = post(gateway, "/messages", messages=messages, tools=tools, max_tokens=9)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("messages[2].content: ")


def test_item_of_a_response_in_the_background(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    id = stored_id(gateway, upstream)
    response = post(gateway, "/responses", input=[BAD], previous_response_id=id, background=True).json()
    deadline = time.monotonic() + 20
    while response["status"] in ("queued", "in_progress"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        response = httpx.get(f"{gateway.base}/v1/responses/{response['id']}").json()
    assert response["error"]["message"].startswith("input[0].content: ")


@pytest.mark.parametrize("store", [False, True])
def test_item_on_a_websocket(gateway: GatewayProcess, upstream: UpstreamServer, store: bool) -> None:
    upstream.add("socket", up.chat_stream("one"))

    async def use() -> None:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{gateway.base}/v1/responses") as socket:
            fields = {"type": "response.create", "model": "socket", "store": store}
            await socket.send_json({**fields, "input": [USER, USER]})
            while (event := await socket.receive_json(timeout=20))["type"] != "response.completed":
                pass
            await socket.send_json({**fields, "input": [BAD], "previous_response_id": event["response"]["id"]})
            error = await socket.receive_json(timeout=20)
            assert (error["status"], error["error"]["param"]) == (400, "input[0].content")

    asyncio.run(use())


def test_input_that_is_a_text(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    """What the gateway adds to a text is not named as an item of it."""
    id = stored_id(gateway, upstream)
    tools = [{"type": "function", "name": 5}]
    response = post(gateway, "/responses", input="hi", previous_response_id=id, tools=tools)
    check_error(response, "tools[0].name")
    assert "input" not in json.dumps(response.json())
