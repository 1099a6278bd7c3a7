"""Tests of docs/guides/constrained-decoding.md: its settings are valid, and its commands and programs run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from interlingua.cli import main
from interlingua.core.findings import FINDING_KINDS
from interlingua.exports.exporter import FORMATS
from interlingua.gateway.settings.loader import load_settings
from tests.support.paths import ROOT

GUIDE = (ROOT / "docs" / "guides" / "constrained-decoding.md").read_text(encoding="utf-8")
(SETTINGS,) = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.M | re.S)
(TOOLS,) = re.findall(r"^```json\n(.*?)^```", GUIDE, re.M | re.S)
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.M | re.S)
COMMANDS = re.findall(r"^\$ interlingua (.*) > (\S+)$", GUIDE, re.M)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tools.json").write_text(TOOLS, encoding="utf-8")


def test_settings_are_valid() -> None:
    path = Path("interlingua.yaml")
    path.write_text(SETTINGS, encoding="utf-8")
    path.chmod(0o600)
    model = load_settings(path, {}).settings.models["*"]
    assert not isinstance(model, str)
    assert model.strict == "always"


@pytest.mark.parametrize(("command", "file"), COMMANDS, ids=[file for _, file in COMMANDS])
def test_commands_run(command: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)) == 0
    output, errors = capsys.readouterr()
    assert errors == ""
    if file.endswith(".json"):
        assert isinstance(json.loads(output), dict)
    else:
        assert "get_weather" in output


def test_all_formats_are_shown() -> None:
    assert [command.split()[1] for command, _ in COMMANDS] == list(FORMATS)


def test_program_runs() -> None:
    names: dict[str, object] = {}
    exec(PROGRAM, names)
    assert str(names["exported"]).startswith("Export(format='structural-tag'")


def test_findings_exist() -> None:
    findings = set(re.findall(r"`([a-z]+-[a-z-]+)`", GUIDE)) - set(FORMATS)
    assert {"refusal-corrected", "not-constrained", "partly-constrained", "call-asked-again"} == findings
    assert findings <= set(FINDING_KINDS)
