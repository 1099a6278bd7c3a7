"""Tests of `interlingua completion`: the scripts are up to date, and the shells complete with them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.completion import completion_scripts
from interlingua.cli import main

SHELLS = ("bash", "zsh", "fish")
ROWS = {
    # words on the command line; completions
    ("tr",): {"translate"},
    ("config", "ch"): {"check"},
    ("translate", "--expl"): {"--explain"},
    ("translate", "--dialect", "kimi"): {"kimi_k2", "kimi_k3"},
    ("run", "cod"): {"codex"},
    ("explain", "cut-s"): {"cut-short"},
    ("request", "--to", "anth"): {"anthropic-messages"},
    ("request", "--upstream", "moon"): {"moonshot"},
    ("serve", "--upstream-profile", "sg"): {"sglang"},
    ("dialects", "show", "kimi"): {"kimi_k2", "kimi_k3"},
    ("faults", "engine", "parser-off-no"): {"parser-off-no-tokens"},
}


def test_scripts_are_generated() -> None:
    for path, text in completion_scripts().items():
        assert path.read_text("utf-8") == text, f"{path.name} is not up to date: run make docs"


def test_commands_are_described_by_their_line_in_the_help() -> None:
    for shell in ("fish", "zsh"):
        assert "say what a kind of finding means, and what to do about it'" in completion_script(shell).read_text(
            "utf-8"
        )


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_printed(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert "interlingua" in out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    ran = subprocess.run([program, "-n"], input=out, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(("words", "expected"), ROWS.items(), ids=[" ".join(words) for words in ROWS])
def test_bash_completes(words: tuple[str, ...], expected: set[str]) -> None:
    script = completion_script("bash")
    program = f"""
source {script}
COMP_WORDS=(interlingua {" ".join(words)})
COMP_CWORD={len(words)}
_shtab_interlingua interlingua "${{COMP_WORDS[$COMP_CWORD]}}" "${{COMP_WORDS[$COMP_CWORD-1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True)
    assert set(ran.stdout.split()) == expected, ran.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("words", "expected"), ROWS.items(), ids=[" ".join(words) for words in ROWS])
def test_fish_completes(words: tuple[str, ...], expected: set[str], tmp_path: Path) -> None:
    command = f"source {completion_script('fish')}; complete -C 'interlingua {' '.join(words)}'"
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    ran = subprocess.run(["fish", "--no-config", "-c", command], env=environment, capture_output=True, text=True)
    assert {line.split("\t")[0] for line in ran.stdout.splitlines()} == expected, ran.stderr


def completion_script(shell: str) -> Path:
    return next(path for path in completion_scripts() if path.suffix == f".{shell}")
