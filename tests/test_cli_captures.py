"""What the gateway has captured can be looked at, and read again."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.gateway_process import running

TOOLS = [{"name": "ls", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a request in Messages to a model that writes Kimi's text."""
    folder = tmp_path_factory.mktemp("captures")
    with running("--demo", "--capture", str(folder)) as gateway:
        body = {"model": "demo/kimi_k2", "max_tokens": 99, "stream": True, "tools": TOOLS}
        body["messages"] = [{"role": "user", "content": "use ls path=/etc"}]
        request = urllib.request.Request(f"{gateway.base}/v1/messages", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as response:
            assert b'"tool_use"' in response.read()
        gateway.stop()
    (file,) = folder.glob("*.jsonl")
    return file


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


def test_a_capture_is_read_in_another_dialect(capture: Path) -> None:
    ran = translate("--dialect", "standard", str(capture))
    assert "<|tool_calls_section_begin|>" in ran.stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{}\n", "line 1 is none of a capture"), ("", "no upstream was asked")],
)
def test_what_is_no_capture_is_told(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    ran = translate(str(file))
    assert ran.returncode == 1
    assert problem in ran.stderr
    assert "cannot read" in translate(str(tmp_path / "none.jsonl")).stderr
