"""Environments of the engines: their folders, and how to create them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["ENVIRONMENTS", "NotInstalled", "install", "python_of"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".engines"
REQUIREMENTS = ROOT / "engines" / "requirements"
ENVIRONMENTS = tuple(sorted(path.stem for path in REQUIREMENTS.glob("*.txt")))
SECONDS = 3600
NO_DEPS = "# no-deps"
"""First words of requirements that are complete: pip does not resolve them."""


class NotInstalled(Exception):
    """An environment that does not exist yet, or whose requirements have changed."""


def python_of(name: str) -> Path:
    """Return the interpreter of an environment.

    Raises:
        NotInstalled: `make engines` has not created it.
    """
    ready = FOLDER / name / ".ready"
    if not ready.exists() or ready.read_text(encoding="utf-8") != _pins(name):
        raise NotInstalled(f"the environment .engines/{name} does not exist: `make engines` creates it")
    return FOLDER / name / "bin" / "python"


def install(name: str) -> None:
    """Create an environment with its pinned packages, unless it is up to date."""
    try:
        python_of(name)
    except NotInstalled:
        print(f"installing .engines/{name}: some minutes", file=sys.stderr)
    else:
        return
    folder = FOLDER / name
    _run(sys.executable, "-m", "venv", str(folder))
    pip = str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"
    pins = _pins(name)
    # Pinned first, so that no other package brings a larger build of it.
    for torch in (pin for pin in pins.splitlines() if pin.startswith("torch==")):
        _run(*pip, torch)
    options = ("--no-deps",) if pins.startswith(NO_DEPS) else ()
    _run(*pip, *options, "-r", str(REQUIREMENTS / f"{name}.txt"))
    _run(*pip, "-e", str(ROOT))  # for the plugins that run inside an engine
    (folder / ".ready").write_text(pins, encoding="utf-8")


def _pins(name: str) -> str:
    return (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=SECONDS)
