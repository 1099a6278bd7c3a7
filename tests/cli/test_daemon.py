"""Gateways in the background, as users start them: real processes, with a state folder of their own."""

from __future__ import annotations

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlingua.cli import main
from interlingua.cli.gateway.daemon.process_identity import _start_id_from_ps, process_start_id, send_signal
from tests.gateway.processes.test_server import END, begun, rest
from tests.support import upstream_server as up
from tests.support.gateway_process import GatewayProcess
from tests.support.paths import ROOT
from tests.support.raw_client import CHAT, get, reply_text, request_reply
from tests.support.upstream_server import UpstreamServer

KEY = "upstream-key-that-nobody-sees"


class User:
    """Somebody at a terminal: a home, a working directory, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state" / "interlingua"
        known = {key: value for key, value in os.environ.items() if not key.startswith("INTERLINGUA_")}
        self.env = {
            **known,
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder),
        }

    def popen(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "interlingua", *args],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self, *args: str, status: int = 0) -> str:
        """All that the command tells, if it ends like this."""
        process = self.popen(*args)
        output, errors = process.communicate(timeout=100)
        assert process.returncode == status, output + errors
        return output + errors

    def start(self, *args: str) -> GatewayProcess:
        self.says("start", "--port", "0", *args)
        return self.running(args[args.index("--name") + 1] if "--name" in args else "default")

    def running(self, name: str = "default") -> GatewayProcess:
        """What the helpers of other tests ask."""
        facts = self.facts(name)
        return GatewayProcess(facts["address"], None, Path(facts["log"]), self.folder)  # type: ignore[arg-type]

    def facts(self, name: str = "default") -> Any:
        return json.loads((self.state / f"{name}.json").read_text())


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    one = User(tmp_path)
    yield one
    for path in one.state.glob("*.json"):
        facts = json.loads(path.read_text())
        send_signal(facts["pid"], facts["began"], signal.SIGKILL)


def ended(pid: int, began: str, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while process_start_id(pid) == began:
        assert time.monotonic() < until
        time.sleep(0.02)


# ── a whole life ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_from_start_to_stop(user: User, upstream: UpstreamServer) -> None:
    upstream.add("life", up.chat_stream("Hello"))
    user.env["UP_KEY"] = KEY
    told = user.says("start", "--port", "0", "--upstream", upstream.url, "--upstream-key-env", "UP_KEY")
    facts = user.facts()
    assert f"listening on {facts['address']} (process {facts['pid']}" in told
    assert [line.split("  ")[1].strip() for line in told.splitlines()[1:]] == ["its log:", "stop it:"]
    log = Path(facts["log"])
    assert (f"({log})" in told, "interlingua stop" in told) == (True, True)
    assert len(log.read_text().splitlines()) == 1, "what to paste is for people at a terminal"
    gateway = user.running()
    assert reply_text(request_reply(gateway, CHAT, "life"), CHAT) == "Hello"
    assert upstream.wait_for_requests("life")[0].headers["authorization"] == f"Bearer {KEY}"

    told = user.says("status")
    assert f"default: running on {facts['address']}" in told
    assert "requests  1, and 0 under way" in told
    told_as_json = json.loads(user.says("status", "--json"))
    assert told_as_json.items() >= {"running": True, "requests": 1, "open": 0, "version": facts["version"]}.items()
    assert "200 ok" in user.says("logs", "-n", "1")

    process = Path(f"/proc/{facts['pid']}")
    if process.exists():
        assert KEY not in process.joinpath("cmdline").read_text()
        assert os.readlink(process / "fd" / "0") == "/dev/null"
        assert os.readlink(process / "fd" / "2") == str(user.state / "default.log")
    assert os.getsid(facts["pid"]) == facts["pid"]
    assert all(KEY not in path.read_text(errors="replace") for path in user.state.iterdir())
    assert user.state.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in user.state.iterdir()} == {0o600}

    assert "stopped after" in user.says("stop")
    assert process_start_id(facts["pid"]) != facts["began"]
    assert user.says("status", status=3) == "default: not running\n"
    assert "stopped cut=0" in user.says("logs", "-n", "1")
    assert "is not running" in user.says("stop")


def test_names_are_gateways_of_their_own(user: User) -> None:
    one, two = user.start("--demo", "--name", "one"), user.start("--demo", "--name", "two", "--workers", "2")
    assert one.base != two.base
    for gateway, count in ((one, 2), (two, 6)):
        for _ in range(count):
            assert request_reply(gateway, CHAT, "demo/kimi_k2").status == 200
    assert json.loads(user.says("status", "--name", "two", "--json"))["requests"] == 6  # of both workers
    told = user.says("status", status=3)
    assert "default: not running" in told
    assert "others: one, two" in told
    user.says("stop", "--name", "one")
    assert get(two, "/readyz").status == 200
    user.says("stop", "--name", "two")


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 65, "ü"])
@pytest.mark.parametrize("command", ["start", "stop", "status", "logs"])
def test_what_is_no_name(capsys: pytest.CaptureFixture[str], command: str, name: str) -> None:
    assert main([command, f"--name={name}"]) == 2
    assert "is no name for a gateway" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["8484", "ftp://x", "http://", "http://x:port", "http://[::1"])
def test_what_is_no_url(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["status", "--url", url]) == 2
    assert "is no http or https URL" in capsys.readouterr().err


def test_a_gateway_with_keys_is_not_asked_for_numbers(user: User) -> None:
    user.env["INTERLINGUA_KEYS"] = KEY
    user.start("--demo")
    assert "not told: clients need a key" in user.says("status")
    assert KEY not in (user.state / "default.json").read_text()
    assert user.says("stop")


def test_a_gateway_that_somebody_else_has_started_is_asked_by_its_url(user: User) -> None:
    gateway = user.start("--demo")
    assert user.says("status", "--url", gateway.base) == f"{gateway.base}: ready\n"
    user.says("stop")
    assert "refused" in user.says("status", "--url", gateway.base, status=3)
    assert json.loads(user.says("status", "--url", gateway.base, "--json", status=3))["running"] is False


def test_the_commands_of_the_guide_run(user: User) -> None:
    guide = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
    commands = re.findall(r"(?m)^\$ interlingua (.*)$", guide.partition("## systemd")[0])
    assert len(commands) == 7
    for command in commands:
        assert user.says(*command.replace("8485", "0").split(), *["--port=0"] * (command == "start --demo"))


# ── it does not start ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_starts_at_once_give_one_gateway(user: User) -> None:
    processes = [user.popen("start", "--demo", "--port", "0") for _ in range(3)]
    told = [process.communicate(timeout=120)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 1, 1], told
    facts = user.facts()
    assert sum(f"running already: {facts['address']} (process {facts['pid']})" in one for one in told) == 2
    assert sum(f"listening on {facts['address']} " in one for one in told) == 1


def test_the_port_is_taken(user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = user.says("start", "--demo", "--port", str(port), status=1)
    assert f"error: cannot listen on 127.0.0.1:{port}: Address already in use" in told
    assert "the gateway has not started: it ended at once, with status 1" in told
    assert user.says("status", status=3) == "default: not running\n"


def test_wrong_settings_are_told_before_anything_is_started(user: User) -> None:
    (user.folder / "interlingua.yaml").write_text("upstreams: {u: {}}\n")
    assert "interlingua.yaml:1: upstreams.u.url: this is missing" in user.says("start", status=1)
    assert "unrecognized arguments: --no-such" in user.says("start", "--no-such", status=2)
    assert not user.state.exists()


@pytest.mark.parametrize("what", ["folder", "log", "state"])
def test_links_lead_nowhere(user: User, what: str) -> None:
    elsewhere = user.folder / "elsewhere"
    elsewhere.mkdir()
    user.state.parent.mkdir()
    if what == "folder":
        user.state.symlink_to(elsewhere)
        assert "it is a link" in user.says("start", "--demo", "--port", "0", status=1)
        assert list(elsewhere.iterdir()) == []
        return
    user.state.mkdir(mode=0o755)
    victim = elsewhere / "victim"
    victim.write_text("mine")
    (user.state / ("default.log" if what == "log" else "default.json")).symlink_to(victim)
    if what == "log":
        assert "cannot write the log" in user.says("start", "--demo", "--port", "0", status=1)
    else:
        user.start("--demo")  # a file takes the link's place
        assert not (user.state / "default.json").is_symlink()
        user.says("stop")
    assert victim.read_text() == "mine"
    assert user.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_who_is_ended_while_it_starts_leaves_nothing(user: User, number: signal.Signals) -> None:
    temporary = user.folder / "tmp"
    temporary.mkdir()
    user.env["TMPDIR"] = str(temporary)
    starting = user.popen("start", "--demo", "--port", "0")
    file = user.state / "default.json"
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.001)
    facts = user.facts()
    assert facts["address"] == "", "it has yet to listen"
    starting.send_signal(number)
    starting.communicate(timeout=60)
    assert starting.returncode == 128 + number
    assert not file.exists()
    assert list(temporary.iterdir()) == []
    assert process_start_id(facts["pid"]) != facts["began"]
    assert user.says("status", status=3) == "default: not running\n"


# ── it ends without a word ────────────────────────────────────────────────────────────────────────────────────────────


def test_killed_it_is_not_running_and_can_be_started_again(user: User) -> None:
    user.start("--demo")
    facts = user.facts()
    send_signal(facts["pid"], facts["began"], signal.SIGKILL)
    ended(facts["pid"], facts["began"])
    told = user.says("status", status=3)
    assert "not running: it ended without `interlingua stop`" in told
    assert str(facts["pid"]) in told
    assert user.says("status", status=3) == "default: not running\n"
    user.start("--demo")
    facts = user.facts()
    send_signal(facts["pid"], facts["began"], signal.SIGKILL)
    ended(facts["pid"], facts["began"])
    assert f"process {facts['pid']}, ended without" in user.says("start", "--demo", "--port", "0")
    user.says("stop")


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps here")
def test_where_there_is_no_proc_ps_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    here = _start_id_from_ps(os.getpid())
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert here == _start_id_from_ps(os.getpid()) != ""
    with a_stranger() as stranger:
        assert _start_id_from_ps(stranger.pid) != ""
        stranger.kill()
        os.waitid(os.P_PID, stranger.pid, os.WEXITED | os.WNOWAIT)
        assert (
            _start_id_from_ps(stranger.pid) == process_start_id(stranger.pid) == ""
        )  # nobody has heard yet that it ended
    assert _start_id_from_ps(stranger.pid) == ""


@contextmanager
def a_stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("command", ["stop", "status", "start"])
def test_a_process_with_the_same_number_is_left_alone(user: User, command: str) -> None:
    user.start("--demo")
    facts = user.facts()
    with a_stranger() as stranger:
        (user.state / "default.json").write_text(json.dumps({**facts, "pid": stranger.pid}))
        try:
            told = user.says(
                command, *["--demo", "--port=0"][: 2 * (command == "start")], status=3 * (command == "status")
            )
        finally:
            send_signal(facts["pid"], facts["began"], signal.SIGKILL)
        assert stranger.poll() is None
    assert str(stranger.pid) in told


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a name for each start of the machine")
def test_the_machine_was_started_again(user: User) -> None:
    user.start("--demo")
    facts = user.facts()
    another = f"11111111-2222-3333-4444-555555555555 {facts['began'].split()[1]}"
    (user.state / "default.json").write_text(json.dumps({**facts, "began": another}))
    assert "not running: the machine was started again" in user.says("status", status=3)
    send_signal(facts["pid"], facts["began"], signal.SIGKILL)


# ── while it runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def settings(upstream: UpstreamServer, drain: float = 30, **models: str) -> str:
    config = {
        "upstreams": {"test": {"url": upstream.url, "retries": {"attempts": 1}}},
        "models": {name: {"upstream": "test", "model": model} for name, model in models.items()},
        "drain": drain,
    }
    return json.dumps(config)


def test_it_reads_its_settings_again(user: User, upstream: UpstreamServer) -> None:
    upstream.add("bg-old", up.chat_stream("old"))
    upstream.add("bg-new", up.chat_stream("new"))
    file = user.folder / "interlingua.yaml"
    file.write_text(settings(upstream, alias="bg-old"))
    gateway = user.start()
    assert reply_text(request_reply(gateway, CHAT, "alias"), CHAT) == "old"
    file.write_text(settings(upstream, alias="bg-new"))
    os.kill(user.facts()["pid"], signal.SIGHUP)
    gateway.wait_for_log("reloaded")
    assert reply_text(request_reply(gateway, CHAT, "alias"), CHAT) == "new"
    user.says("stop")


@pytest.mark.parametrize("form", ["text", "json"])
def test_stop_waits_for_streams_and_says_what_became_of_them(user: User, upstream: UpstreamServer, form: str) -> None:
    go = threading.Event()
    model = upstream.add(
        f"bg-ends-{form}", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait_for_event(go), up.send(END)
    )
    (user.folder / "interlingua.yaml").write_text(settings(upstream))
    gateway = user.start("--log-format", form)
    streams = [begun(gateway, CHAT, model) for _ in range(2)]
    stopping = user.popen("stop")
    assert stopping.stderr is not None
    told = stopping.stderr.readline()
    assert told.startswith("waiting for 2 requests that had begun: "), told
    assert told.endswith(" of at most 30\n")
    go.set()
    for stream in streams:
        assert reply_text(rest(stream), CHAT) == "Hello world"
    _, errors = stopping.communicate(timeout=60)
    assert errors.endswith("; all 2 under way finished\n"), errors


def test_stop_tells_of_streams_that_were_cut(user: User, upstream: UpstreamServer) -> None:
    model = upstream.add("bg-hangs", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(60))
    (user.folder / "interlingua.yaml").write_text(settings(upstream, drain=0.5))
    stream = begun(user.start(), CHAT, model)
    assert "; 1 of 1 requests under way had to be cut" in user.says("stop")
    assert "error" in rest(stream).events[-1]


def test_stopped_twice_it_goes_at_once(user: User, upstream: UpstreamServer) -> None:
    model = upstream.add("bg-long", up.send_headers(), up.send(up.ROLE + up.delta("Hello")), up.wait(60))
    (user.folder / "interlingua.yaml").write_text(settings(upstream))
    sock, _ = begun(user.start(), CHAT, model)
    first = user.popen("stop")
    assert first.stderr is not None
    assert first.stderr.readline().startswith("waiting for 1 request that had begun")
    first.send_signal(signal.SIGINT)
    assert first.wait(20) == 130
    first.communicate()
    assert "default: stopping on" in user.says("status")
    assert json.loads(user.says("status", "--json")).items() >= {"running": True, "stopping": True}.items()
    time.sleep(1)  # what comes sooner counts as the same word
    began = time.monotonic()
    assert "; it went at once: of 1 under way, those that were left were cut" in user.says("stop")
    assert time.monotonic() - began < 20
    sock.close()


# ── its log ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_last_lines_are_found_in_files_that_were_put_aside(user: User) -> None:
    assert "has no log" in user.says("logs", status=1)
    lines = [f"line {number}\n" for number in range(12)]
    for name, part in (("log.2", lines[:4]), ("log.1", lines[4:8]), ("log", lines[8:])):
        (user.state / f"default.{name}").write_text("".join(part))
    for count in (0, 1, 4, 6, 12, 50):
        assert user.says("logs", "-n", str(count)) == "".join(lines[12 - min(12, count) :])
    assert "is no number" in user.says("logs", "-n", "-3", status=2)


def test_the_log_is_followed_into_the_next_file(user: User) -> None:
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
