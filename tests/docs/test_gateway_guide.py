"""Tests of docs/guides/gateway.md: its settings are valid, and its commands run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.gateway.settings.loader import load_settings
from tests.support.gateway_process import run_gateway
from tests.support.paths import ROOT

GUIDE = (ROOT / "docs" / "guides" / "gateway.md").read_text(encoding="utf-8")
SETTINGS, KEYS, STATE = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.M | re.S)
COMMANDS = re.findall(r"^\$ interlingua (.*)$", GUIDE.replace("\\\n", ""), re.M)
VARIABLES = {"OPENROUTER_API_KEY": "sk-or-0123456789abcdef"}


def test_settings_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "interlingua.yaml"
    path.write_text(SETTINGS, encoding="utf-8")
    path.chmod(0o600)
    loaded = load_settings(path, VARIABLES)
    assert set(loaded.settings.upstreams) == {"openrouter", "home"}
    path.write_text(SETTINGS + KEYS, encoding="utf-8")
    loaded = load_settings(path, {**VARIABLES, "ALICE_KEY": "a", "CI_KEY": "b"})
    assert loaded.settings.client_keys == {"alice": "a", "ci": "b"}
    path.write_text(SETTINGS + STATE, encoding="utf-8")
    loaded = load_settings(path, {**VARIABLES, "DATABASE_URL": "postgresql://gateway@db/gateway"})
    assert loaded.settings.state.store == "postgresql"


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command: str, tmp_path: Path) -> None:
    name, *arguments = shlex.split(command)
    if name == "serve":
        with run_gateway(*arguments, **VARIABLES) as gateway:
            assert gateway.stop() == 0
        return
    agent = tmp_path / arguments[0]
    agent.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    agent.chmod(0o755)
    (tmp_path / "interlingua.yaml").write_text(SETTINGS, encoding="utf-8")
    environment = {**os.environ, **VARIABLES, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "interlingua", name, "--no-check", *arguments]  # there is no network
    ran = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().endswith(arguments[-1] if "--" in arguments else "")


def test_every_command_is_known() -> None:
    assert [command.split()[0] for command in COMMANDS] == ["serve", "run", "run"]
