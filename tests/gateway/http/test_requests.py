"""Compressed and hostile bodies (rows 22 and 23 of the fault table, real sockets)."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

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
    connect,
    minimal_body,
    parse_response,
    reply_calls,
    reply_text,
    request_reply,
    send_bytes,
    tools_field,
)
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 10, idle: 10}}
    retries: {{attempts: 1}}
limits: {{body: 1048576, reply: 4194304}}
"""
MIB = 1024 * 1024
BIG = 2**53 + 1
HUGE = 2**64 + 12345
DIGITS = int("123456789" * 20)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


@pytest.fixture(autouse=True)
def assert_no_internal_error(gateway: GatewayProcess) -> Iterator[None]:
    yield
    assert "internal gateway error" not in gateway.log.read_text(encoding="utf-8", errors="replace")
    assert gateway.process.poll() is None


def post(gateway: GatewayProcess, wire: str, body: bytes, **headers: str) -> RawResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return send_bytes(gateway, build_request(f"/v1/{wire}", body, given))


STREAM = up.ROLE + b"".join(map(up.delta, ["Hel", "lo"])) + up.delta(finish="stop") + up.DONE
WHOLE = json.dumps(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
).encode()
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", COMPRESS)
def test_22_compressed_replies_are_decompressed(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool, name: str
) -> None:
    data = COMPRESS[name](STREAM if stream else WHOLE)
    kind = "text/event-stream" if stream else "application/json"
    cuts = [data[:15], data[15:40], data[40:]]
    model = f"22-{name}-{wire}-{stream}"
    upstream.add(model, up.send_headers("200 OK", kind, f"content-encoding: {name}"), up.send_pieces(cuts, 0.01))
    got = request_reply(gateway, wire, model, stream)
    assert got.status == 200, got.body
    assert reply_text(got, wire) == "Hello"
    assert got.header("content-encoding") is None
    assert upstream.wait_for_requests(model)[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["br", "zstd", "gzip", "deflate", "compress"])
def test_22_invalid_compression_is_an_upstream_error(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool, name: str
) -> None:
    junk = b"\x8b\x03\x80\x00\xff\x01 this is not compressed data at all \x03" * 3
    kind = "text/event-stream" if stream else "application/json"
    model = upstream.add(
        f"22-junk-{name}-{stream}", up.send_response("200 OK", junk, kind, f"content-encoding: {name}")
    )
    got = request_reply(gateway, MESSAGES, model, stream)
    assert (got.status, got.json["error"]["type"]) == (502, "api_error"), got.body


@pytest.mark.parametrize("status", ["200 OK", "500 Broken"])
@pytest.mark.parametrize("stream", [True, False])
def test_22_decompression_bomb_is_stopped_at_the_limit(
    gateway: GatewayProcess, upstream: UpstreamServer, stream: bool, status: str
) -> None:
    pack = zlib.compressobj(1, wbits=31)
    bomb = b"".join(pack.compress(b" " * MIB) for _ in range(300)) + pack.flush()
    kind = "text/event-stream" if stream else "application/json"
    model = upstream.add(f"22-bomb-{status}-{stream}", up.send_response(status, bomb, kind, "content-encoding: gzip"))
    got = request_reply(gateway, CHAT, model, stream)
    assert got.status in (500, 502) or b'"error"' in got.body, got.body[-300:]
    assert gateway.peak_memory < 128 * MIB


@pytest.mark.parametrize("wire", WIRES)
def test_22_compressed_requests(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"22-request-{wire}", up.chat_stream("Hello"))
    body = gzip.compress(json.dumps(minimal_body(wire, model)).encode())
    got = post(gateway, wire, body, content_encoding="gzip")
    assert reply_text(got, wire) == "Hello"
    for end in (20, 8, 1):  # in the data, between data and checksum, in the checksum
        half = post(gateway, wire, body[:-end], content_encoding="gzip")
        assert (half.status, "cut off" in half.json["error"]["message"]) == (400, True)
    doubled = post(gateway, wire, body + body, content_encoding="gzip")
    assert (doubled.status, "follows the gzip data" in doubled.json["error"]["message"]) == (400, True)
    assert post(gateway, wire, body + b"x", content_encoding="gzip").status == 400
    assert post(gateway, wire, b"junk" * 20, content_encoding="gzip").status == 400
    assert post(gateway, wire, b"junk" * 20, content_encoding="br").status == 415
    assert post(gateway, wire, gzip.compress(b" " * 20 * MIB), content_encoding="gzip").status == 413


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["br", "zstd", "foo", "x-gzip", "gzip, deflate", "cookie:" * 500])
def test_22_unsupported_content_encoding_is_415(gateway: GatewayProcess, wire: str, name: str) -> None:
    got = post(gateway, wire, json.dumps(minimal_body(wire, "m")).encode(), content_encoding=name)
    assert (got.status, got.json["error"]["type"]) == (415, "invalid_request_error")
    assert "unsupported content-encoding" in got.json["error"]["message"]
    assert len(got.body) < 1000


@pytest.mark.parametrize("wire", WIRES)
def test_23_body_over_the_limit_is_413_in_client_format(gateway: GatewayProcess, wire: str) -> None:
    got = post(gateway, wire, json.dumps(minimal_body(wire, "m", user="x" * MIB)).encode())
    assert got.status == 413
    assert "limits.body" in got.json["error"]["message"]
    if wire == MESSAGES:
        assert got.json["error"]["type"] == "request_too_large"


def test_23_body_with_too_large_content_length_is_not_read(gateway: GatewayProcess) -> None:
    with connect(gateway) as sock:
        sock.sendall(build_request("/v1/messages", b"{}", length=str(10**12)))
        assert parse_response(sock.recv(MIB)).status == 413


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "no object": b"[1]",
    "cut": b'{"model": "m", "mess',
    "not UTF-8": b'{"model": "m\xff"}',
    "UTF-16": '{"model": "m"}'.encode("utf-16"),
    "deep arrays": b'{"model": "m", "messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "deep objects": b'{"model": "m", "messages": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
    "deep and open": b'{"a":' * 100_000,
    "NaN": b'{"model": "m", "messages": [], "temperature": NaN}',
    "Infinity": b'{"model": "m", "messages": [], "temperature": -Infinity}',
    "number without end": b'{"model": "m", "max_tokens": ' + b"9" * 100_000 + b"}",
    "huge exponent": b'{"model": "m", "max_tokens": 1e999999, "messages": 1, "input": 1}',
    "model no text": b'{"model": 5, "messages": []}',
    "messages no list": b'{"model": "m", "messages": 5, "input": 5, "max_tokens": 5}',
    "NUL": b"\x00" * 1000,
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", HOSTILE)
def test_23_hostile_json_is_400(gateway: GatewayProcess, upstream: UpstreamServer, wire: str, name: str) -> None:
    upstream.add("m", up.chat_stream("should not get a request"))
    for path in (wire, f"{MESSAGES}/count_tokens"):
        got = post(gateway, path, HOSTILE[name])
        assert got.status == 400 or path != wire, got.body
        assert got.status in (200, 400)
    assert "error" in post(gateway, wire, HOSTILE[name]).json


WHY = {
    "cut": "unterminated string starting at (line 1, column 16)",
    "NaN": "NaN is not JSON",
    "Infinity": "-Infinity is not JSON",
    "number without end": "more than 4,300 digits",
    "huge exponent": "1e999999 is too large",
    "deep arrays": "nested too deep",
    "no object": "it is a list",
}


@pytest.mark.parametrize("name", WHY)
def test_23_error_message_names_the_json_problem(gateway: GatewayProcess, name: str) -> None:
    message = post(gateway, CHAT, HOSTILE[name]).json["error"]["message"].lower()
    assert WHY[name].lower() in message


@pytest.mark.parametrize("wire", WIRES)
def test_23_number_out_of_range_is_not_sent_upstream(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str
) -> None:
    model = upstream.add(f"23-infinite-{wire}", up.chat_stream("Hello"))
    body = json.dumps(minimal_body(wire, model, temperature=7)).encode().replace(b": 7", b": 1e400")
    got = post(gateway, wire, body)
    assert (got.status, "1e400" in got.json["error"]["message"]) == (400, True)
    assert upstream.count(model) == 0


@pytest.mark.parametrize("wire", WIRES)
def test_23_byte_order_mark_is_accepted(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"23-bom-{wire}", up.chat_stream("Hello"))
    got = post(gateway, wire, b"\xef\xbb\xbf" + json.dumps(minimal_body(wire, model)).encode())
    assert reply_text(got, wire) == "Hello"


def test_23_slow_body_times_out(upstream: UpstreamServer) -> None:
    with run_gateway(config=CONFIG.format(url=upstream.url).replace("body: ", "send: 1, body: ")) as started:
        whole = build_request("/v1/messages", b" " * 100)
        with connect(started) as sock:
            began = time.monotonic()
            sock.sendall(whole[:-100])
            sock.settimeout(0.2)
            data = b""
            while not data and time.monotonic() - began < 10:
                with suppress(TimeoutError):
                    sock.sendall(b" ")
                    data = sock.recv(MIB)
            seconds = time.monotonic() - began
    assert parse_response(data).status == 400
    assert "body took longer than 1 s" in parse_response(data).json["error"]["message"]
    assert seconds < 5


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("depth", [100, 300, 450, 900])
def test_23_deeply_nested_schemas_are_accepted_or_refused(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, depth: int
) -> None:
    schema = b'{"type": "object", "properties": {"a": ' * depth + b'{"type": "string"}' + b"}}" * depth
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "deep", "arguments": "{}"}}
    reply = up.ROLE + up.delta(tool_calls=[call]) + up.delta(finish="tool_calls") + up.DONE
    model = upstream.add(f"23-schema-{wire}-{depth}", up.send_headers(), up.send(reply))
    body = json.dumps(minimal_body(wire, model, **tools_field(wire, "deep", {"here": 1}))).encode()
    got = post(gateway, wire, body.replace(b'{"here": 1}', schema))
    assert got.status in (200, 400)
    if got.status == 200:
        assert reply_calls(got, wire) == [("deep", "{}")]


@pytest.mark.parametrize("wire", WIRES)
def test_23_last_of_two_equal_keys_wins(gateway: GatewayProcess, upstream: UpstreamServer, wire: str) -> None:
    model = upstream.add(f"23-twice-{wire}", up.chat_stream("Hello"))
    whole = json.dumps(minimal_body(wire, model)).encode()
    got = post(gateway, wire, b'{"model": "another", ' + whole[1:])
    assert reply_text(got, wire) == "Hello"
    assert upstream.wait_for_requests(model)[0].body["model"] == model


def conversation(wire: str, args: str) -> bytes:
    """Return the messages field of a request with a past call that has exactly these arguments."""
    if wire == RESPONSES:
        call = json.dumps({"type": "function_call", "call_id": "c0", "name": "count", "arguments": args})
        result = '{"type": "function_call_output", "call_id": "c0", "output": "done"}'
        return f'"input": [{{"role": "user", "content": "hi"}}, {call}, {result}]'.encode()
    if wire == MESSAGES:
        use = f'{{"type": "tool_use", "id": "c0", "name": "count", "input": {args}}}'
        call = f'{{"role": "assistant", "content": [{use}]}}'
        block = '{"type": "tool_result", "tool_use_id": "c0", "content": "done"}'
        result = f'{{"role": "user", "content": [{block}]}}'
    else:
        function = {"name": "count", "arguments": args}
        calls = [{"id": "c0", "type": "function", "function": function}]
        call = json.dumps({"role": "assistant", "content": None, "tool_calls": calls})
        result = '{"role": "tool", "tool_call_id": "c0", "content": "done"}'
    return f'"messages": [{{"role": "user", "content": "hi"}}, {call}, {result}]'.encode()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("number", [BIG, HUGE, -HUGE, DIGITS])
def test_23_large_integers_keep_their_digits(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool, number: int
) -> None:
    args = f'{{"n": {number}}}'
    function = {"name": "count", "arguments": args}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    model = f"23-{wire}-{stream}-{number}"
    if stream:
        reply = up.ROLE + up.delta(tool_calls=[call]) + up.delta(finish="tool_calls") + up.DONE
        upstream.add(model, up.send_headers(), up.send(reply))
    else:
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        upstream.add(model, up.send_response("200 OK", json.dumps({"choices": [choice]}).encode()))
    rest = json.dumps(
        {"model": model, "stream": stream, "max_tokens": 9, **tools_field(wire, "count", SCHEMA)}
    ).encode()
    got = post(gateway, wire, b"{" + conversation(wire, args) + b"," + rest[1:])
    assert got.status == 200, got.body
    sent_body = upstream.wait_for_requests(model)[0].body
    assert json.loads(sent_body["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"n": number}
    assert [json.loads(args) for _, args in reply_calls(got, wire)] == [{"n": number}]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_23_lone_surrogates_in_a_request(
    gateway: GatewayProcess, upstream: UpstreamServer, wire: str, stream: bool
) -> None:
    model = f"23-half-{wire}-{stream}"
    upstream.add(model, up.chat_stream("Hello") if stream else up.send_response("200 OK", WHOLE))
    content = rb'"a\ud83d b"'
    text = (
        b'"input": ' + content if wire == RESPONSES else b'"messages": [{"role": "user", "content": ' + content + b"}]"
    )
    rest = json.dumps({"model": model, "stream": stream, "max_tokens": 9}).encode()
    got = post(gateway, wire, b"{" + text + b"," + rest[1:])
    assert got.status in (200, 400), got.body
    if got.status == 200:
        assert reply_text(got, wire) == "Hello"
    assert post(gateway, wire, rb'{"model": "\ud83d", "messages": []}').status in (200, 400, 404, 502)
