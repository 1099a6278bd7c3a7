"""Tests of docs/guides/troubleshooting.md: its commands print what the page describes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.core.findings import FINDING_KINDS
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ interlingua ((?:translate|request) .*?)(?:  #.*)?$", PAGE, re.M)
EXPECTED_OUTPUT = {
    "empty-turn.sse": (0, '"name":"Read"', "finding stop-reason"),
    "marker-in-text.sse": (0, "0 calls", "detected the dialect 'qwen3_coder'"),
    "--dialect qwen3_coder marker-in-text.sse": (0, '"name":"Read"', "1 call, 1 finding"),
    "cut-short.sse": (1, '{"error":', "the upstream ended inside the call of 'Write'"),
    "lost-thinking.json": (0, '"reasoning_content":" "', "finding (warning): thinking-lost"),
}


@pytest.mark.parametrize("ending", EXPECTED_OUTPUT)
def test_command_prints_expected_output(ending: str, tmp_path: Path) -> None:
    (command,) = [
        command
        for command in COMMANDS
        if command.endswith(f" {ending}") and ("--dialect" in command) == ("--" in ending)
    ]
    shutil.copytree(ROOT / "examples" / "symptoms", tmp_path, dirs_exist_ok=True)
    argv = [sys.executable, "-m", "interlingua", *command.split()]
    ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    status, *shown = EXPECTED_OUTPUT[ending]
    assert ran.returncode == status
    for text in shown:
        assert text in ran.stdout + ran.stderr


def test_page_uses_every_example() -> None:
    named = " ".join(COMMANDS)
    assert [path.name for path in (ROOT / "examples" / "symptoms").iterdir() if path.name not in named] == []


def test_findings_exist() -> None:
    kinds = set(re.findall(r"finding `([a-z-]+)`", PAGE))
    assert kinds
    assert kinds <= set(FINDING_KINDS)
