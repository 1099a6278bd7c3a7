"""Two gateways behind nginx with the configuration from deploy/: one of them dies or stops under load."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlingua.client.sdk.upstream_config import wire_for_path
from tests.support import upstream_server as up
from tests.support.chat_scenarios import kimi_call
from tests.support.gateway_process import START_TIMEOUT_SECONDS, GatewayProcess, run_gateway
from tests.support.paths import ROOT
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WIRES,
    RawResponse,
    build_request,
    minimal_body,
    open_request,
    parse_complete,
    reply_text,
    request_reply,
    send_bytes,
    tools_field,
)
from tests.support.upstream_server import UpstreamServer
from tests.translation.test_ids_over_turns import turn

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
CONF = ROOT / "deploy" / "nginx.conf"
MAIN = """
daemon off;
{user}worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  include {folder}/interlingua.conf;
}}
"""
STREAMS = 48
CLIENTS = 3
WORDS = [f"word{number} " for number in range(60)]
TEXT = "".join(WORDS)
CONFIG = """
upstreams:
  test: {{url: "{url}", retries: {{attempts: 1}}}}
  claude: {{url: "{url}", api: anthropic-messages, retries: {{attempts: 1}}}}
default: test
models: {{claude-talk: {{upstream: claude}}}}
seal_key: {key}
"""
SEAL_KEY = "the same for both"

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (apt-get install nginx-light)")


class Replicas(NamedTuple):
    both: list[GatewayProcess]
    front: GatewayProcess
    """nginx, which receives requests like a gateway."""

    def replica_of(self, got: RawResponse) -> GatewayProcess:
        """Return the replica that sent this response."""
        last = str(got.header("x-replica")).split(", ")[-1]
        return next(replica for replica in self.both if replica.base.endswith(last))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nginx(replicas: list[GatewayProcess]) -> Iterator[GatewayProcess]:
    """Run nginx with the configuration from deploy/ on free ports. Each response names its replica in a header."""
    port = free_port()
    conf = CONF.read_text()
    for before, after in [
        ("127.0.0.1:8484", replicas[0].base.removeprefix("http://")),
        ("127.0.0.1:8485", replicas[1].base.removeprefix("http://")),
        ("127.0.0.1:8080", f"127.0.0.1:{port}"),
        ("proxy_buffering off;", "proxy_buffering off; add_header x-replica $upstream_addr always;"),
    ]:
        assert conf.count(before) == 1, before
        conf = conf.replace(before, after)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        user = "user root;\n" if os.getuid() == 0 else ""
        (folder / "nginx.conf").write_text(MAIN.format(folder=name, user=user))
        (folder / "interlingua.conf").write_text(conf)
        assert NGINX is not None
        errors = folder / "error.log"
        process = subprocess.Popen([NGINX, "-p", name, "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + START_TIMEOUT_SECONDS
            while not listens(port):
                assert process.poll() is None, errors.read_text()
                assert time.monotonic() < until
                time.sleep(0.02)
            yield GatewayProcess(f"http://127.0.0.1:{port}", process, errors, folder)
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def run_replicas(upstream: UpstreamServer, *seal_keys: str) -> Iterator[Replicas]:
    with ExitStack() as stack:
        keys = seal_keys or (SEAL_KEY,) * 2
        configs = [CONFIG.format(url=upstream.url, key=key) for key in keys]
        both = [stack.enter_context(run_gateway(config=config)) for config in configs]
        yield Replicas(both, stack.enter_context(nginx(both)))


class Stream:
    """Streamed reply that a thread reads to its end."""

    def __init__(self, replicas: Replicas, wire: str, model: str) -> None:
        self.wire = wire
        self._socket = open_request(replicas.front, wire, model)
        self._data = bytearray()
        self.begun = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert self.begun.wait(20)
        head = RawResponse(*(parse_head(bytes(self._data))), b"")
        self.replica = replicas.replica_of(head)

    def _read(self) -> None:
        with self._socket:
            while True:
                try:
                    piece = self._socket.recv(1 << 16)
                except ConnectionError:
                    break
                self._data += piece
                if b"word1 " in self._data:
                    self.begun.set()
                if not piece:
                    break

    def got(self) -> RawResponse:
        """Return the response. Raises AssertionError if the body ends before its last chunk."""
        self._thread.join(30)
        return parse_complete(bytes(self._data))

    @property
    def is_whole(self) -> bool:
        return reply_text(got := self.got(), self.wire) == TEXT and has_ended(got, self.wire)

    @property
    def is_cut(self) -> bool:
        """True if the last chunk of the body is missing, which clients can detect."""
        self._thread.join(30)
        return not self._data.endswith(b"0\r\n\r\n") and TEXT.encode() not in self._data


def parse_head(data: bytes) -> tuple[int, list[tuple[str, str]]]:
    head = data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in head[1:])
    return int(head[0].split()[1]), [(name.lower(), value.strip()) for name, _, value in fields]


def has_ended(got: RawResponse, wire: str) -> bool:
    last = got.events[-1]
    if wire == CHAT:
        return bool(last == "[DONE]")
    return bool(last["type"] == ("message_stop" if wire == MESSAGES else "response.completed"))


def long_stream(upstream: UpstreamServer, model: str) -> tuple[str, threading.Event]:
    """Add a stream: the first words are sent at once, the others one by one after the event is set."""
    go = threading.Event()
    first, others = up.ROLE + b"".join(map(up.delta, WORDS[:5])), [*map(up.delta, WORDS[5:])]
    end = up.delta(finish="stop") + up.DONE
    upstream.add(
        model, up.send_headers(), up.send(first), up.wait_for_event(go), up.send_pieces(others, 0.03), up.send(end)
    )
    return model, go


class ShortRequestClients:
    """Clients that send one short request after the other."""

    def __init__(self, front: GatewayProcess, model: str, count: int = CLIENTS) -> None:
        self.answers: list[tuple[float, bool]] = []
        """Start time of each request, and whether the reply was correct."""
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(front, model, n), daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _ask(self, front: GatewayProcess, model: str, number: int) -> None:
        while not self._over.is_set():
            wire, began = WIRES[number % len(WIRES)], time.monotonic()
            try:
                self.answers.append((began, reply_text(request_reply(front, wire, model), wire) == "short"))
            except (OSError, AssertionError, ValueError, KeyError, IndexError):
                self.answers.append((began, False))

    def wait_for(self, more: int) -> None:
        until, goal = time.monotonic() + 30, len(self.answers) + more
        while len(self.answers) < goal:
            assert time.monotonic() < until
            time.sleep(0.01)

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)


@needs_nginx
@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGTERM])
def test_replica_stops_or_dies_under_load(upstream: UpstreamServer, number: signal.Signals) -> None:
    model, go = long_stream(upstream, f"replica-{number.name}")
    short = upstream.add(f"short-{number.name}", up.chat_stream("short"))
    with run_replicas(upstream) as replicas:
        streams = [Stream(replicas, WIRES[n % 3], model) for n in range(STREAMS)]
        first, second = replicas.both
        on_first = [stream for stream in streams if stream.replica is first]
        on_second = [stream for stream in streams if stream.replica is second]
        assert min(len(on_first), len(on_second)) >= STREAMS // 3
        clients = ShortRequestClients(replicas.front, short)
        clients.wait_for(12)
        go.set()
        time.sleep(0.3)  # all streams are in the middle of their replies
        first.send_signal(number)
        signalled = time.monotonic()
        clients.wait_for(30)
        for stream in on_second:
            assert stream.is_whole, stream.got().body[-300:]
        if number == signal.SIGTERM:
            assert [stream for stream in on_first if not stream.is_whole] == []
            assert first.process.wait(20) == 0
        else:
            assert [stream for stream in on_first if not stream.is_cut] == []
            with pytest.raises(AssertionError, match="is truncated"):
                on_first[0].got()
        clients.wait_for(12)
        clients.stop()
        failed = [began for began, right in clients.answers if not right]
        if number == signal.SIGTERM:
            assert failed == []
        else:  # replies that had started may be truncated; requests sent later must succeed
            assert [began for began in failed if began > signalled] == []
            assert len(failed) <= CLIENTS
        assert second.stop() == 0


@needs_nginx
def test_upstream_503_reaches_client_and_removes_no_replica(upstream: UpstreamServer) -> None:
    busy = upstream.add("busy", up.send_response("503 Service Unavailable", b'{"error": {"message": "busy today"}}'))
    fine = upstream.add("fine", up.chat_stream("Hello"))
    with run_replicas(upstream) as replicas:
        for _ in range(6):
            got = request_reply(replicas.front, CHAT, busy)
            assert (got.status, "busy today" in got.json["error"]["message"]) == (503, True)
        served = set()
        for _ in range(8):
            got = request_reply(replicas.front, CHAT, fine)
            assert reply_text(got, CHAT) == "Hello"
            served.add(replicas.replica_of(got).base)
        assert len(served) == 2


# ── a conversation that continues on another replica ──────────────────────────────────────────────────────────────────

THOUGHT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-talk",
    "content": [
        {"type": "thinking", "thinking": "Let me look.", "signature": "SIG"},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"city": "Oslo"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def next_request(wire: str, model: str, reply: Any) -> dict[str, Any]:
    """Return the next request of a client that received this reply."""
    _, new_messages = turn(wire_for_path(f"/{wire}") or "", reply)
    body = {**minimal_body(wire, model, stream=False), **tools_field(wire, "ls")}
    field = "input" if wire == RESPONSES else "messages"
    question = [{"role": "user", "content": "hi"}]
    return {**body, field: [*question, *new_messages]}


@pytest.fixture(scope="module")
def replica(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, key=SEAL_KEY)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def other_replica(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    """A replica with the same seal key."""
    with run_gateway(config=CONFIG.format(url=upstream.url, key=SEAL_KEY)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def replica_with_another_key(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    with run_gateway(config=CONFIG.format(url=upstream.url, key=f"another {SEAL_KEY}")) as gateway:
        yield gateway


ALICE, MALLORY = "sk-alice-0123456789", "sk-mallory-0123456789"


@pytest.fixture(scope="module")
def replica_with_client_keys(upstream: UpstreamServer) -> Iterator[GatewayProcess]:
    config = CONFIG.format(url=upstream.url, key=SEAL_KEY) + f"keys: [{ALICE}, {MALLORY}]\nlog: {{format: json}}\n"
    with run_gateway(config=config) as gateway:
        yield gateway


@pytest.mark.parametrize("wire", [MESSAGES, RESPONSES])
@pytest.mark.parametrize("same_key", [True, False])
def test_signed_reasoning_is_accepted_by_other_replica_with_same_key(
    upstream: UpstreamServer,
    replica: GatewayProcess,
    other_replica: GatewayProcess,
    replica_with_another_key: GatewayProcess,
    wire: str,
    same_key: bool,
) -> None:
    """The signature is sent back to its upstream only if both replicas have the same seal key."""
    body = json.dumps(THOUGHT).encode()
    upstream.add("claude-talk", up.send_response("200 OK", body))
    second = other_replica if same_key else replica_with_another_key
    more = {"include": ["reasoning.encrypted_content"]} if wire == RESPONSES else {}
    reply = request_reply(replica, wire, "claude-talk", stream=False, **tools_field(wire, "ls"), **more).json
    before = upstream.count("claude-talk")
    again = next_request(wire, "claude-talk", reply)
    got = request_reply(second, wire, again.pop("model"), **again)
    assert got.status == 200, got.body
    sent = upstream.wait_for_requests("claude-talk", before + 1)[-1].body["messages"]
    past = next(message for message in sent if message["role"] == "assistant")["content"]
    assert ("SIG" in [block.get("signature") for block in past if block["type"] == "thinking"]) is same_key
    assert [block["id"] for block in past if block["type"] == "tool_use"] == ["toolu_1"]
    results = [block for message in sent[2:] for block in message["content"] if block["type"] == "tool_result"]
    assert [block["tool_use_id"] for block in results] == ["toolu_1"]


@pytest.mark.parametrize("wire", [MESSAGES, RESPONSES])
@pytest.mark.parametrize("same_client", [True, False])
def test_reasoning_is_sent_back_only_for_the_client_that_received_it(
    upstream: UpstreamServer, replica_with_client_keys: GatewayProcess, wire: str, same_client: bool
) -> None:
    """Another client can neither read the envelope nor send it: it has another key."""
    gateway = replica_with_client_keys
    model = upstream.add("claude-talk", up.send_response("200 OK", json.dumps(THOUGHT).encode()))
    more = {"include": ["reasoning.encrypted_content"]} if wire == RESPONSES else {}
    body = {**minimal_body(wire, model, stream=False), **tools_field(wire, "ls"), **more}
    reply = post_as(gateway, ALICE, wire, body).json
    before = upstream.count(model)
    got = post_as(gateway, ALICE if same_client else MALLORY, wire, next_request(wire, model, reply))
    assert got.status == 200, got.body
    sent = upstream.wait_for_requests(model, before + 1)[-1].body["messages"]
    gateway.wait_for_log(f'{got.header("x-interlingua-id")}.*"seal-unreadable": 1' if not same_client else "")
    assert ("SIG" in json.dumps(sent)) is same_client


def post_as(gateway: GatewayProcess, key: str, wire: str, body: dict[str, Any]) -> RawResponse:
    headers = {"authorization": f"Bearer {key}"}
    return send_bytes(gateway, build_request(f"/v1/{wire}", json.dumps(body).encode(), headers))


@pytest.mark.parametrize("wire", WIRES)
def test_call_ids_are_restored_by_other_replica(
    upstream: UpstreamServer, replica: GatewayProcess, other_replica: GatewayProcess, wire: str
) -> None:
    model = "moonshotai/kimi-k2"
    text = kimi_call("functions.ls:0", '{"city": "Oslo"}') + kimi_call("functions.ls:1", '{"city": "Rome"}')
    body = {"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
    upstream.add(model, up.send_response("200 OK", json.dumps(body).encode()))
    reply = request_reply(replica, wire, model, stream=False, **tools_field(wire, "ls")).json
    before = upstream.count(model)
    again = next_request(wire, model, reply)
    assert request_reply(other_replica, wire, again.pop("model"), **again).status == 200
    sent = upstream.wait_for_requests(model, before + 1)[-1].body["messages"]
    calls = next(message for message in sent if message["role"] == "assistant")["tool_calls"]
    assert [call["id"] for call in calls] == ["functions.ls:0", "functions.ls:1"]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ["functions.ls:0", "functions.ls:1"]
