"""Tests of the installation: the wheel and the sdist in an empty home, with pip, pipx and uvx, and the extras."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from interlingua import __version__
from tests.support.paths import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
NAMED_EXTRA = re.compile(r"pip install '(interlingua\[(\w+)\])'")
EXTRA_PROGRAMS = {
    "draft": "import jinja2",
    "otel": "import opentelemetry.sdk, opentelemetry.exporter.otlp.proto.http",
    "postgresql": "import psycopg",
}
"""Programs that work only with the extra."""
NATIVE_TEXT = "<tool_call>\n<function=ls>\n<parameter=path>\n/tmp\n</parameter>\n</function>\n</tool_call>"


def test_extras_in_hints_exist() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {extra for path in files for _, extra in NAMED_EXTRA.findall(path.read_text("utf-8"))}
    assert named >= {"draft", "otel", "postgresql"}
    assert named <= EXTRAS.keys()
    assert named == EXTRA_PROGRAMS.keys()


class CleanHome:
    """A folder that is the home of all commands, without the settings and packages of the user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir()
        kept = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY")
        variables = {name: value for name, value in os.environ.items() if name in kept or name.startswith("PIP_")}
        self._environment = {**variables, "HOME": str(folder / "home"), "UV_NO_PROGRESS": "1"}

    def run(self, *command: str | Path, text: str | None = None, **environment: str) -> str:
        """Run a command that must succeed, and return its standard output."""
        ran = self.try_run(*command, text=text, **environment)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def try_run(
        self, *command: str | Path, text: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env={**self._environment, **environment},
            input=text,
            capture_output=True,
            text=True,
        )
        if re.search("No matching distribution|Could not find a version|error sending request", ran.stderr):
            pytest.skip(f"packages cannot be downloaded: {ran.stderr.strip().splitlines()[-1]}")
        return ran

    def create_environment(self, name: str, *packages: str | Path) -> Path:
        """Create a virtual environment with these packages, and return its folder of programs."""
        folder = self.folder / name
        self.run(sys.executable, "-m", "venv", folder)
        if packages:
            self.run(folder / "bin" / "pip", "install", "-q", *packages)
        return folder / "bin"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> CleanHome:
    return CleanHome(tmp_path_factory.mktemp("install"))


@pytest.fixture(scope="module")
def archives(home: CleanHome) -> dict[str, Path]:
    """Wheel and sdist, built from the files of the checkout."""
    pytest.importorskip("hatchling", reason="builds the wheel")
    target = home.folder / "dist"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(target)], cwd=ROOT, check=True)
    return {"wheel": next(target.glob("*.whl")), "sdist": next(target.glob("*.tar.gz"))}


def check_program(home: CleanHome, *program: str | Path) -> None:
    """Use the installed program: data files of the package and the gateway's packages must be there, too."""
    assert home.run(*program, "--version") == f"interlingua {__version__}\n"
    reply = home.run(*program, "parse", "--dialect", "qwen3_coder", "-", text=NATIVE_TEXT)
    assert '"name":"ls"' in reply
    assert "_shtab_interlingua" in home.run(*program, "completion", "bash")
    assert "demo" in home.run(*program, "config", "check", INTERLINGUA_DEMO="true")


@pytest.fixture(scope="module")
def tools(home: CleanHome) -> Path:
    return home.create_environment("tools", "pipx", "uv")


@pytest.mark.slow
def test_pip_installs_the_sdist(home: CleanHome, archives: dict[str, Path]) -> None:
    check_program(home, home.create_environment("sdist", archives["sdist"]) / "interlingua")


@pytest.mark.slow
def test_pipx_installs(home: CleanHome, archives: dict[str, Path], tools: Path) -> None:
    home.run(tools / "pipx", "install", "--python", sys.executable, archives["wheel"])
    check_program(home, home.folder / "home" / ".local" / "bin" / "interlingua")


@pytest.mark.slow
def test_uvx_runs(home: CleanHome, archives: dict[str, Path], tools: Path) -> None:
    check_program(home, tools / "uvx", "--python", sys.executable, "--from", archives["wheel"], "interlingua")


@pytest.mark.slow
def test_pip_installs_the_wheel_and_its_extras(home: CleanHome, archives: dict[str, Path]) -> None:
    """Extras with the command of the hint, word for word, where the program is installed without them."""
    programs = home.create_environment("wheel", archives["wheel"])
    program, python = programs / "interlingua", programs / "python"
    check_program(home, program)
    home.run(python, "-c", "import interlingua as il; il.Translator(); il.client")
    template = ROOT / "tests" / "data" / "fixtures" / "templates" / "hermes.jinja"
    ran = home.try_run(program, "dialects", "draft", template)
    assert [name for _, name in NAMED_EXTRA.findall(ran.stderr)] == ["draft"]
    for extra, code in EXTRA_PROGRAMS.items():
        assert home.try_run(python, "-c", code).returncode == 1
        home.run(programs / "pip", "install", "-q", f"interlingua[{extra}]")
        home.run(python, "-c", code)
    assert "<tool_call>" in home.run(program, "dialects", "draft", template)
    home.run(programs / "pip", "check")
