"""Security: headers, redirects, redaction of keys, authentication (rows 35–37 and 39 of the fault table)."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WIRES,
    RawResponse,
    build_request,
    get,
    minimal_body,
    parse_response,
    reply_text,
    request_reply,
    send_bytes,
)
from tests.support.upstream_server import UpstreamServer

UPSTREAM_KEY = "upstream-secret-0123456789abcdef"
CLIENT_KEY = "gateway-secret-fedcba9876543210"
OWN_KEY = "clients-own-secret-a1b2c3d4e5f6"
CONFIG = f"""
upstreams:
  test: {{{{url: "{{url}}", key: {UPSTREAM_KEY}, retries: {{{{attempts: 1}}}}}}}}
  messages: {{{{url: "{{url}}", api: anthropic-messages, key: {UPSTREAM_KEY}, retries: {{{{attempts: 1}}}}}}}}
  through: {{{{url: "{{url}}", passthrough: true, retries: {{{{attempts: 1}}}}}}}}
default: test
models:
  "messages-*": {{{{upstream: messages}}}}
  "through-*": {{{{upstream: through}}}}
"""
MANY_HEADERS = {
    "authorization": f"Bearer {OWN_KEY}",
    "x-api-key": OWN_KEY,
    "cookie": "session=abc",
    "proxy-authorization": "Basic abc",
    "user-agent": "agent/1",
    "x-stainless-os": "Linux",
    "x-forwarded-for": "10.0.0.1",
    "openai-organization": "org-1",
    "referer": "http://127.0.0.1/x",
    "anthropic-beta": "feature-1",
    "te": "trailers",
    "x-anything": "1",
}
UPSTREAM_HEADERS = {"host", "content-type", "content-length", "accept", "accept-encoding", "user-agent"}
"""All headers that an upstream receives, apart from its key."""
CLIENT_HEADERS = {
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "cache-control",
    "date",
    "server",
    "content-security-policy",
    "x-content-type-options",
    "x-accel-buffering",
    "request-id",
    "x-request-id",
    "retry-after",
    "x-interlingua-id",
    "x-interlingua-upstream",
    "x-interlingua-dialect",
    "x-interlingua-failed",
    "x-interlingua-findings",
}
"""All headers that a client may receive."""


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway("--log-level", "debug", "--capture", "kept", config=CONFIG.format(url=upstream.url)) as started:
        yield started


@pytest.fixture(scope="module")
def locked(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    """Gateway that requires keys."""
    keys = f"keys: {{alice: {CLIENT_KEY}, bob: another-{CLIENT_KEY}}}\nhosts: [gate.example]\n"
    config = CONFIG.format(url=upstream.url) + keys
    with run_gateway("--log-level", "debug", config=config) as started:
        yield started


def post(gateway: GatewayProcess, wire: str, model: str, stream: bool = True, **headers: str) -> RawResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return send_bytes(
        gateway, build_request(f"/v1/{wire}", json.dumps(minimal_body(wire, model, stream)).encode(), given)
    )


# ── 35: headers ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_35_client_headers_are_not_forwarded_to_the_upstream(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool
) -> None:
    model = upstream.add(f"35-{wire}-{stream}", up.chat_stream("Hello"))
    send_bytes(
        gateway, build_request(f"/v1/{wire}?a=b", json.dumps(minimal_body(wire, model, stream)).encode(), MANY_HEADERS)
    )
    received = upstream.wait_for_requests(model)[0]
    assert set(received.headers) == UPSTREAM_HEADERS | {"authorization"}
    assert received.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert received.headers["user-agent"].startswith("interlingua/")
    assert received.path == "/v1/chat/completions"
    assert OWN_KEY not in str((received.headers, received.body, received.path))


def test_35_messages_upstream_gets_anthropic_beta_header(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("messages-35", up.send_response("500 Broken", b"{}"))
    send_bytes(gateway, build_request("/v1/messages", json.dumps(minimal_body(MESSAGES, model)).encode(), MANY_HEADERS))
    headers = upstream.wait_for_requests(model)[0].headers
    assert set(headers) == UPSTREAM_HEADERS | {"authorization", "x-api-key", "anthropic-version", "anthropic-beta"}
    assert headers["x-api-key"] == UPSTREAM_KEY
    assert OWN_KEY not in str(headers)


def test_35_passthrough_forwards_only_the_key(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("through-35", up.chat_stream("Hello"))
    send_bytes(
        gateway, build_request("/v1/chat/completions", json.dumps(minimal_body(CHAT, model)).encode(), MANY_HEADERS)
    )
    headers = upstream.wait_for_requests(model)[0].headers
    assert set(headers) == UPSTREAM_HEADERS | {"authorization"}
    assert headers["authorization"] == f"Bearer {OWN_KEY}"
    assert UPSTREAM_KEY not in str(headers)


@pytest.mark.parametrize("given", ["authorization", "x_api_key"])
def test_35_passthrough_key_is_sent_in_the_upstreams_header(
    gateway: GatewayProcess, upstream: UpstreamServer, given: str
) -> None:
    model = upstream.add(f"through-35-{given}", up.chat_stream("Hello"))
    shown = {given: f"Bearer {OWN_KEY}" if given == "authorization" else OWN_KEY}
    post(gateway, MESSAGES, model, True, **shown)
    assert upstream.wait_for_requests(model)[0].headers["authorization"] == f"Bearer {OWN_KEY}"


def test_35_gateway_key_is_never_passed_through(upstream: UpstreamServer) -> None:
    key = "key-of-the-gateway-0123456789"
    config = f"upstreams: {{one: {{url: {upstream.url}, passthrough: true}}}}\nkeys: [{key}]\n"
    with run_gateway(config=config) as started:
        model = upstream.add("35-both", up.chat_stream("Hello"))
        assert post(started, CHAT, model, authorization=f"Bearer {OWN_KEY}", x_api_key=key).status == 200
        assert post(started, CHAT, model, authorization=f"Bearer {key}").status == 200
        both, alone = upstream.wait_for_requests(model, 2)
        assert both.headers["authorization"] == f"Bearer {OWN_KEY}"
        assert "authorization" not in alone.headers
        assert key not in str((both.headers, alone.headers))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", ["200 OK", "429 Slow", "401 Who", "500 Broken"])
def test_35_upstream_headers_are_not_forwarded_to_the_client(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool, status: str
) -> None:
    many_headers = ["set-cookie: a=b", "server: nginx-secret", "openai-organization: org-2", "x-ratelimit-limit: 5"]
    many_headers += [
        "location: http://elsewhere",
        "access-control-allow-origin: *",
        "cf-ray: 1",
        "x-request-id: theirs",
    ]
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    whole = json.dumps({"choices": [choice]} if status == "200 OK" else {"error": {"message": "no"}})
    reply = up.send_response(status, whole.encode(), "application/json", *many_headers)
    model = upstream.add(f"35-back-{wire}-{stream}-{status}", reply)
    got = request_reply(gateway, wire, model, stream)
    assert {name for name, _ in got.headers} <= CLIENT_HEADERS
    values = str([value for _, value in got.headers])
    assert not [word for word in ("nginx", "org-2", "theirs", "elsewhere", "a=b") if word in values]


# ── 36: redirects and foreign URLs ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def other_server() -> Iterator[socket.socket]:
    """Server that must not receive any connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        yield server


def was_contacted(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"])
def test_36_redirects_are_not_followed(
    gateway: GatewayProcess, upstream: UpstreamServer, other_server: socket.socket, status: str
) -> None:
    where = f"location: http://127.0.0.1:{other_server.getsockname()[1]}/v1/chat/completions"
    model = upstream.add(f"36-{status}", up.send_response(status, b"", "text/html", where))
    got = request_reply(gateway, CHAT, model)
    assert (got.status, "redirect" in got.json["error"]["message"]) == (502, True), got.body
    assert not was_contacted(other_server)
    assert upstream.count(model) == 1


def test_36_client_request_cannot_choose_the_upstream_url(
    gateway: GatewayProcess, upstream: UpstreamServer, other_server: socket.socket
) -> None:
    elsewhere = f"http://127.0.0.1:{other_server.getsockname()[1]}/v1"
    names = ["api_base", "base_url", "url", "upstream", "custom_llm_provider", "api_key"]
    more: dict[str, Any] = dict.fromkeys(names, elsewhere)
    image = {"type": "image_url", "image_url": {"url": f"{elsewhere}/image.png"}}
    more["messages"] = [{"role": "user", "content": [{"type": "text", "text": "look"}, image]}]
    model = upstream.add("36-request", up.chat_stream("Hello"))
    body = json.dumps(minimal_body(CHAT, model, **more)).encode()
    headers = {"x-forwarded-host": elsewhere, "x-upstream": elsewhere, "x-portkey-custom-host": elsewhere}
    got = send_bytes(gateway, build_request("/v1/chat/completions", body, headers))
    assert reply_text(got, CHAT) == "Hello"
    assert request_reply(gateway, CHAT, upstream.add(f"{elsewhere}/../..", up.chat_stream("Hello"))).status in (
        200,
        404,
    )
    assert not was_contacted(other_server)


# ── 37: redaction of keys ─────────────────────────────────────────────────────────────────────────────────────────

KEY_QUOTING_ERROR = f"the key {UPSTREAM_KEY} (Bearer {UPSTREAM_KEY}) is not known, and neither is {OWN_KEY}"


KINDS = ["status", "page", "first event", "with the first content", "in the middle"]
WHOSE = ["", "through-"]


def quote_keys(kind: str) -> list[up.Step]:
    error = json.dumps({"error": {"message": KEY_QUOTING_ERROR, "type": "x", "code": None, "param": None}}).encode()
    if kind == "status":
        return [up.send_response("401 Who", error)]
    if kind == "page":
        return [up.send_response("500 Broken", f"<p>{KEY_QUOTING_ERROR}</p>".encode(), "text/html")]
    if kind == "first event":
        return [up.send_headers(), up.send(up.event(error))]
    if kind == "with the first content":
        return [up.send_headers(), up.send(up.ROLE + up.delta("Hello") + up.event(error))]
    return [up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(0.1), up.send(up.event(error))]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("whose", WHOSE)
@pytest.mark.parametrize("kind", KINDS)
def test_37_key_quoted_in_an_upstream_error_is_redacted(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, whose: str, kind: str
) -> None:
    model = upstream.add(f"{whose}37-{wire}-{kind}", *quote_keys(kind))
    got = post(gateway, wire, model, authorization=f"Bearer {OWN_KEY}", x_api_key=OWN_KEY)
    assert b"error" in got.body
    assert b"is not known" in got.body
    assert UPSTREAM_KEY.encode() not in got.body
    gateway.wait_for_log(f"upstream-failed .*{model}")


CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
COMPLETE_REPLY = {
    **CHUNK,
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}
STREAM_END = up.delta(finish="stop") + up.DONE
QUOTED_IN_STREAM: dict[str, bytes] = {
    "an id": up.event({**CHUNK, "id": UPSTREAM_KEY, "choices": [{"index": 0, "delta": {"content": "Hello"}}]}),
    "a model": up.event({**CHUNK, "model": UPSTREAM_KEY, "choices": [{"index": 0, "delta": {"content": "Hello"}}]}),
    "an unknown field": up.event({**CHUNK, "x": {"y": [UPSTREAM_KEY]}, "choices": [{"index": 0, "delta": {}}]}),
    "a text": up.delta(f"Hello {UPSTREAM_KEY}"),
    "a call id": up.call_delta(0, UPSTREAM_KEY, name="read", arguments="{}"),
    "the arguments of a call": up.call_delta(0, "call_1", name="read", arguments=json.dumps({"path": UPSTREAM_KEY})),
    "a comment": f": {UPSTREAM_KEY}\n\n".encode(),
    "an error code": up.delta("Hello") + up.event({"error": {"message": "no", "type": "x", "code": UPSTREAM_KEY}}),
    "an error type": up.delta("Hello") + up.event({"error": {"message": "no", "type": UPSTREAM_KEY}}),
    "the code of an early error": up.event({"error": {"message": "no", "type": "x", "code": UPSTREAM_KEY}}),
}
QUOTED_IN_BODY: dict[str, tuple[str, Any]] = {
    "an id": ("200 OK", {**COMPLETE_REPLY, "id": UPSTREAM_KEY}),
    "an unknown field": ("200 OK", {**COMPLETE_REPLY, "system_fingerprint": UPSTREAM_KEY}),
    "an error code": ("400 Bad", {"error": {"message": "no", "code": UPSTREAM_KEY}}),
    "an error type": ("400 Bad", {"error": {"message": "no", "type": UPSTREAM_KEY, "param": UPSTREAM_KEY}}),
    "the code of an error with a success status": ("200 OK", {"error": {"message": "no", "code": UPSTREAM_KEY}}),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("place", QUOTED_IN_STREAM)
@pytest.mark.parametrize("cut", [False, True], ids=["in one packet", "in two packets"])
def test_37_key_anywhere_in_a_stream_is_redacted(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, place: str, cut: bool
) -> None:
    stream = up.ROLE + QUOTED_IN_STREAM[place] + STREAM_END
    middle = stream.index(UPSTREAM_KEY.encode()) + 9 if cut else len(stream)
    pieces = [stream[:middle], stream[middle:]]
    model = upstream.add(f"37-stream-{wire}-{place}-{cut}", up.send_headers(), up.send_pieces(pieces, 0.1))
    got = request_reply(gateway, wire, model)
    assert UPSTREAM_KEY.encode() not in got.body
    assert UPSTREAM_KEY[9:].encode() not in got.body
    assert got.status == (502 if "early" in place else 200)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("place", QUOTED_IN_BODY)
def test_37_key_anywhere_in_a_body_is_redacted(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, place: str
) -> None:
    status, body = QUOTED_IN_BODY[place]
    model = upstream.add(f"37-body-{wire}-{place}", up.send_response(status, json.dumps(body).encode()))
    got = request_reply(gateway, wire, model, stream=False)
    assert UPSTREAM_KEY.encode() not in got.body
    assert got.status == (200 if "choices" in body else 502 if status == "200 OK" else 400)


def test_37_redaction_in_a_reply_is_reported(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    got = request_reply(gateway, CHAT, upstream.add("37-report", up.chat_stream(UPSTREAM_KEY)), stream=False)
    assert "key-redacted" in str(got.header("x-interlingua-findings"))
    assert reply_text(got, CHAT) == "***"


def test_37_no_key_in_log_or_captures(gateway: GatewayProcess, upstream: UpstreamServer) -> None:
    """Checks the requests of this test and those of the tests before it."""
    cases = [(f"{whose}37-kept-{kind}-{OWN_KEY}", kind) for whose in WHOSE for kind in KINDS]
    for model, kind in cases:
        post(gateway, RESPONSES, upstream.add(model, *quote_keys(kind)), authorization=f"Bearer {OWN_KEY}")
    send_bytes(gateway, build_request(f"/v1/{OWN_KEY}?key={OWN_KEY}", b"{}", {"authorization": f"Bearer {OWN_KEY}"}))
    assert request_reply(gateway, CHAT, upstream.add("37-last", up.chat_stream("Hello"))).status == 200
    log = gateway.wait_for_log("37-last")
    assert UPSTREAM_KEY not in log
    kept = captures(gateway, "37-kept-", len(cases))
    assert not [text for text in kept if UPSTREAM_KEY in text or OWN_KEY in text]
    for model, _ in cases:
        log = log.replace(model, "")
    assert OWN_KEY not in log


def captures(gateway: GatewayProcess, about: str, count: int) -> list[str]:
    """Return all captures as soon as `count` of them contain the text `about`."""
    until = time.monotonic() + 10
    while True:
        kept = [file.read_text() for file in (gateway.folder / "kept").glob("*.jsonl")]
        if sum(about in text for text in kept) >= count:
            return kept
        assert time.monotonic() < until, f"{len(kept)} captures"
        time.sleep(0.02)


def test_37_new_key_is_redacted_after_a_reload(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url)
    new = "another-key-of-the-upstream-99"
    with run_gateway("--log-level", "debug", config=config) as gateway:
        (gateway.folder / "interlingua.yaml").write_text(config.replace(UPSTREAM_KEY, new))
        gateway.send_signal(signal.SIGHUP)
        gateway.wait_for_log("reloaded")
        body = json.dumps({"error": {"message": f"no {new} and no {UPSTREAM_KEY}"}}).encode()
        model = upstream.add(f"37-again-{new}", up.send_response("400 Bad", body))
        got = request_reply(gateway, CHAT, model)
        assert upstream.wait_for_requests(model)[0].headers["authorization"] == f"Bearer {new}"
        assert new.encode() not in got.body
        assert new not in gateway.wait_for_log("37-again")


def test_37_log_and_metrics_name_the_client_without_its_key(locked: GatewayProcess, upstream: UpstreamServer) -> None:
    model = upstream.add("37-client", up.chat_stream("Hello"))
    for key in (CLIENT_KEY, f"another-{CLIENT_KEY}"):
        assert post(locked, CHAT, model, authorization=f"Bearer {key}").status == 200
    for name in ("alice", "bob"):
        locked.wait_for_log(f"37-client .* client={name}  req_")
    metrics = get(locked, "/metrics", authorization=f"Bearer {CLIENT_KEY}").body.decode()
    for name in ("alice", "bob"):
        labels = f'client="{name}",upstream="test",model="37-client",outcome="ok"'
        assert f"interlingua_model_requests_total{{{labels}}} 1\n" in metrics
    assert CLIENT_KEY not in metrics + locked.log.read_text()


def test_37_unknown_client_key_is_not_quoted_in_error_or_log(locked: GatewayProcess) -> None:
    got = post(locked, CHAT, "m", authorization=f"Bearer {OWN_KEY}")
    assert (got.status, OWN_KEY.encode() in got.body) == (401, False)
    assert OWN_KEY not in locked.log.read_text()


# ── 39: authentication and origin ─────────────────────────────────────────────────────────────────────────────────

PAGES = ["/v1/models", "/v1/models/m", "/metrics", "/openapi.json"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8484"}, 200),
        ({"host": "[::1]:8484"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "x/#@127.0.0.1"}, 403),
        ({"host": "10.0.0.1"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:8484"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 200),
    ],
)
def test_39_requests_from_web_pages_are_rejected(
    gateway: GatewayProcess, upstream: UpstreamServer, headers: dict[str, str], status: int
) -> None:
    model = upstream.add(f"39-{headers}", up.chat_stream("Hello"))
    for wire in WIRES:
        got = send_bytes(gateway, build_request(f"/v1/{wire}", json.dumps(minimal_body(wire, model)).encode(), headers))
        assert got.status == status or (got.status, status) == (400, 403), got.body
        assert not [name for name, _ in got.headers if name.startswith("access-control")]
    for path in PAGES:
        got = send_bytes(gateway, build_request(path, headers=headers, method="GET"))
        assert got.status == status or (got.status, status) == (400, 403), got.body
    assert upstream.count(model) == (3 if status == 200 else 0)


def test_39_cors_preflight_requests_are_rejected(gateway: GatewayProcess) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    got = send_bytes(gateway, build_request("/v1/messages", headers=headers, method="OPTIONS"))
    assert got.status >= 400
    assert not [name for name, _ in got.headers if name.startswith("access-control")]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({}, False),
        ({"authorization": f"Bearer {CLIENT_KEY}"}, True),
        ({"authorization": f"bearer  {CLIENT_KEY}"}, True),
        ({"x_api_key": f"another-{CLIENT_KEY}"}, True),
        ({"authorization": "Bearer x", "x_api_key": CLIENT_KEY}, True),
        ({"authorization": f"Bearer {CLIENT_KEY}x"}, False),
        ({"authorization": f"Bearer {CLIENT_KEY[:-1]}"}, False),
        ({"authorization": CLIENT_KEY}, False),
        ({"authorization": f"Basic {CLIENT_KEY}"}, False),
        ({"authorization": "Bearer "}, False),
        ({"x_api_key": UPSTREAM_KEY}, False),
        ({"x_api_key": sha256(CLIENT_KEY.encode()).hexdigest()}, False),
        ({"cookie": f"key={CLIENT_KEY}"}, False),
    ],
)
def test_39_requests_without_a_valid_key_are_rejected(
    locked: GatewayProcess, upstream: UpstreamServer, wire: str, headers: dict[str, str], known: bool
) -> None:
    model = upstream.add(f"39-key-{wire}-{headers}", up.chat_stream("Hello"))
    got = post(locked, wire, model, True, **headers)
    assert got.status == (200 if known else 401)
    assert upstream.count(model) == known
    if not known:
        assert got.json["error"]["type"] == "authentication_error"
        assert (got.json.get("type") == "error") == (wire == MESSAGES)
        assert (got.json["error"].get("code") == "invalid_api_key") == (wire != MESSAGES)
        assert CLIENT_KEY.encode() not in got.body
    for path in PAGES:
        assert get(locked, path, **headers).status == (200 if known else 401)
    assert {get(locked, path, **headers).status for path in ("/healthz", "/readyz", "/")} == {200}


@pytest.mark.parametrize(
    "host",
    ["x/#@y", "127.0.0.1/#@y", "127.0.0.1/healthz", "127.0.0.1/healthz?", "gate.example/../healthz", "127.0.0.1@y", ""],
)
@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "//metrics", "/healthz/../metrics", "http://y/metrics"])
def test_39_host_and_path_variants_do_not_bypass_authentication(locked: GatewayProcess, host: str, path: str) -> None:
    """Each handler checks the key itself; the decision does not depend on a reassembled URL."""
    got = send_bytes(locked, build_request(path, headers={"host": host}, method="GET"))
    assert got.status in (400, 401, 403, 404)
    assert b"interlingua_" not in got.body


def test_39_key_is_checked_before_the_body_is_read(locked: GatewayProcess) -> None:
    sock = socket.create_connection(("127.0.0.1", int(locked.base.rsplit(":", 1)[1])), 5)
    with sock:
        sock.sendall(build_request("/v1/messages", b"", length="1000000"))
        assert parse_response(sock.recv(1 << 16)).status == 401


def test_39_only_configured_host_names_are_allowed(locked: GatewayProcess) -> None:
    key = {"authorization": f"Bearer {CLIENT_KEY}"}
    assert get(locked, "/v1/models", host="gate.example:80", **key).status == 200
    assert get(locked, "/v1/models", host="other.example", **key).status == 403
