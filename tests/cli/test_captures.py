"""Tests of `interlingua translate` with capture files of the gateway."""

from __future__ import annotations

import json
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
