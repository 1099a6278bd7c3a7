"""The README says what is true: its program runs, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_program_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(program.splitlines()) <= 20
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert '"name":"task"' in ran.stdout
    assert "stop-reason" in ran.stdout
    assert ran.stdout.endswith('functions.get_weather:1 get_weather {"city": "São Paulo"} True\n')


def test_the_commands_exist() -> None:
    commands = set(re.findall(r"^\$ .*?\binterlingua (\w+)", README, re.M))
    for command in commands:
        subprocess.run([sys.executable, "-m", "interlingua", command, "--help"], capture_output=True, check=True)
    assert commands == {"translate", "parse", "render", "dialects"}


def test_the_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", README, re.M):
        assert f"\n{target}:" in makefile
