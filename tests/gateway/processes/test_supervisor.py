"""Several workers and their parent: what each of them is told, and what becomes of the others when one is gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gateway.processes.test_server import CONFIG, END, begun, eventually, has_a_proper_end, rest, workers_of
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, WIRES, connect, get, reply_text, request_reply
from tests.support.upstream_server import UpstreamServer

OLD, NEW = "old-key-that-leaked", "new-key-that-did-not"


def with_key(gateway: GatewayProcess, key: str, path: str = "/v1/models") -> int:
    return get(gateway, path, authorization=f"Bearer {key}").status


def replaced(gateway: GatewayProcess, victim: int) -> None:
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in workers_of(gateway) and len(workers_of(gateway)) == 2)


def test_a_worker_that_takes_anothers_place_has_the_newest_settings(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url)
    with run_gateway("--workers", "2", config=f"{config}keys: [{OLD}]\n") as gateway:
        file = gateway.folder / "interlingua.yaml"
        file.write_text(f"{config}keys: [{NEW}]\n")
        gateway.send_signal(signal.SIGHUP)
        gateway.wait_for_log("(?s)reloaded.*reloaded")
        for bad in ("upstreams: [", f"{config}keys: [{OLD}]\nmodels: {{x: {{upstream: nobody}}}}\n"):
            file.write_text(bad)
            before = gateway.log.read_text().count("old ones stay")
            gateway.send_signal(signal.SIGHUP)
            gateway.wait_for_log(f"(?s)(old ones stay.*){{{before + 1}}}")
        assert gateway.log.read_text().count("old ones stay") == 2  # by the parent, once for all
        for victim in workers_of(gateway):
            replaced(gateway, victim)
        for _ in range(8):
            assert (with_key(gateway, OLD), with_key(gateway, NEW)) == (401, 200)
        assert gateway.stop() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reload_takes_no_keys_off_a_port_that_others_reach(upstream: UpstreamServer, workers: str) -> None:
    config = CONFIG.format(url=upstream.url)
    with run_gateway("--workers", workers, config=f"{config}host: 0.0.0.0\nkeys: [{OLD}]\n") as gateway:
        file = gateway.folder / "interlingua.yaml"
        file.write_text(f"{config}host: 127.0.0.1\n")
        gateway.send_signal(signal.SIGHUP)
        gateway.wait_for_log("old ones stay.*a key is required")
        assert (with_key(gateway, ""), with_key(gateway, OLD)) == (401, 200)
        file.write_text(f"{config}host: 127.0.0.1\nkeys: [{NEW}]\n")
        gateway.send_signal(signal.SIGHUP)
        gateway.wait_for_log("reloaded only_after_a_restart=host")
        eventually(lambda: (with_key(gateway, OLD), with_key(gateway, NEW)) == (401, 200))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_goes_to_all_and_streams_end_properly(upstream: UpstreamServer, workers: str) -> None:
    held = upstream.add(f"ctrl-c-{workers}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with run_gateway("--workers", workers, config=CONFIG.format(url=upstream.url)) as gateway:
        streams = [(wire, begun(gateway, wire, held)) for wire in WIRES for _ in range(3)]
        told = [gateway.process.pid, *workers_of(gateway)]
        for process in told:
            os.kill(process, signal.SIGINT)
        time.sleep(0.2)
        gateway.send_signal(signal.SIGINT)  # a second one that comes at once is the same
        for wire, stream in streams:
            assert has_a_proper_end(got := rest(stream), wire), got.body
        assert gateway.process.wait(10) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_told_twice_it_goes_at_once(upstream: UpstreamServer, workers: str) -> None:
    held = upstream.add(f"twice-{workers}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    config = CONFIG.replace("drain: 1.5", "drain: 15")
    with run_gateway("--workers", workers, config=config.format(url=upstream.url)) as gateway:
        stream, _ = begun(gateway, CHAT, held)
        gateway.send_signal(signal.SIGTERM)
        time.sleep(1.3)
        gateway.send_signal(signal.SIGTERM)
        gateway.process.wait(3)
        stream.close()


def test_workers_go_with_their_parent(upstream: UpstreamServer) -> None:
    model = upstream.add("orphans", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(0.5), up.send(END))
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url)) as gateway:
        streams = [(wire, begun(gateway, wire, model)) for wire in WIRES]
        workers = workers_of(gateway)
        gateway.send_signal(signal.SIGKILL)
        for wire, stream in streams:
            assert reply_text(rest(stream), wire) == "Hello world"
        eventually(lambda: not any(Path(f"/proc/{one}").exists() for one in workers))
        with pytest.raises(ConnectionRefusedError):
            connect(gateway)


def test_a_child_of_somebody_else_is_none_of_its_business(upstream: UpstreamServer, tmp_path: Path) -> None:
    upstream.add("foreign", up.chat_stream("fine"))
    (tmp_path / "interlingua.yaml").write_text(CONFIG.format(url=upstream.url))
    start = f"sleep 0.1 & sleep 1 & exec {sys.executable} -m interlingua serve --port 0 --workers 2"
    with (tmp_path / "log").open("wb") as output:
        process = subprocess.Popen(["sh", "-c", start], cwd=tmp_path, stderr=output, env={**os.environ, "HOME": "."})
    gateway = GatewayProcess("", process, tmp_path / "log", tmp_path)
    try:
        found = gateway.wait_for_log(r"listening on (http://\S+) ")
        gateway.base = found.split("listening on ")[1].split()[0]
        time.sleep(1.5)
        assert process.poll() is None
        assert reply_text(request_reply(gateway, CHAT, "foreign"), CHAT) == "fine"
        assert gateway.stop() == 0
    finally:
        process.kill()
        process.wait()


def test_a_worker_that_cannot_begin_is_told_and_ends_all(tmp_path: Path) -> None:
    broken = (
        "import interlingua.gateway.processes.worker as w\n"
        "def broken(gateway): raise ValueError('no app')\n"
        "w.make_app = broken\n"
    )
    args = ["serve", "--demo", "--workers", "2", "--port", "0"]
    code = f"{broken}from interlingua.cli import main\nraise SystemExit(main({args!r}))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 1
    assert "a worker has failed" in ran.stderr
    assert "no app" in ran.stderr
    assert "error: a worker could not begin" in ran.stderr


def test_what_the_parent_tells_is_as_all_of_the_log(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url)
    with run_gateway("--workers", "2", "--log-format", "json", config=config) as gateway:
        victim = workers_of(gateway)[0]
        replaced(gateway, victim)
        lines = [line for line in gateway.wait_for_log("has died").splitlines() if "has died" in line]
        assert [json.loads(line)["process"] for line in lines] == [victim]
        assert json.loads(lines[0])["signal"] == signal.SIGKILL
