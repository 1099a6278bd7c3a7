"""Tests of README.md: its programs and commands run, and the dialects, targets and figures that it names exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import interlingua as il
from interlingua.dialects.registry import get_dialect
from tests.support.browser import run_inspect
from tests.support.gateway_process import run_gateway
from tests.support.paths import DATA, ROOT
from tests.support.scripted_engine import run_engine
from tests.support.upstream_server import UpstreamServer, send_response

README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXT_BLOCK = re.compile(r"```text\n(.*?)```", re.S)


def test_python_blocks_run() -> None:
    sdk_client, tested_agent, program = re.findall(r"```python\n(.*?)```", README, re.S)
    assert tested_agent in (TESTED_AGENT / "test_weather_agent.py").read_text(encoding="utf-8")
    assert len(sdk_client.splitlines()) == 3
    assert len(program.splitlines()) <= 20
    sdk = subprocess.run([sys.executable, "-c", sdk_client], cwd=ROOT, capture_output=True, text=True)
    assert sdk.returncode == 0, sdk.stderr
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert '"name":"task"' in ran.stdout
    assert "stop-reason" in ran.stdout
    assert ran.stdout.endswith('functions.get_weather:1 get_weather {"city": "São Paulo"} True\n')


def test_stream_before_and_after_translation_is_real() -> None:
    before, after = ([json.loads(line) for line in block.splitlines()] for block in TEXT_BLOCK.findall(README))
    translator = il.Translator("openai-chat", "openai-chat", model="moonshotai/kimi-k2.5")
    stream = "".join(f"data: {json.dumps({'choices': [{'index': 0, **choice}]})}\n\n" for choice in before)
    sent = (translator.feed(f"{stream}data: [DONE]\n\n".encode()) + translator.close()).decode()
    choices = [json.loads(chunk)["choices"][0] for chunk in re.findall(r"^data: (\{.*)$", sent, re.M)]
    shown = [
        {key: value for key, value in choice.items() if key != "index" and value is not None} for choice in choices
    ]
    assert shown == after


TESTED_AGENT = ROOT / "examples" / "tested_agent"
FILES = {
    "recorded.sse": (ROOT / "examples" / "kimi_stream.sse").read_text(encoding="utf-8"),
    "reply.txt": il.dialect_for("kimi-k2").sample,
    "reply.json": '{"calls": [{"id": "", "name": "ls", "arguments": "{}"}]}',
    "body.json": '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}',
    "tools.json": '[{"type": "function", "function": {"name": "get_weather"}}]',
    "interlingua.yaml": "demo: true\n",
    "recorded.jsonl": json.dumps({"text": 'Well.<tool_call>\n{"name": "ls"}\n</tool_call>', "calls": [{"name": "ls"}]}),
    "tokenizer_config.json": json.dumps(
        {"chat_template": (DATA / "fixtures" / "templates" / "hermes.jinja").read_text(encoding="utf-8")}
    ),
}
MODELS = {"data": [{"id": "Qwen/Qwen3-Coder-30B-A3B-Instruct", "owned_by": "vllm"}]}


@pytest.mark.slow
def test_commands_run(tmp_path: Path, upstream: UpstreamServer) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    commands = re.findall(r"^\$ (.*\binterlingua .*?)(?:  +#.*)?$", README, re.M)
    serve_commands = [command for command in commands if "interlingua serve" in command]
    inspect_commands = [command for command in commands if "interlingua inspect" in command]
    assert (len(commands), len(serve_commands), len(inspect_commands)) == (26, 3, 1)
    shutil.copytree(TESTED_AGENT / "cassettes", tmp_path / "cassettes")
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\n", encoding="utf-8")
    agent.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for command in serve_commands:
        with run_gateway(*shlex.split(command)[2:], OPENROUTER_API_KEY="secret") as gateway:
            assert gateway.stop() == 0
    (tmp_path / "captures").mkdir()
    shutil.copy(DATA / "explain" / "capture.jsonl", tmp_path / "captures")
    for command in inspect_commands:
        with run_inspect(*(tmp_path / path for path in shlex.split(command)[2:])) as url:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/inspector/#key=[\w-]+", url)
    upstream.add("None", send_response("200 OK", json.dumps(MODELS).encode()))  # GET requests name no model
    replaced = {
        "curl -sN …": "cat recorded.sse",
        "interlingua": f"{sys.executable} -m interlingua",
        "run claude --upstream http://localhost:8000/v1": f"run claude --upstream {upstream.url}",
        "--model NAME": "--limit 4",
    }
    with run_engine() as engine_url:
        for command in [command for command in commands if command not in (*serve_commands, *inspect_commands)]:
            line = command
            for shown, real in {**replaced, "http://localhost:8000/v1": engine_url}.items():
                line = line.replace(shown, real)
            ran = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert ran.returncode == 0, f"{command}\n{ran.stderr}"
    assert ran.stderr == "1 of 1 right\n"
    assert (tmp_path / "card.html").exists()


def test_dialects_exist() -> None:
    rows = re.findall(r"^\| [^|]+ \| (`[a-z0-9_`, ]+`) \| [^|]+ \|$", README, re.M)
    assert len(rows) == 10
    for name in re.findall(r"`(\w+)`", " ".join(rows)):
        assert get_dialect(name).shape


def test_start_page_of_the_site_has_the_commands_of_the_readme() -> None:
    """They are tested here."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:console|python)\n(.*?)```", re.sub(r"\\\n +", "", page), re.S)
    assert len(blocks) == 5
    assert [block for block in blocks if block not in README] == []


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", README, re.M):
        assert f"\n{target}:" in makefile


def test_figures_match_generated_pages() -> None:
    docs = ROOT / "docs"
    (green,) = re.findall(r"(\d+ of \d+) runs are\s+green", (docs / "clients.md").read_text(encoding="utf-8"))
    assert f"{green} runs green" in README
    faults = (docs / "conformance.md").read_text(encoding="utf-8")
    counts = re.findall(r"^- ([\w-]+) [\d.]+, [\d-]+: (\d+) right, (\d+) wrong,", faults, re.M)
    assert len(counts) == 3
    for name, right, wrong in counts:
        assert f"{name} {wrong} of {int(right) + int(wrong)}" in README
