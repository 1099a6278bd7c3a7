"""Tests of docs/guides/inspector.md: its pictures exist and are small, it counts as many clicks as its test, and its
commands compare two versions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.inspector_scenes import agent_session, write_captures
from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "guides" / "inspector.md"
PICTURES = GUIDE.with_suffix("")
PAGE_TESTS = ROOT / "tests" / "gateway" / "inspector" / "test_page.py"
MAX_PICTURE_BYTES = 150_000


def test_pictures_are_those_that_the_browser_test_takes() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(inspector/([\w-]+)\.webp\)", GUIDE.read_text(encoding="utf-8"))
    taken = re.findall(r'picture\(opened, "([\w-]+)"\)', PAGE_TESTS.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(taken)
    assert sorted(path.stem for path in PICTURES.iterdir()) == sorted(shown)
    assert all(path.stat().st_size < MAX_PICTURE_BYTES for path in PICTURES.iterdir())


def test_reason_is_found_in_five_clicks() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    steps = re.findall(r"(?:\*\*|and )(\d)\. ", text)
    clicks = re.findall(r"\.click\(.*# (\d)$", PAGE_TESTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert steps == clicks == ["1", "2", "3", "4", "5"]


def test_two_versions_are_compared(tmp_path: Path) -> None:
    """Here, the other version is one that knows no dialect."""
    write_captures(tmp_path / "captures", agent_session()[-1:])
    for version, options in (("before", "--dialect standard"), ("after", "")):
        program = tmp_path / version / "bin" / "interlingua"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m interlingua "$@" {options}\n')
        program.chmod(0o755)
    (commands,) = re.findall(r"\$ (for version in .*\n)\$ (diff .*\n)", GUIDE.read_text(encoding="utf-8"))
    done = subprocess.run("".join(commands), shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr  # `diff` has found differences
    assert "<         · dialect: standard\n" in done.stdout
    assert ">         · call opened: run," in done.stdout
