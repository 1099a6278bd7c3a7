"""Tests of `interlingua run`, with a script in place of the agent."""

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.upstream_server import Step, UpstreamServer, send_response

AGENT = f"""\
#!{sys.executable}
import json, os, pathlib, signal, sys, time, urllib.error, urllib.request

def send_request(key):
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
data = {{"argv": sys.argv[1:], "env": dict(os.environ), "settings": settings, "pid": os.getpid(),
         "with_key": send_request(key), "without": send_request("another")}}
interrupts = []
signal.signal(signal.SIGINT, lambda *_: interrupts.append(1))
report.write_text(json.dumps(data))
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
        report.write_text(json.dumps({{**data, "interrupts": len(interrupts), "after": send_request(key)}}))
"""
SECONDS = 20


@dataclass
class Run:
    process: subprocess.Popen[str]
    report: Path

    def report_data(self) -> dict[str, Any]:
        """Wait for the report of the agent and return it."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            with suppress(OSError, ValueError):
                report: dict[str, Any] = json.loads(self.report.read_text())
                return report
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.02)
        raise AssertionError("the agent was not started")

    def end(self) -> tuple[int, str]:
        stderr = self.process.communicate(timeout=SECONDS)[1]
        return self.process.returncode, stderr


@dataclass
class Sandbox:
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
            start_new_session=True,  # its process group stands in for the terminal's foreground group
        )
        self.runs.append(Run(process, report))
        return self.runs[-1]

    @property
    def left_over(self) -> list[str]:
        return [path.name for path in (self.folder / "tmp").iterdir()]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    for name in ("bin", "tmp"):
        (tmp_path / name).mkdir()
    agent = tmp_path / "bin" / "claude"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    sandbox = Sandbox(tmp_path, [])
    yield sandbox
    for run in sandbox.runs:
        if run.process.poll() is None:  # otherwise the pid may have been reused
            with suppress(ProcessLookupError):
                os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        if run.process.stderr:
            run.process.stderr.close()


def is_closed_soon(base: str) -> bool:
    """Return whether the server stops listening within some seconds."""
    host, port = urlsplit(base).hostname, urlsplit(base).port
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection((host, port or 0), timeout=1).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.05)
    return False


def test_agent_is_recorded_and_replayed(sandbox: Sandbox) -> None:
    recorded = sandbox.run("claude", "--demo", "--model", "demo/hermes", "--record", "cassettes")
    assert recorded.report_data()["with_key"] == 200
    assert recorded.end()[0] == 0
    recorded.report.unlink()
    replayed = sandbox.run("claude", "--model", "demo/hermes", "--replay", "cassettes")
    assert replayed.report_data()["with_key"] == 200
    code, stderr = replayed.end()
    assert (code, "the gateway uses recorded replies: model demo/hermes" in stderr) == (0, True)
    assert len(list((sandbox.folder / "cassettes").iterdir())) == 1


def test_agent_uses_the_gateway_with_a_generated_key(sandbox: Sandbox) -> None:
    run = sandbox.run(
        "claude", "--demo", "--", "-p", "--model", "x", ANTHROPIC_API_KEY="the user's", HTTP_PROXY="http://p"
    )
    code, stderr = run.end()
    report = run.report_data()
    assert code == 0, stderr
    assert (report["with_key"], report["without"]) == (200, 401)
    assert report["argv"][-3:] == ["-p", "--model", "x"]
    key = report["env"]["ANTHROPIC_AUTH_TOKEN"]
    assert len(key) >= 32
    assert key not in " ".join(report["argv"]) + stderr
    assert report["settings"]["env"]["ANTHROPIC_AUTH_TOKEN"] == key
    assert "ANTHROPIC_API_KEY" not in report["env"]
    assert report["env"]["NO_PROXY"] == "127.0.0.1"
    assert report["env"]["ANTHROPIC_MODEL"] == "demo/kimi_k2"
    base = report["env"]["ANTHROPIC_BASE_URL"]
    assert stderr.splitlines() == [
        f"interlingua: Claude Code uses the gateway at {base} (anthropic-messages), "
        "with a key that is valid for this run only",
        "interlingua: the gateway uses its built-in demo model: model kimi_k2, dialect kimi_k2",
        "interlingua: Claude Code is configured for a context window of 128000 tokens (--context)",
    ]
    assert is_closed_soon(base)
    assert sandbox.left_over == []


def test_upstreams_of_the_settings_file_are_used(sandbox: Sandbox) -> None:
    """Client keys, port and log file of the settings are for a shared gateway and are not used."""
    (sandbox.folder / "interlingua.yaml").write_text(
        "port: 1\nkeys: [for-others]\nupstreams: {up: {url: 'http://127.0.0.1:9/v1'}}\n"
        "models: {kimi: {upstream: up, model: moonshotai/kimi-k2.5}}\n"
    )
    elsewhere = sandbox.folder / "elsewhere.log"
    variables = {"INTERLINGUA_LOG__FORMAT": "json", "INTERLINGUA_LOG__FILE": str(elsewhere)}
    run = sandbox.run("claude", "--no-check", "--log", "gateway.log", **variables)
    code, stderr = run.end()
    report = run.report_data()
    assert code == 0
    assert "uses http://127.0.0.1:9/v1 (openai-chat): model moonshotai/kimi-k2.5, dialect kimi_k2" in stderr
    assert (report["with_key"], report["without"]) == (502, 401)  # no server listens on this port
    assert not [name for name in report["env"] if name.startswith("INTERLINGUA_")]
    assert '"outcome": "upstream-failed"' in (sandbox.folder / "gateway.log").read_text()
    assert not elsewhere.exists()


def test_upstream_keys_are_removed_from_the_agents_environment(sandbox: Sandbox) -> None:
    """Independent of the variable's name, and also if the value is only part of a secret."""
    (sandbox.folder / "interlingua.yaml").write_text(
        "upstreams:\n"
        "  one: {url: 'http://127.0.0.1:9/v1', key: '${ONE_KEY}', headers: {authorization: 'Bearer ${HEADER_KEY}'}}\n"
        "  two: {url: 'http://127.0.0.1:9/v1', key: 'made-of-${PART}', extra: {where: '${PLACE}'}}\n"
        "models: {kimi: {upstream: one, model: kimi-k2.5}}\n"
    )
    secrets = {"ONE_KEY": "first-secret", "COPY": "first-secret", "HEADER_KEY": "second-secret", "PART": "third-secret"}
    run = sandbox.run("claude", "--no-check", **secrets, PLACE="fourth-secret", OTHER="stays-here", EMPTY="")
    run.end()
    environment = run.report_data()["env"]
    assert not {*secrets, "PLACE"} & set(environment)
    assert "-secret" not in json.dumps(environment)
    assert (environment["OTHER"], environment["EMPTY"]) == ("stays-here", "")


def test_key_of_upstream_key_env_is_removed_from_the_agents_environment(sandbox: Sandbox) -> None:
    options = ("--upstream", "http://127.0.0.1:9/v1", "--upstream-key-env", "UP_KEY", "--model", "kimi-k2.5")
    run = sandbox.run("claude", "--no-check", *options, UP_KEY="only-for-the-gateway")
    run.end()
    assert "only-for-the-gateway" not in json.dumps(run.report_data()["env"])


def test_failed_requests_are_printed_if_the_agent_fails(sandbox: Sandbox) -> None:
    options = ("--upstream", "http://127.0.0.1:9/v1", "--model", "kimi-k2.5", "--no-check")
    code, stderr = sandbox.run("claude", *options, do="exit").end()
    assert code == 7
    head, failed, refused = stderr.splitlines()[-3:]
    assert head == "interlingua: the agent ended with an error; these requests failed:"
    assert " 502 upstream-failed " in failed
    assert " 401 refused " in refused


@contextmanager
def upstream_with_models(
    *ids: str, owner: str = "vllm", status: str = "200 OK", window: int | None = None
) -> Iterator[UpstreamServer]:
    upstream = UpstreamServer()
    models = {"data": [{"id": id, "owned_by": owner, "max_model_len": window} for id in ids]}
    upstream.add("None", send_response(status, json.dumps(models).encode()))  # GET requests name no model
    try:
        yield upstream
    finally:
        upstream.stop()


def test_unreachable_upstream_stops_before_the_agent_starts(sandbox: Sandbox) -> None:
    run = sandbox.run("claude", "--upstream", "http://127.0.0.1:9/v1", "--model", "kimi-k2.5")
    assert run.end() == (
        1,
        "error: the upstream cannot be used: cannot connect to http://127.0.0.1:9/v1: Connection refused\n"
        "hint: start it, or correct its URL; --no-check starts the agent anyway\n",
    )
    assert not run.report.exists()


def test_unreachable_upstream_with_a_fallback_is_a_note(sandbox: Sandbox) -> None:
    """The agent gets the context window of the fallback, which answers."""
    with upstream_with_models("kimi-k2.5", window=40960) as upstream:
        (sandbox.folder / "interlingua.yaml").write_text(
            f"upstreams: {{dead: {{url: 'http://127.0.0.1:9/v1'}}, alive: {{url: '{upstream.url}'}}}}\n"
            "models:\n  kimi: {upstream: dead, fallback: [second]}\n  second: {upstream: alive, model: kimi-k2.5}\n"
        )
        code, stderr = sandbox.run("claude", "--model", "kimi").end()
    assert code == 0
    problem = "the upstream cannot be used: cannot connect to http://127.0.0.1:9/v1: Connection refused"
    assert stderr.splitlines()[0] == f"interlingua: note: {problem}; its fallback answers"
    assert f"the gateway uses {upstream.url} (openai-chat): model kimi-k2.5" in stderr
    assert "a context window of 40960 tokens" in stderr


@pytest.mark.parametrize(
    ("ids", "owner", "model", "error"),
    [
        (
            ("Qwen/Qwen3-Coder-30B", "zai-org/GLM-4.6"),
            "somebody",
            "qwen3-codr-30b",
            "does not list the model 'qwen3-codr-30b'\nhint: did you mean Qwen/Qwen3-Coder-30B?",
        ),
        (
            ("Qwen/Qwen3-Coder-30B",),
            "vllm",
            "kimi",
            "does not list the model 'kimi'\nhint: it has: Qwen/Qwen3-Coder-30B;",
        ),
        (("a", "b"), "somebody", None, "the model is not specified\nhint: add --model with one of those that http"),
        ((), "somebody", None, "lists none\nhint: add --model NAME"),
    ],
    ids=["typo", "another model", "several models", "no models"],
)
def test_model_that_the_upstream_does_not_have(
    sandbox: Sandbox, ids: tuple[str, ...], owner: str, model: str | None, error: str
) -> None:
    with upstream_with_models(*ids, owner=owner) as upstream:
        run = sandbox.run("claude", "--upstream", upstream.url, *(["--model", model] if model else []))
        code, stderr = run.end()
    assert code in (1, 2)
    assert error in stderr
    assert not run.report.exists()


@pytest.mark.parametrize(
    ("ids", "owner", "model", "note"),
    [
        (("Qwen/Qwen3-Coder-30B",), "vllm", None, "the upstream has one model: Qwen/Qwen3-Coder-30B"),
        (("kimi-k2",), "somebody", "entirely-different", "does not list the model 'entirely-different'"),
        (("model.gguf",), "llamacpp", "model.guf", ""),
        (("qwen3:latest",), "library", "qwen3", ""),
        (("moonshotai/kimi-k2",), "somebody", "moonshotai/kimi-k2:free", ""),
    ],
    ids=["only model", "provider with more models", "llama.cpp", "ollama", "variant"],
)
def test_model_that_the_upstream_may_have(
    sandbox: Sandbox, ids: tuple[str, ...], owner: str, model: str | None, note: str
) -> None:
    with upstream_with_models(*ids, owner=owner) as upstream:
        code, stderr = sandbox.run("claude", "--upstream", upstream.url, *(["--model", model] if model else [])).end()
    assert code == 0
    assert note in stderr
    assert ("interlingua: note: " in stderr) == bool(note)


def test_refused_key_stops_before_the_agent_starts(sandbox: Sandbox) -> None:
    with upstream_with_models(status="401 Unauthorized") as upstream:
        code, stderr = sandbox.run("claude", "--upstream", upstream.url, "--model", "kimi-k2.5").end()
    assert code == 1
    assert "refuses the key" in stderr
    assert "--upstream-key-env" in stderr


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (send_response("200 OK", b"<h1>Welcome</h1>", "text/html"), "answers with a web page\nhint: for most servers"),
        (send_response("302 Found", b"", "text/html", "location: http://127.0.0.1:9/"), "the upstream redirects (302)"),
    ],
    ids=["web page", "redirect"],
)
def test_server_that_is_no_upstream_stops_before_the_agent_starts(
    sandbox: Sandbox, upstream: UpstreamServer, step: Step, problem: str
) -> None:
    upstream.add("None", step)
    run = sandbox.run("claude", "--upstream", upstream.url, "--model", "kimi-k2.5")
    code, stderr = run.end()
    assert code == 1
    assert problem in stderr
    assert not run.report.exists()


@pytest.mark.parametrize(
    ("status", "note"),
    [("503 Service Unavailable", "has status 503: the upstream returned status 503"), ("404 Not Found", "")],
)
def test_model_list_that_cannot_be_read_is_a_note(
    sandbox: Sandbox, upstream: UpstreamServer, status: str, note: str
) -> None:
    upstream.add("None", send_response(status, b""))
    code, stderr = sandbox.run("claude", "--upstream", upstream.url, "--model", "kimi-k2.5").end()
    assert code == 0
    assert ("interlingua: note: the model list" in stderr) == bool(note)
    assert note in stderr


def test_failures_of_previous_runs_are_not_reported(sandbox: Sandbox) -> None:
    (sandbox.folder / "gateway.log").write_text("2026-01-01T00:00:00.000Z 502 upstream-failed of another run\n")
    run = sandbox.run("claude", "--demo", "--log", "gateway.log", do="exit")
    assert "of another run" not in run.end()[1]


def test_context_and_reply_limit_follow_the_window_that_the_upstream_reports(sandbox: Sandbox) -> None:
    upstream = UpstreamServer()
    models = {"data": [{"id": "qwen3", "owned_by": "vllm", "max_model_len": 40960}]}
    upstream.add("None", send_response("200 OK", json.dumps(models).encode()))  # GET requests name no model
    try:
        run = sandbox.run("claude", "--upstream", upstream.url, "--model", "qwen3")
        assert "a context window of 40960 tokens" in run.end()[1]
    finally:
        upstream.stop()
    environment = run.report_data()["settings"]["env"]
    assert environment["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "40960"
    assert environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "10240"


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ((200_000, 40_960), "40960 tokens, that of the fallback {fallback} (--context)"),
        ((40_960, 200_000), "40960 tokens (--context)"),
        ((200_000, None), "128000 tokens, assumed for the fallback {fallback} (--context)"),
        ((None, 200_000), "128000 tokens (--context)"),
    ],
)
def test_context_fits_every_upstream_that_may_answer(
    sandbox: Sandbox, windows: tuple[int | None, int | None], expected: str
) -> None:
    with (
        upstream_with_models("big", window=windows[0]) as first,
        upstream_with_models("small", window=windows[1]) as second,
    ):
        (sandbox.folder / "interlingua.yaml").write_text(
            f"upstreams: {{one: {{url: '{first.url}'}}, two: {{url: '{second.url}'}}}}\n"
            "models:\n  big: {upstream: one, fallback: [small]}\n  small: {upstream: two}\n"
        )
        _, stderr = sandbox.run("claude", "--model", "big").end()
    assert f"a context window of {expected.format(fallback=second.url)}" in stderr


def test_context_option(sandbox: Sandbox) -> None:
    run = sandbox.run("claude", "--demo", "--context", "65536")
    assert "a context window of 65536 tokens" in run.end()[1]
    assert run.report_data()["settings"]["env"]["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65536"


@pytest.mark.parametrize(("do", "code"), [("exit", 7), ("die", 128 + signal.SIGKILL)])
def test_exit_status_is_that_of_the_agent(sandbox: Sandbox, do: str, code: int) -> None:
    run = sandbox.run("claude", "--demo", do=do)
    assert run.end()[0] == code
    assert is_closed_soon(run.report_data()["env"]["ANTHROPIC_BASE_URL"])
    assert sandbox.left_over == []


def test_sigint_reaches_the_agent_and_keeps_the_gateway_running(sandbox: Sandbox) -> None:
    run = sandbox.run("claude", "--demo", do="be interrupted")
    run.report_data()
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.end()[0] == 0
    report = run.report_data()
    assert (report["interrupts"], report["after"]) == (1, 200)
    assert is_closed_soon(report["env"]["ANTHROPIC_BASE_URL"])


def test_sigterm_is_forwarded_to_the_agent(sandbox: Sandbox) -> None:
    run = sandbox.run("claude", "--demo", do="wait")
    base = run.report_data()["env"]["ANTHROPIC_BASE_URL"]
    run.process.terminate()
    assert run.end()[0] == 128 + signal.SIGTERM
    assert is_closed_soon(base)
    assert sandbox.left_over == []


def test_gateway_ends_if_its_parent_is_killed(sandbox: Sandbox) -> None:
    run = sandbox.run("claude", "--demo", do="wait")
    report = run.report_data()
    run.process.kill()
    try:
        assert is_closed_soon(report["env"]["ANTHROPIC_BASE_URL"])
    finally:
        os.kill(report["pid"], signal.SIGKILL)


@pytest.mark.one_row_in(3)
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
            "error: Claude Code does not support the API openai-chat\nhint: it supports anthropic-messages\n",
        ),
        (
            ["claude", "--demo", "-p", "hello"],
            2,
            "error: unrecognized arguments: -p hello\n"
            "hint: arguments for the agent go after `--`; see `interlingua run --help`\n",
        ),
        (
            ["claude", "--upstream", "http://127.0.0.1:9/v1", "--no-check"],
            2,
            "error: the model is not specified, and the settings list none\n"
            "hint: add --model NAME, with the name that the upstream uses\n",
        ),
        (
            ["claude", "--demo", "--log", "/nowhere/gateway.log"],
            1,
            "error: cannot write the log /nowhere/gateway.log: No such file or directory\n"
            "hint: choose a --log file in a folder that you can write to\n",
        ),
        (
            ["claude", "--demo", "--log", "/"],
            1,
            "error: cannot write the log /: Is a directory\n"
            "hint: choose a --log file in a folder that you can write to\n",
        ),
        *(
            (
                ["claude", "--demo", "--context", context],
                2,
                f"error: --context: {context!r} is not a number of tokens (at least 1000)\n"
                "hint: for example: --context 128000\n",
            )
            for context in ("128k", "0", "999", "")
        ),
    ],
)
def test_errors_are_reported_before_anything_starts(sandbox: Sandbox, args: list[str], code: int, error: str) -> None:
    path = f"{sandbox.folder / 'bin'}:/nowhere"
    run = sandbox.run(*args, PATH=path)
    assert run.end() == (code, error)
    assert not run.report.exists()
    assert sandbox.left_over == []


def test_unknown_model(sandbox: Sandbox) -> None:
    """The hint lists the known models, because no gateway is running whose models the user could list."""
    code, stderr = sandbox.run("claude", "--demo", "--model", "nonsense").end()
    error, hint = stderr.splitlines()
    assert (code, error) == (2, "error: --model: unknown model 'nonsense'")
    assert re.fullmatch(
        r"hint: known models: (demo/\w+, ){4}demo/\w+ and \d+ more; see `interlingua config show`", hint
    )
