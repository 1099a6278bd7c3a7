"""Tests of `interlingua doctor`, `interlingua verify` and `interlingua faults engine`."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlingua.cli import doctor, main
from interlingua.cli.verify.progress import ProgressLine
from interlingua.faults.engines import ENGINE_FAULTS
from interlingua.faults.upstream.script import send_response, wait
from interlingua.faults.upstream.server import UpstreamServer
from interlingua.verification.run.runner import Progress
from tests.support.scripted_engine import MODEL, run_engine


class CommandResult(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., CommandResult]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("WRONG_KEY", "sk-wrong-0123456789")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def run(*argv: str) -> CommandResult:
        try:
            status = main(argv)
        except SystemExit as end:
            status = int(end.code or 0)
        return CommandResult(status, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def healthy() -> Iterator[str]:
    with run_engine() as url:
        yield url


@pytest.fixture(scope="module")
def faulty() -> Iterator[str]:
    with run_engine("parser-swallows", "finish-stop", share=0.5) as url:
        yield url


@pytest.fixture
def scripted() -> Iterator[UpstreamServer]:
    """Server whose request for the model list gets the scripts that a test adds."""
    server = UpstreamServer()
    yield server
    server.stop()


# ── doctor ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_doctor_prints_a_line_for_each_check(cli: Cli, healthy: str) -> None:
    result = cli("doctor", "--base-url", healthy)
    assert result.status == 0, result
    assert re.search(r"^  ok     tool call, stream   the call is right$", result.out, re.M)
    assert "0 odd, 0 wrong" in result.err
    assert max(map(len, result.out.splitlines())) <= 80
    assert "\x1b" not in result.out


def test_checks_skipped_for_the_same_reason_share_a_line(cli: Cli, scripted: UpstreamServer) -> None:
    """The server lists a model, and answers every request with a web page."""
    scripted.add("None", send_response("200 OK", b'{"data": [{"id": "m"}]}'))
    scripted.add("m", send_response("200 OK", b"<h1>Welcome</h1>", "text/html"))
    result = cli("doctor", "--base-url", scripted.url)
    assert result.status == 1
    assert len(re.findall(r"^  (wrong|odd) ", result.out, re.M)) == 1
    assert re.search(r"^  –      12 checks           system message; tool call, stream; ", result.out, re.M), result


def test_doctor_as_json(cli: Cli, healthy: str) -> None:
    (report,) = json.loads(cli("doctor", "--base-url", healthy, "--model", MODEL, "--json").out)
    assert report["model"] == MODEL
    assert {check["status"] for check in report["checks"]} == {"ok"}


def test_doctor_fails_if_something_is_wrong(cli: Cli, faulty: str) -> None:
    result = cli("doctor", "--base-url", faulty)
    assert result.status == 1
    assert "→" in result.out


def test_strict_doctor_fails_if_something_is_odd(cli: Cli) -> None:
    with run_engine("finish-stop") as url:
        assert cli("doctor", "--base-url", url).status == 0
        assert cli("doctor", "--base-url", url, "--strict").status == 1


def test_dead_url(cli: Cli) -> None:
    result = cli("doctor", "--base-url", "http://127.0.0.1:1/v1")
    assert result.status == 1
    assert "cannot connect to http://127.0.0.1:1/v1" in " ".join(result.out.split())


def test_wrong_key(cli: Cli, scripted: UpstreamServer) -> None:
    body = b'{"error": {"message": "Incorrect API key provided", "type": "authentication_error"}}'
    scripted.add("None", send_response("401 Unauthorized", body))
    result = cli("doctor", "--base-url", scripted.url, "--model", "m", "--key-env", "WRONG_KEY")
    assert result.status == 1
    assert "the server refuses the key (401): Incorrect API key provided" in " ".join(result.out.split())
    assert "sk-wrong" not in result.out + result.err


def test_upstream_that_hangs(cli: Cli, scripted: UpstreamServer) -> None:
    scripted.add("None", wait(60))
    start = time.monotonic()
    result = cli("doctor", "--base-url", scripted.url, "--model", "m", "--timeout", "0.5")
    assert result.status == 1
    assert "within 0.5 s" in result.out
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("step", [wait(60), send_response("429 Busy", b"{}", "application/json", "retry-after: 9")])
def test_timeout_of_doctor_is_for_all_checks(scripted: UpstreamServer, step: Any, tmp_path: Path) -> None:
    """Each check that fails would take as long again."""
    scripted.add("None", send_response("200 OK", b'{"data": [{"id": "m"}]}'))
    scripted.add("m", step)
    start = time.monotonic()
    command = [sys.executable, "-m", "interlingua", "doctor", "--base-url", scripted.url, "--timeout", "4"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode == 1
    assert time.monotonic() - start < 8


def test_doctor_takes_less_than_20_seconds() -> None:
    """With start-up and report, which take half a second on an idle machine."""
    assert doctor.DEFAULT_SECONDS <= 18


LONG_REPLY = b"data: " + b"x" * 5 * 1024 * 1024


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            send_response("200 OK", b"junk", "application/json", "content-encoding: gzip"),
            "Can not decode content-encoding: gzip",
        ),
        (send_response("200 OK", LONG_REPLY, "text/event-stream"), "the reply has more than 4 MiB"),
    ],
    ids=["junk as gzip", "without end"],
)
def test_reply_that_cannot_be_read_is_not_called_empty(
    cli: Cli, scripted: UpstreamServer, step: Any, message: str
) -> None:
    scripted.add("None", send_response("200 OK", b'{"data": [{"id": "m"}]}'))
    scripted.add("m", step)
    for command in ("doctor", "verify"):
        result = cli(command, "--base-url", scripted.url, "--model", "m")
        assert result.status == 1
        assert message in " ".join((result.out + result.err).split())


def test_typo_in_the_model(cli: Cli, healthy: str) -> None:
    result = cli("doctor", "--base-url", healthy, "--model", "demo/kimi-k2")
    assert result.status == 1
    assert f"did you mean {MODEL}?" in result.out


def test_doctor_fails_if_no_model_was_checked(cli: Cli, scripted: UpstreamServer) -> None:
    """The server has several models, and the user has chosen none."""
    scripted.add("None", send_response("200 OK", b'{"object": "list", "data": [{"id": "a"}, {"id": "b"}]}'))
    result = cli("doctor", "--base-url", scripted.url)
    assert result.status == 1
    assert "not checked: none is chosen; the server has a, b" in " ".join(result.out.split())
    assert "checking 1 upstream" in result.err
    assert "no model was checked: add --model" in result.err


def test_no_upstream(cli: Cli) -> None:
    result = cli("doctor")
    assert result.status == 2
    assert "hint: " in result.err


def test_doctor_reads_the_settings(cli: Cli, healthy: str, faulty: str) -> None:
    Path("interlingua.yaml").write_text(
        f"upstreams:\n  good: {{url: {healthy}}}\n  bad: {{url: {faulty}}}\n"
        f"models:\n  one: {{upstream: good, model: {MODEL}}}\ndefault: good\n",
        encoding="utf-8",
    )
    result = cli("doctor")
    assert result.status == 1
    assert f"good: {MODEL}" in result.out
    assert f"bad: {MODEL}" in result.out
    assert cli("doctor", "--model", "one").status == 0


def test_doctor_names_the_models_that_it_leaves_out(cli: Cli, healthy: str) -> None:
    models = "".join(f"  m{n}: {{ upstream: own, model: {name} }}\n" for n, name in enumerate([MODEL, "b", "c", "d"]))
    Path("many.yaml").write_text(f"upstreams:\n  own: {{ url: '{healthy}' }}\nmodels:\n{models}", encoding="utf-8")
    assert "note: own: not checked, use --model: d\n" in cli("doctor", "--config", "many.yaml").err


@pytest.mark.parametrize("command", ["doctor", "verify", "verify card", "verify samples", "faults engine"])
def test_help_fits_80_columns(cli: Cli, command: str) -> None:
    assert max(map(len, cli(*command.split(), "--help").out.splitlines())) <= 80


def test_config_check_online(cli: Cli, healthy: str) -> None:
    Path("interlingua.yaml").write_text(f"upstreams: {{good: {{url: {healthy}}}}}\n", encoding="utf-8")
    result = cli("config", "check", "--online")
    assert result.status == 0
    assert "every other model: good" in result.out
    assert "ok     reachable" in result.out
    assert "reachable" not in cli("config", "check").out


def test_config_check_online_as_json(cli: Cli, healthy: str, faulty: str) -> None:
    for url, status in ((healthy, 0), (faulty, 1)):
        Path("interlingua.yaml").write_text(f"upstreams: {{own: {{url: {url}}}}}\n", encoding="utf-8")
        result = cli("config", "check", "--online", "--json")
        report = json.loads(result.out)
        assert (result.status, report["valid"]) == (status, True)
        (checked,) = report["online"]
        assert (checked["name"], checked["model"]) == ("own", MODEL)
        assert {check["status"] == "wrong" for check in checked["checks"]} == (
            {False} if status == 0 else {False, True}
        )
    assert "online" not in json.loads(cli("config", "check", "--json").out)
    Path("interlingua.yaml").write_text("upstreams: {own: {}}\n", encoding="utf-8")
    assert "online" not in json.loads(cli("config", "check", "--online", "--json").out)


# ── verify ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_verify_prints_a_card_and_writes_files(cli: Cli, faulty: str) -> None:
    options = ("--limit", "12", "--log", "run.jsonl", "--html", "card.html", "--markdown", "card.md")
    result = cli("verify", "--base-url", faulty, *options)
    assert result.status == 0, result
    assert "who lost the calls" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert "24 requests, about" in result.err
    assert "the only one of the upstream" in result.err
    assert Path("card.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert Path("card.md").read_text(encoding="utf-8").startswith(f"# {MODEL} at 127.0.0.1")
    again = cli("verify", "card", "run.jsonl")
    assert again.out == result.out


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--html", "missing/card.html"), "cannot write missing/card.html: No such file or directory"),
        (("--markdown", "folder"), "cannot write folder: Is a directory"),
        (("--log", "missing/run.jsonl"), "cannot write missing/run.jsonl: No such file or directory"),
        (("--html", "card", "--markdown", "./card"), "--markdown: ./card is also another file of this command"),
        (("--html", "run.jsonl", "--log", "run.jsonl"), "--html: run.jsonl is also another file of this command"),
        (
            ("--samples", "set.jsonl", "--markdown", "set.jsonl"),
            "--markdown: set.jsonl is also another file of this command",
        ),
    ],
)
def test_files_that_cannot_be_written_are_reported_before_the_first_request(
    cli: Cli, options: tuple[str, ...], error: str
) -> None:
    Path("folder").mkdir()
    result = cli("verify", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", *options)
    assert result.status in (1, 2)
    assert result.err.splitlines()[0] == f"error: {error}"
    assert "hint: choose " in result.err
    assert "asking" not in result.err
    assert [path.name for path in Path().iterdir()] == ["folder"]


def test_check_of_output_files_keeps_their_content(cli: Cli) -> None:
    Path("card.html").write_text("an older card")
    cli("verify", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--html", "card.html", "--markdown", "new.md")
    assert Path("card.html").read_text() == "an older card"
    assert not Path("new.md").exists()


def test_card_does_not_overwrite_its_log(cli: Cli) -> None:
    Path("run.jsonl").write_text("a log")
    result = cli("verify", "card", "run.jsonl", "--html", "run.jsonl")
    assert "--html: run.jsonl is also another file of this command" in result.err
    assert Path("run.jsonl").read_text() == "a log"


def test_verify_repeats_its_first_request(cli: Cli, scripted: UpstreamServer) -> None:
    overloaded = send_response("503 Busy", b'{"error": {"message": "busy"}}', "application/json", "retry-after: 0")
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}
    scripted.add("m", overloaded)
    scripted.add("m", send_response("200 OK", json.dumps(reply).encode()))
    result = cli("verify", "--base-url", scripted.url, "--model", "m", "--dry-run")
    assert result.status == 0, result.err


def _rate_limit(seconds: float) -> Any:
    body = b'{"error": {"message": "Too many requests"}}'
    return send_response("429 Too Many Requests", body, "application/json", f"retry-after: {seconds}")


def test_verify_gives_up_if_it_must_wait_for_long(cli: Cli, scripted: UpstreamServer) -> None:
    scripted.add("m", _rate_limit(3600))
    result = cli("verify", "--base-url", scripted.url, "--model", "m")
    assert result.status == 1
    assert "a simple request fails with status 429: Too many requests" in result.err
    assert "hint: the upstream asks to wait 3,600 s" in result.err


def test_verify_that_must_wait_for_long_ends_early(cli: Cli, scripted: UpstreamServer) -> None:
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}
    scripted.add("m", send_response("200 OK", json.dumps(reply).encode()))
    scripted.add("m", _rate_limit(3600))
    result = cli("verify", "--base-url", scripted.url, "--model", "m", "--log", "run.jsonl")
    assert result.status == 1
    assert "the upstream asks to wait 3,600 s (429: Too many requests); continue with: " in result.err
    assert "--resume run.jsonl" in result.err


def test_verify_says_why_it_waits_without_a_terminal(cli: Cli, scripted: UpstreamServer) -> None:
    for _ in range(2):
        scripted.add("m", _rate_limit(2))
    scripted.add("m", _rate_limit(3600))
    result = cli("verify", "--base-url", scripted.url, "--model", "m")
    assert result.err.count("the upstream answers with status 429 (Too many requests): waiting 2 s") == 1


def test_progress_shows_that_the_run_continues_while_no_reply_arrives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    async def wait() -> None:
        line = ProgressLine()
        line.update(Progress(200))
        with suppress(TimeoutError):
            await asyncio.wait_for(line.tick(), 1.5)

    asyncio.run(wait())
    first, second = capsys.readouterr().err.split("\r\x1b[K")[1:]
    assert first.startswith("0/200 requests")
    assert first.endswith("0 s")
    assert second.endswith("1 s")


def test_verify_as_json_and_threshold(cli: Cli, faulty: str) -> None:
    options = ("--model", MODEL, "--limit", "10", "--modes", "whole", "--json")
    result = cli("verify", "--base-url", faulty, *options, "--fail-under", "99.5")
    assert result.status == 1
    card = json.loads(result.out)
    assert card["done"] == card["rates"]["right"]["total"] == 10
    assert card["run"]["settings"] == {"temperature": 0.0, "max_tokens": 4096}
    assert "less than --fail-under 99.5" in result.err


def test_dry_run_sends_no_sample(cli: Cli, healthy: str) -> None:
    result = cli("verify", "--base-url", healthy, "--dry-run", "--price", "1,2")
    assert result.status == 0
    assert result.out == ""
    assert re.search(r"200 requests, about \S+ prompt tokens and \S+ reply tokens, about \$0\.\d+", result.err)
    assert list(Path().iterdir()) == []


def test_samples_of_a_file_against_a_reference(cli: Cli, healthy: str) -> None:
    samples = cli("verify", "samples", "--only", "parallel,tool-choice").out
    Path("samples.jsonl").write_text(samples, encoding="utf-8")
    first = cli("verify", "--base-url", healthy, "--samples", "samples.jsonl", "--log", "a.jsonl")
    assert first.status == 0
    second = cli(
        "verify", "--base-url", healthy, "--samples", "samples.jsonl", "--against", "a.jsonl", "--log", "b.jsonl"
    )
    assert "reference F1               100 %" in second.out
    compared = cli("verify", "card", "a.jsonl", "b.jsonl", "--html", "both.html")
    assert "Only A is right in 0 of 26 requests." in compared.out
    assert Path("both.html").exists()


def test_resumed_run_needs_only_its_log(cli: Cli, healthy: str) -> None:
    assert cli("verify", "--base-url", healthy, "--only", "code", "--log", "run.jsonl").status == 0
    lines = Path("run.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("run.jsonl").write_text("".join(lines[:5]), encoding="utf-8")
    assert "the run is not complete" in cli("verify", "card", "run.jsonl").out
    result = cli("verify", "--resume", "run.jsonl")
    assert result.status == 0, result
    assert "4 of them are done already" in result.err
    assert "18 of 18 requests are right" in result.out


@pytest.mark.parametrize(
    ("argv", "message", "status"),
    [
        ([], "no upstream is given", 2),
        (["--base-url", "URL", "--only", "cod"], "no sample is called 'cod'", 2),
        (["--base-url", "URL", "--modes", "both"], "--modes 'both' is unknown", 2),
        (["--base-url", "URL", "--limit", "0"], "--limit must be at least 1", 2),
        (["--base-url", "URL", "--parallel", "0"], "--parallel must be greater than 0", 2),
        (["--base-url", "URL", "--temperature", "hot"], "--temperature 'hot' is not a number", 2),
        (["--base-url", "URL", "--extra", "[1]"], "--extra cannot be used", 1),
        (["--base-url", "URL", "--price", "1"], "--price '1' is not two numbers", 2),
        (["--base-url", "URL", "--samples", "none.jsonl"], "cannot read none.jsonl: no such file", 1),
        (["--base-url", "URL", "--against", "none.jsonl"], "cannot read none.jsonl", 1),
        (["--base-url", "URL", "--model", "demo/kimi-k2"], "the upstream has no model 'demo/kimi-k2'", 1),
        (["--base-url", "http://127.0.0.1:1/v1", "--model", "m"], "cannot connect to http://127.0.0.1:1/v1", 1),
        (["--base-url", "http://127.0.0.1:1/v1"], "error: cannot connect to http://127.0.0.1:1/v1", 1),
        (["--base-url", "URL", "--fail-under", "101"], "--fail-under must be from 0 to 100", 2),
        (["--resume", "none.jsonl"], "cannot read none.jsonl", 1),
        (["--resume", "x.jsonl", "--only", "code"], "--resume continues a run as it was", 2),
        (["card", "a", "b", "c"], "3 logs are given", 2),
    ],
)
def test_errors_have_hints(cli: Cli, healthy: str, argv: list[str], message: str, status: int) -> None:
    result = cli("verify", *(healthy if word == "URL" else word for word in argv))
    assert result.status == status, result
    assert message in result.err
    assert "hint: " in result.err
    assert result.out == ""


def test_interrupt_prints_the_card_of_the_results_so_far(tmp_path: Path) -> None:
    """On a terminal, the progress is one line that is updated."""
    parent, child = pty.openpty()
    with run_engine(pace_seconds=0.15) as url:
        command = [sys.executable, "-m", "interlingua", "verify", "--base-url", url, "--parallel", "2"]
        process = subprocess.Popen(
            [*command, "--log", "run.jsonl"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=child,
            env={**os.environ, "COLUMNS": "80"},
        )
        os.close(child)
        shown = _read_until(parent, r"\d+/200 requests, [1-9]")
        assert "\r\x1b[K" in shown
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=60)[0].decode()
        assert process.returncode == 130
        assert re.search(r"\d+ of 200 requests are done: the run is not complete", out)
        assert "continue with: interlingua verify --resume run.jsonl" in _read_until(parent, "resume run")
    os.close(parent)


def _read_until(descriptor: int, pattern: str) -> str:
    text, deadline = "", time.monotonic() + 60
    while not re.search(pattern, text):
        assert time.monotonic() < deadline, text
        if select.select([descriptor], [], [], 0.2)[0]:
            text += os.read(descriptor, 4096).decode(errors="replace")
    return text


# ── faults engine ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("none", "without a fault"),
        ("stream-cut", "with the fault stream-cut"),
        ("stream-cut,model-one-call", "with the faults stream-cut, model-one-call"),
    ],
)
def test_engine_says_which_faults_it_has(cli: Cli, monkeypatch: pytest.MonkeyPatch, names: str, words: str) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("interlingua.cli.faults.engine.time.sleep", interrupt)
    assert f"interlingua: vllm {words} at http://" in cli("faults", "engine", names, "--port", "0").err


def test_list_of_engine_faults(cli: Cli) -> None:
    result = cli("faults", "engine", "--list", "--json")
    entries = [json.loads(line) for line in result.out.splitlines()]
    assert [entry["name"] for entry in entries] == list(ENGINE_FAULTS)
    lines = cli("faults", "engine", "--list").out.splitlines()
    assert any(line.startswith("parser-missing ") for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["parser-mising"], "no fault is called 'parser-mising'"),
        (["none", "--dialect", "standard"], "has no native text"),
        (["none", "--port", "-1"], "not a valid port"),
    ],
)
def test_errors_of_faults_engine(cli: Cli, argv: list[str], message: str) -> None:
    result = cli("faults", "engine", *argv)
    assert result.status == 2
    assert message in result.err
