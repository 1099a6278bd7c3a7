"""Tests of `interlingua translate` with capture files of the gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.gateway_process import run_gateway

TOOLS = [{"name": "ls", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]


def record_capture(folder: Path, model: str, stream: bool) -> Path:
    """Send a Messages request to a demo model that writes Kimi's markup, and return the capture file."""
    with run_gateway("--demo", "--capture", str(folder)) as gateway:
        body = {"model": model, "max_tokens": 99, "stream": stream, "tools": TOOLS}
        body["messages"] = [{"role": "user", "content": "use ls path=/etc"}]
        request = urllib.request.Request(f"{gateway.base}/v1/messages", json.dumps(body).encode())
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=10) as response:
            assert b'"tool_use"' in response.read()
        gateway.stop()
    (file,) = folder.glob("*.jsonl")
    return file


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_capture(tmp_path_factory.mktemp("captures"), "demo/kimi_k2", stream=True)


@pytest.fixture(scope="module")
def whole_reply_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_capture(tmp_path_factory.mktemp("wholes"), "demo/kimi_k2", stream=False)


def translate(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "interlingua", "translate", *args], capture_output=True, text=True)


def test_capture_is_translated_with_recorded_options(capture: Path) -> None:
    result = translate(str(capture))
    assert result.returncode == 0, result.stderr
    assert "event: content_block_start" in result.stdout
    assert '"name":"ls"' in result.stdout
    assert "<|tool_call" not in result.stdout
    assert "stop-reason" in result.stderr


def test_explain_capture(capture: Path) -> None:
    result = translate("--explain", str(capture))
    assert result.returncode == 0, result.stderr
    assert "<|tool_calls_section_begin|>" in result.stdout
    assert "tool_use" in result.stdout


def test_explain_whole_reply_capture_as_one_chunk(whole_reply_capture: Path) -> None:
    result = translate("--explain", str(whole_reply_capture))
    assert result.returncode == 0, result.stderr
    assert "<|tool_calls_section_begin|>" in result.stdout
    assert "tool_use" in result.stdout
    assert "finding stop-reason" in result.stdout
    assert "1 chunk in, 1 frame out: 1 call, 1 finding" in result.stdout


def test_outcome_of_the_capture_is_printed(capture: Path, whole_reply_capture: Path, tmp_path: Path) -> None:
    whole = whole_reply_capture
    for file, *options in ((capture,), (capture, "--explain"), (whole,), (whole, "--explain")):
        assert "capture: status 200, ok\n" in translate(str(file), *options).stderr
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    lines[-1]["exchange"] |= {"status": 502, "outcome": "upstream-failed", "error": "it\nbroke"}
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(map(json.dumps, [*lines[:-1], {**lines[-1], "truncated": True}])))
    assert (
        "capture: status 502, upstream-failed, error: it\\nbroke, some chunks are missing"
        in translate(str(other)).stderr
    )
    other.write_text("\n".join(map(json.dumps, lines[:-1])))
    assert "the capture has no end record" in translate(str(other)).stderr


def test_capture_without_upstream_request_is_an_error(tmp_path: Path) -> None:
    result = translate(str(record_capture(tmp_path, "nobody/knows", stream=True)))
    assert result.returncode == 1
    assert "no request was sent to an upstream (status 404, " in result.stderr
    assert "no model is called 'nobody/knows'" in result.stderr


def test_dialect_option_overrides_the_capture(capture: Path) -> None:
    result = translate("--dialect", "standard", str(capture))
    assert "<|tool_calls_section_begin|>" in result.stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{}\n", "line 1 is not a line of a capture"), ("", "the upstream is not recorded")],
)
def test_invalid_capture_file(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    result = translate(str(file))
    assert result.returncode == 1
    assert problem in result.stderr
    assert "cannot read" in translate(str(tmp_path / "none.jsonl")).stderr


# ── captures by id and folder ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def folder(capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the captures of three requests. The newest has failed, and two ids begin alike."""
    folder = tmp_path_factory.mktemp("several") / "captures"
    folder.mkdir()
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    failure = {
        "status": 502,
        "outcome": "upstream-failed",
        "error": "it broke",
        "model": "other",
        "upstream_model": "x",
    }
    failure |= {
        "findings": {"cut-short": 1, "noise": 3},
        "failed_attempts": [
            {"upstream": "one", "model": "kimi", "kind": "unreachable", "reason": "Connection refused"}
        ],
    }
    for number, (id, changes) in enumerate([("req_aaaa11", {}), ("req_aaaa22", {}), ("req_bbbb33", failure)]):
        lines[-1]["exchange"] = {**lines[-1]["exchange"], **changes}
        file = folder / f"20260101T12000{number}000000Z-{id}.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "notes.jsonl").write_text("not a capture\n")
    return folder


def run_in(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder), "COLUMNS": "80", "TZ": "UTC"}
    argv = [sys.executable, "-m", "interlingua", *args]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("reference", ["req_bbbb33", "req_bbbb", "bbbb33", "captures"])
def test_capture_by_id_or_folder(folder: Path, reference: str) -> None:
    result = run_in(folder.parent, "translate", "--explain", "--only", "findings", reference)
    assert result.returncode == 0, result.stderr
    assert "20260101T120002000000Z-req_bbbb33.jsonl: status 502, upstream-failed" in result.stderr
    assert "stop-reason" in result.stdout


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (
            "req_aaaa",
            "error: 2 captures in captures have an id that begins with req_aaaa\nhint: write more of it: req_",
        ),
        ("req_cccc", "error: no capture in captures has the id req_cccc\nhint: `interlingua captures list` lists them"),
        ("nonsense", "error: cannot read nonsense: no such file"),
    ],
)
def test_unknown_capture(folder: Path, reference: str, error: str) -> None:
    result = run_in(folder.parent, "translate", reference)
    assert result.returncode == 1
    assert error in result.stderr


def test_folder_of_captures_is_searched_in_the_settings(folder: Path, tmp_path: Path) -> None:
    result = run_in(tmp_path, "captures", "list")
    assert result.returncode == 1
    assert "hint: pass it with --captures DIR" in result.stderr
    (tmp_path / "interlingua.yaml").write_text(f"demo: true\ncapture: {{dir: {folder}}}\n")
    assert "req_bbbb33" in run_in(tmp_path, "captures", "list").stdout
    assert run_in(tmp_path, "captures").stdout == run_in(tmp_path, "captures", "list").stdout


def test_list_of_captures(folder: Path) -> None:
    result = run_in(folder.parent, "captures", "list")
    assert result.stdout.splitlines() == [
        "time            outcome              model         calls  findings  id",
        "01-01 12:00:02  502 upstream-failed  other         1      1 error   req_bbbb33",
        "01-01 12:00:01  200 ok               demo/kimi_k2  1      1 info    req_aaaa22",
        "01-01 12:00:00  200 ok               demo/kimi_k2  1      1 info    req_aaaa11",
    ]
    assert len(run_in(folder.parent, "captures", "list", "-n", "2").stdout.splitlines()) == 3
    assert len(run_in(folder.parent, "captures", "list", "--failed").stdout.splitlines()) == 2
    assert len(run_in(folder.parent, "captures", "list", "--model", "*KIMI*").stdout.splitlines()) == 3
    listed = [json.loads(line) for line in run_in(folder.parent, "captures", "list", "--json").stdout.splitlines()]
    assert [entry["id"] for entry in listed] == ["req_bbbb33", "req_aaaa22", "req_aaaa11"]
    assert listed[0]["exchange"]["error"] == "it broke"


def test_list_of_captures_fits_80_columns(capture: Path, tmp_path: Path) -> None:
    """The name of the model is shortened if the other columns need the space."""
    model = "accounts/fireworks/models/glm-4p5-air"
    exchange = {"status": 502, "outcome": "upstream-failed", "model": model, "calls": 12, "findings": {"cut-short": 15}}
    line = json.dumps({**json.loads(capture.read_text().splitlines()[-1]), "exchange": exchange})
    (tmp_path / f"20260101T120000000000Z-req_{'a' * 32}.jsonl").write_text(f"{line}\n")
    heading, row = run_in(tmp_path, "captures", "list", str(tmp_path)).stdout.splitlines()
    assert max(len(heading), len(row)) <= 80
    assert row.split()[:4] == ["01-01", "12:00:00", "502", "upstream-failed"]
    assert "  account…-air  " in row
    assert row.endswith(" req_aaaaaaaa")


def test_show_capture(folder: Path) -> None:
    text = run_in(folder.parent, "captures", "show", "req_bbbb").stdout
    for line in (
        "id         req_bbbb33",
        "outcome    502 upstream-failed: it broke",
        "failed     one: kimi: Connection refused",
        "request    1 message, 1 tool; the last message:",
        "           use ls path=/etc",
        'call       ls {"path":"/etc"}',
        "next: interlingua translate --explain req_bbbb33",
    ):
        assert f"{line}\n" in text
    assert max(map(len, text.splitlines())) <= 80
    assert run_in(folder.parent, "captures", "show").stdout.splitlines()[0] == "id         req_bbbb33"


def test_next_command_of_a_capture_outside_the_usual_folder_names_the_file(folder: Path, tmp_path: Path) -> None:
    file = next(folder.glob("*req_bbbb33*"))
    text = run_in(tmp_path, "captures", "show", str(file)).stdout
    assert text.endswith(f"next: interlingua translate --explain {file}\n")


def test_recorded_bytes_are_printed_unchanged(folder: Path, capture: Path) -> None:
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    for option, kind in (
        ("--request", "request"),
        ("--asked", "asked"),
        ("--received", "received"),
        ("--sent", "sent"),
    ):
        expected = "".join(line["text"] for line in lines if line["kind"] == kind)
        assert run_in(folder.parent, "captures", "show", "req_aaaa11", option).stdout == expected
    exchange = json.loads(run_in(folder.parent, "captures", "show", "req_bbbb33", "--json").stdout)
    assert exchange["outcome"] == "upstream-failed"


def test_capture_without_an_end_is_shown(folder: Path, capture: Path, tmp_path: Path) -> None:
    file = tmp_path / "20260101T120000000000Z-req_dddd44.jsonl"
    file.write_text("".join(capture.read_text().splitlines(keepends=True)[:-1]))
    text = run_in(folder.parent, "captures", "show", str(file)).stdout
    assert "outcome    the capture has no end: " in text
