"""Token count endpoints: counted by upstreams that can count, estimated for all others."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from interlingua.core.reasoning_signatures import write_envelope
from interlingua.core.reply import Reasoning
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import RawResponse, build_request, get, send_bytes
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  chat: {{url: "{url}", key: k}}
  claude: {{url: "{url}", api: anthropic-messages, key: k}}
  quiet: {{url: "{url}", api: anthropic-messages, key: k, count_tokens: estimate}}
  oracle: {{url: "{url}", api: openai-responses, key: k, count_tokens: upstream}}
  pathless: {{url: "{url}/pathless", api: anthropic-messages, key: k}}
  slow: {{url: "{url}/slow", api: anthropic-messages, key: k}}
default: chat
models:
  claude-*: {{upstream: claude}}
  quiet-*: {{upstream: quiet}}
  oracle-*: {{upstream: oracle}}
  pathless-*: {{upstream: pathless}}
  slow-*: {{upstream: slow}}
"""
TEXT = "The quick brown fox jumps over the lazy dog, and nobody is surprised. " * 40
ASK: list[Any] = [{"role": "user", "content": TEXT}]
COUNTED = up.send_response("200 OK", b'{"input_tokens": 4242}')
REPLY = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def count(
    gateway: GatewayProcess, body: dict[str, Any], path: str = "messages/count_tokens"
) -> tuple[dict[str, Any], str]:
    """Return the response body, and the header that marks an estimate."""
    request = urllib.request.Request(f"{gateway.base}/v1/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.loads(response.read()), response.headers.get("x-interlingua-estimate", "")


def test_estimate_is_marked_and_readable_by_the_sdks(gateway: GatewayProcess) -> None:
    result, header = count(gateway, {"model": "m", "messages": ASK})
    assert (result["estimated"], header) == (True, "true")
    assert 500 < result["input_tokens"] < 750  # the text has 600 tokens
    claude = anthropic.Anthropic(base_url=gateway.base, api_key="any")
    assert claude.messages.count_tokens(model="m", messages=ASK).input_tokens == result["input_tokens"]
    assert claude.beta.messages.count_tokens(model="m", messages=ASK).input_tokens == result["input_tokens"]
    client = openai.OpenAI(base_url=f"{gateway.base}/v1", api_key="any")
    response = client.responses.input_tokens.count(model="m", input=TEXT)
    assert response.object == "response.input_tokens"
    assert abs(response.input_tokens - result["input_tokens"]) < 5


def test_messages_upstream_counts_if_it_can(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("claude-counts", COUNTED)
    body = {"model": model, "messages": ASK, "max_tokens": 5, "stream": True, "temperature": 0.5, "system": "Be brief."}
    assert count(gateway, body) == ({"input_tokens": 4242}, "")
    received = upstream.wait_for_requests(model)[0]
    assert received.path == "/v1/messages/count_tokens"
    assert received.body.keys() == {"model", "messages", "system"}, "the upstream rejects other fields"
    assert received.headers["x-api-key"] == "k"


def test_responses_upstream_counts_if_configured(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("oracle-counts", COUNTED)
    result, header = count(gateway, {"model": model, "messages": ASK, "max_tokens": 5})
    assert (result, header) == ({"input_tokens": 4242}, "")
    assert upstream.wait_for_requests(model)[0].path == "/v1/responses/input_tokens"


def test_upstream_with_count_tokens_estimate_gets_no_request(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("quiet-counts", COUNTED)
    assert count(gateway, {"model": model, "messages": ASK})[1] == "true"
    assert upstream.count(model) == 0


FAILURES = {
    "pathless-404": up.send_response("404 Not Found", b"{}"),
    "claude-refuses": up.send_response("400 Bad Request", b'{"error": {"message": "no"}}'),
    "claude-resets": up.reset(),
    "claude-list": up.send_response("200 OK", b"[]"),
    "claude-no-number": up.send_response("200 OK", b'{"input_tokens": "many"}'),
    "claude-zero": up.send_response("200 OK", b'{"input_tokens": 0}'),
}


@pytest.mark.parametrize("model", FAILURES)
def test_failed_upstream_count_falls_back_to_an_estimate(
    gateway: GatewayProcess, upstream: UpstreamServer, model: str
) -> None:
    upstream.add(model, FAILURES[model])
    for _ in range(2):
        result, header = count(gateway, {"model": model, "messages": ASK})
        assert (500 < result["input_tokens"] < 750, header) == (True, "true")
    assert upstream.count(model) == (1 if model == "pathless-404" else 2), (
        "an upstream without the endpoint gets no second request"
    )


def test_slow_upstream_count_times_out(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("slow-counts", up.wait(30))
    begin = time.monotonic()
    assert [count(gateway, {"model": model, "messages": ASK})[1] for _ in range(3)] == ["true"] * 3
    assert time.monotonic() - begin < 9
    assert upstream.count(model) == 1


def test_untranslatable_request_is_estimated(gateway: GatewayProcess) -> None:
    for body in (
        {"model": "claude-x", "messages": 7},
        {"model": "claude-x"},
        {},
        {"model": ["m"]},
        {"model": "m" * 999},
    ):
        assert count(gateway, body)[1] == "true"


def test_reported_usage_calibrates_the_estimate(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    """Cached tokens are input tokens, too."""
    before = count(gateway, {"model": "learnt", "messages": ASK})[0]["input_tokens"]
    usage = {"prompt_tokens": before * 2, "completion_tokens": 1, "total_tokens": before * 2 + 1}
    reply = json.dumps({**REPLY, "usage": {**usage, "prompt_tokens_details": {"cached_tokens": before}}})
    upstream.add("learnt", up.send_response("200 OK", reply.encode()))
    claude = anthropic.Anthropic(base_url=gateway.base, api_key="any")
    for _ in range(8):
        message = claude.messages.create(model="learnt", max_tokens=9, messages=ASK)
    assert message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0) == before * 2
    after = count(gateway, {"model": "learnt", "messages": ASK})[0]["input_tokens"]
    assert before * 1.5 < after <= before * 2
    assert count(gateway, {"model": "other", "messages": ASK})[0]["input_tokens"] == before


ALICE, BOB = "sk-alice-0123456789abcdef", "sk-bob-0123456789abcdef"
LIMITED = """
keys: [{alice}, {bob}]
upstreams:
  claude: {{url: "{url}", api: anthropic-messages, key: k}}
  chat: {{url: "{url}", key: k}}
default: claude
models:
  chat-*: {{upstream: chat}}
"""


def post_count(gateway: GatewayProcess, model: str, key: str, path: str = "messages/count_tokens") -> RawResponse:
    body = json.dumps({"model": model, "messages": ASK}).encode()
    return send_bytes(gateway, build_request(f"/v1/{path}", body, {"x-api-key": key}))


@pytest.fixture
def limited_gateway(upstream: UpstreamServer, request: pytest.FixtureRequest) -> Iterator[GatewayProcess]:
    with run_gateway(config=LIMITED.format(url=upstream.url, alice=ALICE, bob=BOB) + request.param) as started:
        yield started


@pytest.mark.parametrize("limited_gateway", ["client_limits: {requests_per_minute: 2}"], indirect=True)
def test_upstream_counts_obey_the_limits_of_a_client(limited_gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("claude-limited", COUNTED)
    replies = [post_count(limited_gateway, model, ALICE) for _ in range(6)]
    assert [reply.status for reply in replies] == [200] * 2 + [429] * 4
    assert upstream.count(model) == 2
    assert (replies[-1].json["type"], replies[-1].json["error"]["type"]) == ("error", "rate_limit_error")
    assert 1 <= int(replies[-1].header("retry-after") or 0) <= 70
    refused = post_count(limited_gateway, model, ALICE, "responses/input_tokens")
    assert (refused.status, "type" in refused.json) == (429, False)
    assert post_count(limited_gateway, model, BOB).status == 200
    assert post_count(limited_gateway, "chat-estimated", ALICE).json["estimated"], "an estimate needs no upstream"
    page = get(limited_gateway, "/metrics", x_api_key=BOB).body
    assert b'interlingua_rate_limited_total{limit="requests_per_minute"} 5' in page


@pytest.mark.parametrize("limited_gateway", ["limits: {streams: 2}"], indirect=True)
def test_concurrent_counts_are_limited(limited_gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("claude-hangs", up.wait(2))
    with ThreadPoolExecutor(6) as threads:
        replies = list(threads.map(lambda _: post_count(limited_gateway, model, ALICE), range(6)))
    assert sorted(reply.status for reply in replies) == [200] * 2 + [529] * 4
    assert {reply.header("retry-after") for reply in replies} == {None, "1"}
    assert post_count(limited_gateway, "chat-estimated", ALICE).status == 200


@pytest.mark.parametrize("limited_gateway", [""], indirect=True)
@pytest.mark.parametrize("script", [up.wait(30), up.send_response("404 Not Found", b"{}")])
def test_failed_count_of_one_client_does_not_change_those_of_others(
    limited_gateway: GatewayProcess, upstream: UpstreamServer, script: up.Step
) -> None:
    failing, working = upstream.add("claude-fails", script), upstream.add("claude-works", COUNTED)
    assert post_count(limited_gateway, failing, ALICE).json["estimated"]
    assert post_count(limited_gateway, working, ALICE).json["estimated"]
    assert post_count(limited_gateway, working, BOB).json == {"input_tokens": 4242}


def test_limits_of_the_settings_apply(upstream: UpstreamServer) -> None:
    """Sealed thinking over `limits.seals` is not unpacked: the upstream gets no request."""
    model, key = upstream.add("claude-seals", COUNTED), "k" * 32
    seal = write_envelope(Reasoning("x" * 300_000), "anthropic-messages", key.encode())
    thinking = {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": seal}]}
    for limit, expected in ((1_000_000, ""), (200_000, "true")):
        config = CONFIG.format(url=upstream.url) + f"seal_key: {key}\nlimits: {{seals: {limit}}}\n"
        with run_gateway(config=config) as gateway:
            assert count(gateway, {"model": model, "messages": [*ASK, thinking, *ASK]})[1] == expected
