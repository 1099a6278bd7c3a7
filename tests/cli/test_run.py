"""`interlingua run`, with a program of ours in the agent's place."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

AGENT = f"""\
#!{sys.executable}
import json, os, pathlib, signal, sys, time, urllib.error, urllib.request

def ask(key):
    messages = [{{"role": "user", "content": "hi"}}]
    body = {{"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 99, "messages": messages}}
    headers = {{"content-type": "application/json", "authorization": f"Bearer {{key}}"}}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), headers)
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code

report = pathlib.Path(os.environ["REPORT"])
settings = json.loads(pathlib.Path(sys.argv[sys.argv.index("--settings") + 1]).read_text())
key = os.environ["ANTHROPIC_AUTH_TOKEN"]
told = {{"argv": sys.argv[1:], "env": dict(os.environ), "settings": settings, "pid": os.getpid(),
         "with_key": ask(key), "without": ask("another")}}
interrupts = []
signal.signal(signal.SIGINT, lambda *_: interrupts.append(1))
report.write_text(json.dumps(told))
match os.environ.get("DO"):
    case "exit":
        sys.exit(7)
    case "die":
        os.kill(os.getpid(), signal.SIGKILL)
    case "wait":
        time.sleep(60)
    case "be interrupted":
        until = time.monotonic() + 20
        while not interrupts and time.monotonic() < until:
            time.sleep(0.01)
        report.write_text(json.dumps({{**told, "interrupts": len(interrupts), "after": ask(key)}}))
"""
SECONDS = 20


@dataclass
class Run:
    process: subprocess.Popen[str]
    report: Path

    def told(self) -> dict[str, Any]:
        """What the agent has seen, once it has come so far."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            with suppress(OSError, ValueError):
                told: dict[str, Any] = json.loads(self.report.read_text())
                return told
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.02)
        raise AssertionError("the agent was not started")

    def end(self) -> tuple[int, str]:
        said = self.process.communicate(timeout=SECONDS)[1]
        return self.process.returncode, said


@dataclass
class Stage:
    folder: Path
    runs: list[Run]

    def run(self, *args: str, do: str = "", **more: str) -> Run:
        report = self.folder / "report"
        known = {name: text for name, text in os.environ.items() if not name.startswith("INTERLINGUA_")}
        environment = {
            **known,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "REPORT": str(report),
            "DO": do,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "interlingua", "run", *args],
            cwd=self.folder,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # its group stands for the terminal's
        )
        self.runs.append(Run(process, report))
        return self.runs[-1]

    @property
    def left_over(self) -> list[str]:
        return [path.name for path in (self.folder / "tmp").iterdir()]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    for name in ("bin", "tmp"):
        (tmp_path / name).mkdir()
    agent = tmp_path / "bin" / "claude"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    stage = Stage(tmp_path, [])
    yield stage
    for run in stage.runs:
        if run.process.poll() is None:  # else its number may be another's by now
            with suppress(ProcessLookupError):
                os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        if run.process.stderr:
            run.process.stderr.close()


def is_gone(base: str) -> bool:
    """Whether nobody listens there any more, soon."""
    host, port = urlsplit(base).hostname, urlsplit(base).port
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection((host, port or 0), timeout=1).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.05)
    return False


def test_the_agent_asks_the_gateway_with_a_key_of_its_own(stage: Stage) -> None:
    run = stage.run(
        "claude", "--demo", "--", "-p", "--model", "x", ANTHROPIC_API_KEY="the user's", HTTP_PROXY="http://p"
    )
    code, said = run.end()
    told = run.told()
    assert code == 0, said
    assert (told["with_key"], told["without"]) == (200, 401)
    assert told["argv"][-3:] == ["-p", "--model", "x"]
    key = told["env"]["ANTHROPIC_AUTH_TOKEN"]
    assert len(key) >= 32
    assert key not in " ".join(told["argv"]) + said
    assert told["settings"]["env"]["ANTHROPIC_AUTH_TOKEN"] == key
    assert "ANTHROPIC_API_KEY" not in told["env"]
    assert told["env"]["NO_PROXY"] == "127.0.0.1"
    assert told["env"]["ANTHROPIC_MODEL"] == "demo/kimi_k2"
    base = told["env"]["ANTHROPIC_BASE_URL"]
    assert said.splitlines() == [
        f"interlingua: Claude Code asks {base} (anthropic-messages), with a key for this run alone",
        "interlingua: that asks the demo model in it for kimi_k2, and reads its calls as kimi_k2",
        "interlingua: Claude Code is told that this model has room for 128000 tokens (--context)",
    ]
    assert is_gone(base)
    assert stage.left_over == []


def test_settings_of_the_user_are_the_upstreams(stage: Stage) -> None:
    """Their keys and port are for a gateway that serves others."""
    (stage.folder / "interlingua.yaml").write_text(
        "port: 1\nkeys: [for-others]\nupstreams: {up: {url: 'http://127.0.0.1:9/v1'}}\n"
        "models: {kimi: {upstream: up, model: moonshotai/kimi-k2.5}}\n"
    )
    elsewhere = stage.folder / "elsewhere.log"
    run = stage.run(
        "claude", "--log", "gateway.log", INTERLINGUA_LOG__FORMAT="json", INTERLINGUA_LOG__FILE=str(elsewhere)
    )
    code, said = run.end()
    told = run.told()
    assert code == 0
    assert "asks http://127.0.0.1:9/v1 (openai-chat) for moonshotai/kimi-k2.5, and reads its calls as kimi_k2" in said
    assert (told["with_key"], told["without"]) == (502, 401)  # nobody listens there
    assert not [name for name in told["env"] if name.startswith("INTERLINGUA_")]
    assert '"outcome": "upstream-failed"' in (stage.folder / "gateway.log").read_text()
    assert not elsewhere.exists()


def test_keys_of_upstreams_are_not_in_the_agents_environment(stage: Stage) -> None:
    """Whatever the variable is called, and whatever else is made of it."""
    (stage.folder / "interlingua.yaml").write_text(
        "upstreams:\n"
        "  one: {url: 'http://127.0.0.1:9/v1', key: '${ONE_KEY}', headers: {authorization: 'Bearer ${HEADER_KEY}'}}\n"
        "  two: {url: 'http://127.0.0.1:9/v1', key: 'made-of-${PART}', extra: {where: '${PLACE}'}}\n"
        "models: {kimi: {upstream: one, model: kimi-k2.5}}\n"
    )
    secrets = {"ONE_KEY": "first-secret", "COPY": "first-secret", "HEADER_KEY": "second-secret", "PART": "third-secret"}
    run = stage.run("claude", **secrets, PLACE="fourth-secret", OTHER="stays-here", EMPTY="")
    run.end()
    environment = run.told()["env"]
    assert not {*secrets, "PLACE"} & set(environment)
    assert "-secret" not in json.dumps(environment)
    assert (environment["OTHER"], environment["EMPTY"]) == ("stays-here", "")


def test_the_key_that_an_option_names_is_not_in_the_agents_environment(stage: Stage) -> None:
    options = ("--upstream", "http://127.0.0.1:9/v1", "--upstream-key-env", "UP_KEY", "--model", "kimi-k2.5")
    run = stage.run("claude", *options, UP_KEY="only-for-the-gateway")
    run.end()
    assert "only-for-the-gateway" not in json.dumps(run.told()["env"])


def test_nobody_listens_there(stage: Stage) -> None:
    """A person knows before the agent has asked for minutes, and what had failed if it gives up."""
    run = stage.run("claude", "--upstream", "http://127.0.0.1:9/v1", "--model", "kimi-k2.5", do="exit")
    code, said = run.end()
    assert code == 7
    first, *_, head, failed, refused = said.splitlines()
    assert first == "interlingua: note: nobody answers at http://127.0.0.1:9/v1: Connection refused"
    assert head == "interlingua: the agent ended with an error; these requests had failed:"
    assert " 502 upstream-failed " in failed
    assert " 401 refused " in refused


def test_what_failed_before_this_run_is_not_told(stage: Stage) -> None:
    (stage.folder / "gateway.log").write_text("2026-01-01T00:00:00.000Z 502 upstream-failed of another run\n")
    run = stage.run("claude", "--demo", "--log", "gateway.log", do="exit")
    assert "of another run" not in run.end()[1]


def test_how_much_the_model_takes(stage: Stage) -> None:
    run = stage.run("claude", "--demo", "--context", "65536")
    assert "has room for 65536 tokens" in run.end()[1]
    assert run.told()["settings"]["env"]["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65536"


@pytest.mark.parametrize(("do", "code"), [("exit", 7), ("die", 128 + signal.SIGKILL)])
def test_the_exit_status_is_the_agents(stage: Stage, do: str, code: int) -> None:
    run = stage.run("claude", "--demo", do=do)
    assert run.end()[0] == code
    assert is_gone(run.told()["env"]["ANTHROPIC_BASE_URL"])
    assert stage.left_over == []


def test_an_interrupt_is_for_the_agent(stage: Stage) -> None:
    run = stage.run("claude", "--demo", do="be interrupted")
    run.told()
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end()[0] == 0
    told = run.told()
    assert (told["interrupts"], told["after"]) == (1, 200)
    assert is_gone(told["env"]["ANTHROPIC_BASE_URL"])


def test_who_is_told_to_end_tells_the_agent(stage: Stage) -> None:
    run = stage.run("claude", "--demo", do="wait")
    base = run.told()["env"]["ANTHROPIC_BASE_URL"]
    run.process.terminate()
    assert run.end()[0] == 128 + signal.SIGTERM
    assert is_gone(base)
    assert stage.left_over == []


def test_the_gateway_ends_if_whoever_started_it_is_killed(stage: Stage) -> None:
    run = stage.run("claude", "--demo", do="wait")
    told = run.told()
    run.process.kill()
    try:
        assert is_gone(told["env"]["ANTHROPIC_BASE_URL"])
    finally:
        os.kill(told["pid"], signal.SIGKILL)


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (
            ["codex", "--demo"],
            1,
            "error: Codex is not installed: no codex on PATH\nhint: npm install -g @openai/codex\n",
        ),
        (
            ["claude", "--demo", "--api", "openai-chat"],
            2,
            "error: Claude Code does not speak openai-chat\nhint: it speaks anthropic-messages\n",
        ),
        (
            ["claude", "--demo", "-p", "hello"],
            2,
            "error: unrecognized arguments: -p hello\n"
            "hint: what is for the agent stands behind `--`; see `interlingua run --help`\n",
        ),
        (
            ["claude", "--upstream", "http://127.0.0.1:9/v1"],
            2,
            "error: which model is meant is not known\nhint: add --model NAME, as the upstream calls it\n",
        ),
        (
            ["claude", "--demo", "--log", "/nowhere/gateway.log"],
            1,
            "error: cannot write the log /nowhere/gateway.log: No such file or directory\n"
            "hint: give --log a file in a folder of yours\n",
        ),
        (
            ["claude", "--demo", "--log", "/"],
            1,
            "error: cannot write the log /: Is a directory\nhint: give --log a file in a folder of yours\n",
        ),
        *(
            (
                ["claude", "--demo", "--context", context],
                2,
                f"error: --context: {context!r} is no number of tokens\nhint: for example: --context 128000\n",
            )
            for context in ("128k", "0", "999", "")
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_starts(stage: Stage, args: list[str], code: int, error: str) -> None:
    path = f"{stage.folder / 'bin'}:/nowhere"
    run = stage.run(*args, PATH=path)
    assert run.end() == (code, error)
    assert not run.report.exists()
    assert stage.left_over == []


def test_a_model_that_nobody_knows(stage: Stage) -> None:
    """No gateway runs yet that could be asked for its models."""
    code, said = stage.run("claude", "--demo", "--model", "nonsense").end()
    error, hint = said.splitlines()
    assert (code, error) == (2, "error: --model: no model is called 'nonsense'")
    assert re.fullmatch(r"hint: known are (demo/\w+, ){4}demo/\w+ and \d+ more; `interlingua config show` .*", hint)
