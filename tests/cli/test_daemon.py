"""Tests of start, stop, status and logs, with real processes and a temporary state folder."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from interlingua.cli import main
from interlingua.cli.gateway.daemon import launcher
from interlingua.cli.gateway.daemon.instances import InstanceStore
from interlingua.cli.gateway.daemon.process_identity import _start_id_from_ps, process_start_id, send_signal
from interlingua.errors import BadInput
from interlingua.gateway.settings.schema import Settings
from tests.gateway.processes.test_server import END, begun, eventually, rest
from tests.support import upstream_server
from tests.support.gateway_process import GatewayProcess
from tests.support.paths import ROOT
from tests.support.raw_client import CHAT, get, reply_text, request_reply
from tests.support.upstream_server import UpstreamServer

KEY = "upstream-key-that-nobody-sees"


class User:
    """A user with a home folder, a working directory and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []
        self.state = folder / "state" / "interlingua"
        known = {key: value for key, value in os.environ.items() if not key.startswith("INTERLINGUA_")}
        self.env = {
            **known,
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder),
        }

    def popen(self, *args: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "interlingua", *args],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, *args: str, status: int = 0) -> str:
        """Run a command, assert its exit status, and return its output and errors."""
        process = self.popen(*args)
        output, errors = process.communicate(timeout=100)
        assert process.returncode == status, output + errors
        return output + errors

    def start(self, *args: str) -> GatewayProcess:
        self.run("start", "--port", "0", *args)
        return self.running(args[args.index("--name") + 1] if "--name" in args else "default")

    def running(self, name: str = "default") -> GatewayProcess:
        """Return the gateway as an object for the helpers of other tests."""
        facts = self.facts(name)
        return GatewayProcess(facts["address"], None, Path(facts["log"]), self.folder)  # type: ignore[arg-type]

    def facts(self, name: str = "default") -> Any:
        return json.loads((self.state / f"{name}.json").read_text())

    def close(self) -> None:
        """End all processes, also those of a test that has failed."""
        for process in self.processes:
            process.kill()
            process.communicate()
        for path in self.state.glob("*.json"):
            facts = json.loads(path.read_text())
            send_signal(facts["pid"], facts["start_id"], signal.SIGKILL)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    with closing(User(tmp_path)) as user:
        yield user


def wait_for_exit(pid: int, began: str, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while process_start_id(pid) == began:
        assert time.monotonic() < until
        time.sleep(0.02)


# ── start, status, stop ───────────────────────────────────────────────────────────────────────────────────────────────


def test_from_start_to_stop(user: User, upstream: UpstreamServer) -> None:
    upstream.add("life", upstream_server.chat_stream("Hello"))
    user.env["UP_KEY"] = KEY
    output = user.run("start", "--port", "0", "--upstream", upstream.url, "--upstream-key-env", "UP_KEY")
    facts = user.facts()
    assert f"listening on {facts['address']} (process {facts['pid']}" in output
    assert [line.split("  ")[1].strip() for line in output.splitlines()[1:]] == ["log:", "stop:"]
    log = Path(facts["log"])
    assert (f"({log})" in output, "interlingua stop" in output) == (True, True)
    assert len(log.read_text().splitlines()) == 1, "commands to copy are printed on a terminal only"
    gateway = user.running()
    assert reply_text(request_reply(gateway, CHAT, "life"), CHAT) == "Hello"
    assert upstream.wait_for_requests("life")[0].headers["authorization"] == f"Bearer {KEY}"

    output = user.run("status")
    assert f"default: running on {facts['address']}" in output
    assert "requests  1 finished, 0 open" in output
    facts_as_json = json.loads(user.run("status", "--json"))
    assert facts_as_json.items() >= {"running": True, "requests": 1, "open": 0, "version": facts["version"]}.items()
    assert "200 ok" in user.run("logs", "-n", "1")

    process = Path(f"/proc/{facts['pid']}")
    if process.exists():
        assert KEY not in process.joinpath("cmdline").read_text()
        assert os.readlink(process / "fd" / "0") == "/dev/null"
        assert os.readlink(process / "fd" / "2") == str(user.state / "default.log")
    assert os.getsid(facts["pid"]) == facts["pid"]
    assert all(KEY not in path.read_text(errors="replace") for path in user.state.iterdir())
    assert user.state.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in user.state.iterdir()} == {0o600}

    assert "stopped after" in user.run("stop")
    assert process_start_id(facts["pid"]) != facts["start_id"]
    assert user.run("status", status=3) == "default: not running\n"
    assert "stopped cut=0" in user.run("logs", "-n", "1")
    assert "is not running" in user.run("stop")


@pytest.mark.slow
def test_gateways_with_different_names_are_independent(user: User) -> None:
    one, two = user.start("--demo", "--name", "one"), user.start("--demo", "--name", "two", "--workers", "2")
    assert one.base != two.base
    for gateway, count in ((one, 2), (two, 6)):
        for _ in range(count):
            assert request_reply(gateway, CHAT, "demo/kimi_k2").status == 200
    assert json.loads(user.run("status", "--name", "two", "--json"))["requests"] == 6  # sum of both workers
    page = get(two, "/metrics").body.decode()
    assert (
        sum(int(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith("interlingua_requests_total{"))
        == 6
    )
    output = user.run("status", status=3)
    assert "default: not running" in output
    assert "other gateways: one, two" in output
    user.run("stop", "--name", "one")
    assert get(two, "/readyz").status == 200
    user.run("stop", "--name", "two")


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 65, "ü"])
@pytest.mark.parametrize("command", ["start", "stop", "status", "logs"])
def test_invalid_gateway_name(capsys: pytest.CaptureFixture[str], command: str, name: str) -> None:
    assert main([command, f"--name={name}"]) == 2
    assert "is not a valid gateway name" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["8484", "ftp://x", "http://", "http://x:port", "http://[::1"])
def test_invalid_status_url(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["status", "--url", url]) == 2
    assert "is not an http or https URL" in capsys.readouterr().err


@pytest.mark.slow
def test_status_of_gateway_with_client_keys_has_no_request_counts(user: User) -> None:
    user.env["INTERLINGUA_KEYS"] = KEY
    user.start("--demo")
    assert "requests  unknown: the gateway requires a key, see --key-env\n" in user.run("status")
    assert "0 finished, 0 open" in user.run("status", "--key-env", "INTERLINGUA_KEYS")
    user.env["OTHER_KEY"] = "another key"
    assert "requests  unknown: the gateway refuses this key\n" in user.run("status", "--key-env", "OTHER_KEY")
    facts = json.loads(user.run("status", "--json"))
    assert "requires a key" in user.run("status", "--url", facts["address"])
    assert (facts["gateway"], facts["gateway_unknown"]) == (None, "the gateway requires a key, see --key-env")
    assert "NO_SUCH_VARIABLE is not set" in user.run("status", "--key-env", "NO_SUCH_VARIABLE", status=2)
    (user.folder / ".env").write_text(f"ALICE_KEY={KEY}\n")
    assert "0 finished, 0 open" in user.run("status", "--key-env", "ALICE_KEY"), "as `config init` writes it"
    assert KEY not in (user.state / "default.json").read_text()
    assert user.run("stop")


@pytest.mark.slow
def test_status_describes_all_workers_and_open_circuits(user: User, upstream: UpstreamServer) -> None:
    upstream.add("k2", upstream_server.send_response("500 Oh", b"{}"))
    (user.folder / "interlingua.yaml").write_text(
        f"workers: 2\nupstreams: {{one: {{url: '{upstream.url}', rest: {{after: 3, seconds: 60}}}}}}\n"
        "models: {kimi: {upstream: one, model: k2}}\n"
    )
    gateway = user.start()
    while request_reply(gateway, CHAT, "kimi", False).status != 503:
        pass
    output = user.run("status")
    assert "  workers   2 of 2 ready\n" in output
    assert re.search(r"  requests  \d+ finished, 0 open \(limit 4096\)\n", output)
    assert "  memory    0.0 MiB of 1024 MiB\n" in output
    assert re.search(r"  circuits  k2 at one: open for 1 client, \d+ failures; next probe in \d+\.\d s\n", output)
    status = json.loads(user.run("status", "--json"))["gateway"]
    assert [worker["state"] for worker in status["workers"]] == ["ready", "ready"]
    assert user.run("status", "--url", gateway.base).startswith(f"{gateway.base}: ready\n  workers   2 of 2 ready\n")
    victim = status["workers"][1]["process"]
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: "2 of 2 ready, 1 restarted" in user.run("status"))
    user.run("stop")


def test_status_url(user: User) -> None:
    gateway = user.start("--demo")
    assert user.run("status", "--url", gateway.base).startswith(f"{gateway.base}: ready\n  workers   1 of 1 ready\n")
    user.run("stop")
    assert "refused" in user.run("status", "--url", gateway.base, status=3)
    assert json.loads(user.run("status", "--url", gateway.base, "--json", status=3))["running"] is False


@pytest.mark.slow
def test_commands_of_the_deploy_guide_run(user: User) -> None:
    guide = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
    commands = re.findall(r"(?m)^\$ interlingua (.*)$", guide.partition("## systemd")[0])
    assert len(commands) == 7
    for command in commands:
        assert user.run(*command.replace("8485", "0").split(), *["--port=0"] * (command == "start --demo"))


# ── failures at start ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_concurrent_starts_give_one_gateway(user: User) -> None:
    processes = [user.popen("start", "--demo", "--port", "0") for _ in range(3)]
    output = [process.communicate(timeout=120)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 1, 1], output
    facts = user.facts()
    assert sum(f"already running: {facts['address']} (process {facts['pid']})" in text for text in output) == 2
    assert sum(f"listening on {facts['address']} " in text for text in output) == 1


def test_port_in_use(user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = user.run("start", "--demo", "--port", str(port), status=1)
    assert f"error: cannot listen on 127.0.0.1:{port}: Address already in use" in output
    assert "the gateway did not start: it ended with status 1" in output
    assert user.run("status", status=3) == "default: not running\n"


def test_invalid_settings_are_reported_before_start(user: User) -> None:
    (user.folder / "interlingua.yaml").write_text("upstreams: {u: {}}\n")
    assert "interlingua.yaml:1: upstreams.u.url: required field is missing" in user.run("start", status=1)
    assert "unrecognized arguments: --no-such" in user.run("start", "--no-such", status=2)
    assert not user.state.exists()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["folder", "log", "state"])
def test_symbolic_links_in_the_state_folder_are_not_followed(user: User, what: str) -> None:
    elsewhere = user.folder / "elsewhere"
    elsewhere.mkdir()
    user.state.parent.mkdir()
    if what == "folder":
        user.state.symlink_to(elsewhere)
        assert "it is a symbolic link" in user.run("start", "--demo", "--port", "0", status=1)
        assert list(elsewhere.iterdir()) == []
        return
    user.state.mkdir(mode=0o755)
    victim = elsewhere / "victim"
    victim.write_text("mine")
    (user.state / ("default.log" if what == "log" else "default.json")).symlink_to(victim)
    if what == "log":
        assert "cannot write the log" in user.run("start", "--demo", "--port", "0", status=1)
    else:
        user.start("--demo")  # a regular file replaces the link
        assert not (user.state / "default.json").is_symlink()
        user.run("stop")
    assert victim.read_text() == "mine"
    assert user.state.stat().st_mode & 0o777 == 0o700


def test_gateway_starts_with_a_long_path_for_temporary_files(user: User) -> None:
    """The path of a Unix socket is limited to about a hundred bytes."""
    temporary = user.folder / ("t" * 100)
    temporary.mkdir()
    user.env["TMPDIR"] = str(temporary)
    user.start("--demo")
    user.run("stop")


def interrupt_start(user: User, file: Path, number: signal.Signals) -> tuple[dict[str, Any], int]:
    """Send a signal to `interlingua start` while its gateway starts. Return the facts in the file, and the status."""
    starting = user.popen("start", "--demo", "--port", "0")
    until = time.monotonic() + 60
    while not file.exists():
        assert starting.poll() is None or file.exists(), starting.communicate()
        assert time.monotonic() < until
        time.sleep(0.001)
    facts = user.facts()
    starting.send_signal(number)
    starting.communicate(timeout=60)
    return facts, starting.returncode


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_interrupted_start_leaves_no_process_and_no_files(user: User, number: signal.Signals) -> None:
    temporary = user.folder / "tmp"
    temporary.mkdir()
    user.env["TMPDIR"] = str(temporary)
    file = user.state / "default.json"
    for _ in range(10):
        facts, status = interrupt_start(user, file, number)
        if status != 0:
            break
        user.run("stop")  # the signal came too late: the gateway had started
    assert status == 128 + number
    assert not file.exists()
    assert list(temporary.iterdir()) == []
    assert process_start_id(facts["pid"]) != facts["start_id"]
    assert user.run("status", status=3) == "default: not running\n"


def test_signal_at_any_line_of_poll_ends_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception inside `Popen.poll` can leave a lock locked, and then `Popen.wait` never returns."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 100\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(launcher, "START_TIMEOUT_SECONDS", 0.01)
    instances = InstanceStore()

    def end_of_start(signal_line: int) -> SystemExit | BadInput:
        """Start a process, send SIGTERM before this line of `Popen.poll`, and return the exception of the start."""
        lines = itertools.count()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != subprocess.__file__ or not instances.names():
                return None
            if event == "line" and next(lines) == signal_line:
                signal.raise_signal(signal.SIGTERM)
            return trace

        sys.settrace(trace)
        try:
            launcher.launch(instances, "default", Settings(), tmp_path / "log", [])
        except (SystemExit, BadInput) as error:
            return error
        finally:
            sys.settrace(None)
        raise AssertionError("this process never listens")

    with handler(signal.SIGTERM, lambda *_: None), time_limit(60):
        for signal_line in itertools.count():
            error = end_of_start(signal_line)
            assert instances.names() == []
            if isinstance(error, BadInput):  # the signal came after the time limit of the start
                break
            assert error.code == 128 + signal.SIGTERM
    assert signal_line > 5


@contextmanager
def handler(number: signal.Signals, function: Callable[..., None]) -> Iterator[None]:
    previous = signal.signal(number, function)
    try:
        yield
    finally:
        signal.signal(number, previous)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise AssertionError(f"took longer than {seconds} s")

    with handler(signal.SIGALRM, fail):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


# ── unexpected end ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_killed_gateway_is_reported_and_can_be_started_again(user: User) -> None:
    user.start("--demo")
    facts = user.facts()
    send_signal(facts["pid"], facts["start_id"], signal.SIGKILL)
    wait_for_exit(facts["pid"], facts["start_id"])
    output = user.run("status", status=3)
    assert "not running: it ended without `interlingua stop`" in output
    assert str(facts["pid"]) in output
    assert user.run("status", status=3) == "default: not running\n"
    user.start("--demo")
    facts = user.facts()
    send_signal(facts["pid"], facts["start_id"], signal.SIGKILL)
    wait_for_exit(facts["pid"], facts["start_id"])
    assert f"(process {facts['pid']}) ended without" in user.run("start", "--demo", "--port", "0")
    user.run("stop")


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not installed")
def test_process_start_id_from_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    here = _start_id_from_ps(os.getpid())
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert here == _start_id_from_ps(os.getpid()) != ""
    with unrelated_process() as unrelated:
        assert _start_id_from_ps(unrelated.pid) != ""
        unrelated.kill()
        os.waitid(os.P_PID, unrelated.pid, os.WEXITED | os.WNOWAIT)
        assert _start_id_from_ps(unrelated.pid) == process_start_id(unrelated.pid) == ""  # a zombie
    assert _start_id_from_ps(unrelated.pid) == ""


@contextmanager
def unrelated_process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("command", ["stop", "status", "start"])
def test_unrelated_process_with_the_same_pid_is_not_signalled(user: User, command: str) -> None:
    user.start("--demo")
    facts = user.facts()
    with unrelated_process() as unrelated:
        (user.state / "default.json").write_text(json.dumps({**facts, "pid": unrelated.pid}))
        try:
            output = user.run(
                command, *["--demo", "--port=0"][: 2 * (command == "start")], status=3 * (command == "status")
            )
        finally:
            send_signal(facts["pid"], facts["start_id"], signal.SIGKILL)
        assert unrelated.poll() is None
    assert str(unrelated.pid) in output


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a boot id")
def test_status_after_a_reboot(user: User) -> None:
    user.start("--demo")
    facts = user.facts()
    another = f"11111111-2222-3333-4444-555555555555 {facts['start_id'].split()[1]}"
    (user.state / "default.json").write_text(json.dumps({**facts, "start_id": another}))
    assert "not running: the machine was restarted" in user.run("status", status=3)
    send_signal(facts["pid"], facts["start_id"], signal.SIGKILL)


# ── reload and stop ───────────────────────────────────────────────────────────────────────────────────────────────────


def settings(upstream: UpstreamServer, drain: float = 30, **models: str) -> str:
    config = {
        "upstreams": {"test": {"url": upstream.url, "retries": {"attempts": 1}}},
        "models": {name: {"upstream": "test", "model": model} for name, model in models.items()},
        "drain": drain,
    }
    return json.dumps(config)


def test_sighup_reloads_the_settings(user: User, upstream: UpstreamServer) -> None:
    upstream.add("bg-old", upstream_server.chat_stream("old"))
    upstream.add("bg-new", upstream_server.chat_stream("new"))
    file = user.folder / "interlingua.yaml"
    file.write_text(settings(upstream, alias="bg-old"))
    gateway = user.start()
    assert reply_text(request_reply(gateway, CHAT, "alias"), CHAT) == "old"
    file.write_text(settings(upstream, alias="bg-new"))
    os.kill(user.facts()["pid"], signal.SIGHUP)
    gateway.wait_for_log("reloaded")
    assert reply_text(request_reply(gateway, CHAT, "alias"), CHAT) == "new"
    user.run("stop")


@pytest.mark.one_row_in(2)
@pytest.mark.parametrize(("form", "workers"), [("text", "2"), ("json", "1")])
def test_reload_reports_what_the_gateway_does(user: User, upstream: UpstreamServer, form: str, workers: str) -> None:
    file = user.folder / "interlingua.yaml"
    file.write_text(settings(upstream, alias="old"))
    user.start("--log-format", form, "--workers", workers)
    file.write_text(settings(upstream, alias="new"))
    assert user.run("reload") == "interlingua: reloaded\n"
    file.write_text(settings(upstream, alias="new")[:-1] + ', "demo": true}')
    assert user.run("reload").startswith("interlingua: note: these settings need a restart: demo\n")
    file.write_text('{"upstreams": {}, "say \\"hi\\"": 1}')
    output = user.run("reload", status=1)
    assert "error: the old settings stay in use: " in output
    assert 'interlingua.yaml:1: say "hi": unknown field' in output
    user.run("stop")
    assert "error: the gateway 'default' is not running" in user.run("reload", status=1)


@pytest.mark.one_row_in(2)
@pytest.mark.parametrize("form", ["text", "json"])
def test_stop_waits_for_open_streams(user: User, upstream: UpstreamServer, form: str) -> None:
    go = threading.Event()
    model = upstream.add(
        f"bg-ends-{form}",
        upstream_server.send_headers(),
        upstream_server.send(upstream_server.ROLE + upstream_server.delta("Hello")),
        upstream_server.wait_for_event(go),
        upstream_server.send(END),
    )
    (user.folder / "interlingua.yaml").write_text(settings(upstream))
    gateway = user.start("--log-format", form)
    streams = [begun(gateway, CHAT, model) for _ in range(2)]
    stopping = user.popen("stop")
    assert stopping.stderr is not None
    output = stopping.stderr.readline()
    assert output.startswith("waiting for 2 open requests: "), output
    assert output.endswith(" of at most 30 s\n")
    go.set()
    for stream in streams:
        assert reply_text(rest(stream), CHAT) == "Hello world"
    _, errors = stopping.communicate(timeout=60)
    assert errors.endswith("; all 2 open requests finished\n"), errors


@pytest.mark.slow
def test_stop_reports_streams_that_were_cut_off(user: User, upstream: UpstreamServer) -> None:
    model = upstream.add(
        "bg-hangs",
        upstream_server.send_headers(),
        upstream_server.send(upstream_server.ROLE + upstream_server.delta("Hello")),
        upstream_server.wait(60),
    )
    (user.folder / "interlingua.yaml").write_text(settings(upstream, drain=0.5))
    stream = begun(user.start(), CHAT, model)
    assert "; 1 of 1 open requests were cut off" in user.run("stop")
    assert "error" in rest(stream).events[-1]


@pytest.mark.slow
def test_second_stop_ends_the_gateway_immediately(user: User, upstream: UpstreamServer) -> None:
    model = upstream.add(
        "bg-long",
        upstream_server.send_headers(),
        upstream_server.send(upstream_server.ROLE + upstream_server.delta("Hello")),
        upstream_server.wait(60),
    )
    (user.folder / "interlingua.yaml").write_text(settings(upstream))
    sock, _ = begun(user.start(), CHAT, model)
    first = user.popen("stop")
    assert first.stderr is not None
    assert first.stderr.readline().startswith("waiting for 1 open request")
    first.send_signal(signal.SIGINT)
    assert first.wait(20) == 130
    first.communicate()
    assert "default: stopping on" in user.run("status")
    assert json.loads(user.run("status", "--json")).items() >= {"running": True, "stopping": True}.items()
    time.sleep(1)  # an earlier signal counts as the same one
    began = time.monotonic()
    assert "; stopped immediately: of 1 open requests, the unfinished ones were cut off" in user.run("stop")
    assert time.monotonic() - began < 20
    sock.close()


# ── log ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_last_lines_include_rotated_files(user: User) -> None:
    assert "has no log" in user.run("logs", status=1)
    lines = [f"line {number}\n" for number in range(12)]
    for name, part in (("log.2", lines[:4]), ("log.1", lines[4:8]), ("log", lines[8:])):
        (user.state / f"default.{name}").write_text("".join(part))
    for count in (0, 1, 4, 6, 12, 50):
        assert user.run("logs", "-n", str(count)) == "".join(lines[12 - min(12, count) :])
    assert "is not a number" in user.run("logs", "-n", "-3", status=2)


def test_follow_continues_after_log_rotation(user: User) -> None:
    user.state.mkdir(parents=True)
    log = user.state / "default.log"
    log.write_text("before\nfirst\n")
    following = user.popen("logs", "-f", "-n", "1")
    assert following.stdout is not None
    assert following.stdout.readline() == "first\n"
    with log.open("a") as stream:
        stream.write("second\n")
        stream.flush()
        assert following.stdout.readline() == "second\n"
        log.rename(user.state / "default.log.1")
        stream.write("third\n")
        stream.flush()
        log.write_text("fourth\n")
    assert [following.stdout.readline() for _ in range(2)] == ["third\n", "fourth\n"]
    following.send_signal(signal.SIGINT)
    assert following.wait(20) == 130
    following.communicate()
