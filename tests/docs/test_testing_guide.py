"""Tests of docs/guides/testing.md: its examples are those of the example suite, and that suite runs offline."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.cassettes.cassette_files import load_cassette
from interlingua.cassettes.match_rules import MatchRules
from interlingua.cassettes.playback import CUTS
from interlingua.cli import main
from interlingua.faults.recorded_faults import find_fault
from interlingua.testing import plugin
from interlingua.testing.cassette_session import MODES
from tests.support.cassette_gateway import cassette_gateway, post
from tests.support.paths import ROOT

GUIDE = (ROOT / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "tested_agent"
CASSETTES = EXAMPLE / "cassettes"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.S)


@pytest.mark.slow
def test_example_suite_runs_offline(tmp_path: Path) -> None:
    """As a user runs it: in a process of its own, without a key, and with an upstream that does not exist."""
    suite = shutil.copytree(EXAMPLE, tmp_path / "suite")
    environment = {name: text for name, text in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    environment |= {"CI": "true", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "interlingua.testing.plugin", "--rootdir", str(suite)]
    done = subprocess.run(argv, cwd=suite, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "4 passed" in done.stdout
    before = {path.relative_to(EXAMPLE): path.read_bytes() for path in CASSETTES.rglob("*.yaml")}
    assert {path.relative_to(suite): path.read_bytes() for path in suite.rglob("*.yaml")} == before


def test_programs_of_the_guide_are_those_of_the_example() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in EXAMPLE.glob("*.py"))
    shown = [block for block in blocks("python") if "def " in block]
    assert len(shown) == 3
    assert all(block in source for block in shown)


def test_other_programs_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker, program = (block for block in blocks("python") if "def " not in block)
    exec(compile(marker.replace("@pytest.mark.cassette", "MatchRules"), "guide", "exec"), {"MatchRules": MatchRules})
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "guide", "exec"), {})


def test_tables_are_complete() -> None:
    names = re.findall(r"^\| `(\w+)` \| is ", GUIDE, re.M)
    assert [*names, "rewrite"] == [*MODES] == [*plugin.MODES]
    (cuts,) = re.findall(r"^\| `cut` \| (.*) \|$", GUIDE, re.M)
    assert re.findall(r"`([a-z]+)`", cuts) == [*CUTS]
    (faults,) = re.findall(r"^\| `fault` \| (.*) \|$", GUIDE, re.M)
    for name in ("reset-in-text", "stall-in-call", "429-long", "bad-event"):
        assert f"`{name}`" in faults
        find_fault(name)
    fixtures = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`cassette.*?|`open.*?|`anth.*?) \|", GUIDE, re.M)))
    assert set(fixtures) == {
        *("cassette", "cassette_url", "cassette_config", "cassette_dir"),
        *("openai_client", "async_openai_client", "anthropic_client", "async_anthropic_client"),
    }
    assert all(hasattr(plugin, name) for name in fixtures)


def test_commands_work(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    commands = [shlex.split(line[2:], comments=True) for block in blocks("console") for line in block.splitlines()]
    for command in commands:
        assert command[0] == "interlingua"
        if command[1:3] in (["cassettes", "show"], ["cassettes", "check"]):
            assert main(command[1:]) == 0
    output = capsys.readouterr()
    assert 'get_weather({"city":"Oslo"})' in output.out
    assert "every reply means the same" in output.err


def test_miss_is_shown_as_in_the_guide(tmp_path: Path) -> None:
    shutil.copytree(CASSETTES / "test_weather_agent", tmp_path / "cassette")
    body = load_cassette(CASSETTES).recordings[1].exchange.request.body
    messages = [*body["messages"][:-1], {**body["messages"][-1], "content": "snow, -3 °C"}]
    with cassette_gateway(tmp_path / "cassette", "replay") as url:
        response = post(url, "openai-chat", {**body, "messages": messages})
    (shown,) = (block for block in blocks("text") if "no recording" in block)
    assert shown.strip() in response.error
