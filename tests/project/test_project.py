"""Tests of project files: exact pins, no package index URLs, and existing `make` targets."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests import pythons
from tests.support.paths import ROOT


def project_files() -> Iterator[Path]:
    """Yield every file that could be committed. Directories in .gitignore are skipped."""
    lines = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    ignored = {".git"} | {line.rstrip("/") for line in lines if line.endswith("/")}
    for directory, subdirectories, files in os.walk(ROOT):
        subdirectories[:] = [name for name in subdirectories if not any(fnmatch(name, pattern) for pattern in ignored)]
        yield from (Path(directory, name) for name in files)


def test_constraints_are_exact_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.+!]+", pin)] == []


def test_no_file_names_a_package_host() -> None:
    setting = re.compile(rb"index[-_]url|find[-_]links", re.IGNORECASE)
    assert [path for path in project_files() if setting.search(path.read_bytes())] == []


def test_make_help_names_targets_that_exist() -> None:
    # Remove the variables of an outer make; otherwise its flags would apply here too.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}

    def make(*args: str) -> str:
        run = subprocess.run(["make", *args], cwd=ROOT, env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout

    listed = re.findall(r"^  make ([\w-]+)", make(), re.MULTILINE)
    assert {"setup", "test", "check", "fmt", "demo", "bench", "clean"} <= set(listed)
    make("--dry-run", *listed)


def test_installed_pythons_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert pythons.find_python(current) == sys.executable
    assert pythons.find_python("2.0") is None
    shim = tmp_path / "python9.9"
    shim.write_text("#!/bin/sh\necho 'pyenv: python9.9: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert pythons.find_python("9.9") is None, "a shim without an interpreter"


def test_versions_of_pythons_are_those_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert [version for version in pythons.VERSIONS if version in classified] == classified


def test_child_processes_do_not_inherit_ignored_signals() -> None:
    """As under `nohup`, or in the background of a script."""

    def ignore_signals() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    child = "import signal; print(signal.getsignal(signal.SIGHUP).name, signal.getsignal(signal.SIGINT).__name__)"
    parent = f"import subprocess, sys, tests.conftest; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    done = subprocess.run(
        [sys.executable, "-c", parent], cwd=ROOT, preexec_fn=ignore_signals, capture_output=True, text=True, check=True
    )
    assert done.stdout == "SIG_DFL default_int_handler\n"
