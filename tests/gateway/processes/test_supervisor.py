"""Supervisor and workers: signals, reloads, and replacement of workers that die."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gateway.observability.test_metrics import parse_metrics
from tests.gateway.processes.test_server import CONFIG, END, begun, ends_with_error, eventually, rest, workers_of
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess, run_gateway
from tests.support.raw_client import CHAT, WIRES, connect, get, reply_text, request_reply
from tests.support.upstream_server import UpstreamServer

OLD, NEW = "old-key-that-leaked", "new-key-that-did-not"


def with_key(gateway: GatewayProcess, key: str, path: str = "/v1/models") -> int:
    return get(gateway, path, authorization=f"Bearer {key}").status


def kill_and_wait_for_replacement(gateway: GatewayProcess, victim: int) -> None:
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in workers_of(gateway) and len(workers_of(gateway)) == 2)


def test_replacement_worker_has_the_newest_settings(upstream: UpstreamServer) -> None:
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
        assert gateway.log.read_text().count("old ones stay") == 2  # logged once, by the supervisor
        for victim in workers_of(gateway):
            kill_and_wait_for_replacement(gateway, victim)
        for _ in range(8):
            assert (with_key(gateway, OLD), with_key(gateway, NEW)) == (401, 200)
        assert gateway.stop() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_reload_cannot_remove_keys_from_a_public_port(upstream: UpstreamServer, workers: str) -> None:
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
def test_ctrl_c_reaches_all_processes_and_streams_end_with_an_error(upstream: UpstreamServer, workers: str) -> None:
    held = upstream.add(f"ctrl-c-{workers}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with run_gateway("--workers", workers, config=CONFIG.format(url=upstream.url)) as gateway:
        streams = [(wire, begun(gateway, wire, held)) for wire in WIRES for _ in range(3)]
        processes = [gateway.process.pid, *workers_of(gateway)]
        for process in processes:
            os.kill(process, signal.SIGINT)
        time.sleep(0.2)
        gateway.send_signal(signal.SIGINT)  # a second signal within the grace time is ignored
        for wire, stream in streams:
            assert ends_with_error(got := rest(stream), wire), got.body
        assert gateway.process.wait(10) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_second_sigterm_stops_at_once(upstream: UpstreamServer, workers: str) -> None:
    held = upstream.add(f"twice-{workers}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    config = CONFIG.replace("drain: 1.5", "drain: 15")
    with run_gateway("--workers", workers, config=config.format(url=upstream.url)) as gateway:
        stream, _ = begun(gateway, CHAT, held)
        gateway.send_signal(signal.SIGTERM)
        time.sleep(1.3)
        gateway.send_signal(signal.SIGTERM)
        gateway.process.wait(3)
        stream.close()


def test_workers_stop_when_their_parent_dies(upstream: UpstreamServer) -> None:
    model = upstream.add("orphans", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(0.5), up.send(END))
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url)) as gateway:
        streams = [(wire, begun(gateway, wire, model)) for wire in WIRES]
        workers = workers_of(gateway)
        gateway.send_signal(signal.SIGKILL)
        for wire, stream in streams:
            assert reply_text(rest(stream), wire) == "Hello world"
        eventually(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
        with pytest.raises(ConnectionRefusedError):
            connect(gateway)


@pytest.mark.slow
def test_unrelated_child_processes_are_ignored(upstream: UpstreamServer, tmp_path: Path) -> None:
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


def test_worker_that_cannot_start_is_reported_and_ends_all(tmp_path: Path) -> None:
    broken = (
        "import interlingua.gateway.processes.worker as w\n"
        "def broken(gateway): raise ValueError('no app')\n"
        "w.make_app = broken\n"
    )
    args = ["serve", "--demo", "--workers", "2", "--port", "0"]
    code = f"{broken}from interlingua.cli import main\nraise SystemExit(main({args!r}))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 1
    assert "a worker crashed" in ran.stderr
    assert "no app" in ran.stderr
    assert "error: a worker could not start" in ran.stderr


def test_supervisor_log_lines_have_the_log_format(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url)
    with run_gateway("--workers", "2", "--log-format", "json", config=config) as gateway:
        victim = workers_of(gateway)[0]
        kill_and_wait_for_replacement(gateway, victim)
        lines = [line for line in gateway.wait_for_log("a worker died").splitlines() if "a worker died" in line]
        assert [json.loads(line)["process"] for line in lines] == [victim]
        assert json.loads(lines[0])["signal"] == signal.SIGKILL


def scrape(gateway: GatewayProcess) -> dict[str, float]:
    """Return the sum over the series of each metric, from one scrape."""
    families = parse_metrics(get(gateway, "/metrics").body.decode())
    return {
        name.removeprefix("interlingua_"): sum(
            value for (suffix, _), value in family.samples.items() if suffix in ("", "_count")
        )
        for name, family in families.items()
    }


def wait_for_metric(gateway: GatewayProcess, name: str, value: float) -> None:
    eventually(lambda: scrape(gateway)[name] == value)


def test_one_scrape_has_the_metrics_of_all_workers(upstream: UpstreamServer) -> None:
    done = upstream.add("summed", up.chat_stream("fine"))
    held = upstream.add("summed-open", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url)) as gateway:
        for _ in range(40):  # the kernel chooses the worker: one worker gets all of them in one run of 2 ** 39
            assert request_reply(gateway, CHAT, done).status == 200
        streams = [begun(gateway, CHAT, held)[0] for _ in range(20)]
        wait_for_metric(gateway, "requests_total", 40)
        scrapes = [scrape(gateway) for _ in range(20)]
        assert scrapes == [scrapes[0]] * 20
        for name in ("requests_total", "first_byte_seconds", "request_seconds"):
            assert scrapes[0][name] == 40
        assert scrapes[0]["streams_open"] == 20
        assert b"worker=" not in get(gateway, "/metrics").body
        for stream in streams:
            stream.close()
        wait_for_metric(gateway, "streams_open", 0)
        assert scrape(gateway)["requests_total"] == 60


def test_counters_outlive_a_killed_worker_and_gauges_do_not(upstream: UpstreamServer) -> None:
    done = upstream.add("outlive", up.chat_stream("fine"))
    held = upstream.add("outlive-open", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(20))
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url)) as gateway:
        finished = 0
        for victim in workers_of(gateway):
            for _ in range(10):
                assert request_reply(gateway, CHAT, done).status == 200
            finished += 10
            wait_for_metric(gateway, "requests_total", finished)
            streams = [begun(gateway, CHAT, held)[0] for _ in range(24)]
            before = scrape(gateway)
            assert before["streams_open"] == 24
            kill_and_wait_for_replacement(gateway, victim)
            for _ in range(20):
                after = scrape(gateway)
                assert all(after[name] >= count for name, count in before.items() if name.endswith("_total"))
                assert after["request_seconds"] >= before["request_seconds"]
            assert after["streams_open"] < 24  # the streams of the killed worker are gone
            for stream in streams:
                stream.close()
            wait_for_metric(gateway, "streams_open", 0)
            finished = int(scrape(gateway)["requests_total"])
        assert gateway.stop() == 0


HANGING_GATEWAY = """
import sys, time
from interlingua.cli import main
from interlingua.gateway.api.endpoints import Endpoints

def openapi_that_hangs(self, request):
    time.sleep(600)

Endpoints.openapi = openapi_that_hangs
sys.exit(main(["serve", "--port", "0", *sys.argv[1:]]))
"""


def hang_one_worker(gateway: GatewayProcess) -> None:
    """Send a request that blocks the event loop of the worker that receives it."""
    sock = connect(gateway)
    sock.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    gateway.wait_for_log("openapi_that_hangs", 20)
    sock.close()


def test_worker_that_hangs_is_replaced_and_its_stack_logged(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url) + "watchdog: 2\n"
    with run_gateway("--workers", "2", config=config, program=HANGING_GATEWAY) as gateway:
        before = workers_of(gateway)
        hang_one_worker(gateway)
        assert re.search(r"a worker hangs; killing it worker=\d", gateway.log.read_text())
        eventually(lambda: len(workers_of(gateway)) == 2 and workers_of(gateway) != before)
        assert len(set(before) & set(workers_of(gateway))) == 1
        for _ in range(8):
            assert get(gateway, "/healthz").status == 200
        assert gateway.stop() == 0


def test_stopped_worker_is_replaced_without_a_stack(upstream: UpstreamServer) -> None:
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url) + "watchdog: 2\n") as gateway:
        victim = workers_of(gateway)[0]
        os.kill(victim, signal.SIGSTOP)
        eventually(lambda: victim not in workers_of(gateway) and len(workers_of(gateway)) == 2)
        assert gateway.stop() == 0


def test_single_worker_that_hangs_prints_its_stack(upstream: UpstreamServer) -> None:
    config = CONFIG.format(url=upstream.url) + "watchdog: 1\n"
    with run_gateway(config=config, program=HANGING_GATEWAY) as gateway:
        hang_one_worker(gateway)


@pytest.mark.slow
def test_workers_that_respond_are_not_replaced(upstream: UpstreamServer) -> None:
    with run_gateway("--workers", "2", config=CONFIG.format(url=upstream.url) + "watchdog: 2\n") as gateway:
        before = workers_of(gateway)
        time.sleep(4)
        assert workers_of(gateway) == before
        assert "hangs" not in gateway.log.read_text()
