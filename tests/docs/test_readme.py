"""The README says what is true: its program and its commands run, and what it names exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import interlingua as il
from interlingua.dialects.registry import get_dialect
from tests.support.gateway_process import run_gateway
from tests.support.paths import DATA, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_program_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(program.splitlines()) <= 20
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert '"name":"task"' in ran.stdout
    assert "stop-reason" in ran.stdout
    assert ran.stdout.endswith('functions.get_weather:1 get_weather {"city": "São Paulo"} True\n')


FILES = {
    "recorded.sse": (ROOT / "examples" / "kimi_stream.sse").read_text(encoding="utf-8"),
    "reply.txt": il.dialect_for("kimi-k2").sample,
    "reply.json": '{"calls": [{"id": "", "name": "ls", "arguments": "{}"}]}',
    "body.json": '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}',
    "tools.json": '[{"type": "function", "function": {"name": "get_weather"}}]',
    "interlingua.yaml": "demo: true\n",
    "recorded.jsonl": json.dumps({"text": 'Well.<tool_call>\n{"name": "ls"}\n</tool_call>', "calls": [{"name": "ls"}]}),
    "chat_template.jinja": (DATA / "fixtures" / "templates" / "hermes.jinja").read_text(encoding="utf-8"),
}


def test_the_commands_run(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    commands = re.findall(r"^\$ (.*\binterlingua .*?)(?:  +#.*)?$", README, re.M)
    served = [command for command in commands if "interlingua serve" in command]
    assert (len(commands), len(served)) == (17, 3)
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\n", encoding="utf-8")
    agent.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for command in served:
        with run_gateway(*shlex.split(command)[2:], OPENROUTER_API_KEY="secret") as gateway:
            assert gateway.stop() == 0
    for command in [command for command in commands if command not in served]:
        line = command.replace("curl -sN …", "cat recorded.sse").replace(
            "interlingua", f"{sys.executable} -m interlingua"
        )
        ran = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
    assert ran.stderr == "1 of 1 right\n"


def test_the_dialects_are_known() -> None:
    rows = re.findall(r"^\| [^|]+ \| (`[a-z0-9_`, ]+`) \| [^|]+ \|$", README, re.M)
    assert len(rows) == 10
    for name in re.findall(r"`(\w+)`", " ".join(rows)):
        assert get_dialect(name).shape


def test_the_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", README, re.M):
        assert f"\n{target}:" in makefile


def test_its_figures_are_those_of_the_pages() -> None:
    docs = ROOT / "docs"
    (green,) = re.findall(r"(\d+ of \d+) runs are\s+green", (docs / "clients.md").read_text(encoding="utf-8"))
    assert f"{green} runs green" in README
    faults = (docs / "conformance.md").read_text(encoding="utf-8")
    found = re.findall(r"^- ([\w-]+) [\d.]+, [\d-]+: (\d+) right, (\d+) wrong,", faults, re.M)
    assert len(found) == 3
    for name, right, wrong in found:
        assert f"{name} {wrong} of {int(right) + int(wrong)}" in README
