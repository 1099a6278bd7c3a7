"""A request of one client, or a reply of one upstream, does not hold up the requests of other clients."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, MESSAGES, RESPONSES, build_request, request_reply, send_bytes
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 60, idle: 60}}
    retries: {{attempts: 1}}
"""
MAX_WAIT_SECONDS = 0.5
"""Longest wait of the bystander. On a quiet machine it is below 0.1 s; without threads, seconds.

Time in which other programs had the processor does not count: see `queued_seconds`.
"""
MAX_CHAT_WAIT_SECONDS = 1.0
"""Longest wait of a bystander that sends a chat of 100 KB. On a quiet machine it is below 0.2 s; without fair threads,
seconds."""
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def upstream() -> Iterator[UpstreamServer]:
    server = UpstreamServer()
    server.add("short", up.chat_stream("short"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def gateway(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url)) as started:
        yield started


def queued_seconds(process: str) -> float:
    """Return how long the main thread of a process was ready to run, but waited for a processor; 0 if unknown.

    The interpreter lock is no such wait: a thread of the gateway that keeps it from the main thread counts as a wait.
    """
    try:
        return int(Path("/proc", process, "schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class Bystander:
    """A client that sends a short request again and again, on one connection."""

    max_wait = MAX_WAIT_SECONDS

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway
        self._over = threading.Event()
        self.longest_wait = 0.0
        self.count = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _run(self) -> None:
        connection = http.client.HTTPConnection(self._gateway.base.removeprefix("http://"), timeout=60)
        while not self._over.is_set():
            started, queued = time.monotonic(), self._queued_seconds()
            self._send(connection)
            wait = time.monotonic() - started - (self._queued_seconds() - queued)
            self.longest_wait = max(self.longest_wait, wait)
            self.count += 1
            time.sleep(0.002)
        connection.close()

    def _queued_seconds(self) -> float:
        return queued_seconds("thread-self") + queued_seconds(str(self._gateway.process.pid))

    def _send(self, connection: http.client.HTTPConnection) -> None:
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"


class ChatBystander(Bystander):
    """Another client, with a key of its own, that sends a chat of 100 KB again and again."""

    max_wait = MAX_CHAT_WAIT_SECONDS

    def _send(self, connection: http.client.HTTPConnection) -> None:
        body = request_with(CHAT, [{"role": "user", "content": "x" * 100_000}], stream=True)
        connection.request("POST", "/v1/chat/completions", body, {"authorization": "Bearer bystander"})
        response = connection.getresponse()
        assert b"[DONE]" in response.read()


def check_wait(
    gateway: GatewayProcess, attack: Callable[[], object], bystander_type: type[Bystander] = Bystander
) -> None:
    """Fail if the bystander waits too long during the attack. The shortest of three tries counts."""
    waits = []
    for _ in range(3):
        with bystander_type(gateway) as bystander:
            attack()
        assert bystander.count > 0
        waits.append(bystander.longest_wait)
        if waits[-1] < bystander.max_wait:
            return
    pytest.fail(f"longest waits in seconds: {waits}")


def at_once(count: int, attack: Callable[[], object]) -> None:
    """Run the attack several times at once."""
    with ThreadPoolExecutor(count) as executor:
        for result in [executor.submit(attack) for _ in range(count)]:
            result.result()


def request_with(wire: str, messages: list[Any], **fields: Any) -> bytes:
    name = "input" if wire == RESPONSES else "messages"
    return json.dumps({"model": "short", "max_tokens": 10, name: messages, **fields}).encode()


def user_messages(count: int, text: str) -> list[Any]:
    return [{"role": role, "content": text} for _ in range(count // 2) for role in ("user", "assistant")]


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.one_row_in(2)
@pytest.mark.parametrize("wire", [CHAT, slow(MESSAGES), slow(RESPONSES)])
@pytest.mark.parametrize(
    ("count", "text"), [(20_000, "Hello"), (100, "Hello, world. " * 8_000)], ids=["many messages", "long messages"]
)
def test_large_request(gateway: GatewayProcess, wire: str, count: int, text: str) -> None:
    data = build_request(f"/v1/{wire}", request_with(wire, user_messages(count, text)))
    check_wait(gateway, lambda: send_bytes(gateway, data))


@pytest.mark.parametrize("wire", [MESSAGES, slow(RESPONSES)])
def test_large_token_count(gateway: GatewayProcess, wire: str) -> None:
    path = "/v1/messages/count_tokens" if wire == MESSAGES else "/v1/responses/input_tokens"
    data = build_request(path, request_with(wire, user_messages(100, "Hello, world. " * 8_000)))
    check_wait(gateway, lambda: send_bytes(gateway, data))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [b"[],", b"0,", b'{"":0},', b'"",'])
def test_request_with_too_many_values(gateway: GatewayProcess, unit: bytes) -> None:
    body = b'{"model": "short", "messages": [' + unit * (16 * MIB // len(unit)) + b"0]}"
    data = build_request("/v1/chat/completions", body)
    got = send_bytes(gateway, data)
    assert got.status == 413
    assert "250,000 JSON values" in got.json["error"]["message"]
    check_wait(gateway, lambda: send_bytes(gateway, data))


@pytest.mark.slow
def test_large_request_that_is_not_json(gateway: GatewayProcess) -> None:
    body = b'{"model": "short", "messages": [' + b"[]," * 80_000 + b'"' + b"x" * 16 * MIB
    data = build_request("/v1/chat/completions", body)
    assert send_bytes(gateway, data).status == 400
    check_wait(gateway, lambda: send_bytes(gateway, data))


@pytest.mark.parametrize("wire", [CHAT, slow(MESSAGES), slow(RESPONSES)])
def test_large_reply(upstream: UpstreamServer, gateway: GatewayProcess, wire: str) -> None:
    text = "Hello, world. <tool_call> " * (4 * MIB // 26)
    body = json.dumps({"id": "x", "choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
    model = upstream.add(f"large-{wire}", up.send_response("200 OK", body))
    check_wait(gateway, lambda: request_reply(gateway, wire, model, stream=False))


@pytest.mark.slow
def test_reply_with_too_many_values(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    body = b'{"id": "x", "choices": [' + b"[]," * (8 * MIB // 3) + b"0]}"
    model = upstream.add("values", up.send_response("200 OK", body))
    got = request_reply(gateway, CHAT, model, stream=False)
    assert got.status == 502
    assert "250,000 JSON values" in got.json["error"]["message"]
    check_wait(gateway, lambda: request_reply(gateway, CHAT, model, stream=False))


FLOODS = {
    "one large event": [up.delta("Hello, world. <tool_call> " * (4 * MIB // 26))],
    "tiny deltas": [up.delta("a") * 30_000],
    "comments": [b":\n\n" * 300_000],
    "empty lines": [b"\n" * 1_000_000],
    "events without a choice": [b'data: {"choices": []}\n\n' * 100_000],
    "tool calls": [up.call_delta(index, f"c{index}", name="read", arguments="{}") for index in range(3_000)],
}


@pytest.mark.one_row_in(2)
@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("wire", [slow(CHAT), MESSAGES])
def test_flood_of_stream_data(upstream: UpstreamServer, gateway: GatewayProcess, wire: str, flood: str) -> None:
    pieces = FLOODS[flood]
    model = upstream.add(
        f"{flood}-{wire}", up.send_headers(), up.send(up.ROLE), *map(up.send, pieces), up.send(up.DONE)
    )
    check_wait(gateway, lambda: request_reply(gateway, wire, model))


@pytest.mark.slow
def test_flood_of_interim_responses(upstream: UpstreamServer, gateway: GatewayProcess) -> None:
    model = upstream.add("interim", up.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100_000), up.chat_stream("late"))
    got = request_reply(gateway, CHAT, model)
    assert got.status == 502
    assert "interim responses" in got.json["error"]["message"]
    check_wait(gateway, lambda: request_reply(gateway, CHAT, model))


BYSTANDERS = [slow(Bystander), ChatBystander]


@pytest.mark.slow
@pytest.mark.parametrize("bystander_type", [Bystander, ChatBystander])
def test_many_medium_requests(gateway: GatewayProcess, bystander_type: type[Bystander]) -> None:
    body = gzip.compress(request_with(CHAT, user_messages(20_000, "hi"), stream=True))
    data = build_request("/v1/chat/completions", body, {"content-encoding": "gzip"})
    assert send_bytes(gateway, data).status == 200
    check_wait(gateway, lambda: at_once(16, lambda: send_bytes(gateway, data)), bystander_type)


HOSTILE_TEXTS = {
    "detect": ("**Tool Call:**\n\n```json**Tool Call:**\n```json", '\n```json\n{"name": '),
    "llama3_json": ("```", 's"}}; {"name": "get_we'),
}
"""By dialect: text that takes its parser up to ten microseconds per character, as a start and a part to repeat."""
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]


def hostile_text(dialect: str, size: int) -> str:
    start, part = HOSTILE_TEXTS[dialect]
    return start + part * (size // len(part))


@pytest.fixture(scope="module", params=["detect", slow("llama3_json")])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def dialect_gateway(upstream: UpstreamServer, dialect: str) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url) + f"    dialect: {dialect}\n") as started:
        request_reply(started, CHAT, "short")  # compiles the dialect
        yield started


def chat_with_tools(gateway: GatewayProcess, model: str, stream: bool) -> None:
    body = {"model": model, "stream": stream, "tools": TOOLS, "messages": [{"role": "user", "content": "hi"}]}
    data = build_request("/v1/chat/completions", json.dumps(body).encode())
    assert send_bytes(gateway, data, seconds=120).status == 200  # a whole reply of hostile text takes seconds


@pytest.mark.parametrize("bystander_type", BYSTANDERS)
@pytest.mark.parametrize("event_chars", [30_000, slow(8_000)])
def test_hostile_text_in_small_events(
    upstream: UpstreamServer,
    dialect_gateway: GatewayProcess,
    dialect: str,
    event_chars: int,
    bystander_type: type[Bystander],
) -> None:
    text = hostile_text(dialect, 30_000)
    events = [up.delta(text[start : start + event_chars]) for start in range(0, len(text), event_chars)]
    steps = up.send_headers(), up.send(up.ROLE), *map(up.send, events), up.send(up.DONE)
    model = upstream.add(f"hostile-{dialect}-{event_chars}", *steps)
    attack = lambda: at_once(10, lambda: chat_with_tools(dialect_gateway, model, stream=True))  # noqa: E731
    check_wait(dialect_gateway, attack, bystander_type)


@pytest.mark.slow
@pytest.mark.parametrize("bystander_type", BYSTANDERS)
def test_hostile_text_in_a_whole_reply(
    upstream: UpstreamServer, dialect_gateway: GatewayProcess, dialect: str, bystander_type: type[Bystander]
) -> None:
    message = {"role": "assistant", "content": hostile_text(dialect, 400_000)}
    body = json.dumps({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    model = upstream.add(f"hostile-{dialect}-whole", up.send_response("200 OK", body))
    attack = lambda: chat_with_tools(dialect_gateway, model, stream=False)  # noqa: E731
    check_wait(dialect_gateway, attack, bystander_type)


@pytest.mark.parametrize("bystander_type", BYSTANDERS)
def test_end_of_a_long_stream_that_repeats_its_text(
    upstream: UpstreamServer, gateway: GatewayProcess, bystander_type: type[Bystander]
) -> None:
    event = up.delta("\n" * 16_000)
    model = upstream.add("repeated", up.send_headers(), up.send(up.ROLE), up.send(event * 600), up.send(up.DONE))
    check_wait(gateway, lambda: request_reply(gateway, RESPONSES, model), bystander_type)


@pytest.mark.slow
@pytest.mark.parametrize("observer", [("--capture", "captures"), ("--log-level", "debug")])
def test_large_data_that_is_captured_or_logged(upstream: UpstreamServer, observer: tuple[str, str]) -> None:
    body = json.dumps({"id": "x", "choices": [{"message": {"content": "x" * (60 * MIB)}}]}).encode()
    reply = up.send_response("200 OK", gzip.compress(body, 1), "application/json", "content-encoding: gzip")
    model = upstream.add("compressed", reply)
    data = build_request("/v1/chat/completions", request_with(CHAT, [{"role": "user", "content": "bearer x " * MIB}]))
    with run_gateway(*observer, config=CONFIG.format(url=upstream.url)) as gateway:
        check_wait(gateway, lambda: request_reply(gateway, CHAT, model, stream=False))
        check_wait(gateway, lambda: send_bytes(gateway, data))
