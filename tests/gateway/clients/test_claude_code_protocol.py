"""Claude Code's gateway protocol, with Anthropic and with other Messages upstreams.

docs/clients/claude-code-protocol.md names the test for each demand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import RawResponse, build_request, send_bytes
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  owner: {{url: "{url}", api: anthropic-messages, profile: anthropic, key: sk-ant-upstream, retries: {{attempts: 1}}}}
  login: {{url: "{url}", api: anthropic-messages, profile: anthropic, passthrough: true, retries: {{attempts: 1}}}}
  other: {{url: "{url}", api: anthropic-messages, key: sk-other-0123456789, retries: {{attempts: 2, backoff: 0.01}}}}
  chat: {{url: "{url}", key: sk-chat-0123456789, retries: {{attempts: 1}}}}
models:
  "owner-*": {{upstream: owner}}
  "claude-opus-5-*": {{upstream: owner}}
  "login-*": {{upstream: login}}
  "other-*": {{upstream: other}}
  "chat-*": {{upstream: chat}}
"""
MESSAGES_UPSTREAMS = ("owner", "other")
REPLY = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1},
}

Json = dict[str, Any]


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def ask(gateway: GatewayProcess, model: str, fields: Json | None = None, /, **headers: str) -> RawResponse:
    """Send a request as Claude Code does, and return the response."""
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **(fields or {})}
    names = {"anthropic-version": "2023-06-01"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return send_bytes(gateway, build_request("/v1/messages?beta=true", json.dumps(body).encode(), names))


def answer(*headers: str) -> up.Step:
    return up.send_response("200 OK", json.dumps(REPLY).encode(), "application/json", *headers)


def refuse(status: str, error: Json, *headers: str) -> up.Step:
    return up.send_response(status, json.dumps(error).encode(), "application/json", *headers)


# ── endpoints ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/", "/api/hello"])
def test_first_request_of_claude_code_is_answered(gateway: GatewayProcess, path: str) -> None:
    connection = HTTPConnection(gateway.base.removeprefix("http://"), timeout=10)
    connection.request("HEAD", path)
    assert connection.getresponse().status in (200, 404)
    connection.close()


@pytest.mark.parametrize("name", [*MESSAGES_UPSTREAMS, "chat"])
def test_whole_reply_is_a_message(gateway: GatewayProcess, upstream: UpstreamServer, name: str) -> None:
    """Claude Code asks for a whole reply if a stream has failed."""
    message = {"role": "assistant", "content": "Hello"}
    chat_reply = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    reply = chat_reply if name == "chat" else REPLY
    got = ask(gateway, upstream.add(f"{name}-whole", up.send_response("200 OK", json.dumps(reply).encode())))
    assert got.status == 200
    assert got.json["id"].startswith("msg_")
    assert got.json["content"] == [{"type": "text", "text": "Hello"}]


def test_credentials_in_either_header_are_checked(upstream: UpstreamServer) -> None:
    model, key = upstream.add("credentials", answer()), "key-of-the-gateway-0123456789"
    config = f"upstreams: {{one: {{url: '{upstream.url}', api: anthropic-messages}}}}\nkeys: [{key}]\n"
    with run_gateway(config=config) as locked:
        for headers in ({"authorization": f"Bearer {key}"}, {"x_api_key": key}):
            assert ask(locked, model, **headers).status == 200
        assert ask(locked, model, authorization=f"Bearer {key}", x_api_key=key).status == 200
        for rejected in (ask(locked, model), ask(locked, model, authorization="Bearer of-somebody-else")):
            assert (rejected.status, rejected.json["error"]["type"]) == (401, "authentication_error")


# ── headers to the upstream ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MESSAGES_UPSTREAMS)
def test_every_anthropic_header_reaches_the_upstream(
    gateway: GatewayProcess, upstream: UpstreamServer, name: str
) -> None:
    model = upstream.add(f"{name}-headers", answer())
    sent = {
        "anthropic_beta": "claude-code-20250219,context-1m-2025-08-07",
        "anthropic_workspace_id": "wrkspc_1",
        "Anthropic_Of_The_Future": "x",
    }
    ask(gateway, model, **sent, x_claude_code_session_id="s", x_custom="c")
    received = upstream.wait_for_requests(model)[0].headers
    assert {key: received[key.lower().replace("_", "-")] for key in sent} == sent
    assert "x-custom" not in received


def test_no_anthropic_header_reaches_an_upstream_of_another_api(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    model = upstream.add("chat-headers", up.chat_stream("Hello"))
    ask(gateway, model, {"stream": True}, anthropic_beta="b", anthropic_workspace_id="w")
    assert not [name for name in upstream.wait_for_requests(model)[0].headers if name.startswith("anthropic")]


def test_login_of_claude_ai_goes_through_as_it_came(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("login-oauth", answer())
    ask(gateway, model, authorization="Bearer sk-ant-oat01-0123456789", anthropic_beta="oauth-2025-04-20,x")
    received = upstream.wait_for_requests(model)[0].headers
    assert received["authorization"] == "Bearer sk-ant-oat01-0123456789"
    assert received["anthropic-beta"] == "oauth-2025-04-20,x"
    assert "x-api-key" not in received


@pytest.mark.parametrize("header", ["authorization", "x_api_key"])
def test_api_key_of_the_client_goes_to_anthropics_header(
    gateway: GatewayProcess, upstream: UpstreamServer, header: str
) -> None:
    model = upstream.add(f"login-key-{header}", answer())
    key = "sk-ant-api03-0123456789"
    ask(gateway, model, **{header: f"Bearer {key}" if header == "authorization" else key})
    assert upstream.wait_for_requests(model)[0].headers["x-api-key"] == key


# ── body to the upstream ──────────────────────────────────────────────────────────────────────────────────────────

TOOL = {"name": "read", "description": "", "input_schema": {"type": "object", "properties": {}}}
FIELDS: dict[str, Json] = {
    "billing line in a block of its own": {
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=1;"},
            {"type": "text", "text": "You are", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        ]
    },
    "system message in the middle": {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "system", "content": [{"type": "text", "text": "plan", "cache_control": {"type": "ephemeral"}}]},
        ]
    },
    "system message that changes tools": {
        "tools": [TOOL],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "system", "content": [{"type": "tool_removal", "tool_names": ["read"]}]},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "go"},
        ],
    },
    "unknown effort": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "ultra", "task_budget": {"n": 1}}},
    "sampling that the model rejects": {"temperature": 0.5, "top_p": 0.9},
    "context management": {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
    "fields of tools": {
        "tools": [TOOL | {"strict": True, "eager_input_streaming": True, "input_examples": [{}], "odd": 1}]
    },
    "cache marks": {
        "tools": [TOOL | {"cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ],
    },
    "thinking of before": {
        "thinking": {"type": "adaptive", "display": "omitted"},
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"},
                    {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                    {"type": "text", "text": "hello"},
                ],
            },
            {"role": "user", "content": "go"},
        ],
    },
    "tool search": {
        "tools": [
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            TOOL,
            TOOL | {"name": "write", "defer_loading": True},
        ],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "tool_reference", "tool_name": "write"}],
                    }
                ],
            },
        ],
    },
    "fields and blocks of the future": {
        "of_the_future": {"a": [1]},
        "messages": [{"role": "user", "content": [{"type": "of_the_future", "x": 1}, {"type": "text", "text": "hi"}]}],
    },
}


@pytest.mark.parametrize("what", FIELDS)
def test_body_to_anthropic_is_unchanged(gateway: GatewayProcess, upstream: UpstreamServer, what: str) -> None:
    model = upstream.add(f"claude-opus-5-{what.replace(' ', '-')}", answer())
    assert ask(gateway, model, FIELDS[what]).status == 200
    body = upstream.wait_for_requests(model)[0].body
    assert {key: body.get(key) for key in FIELDS[what]} == FIELDS[what]


CHAT_FIELDS = {"model", "messages", "max_tokens", "stream", "stream_options", "tools", "reasoning_effort"}
CHAT_FIELDS |= {"temperature", "top_p"}


@pytest.mark.parametrize("what", FIELDS)
def test_nothing_of_it_reaches_a_chat_upstream(gateway: GatewayProcess, upstream: UpstreamServer, what: str) -> None:
    model = upstream.add(f"chat-{what.replace(' ', '-')}", up.chat_stream("Hello"))
    assert ask(gateway, model, {**FIELDS[what], "stream": True}).status == 200
    body = upstream.wait_for_requests(model)[0].body
    sent = body["messages"], body.get("tools")
    assert set(body) <= CHAT_FIELDS
    assert not [word for word in ("cache_control", "defer_loading", "billing", "of_the_future") if word in str(sent)]
    assert all(set(tool) == {"type", "function"} for tool in body.get("tools", ()))


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────

ERRORS: dict[str, tuple[str, Json]] = {
    "rate limit with further fields": (
        "429 Too Many Requests",
        {
            "type": "error",
            "error": {"type": "rate_limit_error", "message": "slow down", "details": {"limit": "tokens"}},
            "request_id": "req_upstream",
        },
    ),
    "thinking is refused": (
        "400 Bad Request",
        {"type": "error", "error": {"type": "invalid_request_error", "message": "thinking: Extra inputs"}},
    ),
    "prompt too long": (
        "400 Bad Request",
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 212000 tokens > 200000 maximum"},
        },
    ),
    "too many output tokens": (
        "400 Bad Request",
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
            },
        },
    ),
    "type of the future": ("418 I'm a teapot", {"type": "error", "error": {"type": "teapot_error", "message": "no"}}),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("what", ERRORS)
@pytest.mark.parametrize("name", MESSAGES_UPSTREAMS)
def test_error_of_a_messages_upstream_is_unchanged(
    gateway: GatewayProcess, upstream: UpstreamServer, name: str, what: str, stream: bool
) -> None:
    status, body = ERRORS[what]
    model = upstream.add(f"{name}-error-{what}-{stream}", refuse(status, body))
    got = ask(gateway, model, {"stream": stream})
    assert (got.status, got.json) == (int(status[:3]), body)
    assert got.header("x-interlingua-upstream") == name


def test_error_event_before_any_content_is_an_unchanged_error(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "x": 1}, "request_id": "r"}
    data = f"event: error\ndata: {json.dumps(error)}\n\n".encode()
    got = ask(gateway, upstream.add("owner-overloaded", *up.stream_response(data)), {"stream": True})
    assert (got.status, got.json) == (529, error)


def test_key_in_an_error_is_redacted(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "message": "bad key sk-other-0123456789"}}
    got = ask(gateway, upstream.add("other-quotes-key", refuse("401 Unauthorized", error)))
    assert got.status == 401
    assert b"sk-other-0123456789" not in got.body


def test_context_limit_in_other_words_gets_the_words_that_claude_code_knows(
    gateway: GatewayProcess, upstream: UpstreamServer
) -> None:
    error = {"error": {"type": "BadRequestError", "message": "This model's maximum context length is 40960 tokens."}}
    got = ask(gateway, upstream.add("other-too-long", refuse("400 Bad Request", error)))
    assert got.status == 400
    assert "prompt is too long" in got.json["error"]["message"]
    assert got.json["error"]["type"] == "invalid_request_error"


def test_error_of_a_chat_upstream_is_translated(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    error = {"error": {"type": "server_error", "message": "out of memory", "code": "oom"}}
    got = ask(gateway, upstream.add("chat-error", refuse("500 Broken", error)))
    assert (got.status, got.json["type"], got.json["error"]["type"]) == (500, "error", "api_error")
    assert got.json["error"]["message"] == "chat: out of memory"


def test_error_page_is_translated(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    page = up.send_response("403 Forbidden", b"<html><h1>blocked</h1></html>", "text/html")
    got = ask(gateway, upstream.add("other-page", page))
    assert (got.status, got.json["error"]) == (403, {"type": "permission_error", "message": "other: blocked"})


# ── headers to the client ─────────────────────────────────────────────────────────────────────────────────────────

LIMIT_HEADERS = ("anthropic-ratelimit-requests-remaining: 7", "anthropic-ratelimit-unified-status: allowed")


@pytest.mark.parametrize("name", MESSAGES_UPSTREAMS)
def test_rate_limit_headers_come_back(gateway: GatewayProcess, upstream: UpstreamServer, name: str) -> None:
    model = upstream.add(f"{name}-limits", answer(*LIMIT_HEADERS, "x-odd: 1"))
    got = ask(gateway, model)
    assert got.header("anthropic-ratelimit-requests-remaining") == "7"
    assert got.header("anthropic-ratelimit-unified-status") == "allowed"
    assert got.header("x-odd") is None


def test_retry_headers_of_an_error_come_back(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    status, body = ERRORS["rate limit with further fields"]
    headers = ("retry-after: 17", "x-should-retry: false", *LIMIT_HEADERS)
    model = upstream.add("other-retry", refuse(status, body, *headers))
    got = ask(gateway, model)
    assert (got.header("retry-after"), got.header("x-should-retry")) == ("17", "false")
    assert got.header("anthropic-ratelimit-requests-remaining") == "7"
    assert upstream.count(model) == 1, "x-should-retry: false holds for the gateway, too"


def test_limits_of_another_api_do_not_come_back(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    error = {"error": {"type": "x", "message": "no"}}
    headers = ("x-ratelimit-remaining-requests: 7", "x-should-retry: true")
    got = ask(gateway, upstream.add("chat-limits", refuse("400 Bad Request", error, *headers)))
    assert (got.header("x-ratelimit-remaining-requests"), got.header("x-should-retry")) == (None, "true")


def test_limits_of_a_stream_come_back(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    start = {"type": "message_start", "message": REPLY | {"content": [], "stop_reason": None}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
    stop = {"type": "content_block_stop", "index": 0}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    events: list[Json] = [start, {"type": "ping"}, block, delta, stop, end, {"type": "message_stop"}]
    data = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    headers = up.send_headers("200 OK", "text/event-stream", *LIMIT_HEADERS)
    got = ask(gateway, upstream.add("owner-stream", headers, up.send(data)), {"stream": True})
    assert got.header("anthropic-ratelimit-requests-remaining") == "7"
    assert got.body == data, "a correct stream is forwarded byte for byte, with its pings"


def test_error_in_the_middle_of_a_stream_is_unchanged(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    start = {"type": "message_start", "message": REPLY | {"content": [], "stop_reason": None}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "details": None}}
    data = b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in (start, block, delta, error)
    )
    got = ask(gateway, upstream.add("owner-fails", *up.stream_response(data)), {"stream": True})
    assert got.status == 200
    assert got.events == [start, block, delta, error]
