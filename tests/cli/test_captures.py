"""What the gateway has captured can be looked at, and read again."""

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


def captured(folder: Path, model: str, stream: bool) -> Path:
    """Of a request in Messages to a model that writes Kimi's text."""
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
    return captured(tmp_path_factory.mktemp("captures"), "demo/kimi_k2", stream=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory.mktemp("wholes"), "demo/kimi_k2", stream=False)


def translate(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "interlingua", "translate", *args], capture_output=True, text=True)


def test_a_capture_is_translated_as_it_was(capture: Path) -> None:
    ran = translate(str(capture))
    assert ran.returncode == 0, ran.stderr
    assert "event: content_block_start" in ran.stdout
    assert '"name":"ls"' in ran.stdout
    assert "<|tool_call" not in ran.stdout
    assert "stop-reason" in ran.stderr


def test_a_capture_is_explained(capture: Path) -> None:
    ran = translate("--explain", str(capture))
    assert ran.returncode == 0, ran.stderr
    assert "<|tool_calls_section_begin|>" in ran.stdout
    assert "tool_use" in ran.stdout


def test_a_capture_of_a_whole_reply_is_explained_as_one_chunk(whole: Path) -> None:
    ran = translate("--explain", str(whole))
    assert ran.returncode == 0, ran.stderr
    assert "<|tool_calls_section_begin|>" in ran.stdout
    assert "tool_use" in ran.stdout
    assert "finding stop-reason" in ran.stdout
    assert "1 chunk in, 1 frame out: 1 call, 1 finding" in ran.stdout


def test_how_a_capture_ended_is_told(capture: Path, whole: Path, tmp_path: Path) -> None:
    for file, *options in ((capture,), (capture, "--explain"), (whole,), (whole, "--explain")):
        assert "capture: status 200, ok\n" in translate(str(file), *options).stderr
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    lines[-1]["exchange"] |= {"status": 502, "outcome": "upstream-failed", "error": "it\nbroke"}
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(map(json.dumps, [*lines[:-1], {**lines[-1], "truncated": True}])))
    assert "capture: status 502, upstream-failed, error: it\\nbroke, pieces are missing" in translate(str(other)).stderr
    other.write_text("\n".join(map(json.dumps, lines[:-1])))
    assert "its end was never written" in translate(str(other)).stderr


def test_of_a_capture_without_an_upstream_the_end_is_told(tmp_path: Path) -> None:
    ran = translate(str(captured(tmp_path, "nobody/knows", stream=True)))
    assert ran.returncode == 1
    assert "no upstream was asked in this exchange (status 404, " in ran.stderr
    assert "no model is called 'nobody/knows'" in ran.stderr


def test_a_capture_is_read_in_another_dialect(capture: Path) -> None:
    ran = translate("--dialect", "standard", str(capture))
    assert "<|tool_calls_section_begin|>" in ran.stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{}\n", "line 1 is none of a capture"), ("", "it is not known which upstream was asked")],
)
def test_what_is_no_capture_is_told(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    ran = translate(str(file))
    assert ran.returncode == 1
    assert problem in ran.stderr
    assert "cannot read" in translate(str(tmp_path / "none.jsonl")).stderr
