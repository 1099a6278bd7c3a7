"""Shutdown, reload, worker crashes, full disks and blocked stderr (rows 34 and 42 of the fault table)."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support import upstream_server as up
from tests.support.gateway_process import LISTENING_PATTERN, GatewayProcess, run_gateway
from tests.support.raw_client import (
    CHAT,
    MESSAGES,
    WIRES,
    RawResponse,
    build_request,
    connect,
    get,
    open_request,
    parse_complete,
    parse_response,
    read_to_end,
    reply_text,
    request_reply,
)
from tests.support.upstream_server import UpstreamServer

CONFIG = """
upstreams:
  test:
    url: {url}
    timeouts: {{connect: 5, first_event: 20, idle: 20}}
    retries: {{attempts: 1}}
drain: 1.5
"""
SHORT = CONFIG.replace("drain: 1.5", "drain: 0.5")
END = up.delta(" world") + up.delta(finish="stop") + up.DONE


def begun(gateway: GatewayProcess, wire: str, model: str) -> tuple[socket.socket, bytes]:
    """Open a stream and read until its first content has arrived."""
    sock, data = open_request(gateway, wire, model), b""
    while b"Hello" not in data:
        piece = sock.recv(1 << 16)
        assert piece, data
        data += piece
    return sock, data


def rest(stream: tuple[socket.socket, bytes]) -> RawResponse:
    sock, data = stream
    with sock:
        while piece := sock.recv(1 << 16):
            data += piece
    return parse_complete(data)


def ends_with_error(got: RawResponse, wire: str) -> bool:
    """Return whether the stream ends with the error event of this wire."""
    last = got.events[-1]
    if wire == CHAT:
        return "error" in last and got.events.count("[DONE]") == 0
    return bool(last["type"] == ("error" if wire == MESSAGES else "response.failed"))


def test_34_on_sigterm_streams_finish_or_end_with_an_error(upstream: UpstreamServer) -> None:
    go = threading.Event()
    ends = upstream.add(
        "34-ends", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(END)
    )
    hangs = upstream.add("34-hangs", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    silent = upstream.add("34-silent", up.send_headers(), up.wait(20))
    with run_gateway(config=CONFIG.format(url=upstream.url)) as gateway:
        ending = [(wire, begun(gateway, wire, ends)) for wire in WIRES for _ in range(5)]
        hanging = [(wire, begun(gateway, wire, hangs)) for wire in WIRES for _ in range(5)]
        waiting = [open_request(gateway, wire, silent, stream) for wire in WIRES for stream in (True, False)]
        upstream.wait_for_requests(silent, len(waiting))
        gateway.send_signal(signal.SIGTERM)
        gateway.wait_for_log("stopping")
        with pytest.raises(ConnectionError):
            request_reply(gateway, CHAT, ends)
        go.set()
        for wire, stream in ending:
            assert reply_text(got := rest(stream), wire) == "Hello world", got.body
        for wire, stream in hanging:
            assert ends_with_error(got := rest(stream), wire), got.body
        for got in map(read_to_end, waiting):
            assert got.status == 503
            assert "stopping" in got.json["error"]["message"]
        assert gateway.process.wait(10) == 0
        log = gateway.wait_for_log("stopped")
        assert len(re.findall("200 stopped", log)) == len(hanging)
        assert len(re.findall("503 stopped", log)) == len(waiting)
    assert all(received.client_left_at for received in upstream.wait_for_requests(hangs))


def test_34_stopping_gateway_refuses_requests_on_open_connections(upstream: UpstreamServer) -> None:
    model = upstream.add("34-old", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with run_gateway(config=SHORT.format(url=upstream.url)) as gateway:
        kept = connect(gateway)
        kept.sendall(build_request("/healthz", headers={"connection": "keep-alive"}, method="GET"))
        assert parse_response(kept.recv(1 << 16)).status == 200
        stream = begun(gateway, MESSAGES, model)
        gateway.send_signal(signal.SIGTERM)
        gateway.wait_for_log("stopping")
        kept.sendall(build_request("/v1/messages", b"{}"))
        try:
            got = read_to_end(kept)
        except ConnectionError:
            pass
        else:
            assert got.status == 503
            assert got.json["error"]["type"] == "overloaded_error" or got.json["error"]["type"] == "api_error"
        assert ends_with_error(rest(stream), MESSAGES)
        assert gateway.process.wait(10) == 0


@pytest.mark.parametrize("options", [("--inspect",), ("--workers", "2")])
def test_startup_message_means_that_clients_can_connect(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "interlingua", "serve", "--demo", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = LISTENING_PATTERN.search(process.stderr.readline())
            assert found is not None
            connection = HTTPConnection(found[1].removeprefix("http://"), timeout=60)
            connection.request("GET", "/readyz")
            assert connection.getresponse().status == 200
            connection.close()
        finally:
            process.terminate()


def test_34_idle_gateway_stops_at_once(upstream: UpstreamServer) -> None:
    with run_gateway(config=SHORT.format(url=upstream.url)) as gateway:
        began = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - began < 1.5


def test_34_reloaded_settings_apply_to_new_requests_only(upstream: UpstreamServer) -> None:
    go = threading.Event()
    old = upstream.add(
        "34-old-model", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(END)
    )
    upstream.add("34-new-model", up.chat_stream("new"))
    config = CONFIG.format(url=upstream.url)
    aliases = [f"models: {{alias: {{upstream: test, model: {model}}}}}\n" for model in (old, "34-new-model")]
    with run_gateway(config=config + aliases[0]) as gateway:
        streams = [(wire, begun(gateway, wire, "alias")) for wire in WIRES]
        file = gateway.folder / "interlingua.yaml"
        file.write_text(config + aliases[1])
        gateway.send_signal(signal.SIGHUP)
        gateway.wait_for_log("reloaded")
        assert reply_text(request_reply(gateway, CHAT, "alias"), CHAT) == "new"
        for bad in ("upstreams: [", config + "no_such_setting: 1\n", config + "models: {x: {upstream: nobody}}\n"):
            before = len(re.findall("old ones stay", gateway.log.read_text()))
            file.write_text(bad)
            gateway.send_signal(signal.SIGHUP)
            gateway.wait_for_log(f"(?s)(old ones stay.*){{{before + 1}}}")
            assert reply_text(request_reply(gateway, CHAT, "alias"), CHAT) == "new"
        assert "no_such_setting" in gateway.log.read_text()
        go.set()
        assert [reply_text(rest(stream), wire) for wire, stream in streams] == ["Hello world"] * 3


def workers_of(gateway: GatewayProcess) -> list[int]:
    pid = gateway.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def eventually(check: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_34_worker_dies_and_other_workers_keep_serving(upstream: UpstreamServer) -> None:
    go = threading.Event()
    held = upstream.add(
        "34-held", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(END)
    )
    upstream.add("34-short", up.chat_stream("fine"))
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url)) as gateway:
        eventually(lambda: len(workers_of(gateway)) == 2)
        streams = [(WIRES[n % 3], begun(gateway, WIRES[n % 3], held)) for n in range(24)]
        victim, other = workers_of(gateway)
        os.kill(victim, signal.SIGKILL)
        gateway.wait_for_log("died; restarting")
        go.set()
        whole, broken = 0, 0
        for wire, stream in streams:
            try:
                got = rest(stream)
            except (AssertionError, ConnectionError):  # the stream is truncated
                broken += 1
            else:
                assert reply_text(got, wire) == "Hello world"
                whole += 1
        assert whole
        assert broken
        eventually(lambda: len(workers_of(gateway)) == 2)
        assert other in workers_of(gateway)
        for _ in range(24):  # enough requests to reach both workers
            assert reply_text(request_reply(gateway, CHAT, "34-short"), CHAT) == "fine"
        gateway.send_signal(signal.SIGHUP)
        gateway.wait_for_log("(?s)reloaded.*reloaded")
        assert len([got for _ in range(4) if (got := get(gateway, "/metrics")).status == 200]) == 4
        assert gateway.stop() == 0


def test_34_stopping_workers_accept_no_connections(upstream: UpstreamServer) -> None:
    held = upstream.add("34-crew", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with run_gateway("--workers", "2", config=SHORT.format(url=upstream.url)) as gateway:
        streams = [(WIRES[n % 3], begun(gateway, WIRES[n % 3], held)) for n in range(12)]
        gateway.send_signal(signal.SIGTERM)
        gateway.wait_for_log("(?s)stopping.*stopping")
        time.sleep(0.2)
        with pytest.raises(ConnectionRefusedError):
            connect(gateway)
        for wire, stream in streams:
            assert ends_with_error(rest(stream), wire)
        assert gateway.process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_34_no_capture_is_written_partially(upstream: UpstreamServer, number: signal.Signals) -> None:
    held = upstream.add(f"34-kept-{number}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    done = upstream.add(f"34-kept-done-{number}", up.chat_stream("Hello"))
    with run_gateway("--capture", "kept", config=SHORT.format(url=upstream.url)) as gateway:
        streams = [begun(gateway, wire, held) for wire in WIRES]
        folder = gateway.folder / "kept"
        request_reply(gateway, CHAT, done)
        eventually(lambda: len(list(folder.glob("*.jsonl"))) == 1)
        gateway.send_signal(number)
        gateway.process.wait(10)
        for sock, _ in streams:
            sock.close()
        kept = [file.read_text().splitlines() for file in folder.glob("*.jsonl")]
        assert len(kept) == (4 if number == signal.SIGTERM else 1)
        assert all(json.loads(lines[-1])["kind"] == "end" for lines in kept)


def test_42_streams_continue_if_captures_cannot_be_written(upstream: UpstreamServer) -> None:
    model = upstream.add("42-captures", up.chat_stream("Hello"))
    with run_gateway("--capture", "kept", config=CONFIG.format(url=upstream.url)) as gateway:
        folder = gateway.folder / "kept"
        assert reply_text(request_reply(gateway, MESSAGES, model), MESSAGES) == "Hello"
        eventually(lambda: len(list(folder.glob("*.jsonl"))) == 1)
        shutil.rmtree(folder)
        folder.write_text("no directory")
        for wire in WIRES:
            assert reply_text(request_reply(gateway, wire, model), wire) == "Hello"
        eventually(lambda: b"captures_lost_total 3" in lost_metrics(gateway))
        folder.unlink()
        folder.mkdir()
        assert reply_text(request_reply(gateway, MESSAGES, model), MESSAGES) == "Hello"
        eventually(lambda: len(list(folder.glob("*.jsonl"))) == 1)
        assert gateway.stop() == 0


def lost_metrics(gateway: GatewayProcess) -> bytes:
    return b"\n".join(line for line in get(gateway, "/metrics").body.splitlines() if b"lost" in line)


def test_42_full_disk_loses_log_lines_and_captures_but_no_stream(upstream: UpstreamServer) -> None:
    model = upstream.add("42-full", up.chat_stream("Hello " * 3000))
    with run_gateway("--capture", "kept", config=CONFIG.format(url=upstream.url)) as gateway:
        pid = gateway.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, before[1]))
        for _ in range(20):
            for wire in WIRES:
                assert len(reply_text(request_reply(gateway, wire, model), wire)) == 18_000
        eventually(lambda: b"captures_lost_total 60" in lost_metrics(gateway))
        assert not list((gateway.folder / "kept").glob(".*.part"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        request_reply(gateway, CHAT, model)
        gateway.wait_for_log("log lines were dropped")
        eventually(lambda: len(list((gateway.folder / "kept").glob("*.jsonl"))) == 1)


@contextmanager
def gateway_with_full_stderr(upstream: UpstreamServer, folder: Path, *args: str) -> Iterator[GatewayProcess]:
    """Run a gateway whose stderr is a small pipe that is never read."""
    (folder / "interlingua.yaml").write_text(CONFIG.format(url=upstream.url))
    process = subprocess.Popen(
        [sys.executable, "-m", "interlingua", "serve", "--port", "0", *args],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        found = LISTENING_PATTERN.search(process.stderr.readline().decode())
        assert found is not None
        gateway = GatewayProcess(found[1], process, folder / "none", folder)
        eventually(lambda: is_ready(gateway))
        yield gateway
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def is_ready(gateway: GatewayProcess) -> bool:
    try:
        return get(gateway, "/readyz").status == 200
    except ConnectionError:
        return False


@pytest.mark.slow
def test_42_streams_continue_if_stderr_is_a_full_pipe(upstream: UpstreamServer, tmp_path: Path) -> None:
    model = upstream.add("42-blocked", up.chat_stream("Hello"))
    with gateway_with_full_stderr(upstream, tmp_path) as gateway:
        for n in range(60):
            wire = WIRES[n % 3]
            assert reply_text(request_reply(gateway, wire, model), wire) == "Hello"
        assert gateway.stop() == 0


@pytest.mark.slow
def test_42_worker_is_replaced_if_stderr_is_a_full_pipe(upstream: UpstreamServer, tmp_path: Path) -> None:
    model = upstream.add("42-crew", up.chat_stream("Hello"))
    with gateway_with_full_stderr(upstream, tmp_path, "--workers", "2") as gateway:
        for _ in range(60):
            assert request_reply(gateway, CHAT, model).status == 200
        for victim in workers_of(gateway):
            os.kill(victim, signal.SIGKILL)
            eventually(lambda victim=victim: len(set(workers_of(gateway)) - {victim}) == 2)  # type: ignore[misc]
        for _ in range(12):
            assert reply_text(request_reply(gateway, CHAT, model), CHAT) == "Hello"
