"""Tests of replies that are composed of several of an upstream: log, metrics, headers and limits have their sums."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.upstream_server import UpstreamServer

KEY = "client-key-one-1234567890"
CONFIG = """
log: {{format: json}}
upstreams:
  chat: {{url: {url}, retries: {{attempts: 1}}}}
keys: {{alice: {key}}}
client_limits: {limits}
web_search: {{engine: command, command: [sh, -c, "echo []", "{{query}}"]}}
"""
SEARCHES: dict[str, Any] = {
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100},
    "responses": {"input": "hi"},
}
SEARCH_TOOLS = {
    "messages": {"type": "web_search_20250305", "name": "web_search"},
    "responses": {"type": "web_search"},
}
_DEFERRED_TOOL: dict[str, Any] = {"name": "rain_radar", "description": "Shows rain.", "defer_loading": True}
_SCHEMA = {"type": "object", "properties": {}}
TOOL_SEARCHES: dict[str, list[dict[str, Any]]] = {
    "messages": [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        {**_DEFERRED_TOOL, "input_schema": _SCHEMA},
    ],
    "responses": [{"type": "tool_search"}, {"type": "function", **_DEFERRED_TOOL, "parameters": _SCHEMA}],
}
TRIGGER = [{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}]


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, limits="{}")) as process:
        yield process


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def post(gateway: GatewayProcess, path: str, **body: Any) -> Response:
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = urllib.request.Request(f"{gateway.base}/v1/{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return Response(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
    except urllib.error.HTTPError as error:
        return Response(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())


def search(gateway: GatewayProcess, api: str, model: str, stream: bool, tools: Any = None) -> Response:
    return post(gateway, api, model=model, stream=stream, tools=tools or [SEARCH_TOOLS[api]], **SEARCHES[api])


def add_replies(upstream: UpstreamServer, model: str, tool: str = "web_search") -> None:
    """Add a search and an answer. Together they have 30 tokens of input and 5 of output."""
    call = up.call('{"query":"rain"}', name=tool)
    first = up.ROLE + call + up.delta(finish="tool_calls") + usage(10, 2) + up.DONE
    upstream.add(model, *up.stream_response(first))
    upstream.add(
        model, *up.stream_response(up.ROLE + up.delta("Rain.") + up.delta(finish="stop") + usage(20, 3) + up.DONE)
    )


def usage(input: int, output: int) -> bytes:
    return up.event({"id": "x", "choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}})


def logged(gateway: GatewayProcess, model: str) -> list[dict[str, Any]]:
    """Return the entries of all requests for a model, when there is one."""
    text = gateway.wait_for_log(f'"message": "request", [^\n]*"model": "{model}"[^\n]*\n')
    lines = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [line for line in lines if line["message"] == "request" and line["model"] == model]


def model_metrics(gateway: GatewayProcess, model: str) -> dict[str, int]:
    """Return the values of the metrics by model, with the label that follows the model."""
    request = urllib.request.Request(f"{gateway.base}/metrics", headers={"authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request) as response:
        text = response.read().decode()
    found = re.findall(
        rf'interlingua_model_\w+{{client="(\w+)",upstream="(\w+)",model="{model}",\w+="(\w+)"}} (\d+)', text
    )
    assert all(names[:2] == ("alice", "chat") for names in found)
    return {label: int(value) for _, _, label, value in found}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", SEARCHES)
def test_search_is_one_request_with_the_sum_of_its_rounds(
    gateway: GatewayProcess, upstream: UpstreamServer, api: str, stream: bool
) -> None:
    model = f"search-{api}-{stream}"
    add_replies(upstream, model)
    response = search(gateway, api, model, stream)
    assert (response.status, response.headers["x-interlingua-upstream"]) == (200, "chat")
    (entry,) = logged(gateway, model)
    assert entry["id"] == response.headers["x-interlingua-id"]
    assert (entry["upstream"], entry["upstream_model"], entry["dialect"]) == ("chat", model, "standard")
    assert (entry["status"], entry["outcome"], entry["stream"]) == (200, "ok", stream)
    assert (entry["rounds"], entry["attempts"], entry["calls"]) == (2, 2, 1)
    assert (entry["tokens"]["input"], entry["tokens"]["output"]) == (30, 5)
    assert model_metrics(gateway, model) == {"ok": 1, "input": 30, "output": 5}
    assert reply_usage(response, stream) == (30, 5)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", SEARCHES)
def test_tool_search_is_one_request_with_the_sum_of_its_rounds(
    gateway: GatewayProcess, upstream: UpstreamServer, api: str, stream: bool
) -> None:
    model, (search_tool, deferred_tool) = f"tools-{api}-{stream}", TOOL_SEARCHES[api]
    add_replies(upstream, model, search_tool.get("name", "tool_search"))
    response = search(gateway, api, model, stream, [search_tool, deferred_tool])
    (entry,) = logged(gateway, model)
    assert (response.status, entry["id"]) == (200, response.headers["x-interlingua-id"])
    assert (entry["outcome"], entry["rounds"], entry["calls"]) == ("ok", 2, 1)
    assert model_metrics(gateway, model) == {"ok": 1, "input": 30, "output": 5}
    assert reply_usage(response, stream) == (30, 5)


@pytest.mark.parametrize("stream", [True, False])
def test_attempts_and_findings_of_all_rounds_are_those_of_the_request(upstream: UpstreamServer, stream: bool) -> None:
    model = f"retried-{stream}"
    config = CONFIG.format(url=upstream.url, key=KEY, limits="{}").replace("attempts: 1", "attempts: 2, backoff: 0.01")
    failure = up.send_response("503 Service Unavailable", b"{}")
    call = up.call('{"query":"rain"}', name="web_search")
    calls = up.ROLE + call + up.delta(finish="tool_calls") + usage(10, 2) + up.DONE
    upstream.add(model, failure)
    upstream.add(model, *up.stream_response(calls))
    upstream.add(model, failure)
    upstream.add(model, up.chat_stream("Rain."))
    with run_gateway(config=config) as gateway:
        response = search(gateway, "messages", model, stream)
        (entry,) = logged(gateway, model)
    assert (response.status, entry["outcome"], entry["rounds"], entry["attempts"]) == (200, "ok", 2, 4)
    assert [attempt["kind"] for attempt in entry["failed_attempts"]] == ["503", "503"]
    assert entry["findings"]["asked-again"] == 2
    if not stream:  # the headers of a stream are sent with its first block
        assert response.headers["x-interlingua-failed"].endswith('reason="503";attempts=2')
        assert "asked-again" in response.headers["x-interlingua-findings"]


def reply_usage(response: Response, stream: bool) -> tuple[int, int]:
    """Return the tokens in the reply: of a stream, those in its last event with a usage."""
    events = [json.loads(line[6:]) for line in response.body.decode().splitlines() if line.startswith("data: {")]
    bodies = [event.get("response", event) for event in events] if stream else [json.loads(response.body)]
    tokens = [body["usage"] for body in bodies if body.get("usage")][-1]
    return tokens["input_tokens"], tokens["output_tokens"]


@pytest.mark.parametrize("path", ["responses", "responses/compact"])
def test_summary_is_one_request(gateway: GatewayProcess, upstream: UpstreamServer, path: str) -> None:
    model = f"summary-{path[-7:]}"
    upstream.add(
        model, *up.stream_response(up.ROLE + up.delta("so far") + up.delta(finish="stop") + usage(20, 3) + up.DONE)
    )
    response = post(gateway, path, model=model, input=TRIGGER)
    assert (response.status, response.headers["x-interlingua-upstream"]) == (200, "chat")
    (entry,) = logged(gateway, model)
    assert (entry["id"], entry["upstream"]) == (response.headers["x-interlingua-id"], "chat")
    assert (entry["tokens"]["input"], entry["tokens"]["output"]) == (20, 3)
    assert model_metrics(gateway, model) == {"ok": 1, "input": 20, "output": 3}


def test_response_in_the_background_is_logged_when_it_ends(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    last = up.delta("Rain.") + up.delta(finish="stop") + usage(20, 3) + up.DONE
    upstream.add("background", up.send_headers(), up.send(up.ROLE), up.wait(0.5), up.send(last))
    response = post(gateway, "responses", model="background", input="hi", background=True)
    (entry,) = logged(gateway, "background")
    assert entry["id"] == response.headers["x-interlingua-id"]
    assert (entry["upstream"], entry["tokens"]["output"], entry["seconds"] > 0.4) == ("chat", 3, True)
    assert model_metrics(gateway, "background") == {"ok": 1, "input": 20, "output": 3}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["search", "summary"])
@pytest.mark.parametrize("failure", ["refused", "cut"])
def test_failed_round_is_the_failure_of_the_request(
    gateway: GatewayProcess, upstream: UpstreamServer, kind: str, stream: bool, failure: str
) -> None:
    model = f"fails-{kind}-{stream}-{failure}"
    error = b'{"error": {"message": "no such thing", "type": "invalid_request_error"}}'
    step = (
        up.send_response("400 Bad Request", error)
        if failure == "refused"
        else up.chat_stream("Hel", finish=None, done=False)
    )
    upstream.add(model, step)
    if kind == "search":
        response = search(gateway, "messages", model, stream)
    else:
        response = post(gateway, "responses", model=model, input=TRIGGER, stream=stream)
    (entry,) = logged(gateway, model)
    assert (entry["id"], entry["upstream"]) == (response.headers["x-interlingua-id"], "chat")
    assert (entry["outcome"], entry["status"]) == ("upstream-failed", response.status)
    assert ("no such thing" in entry["error"]) == (failure == "refused")
    if kind == "search" and response.status == 400:
        assert json.loads(response.body)["request_id"] == entry["id"]


def test_limits_of_a_client_count_a_search_once(upstream: UpstreamServer) -> None:
    limits = "{streams: 1, requests: 1, requests_per_minute: 8, tokens_per_minute: 20000}"
    with run_gateway(config=CONFIG.format(url=upstream.url, key=KEY, limits=limits)) as gateway:
        for n in range(4):
            add_replies(upstream, f"limited-{n}")
            response = search(gateway, "messages", f"limited-{n}", stream=True)
            assert response.status == 200, response
            upstream.add(f"behind-{n}", up.chat_stream("x"))
            wait_until_logged(gateway, f"limited-{n}")
            response = post(gateway, "responses", model=f"behind-{n}", input="hi", background=True)
            assert response.status == 200, response
            wait_until_logged(gateway, f"behind-{n}")
        response = search(gateway, "messages", "too-many", stream=True)
        assert (response.status, "requests_per_minute" in response.body.decode()) == (429, True)


def wait_until_logged(gateway: GatewayProcess, model: str) -> None:
    logged(gateway, model)
    time.sleep(0.1)


def test_search_goes_on_while_the_gateway_stops(upstream: UpstreamServer) -> None:
    call = up.call('{"query":"rain"}', name="web_search")
    first = up.ROLE + call + up.delta(finish="tool_calls") + up.DONE
    upstream.add("drained", up.send_headers(), up.wait(1), up.send(first))
    upstream.add("drained", up.chat_stream("Rain."))
    config = CONFIG.format(url=upstream.url, key=KEY, limits="{}") + "drain: 20\n"
    with run_gateway(config=config) as gateway:
        stop = threading.Timer(0.5, lambda: gateway.send_signal(signal.SIGTERM))
        stop.start()
        response = search(gateway, "messages", "drained", stream=True)
        stop.join()
        assert b"Rain." in response.body, response
