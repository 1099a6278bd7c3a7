"""Run the tests with each supported Python that is installed: `make test-pythons`.

Each version has an environment of its own, `.venv-3.12` for example. Interpreters are searched in PATH and in pyenv.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DEFAULT_PYTEST_ARGUMENTS = ["-q", "-n", "4", "--dist", "worksteal", "-m", "not slow"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="VERSIONS", default=",".join(VERSIONS), help="for example: 3.12,3.13")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    args = parser.parse_args()
    results = {version: run_tests(version, args.pytest) for version in args.only.split(",")}
    for version, result in results.items():
        sys.stderr.write(f"Python {version}: {result}\n")
    return 1 if any(result.startswith("failed") for result in results.values()) else 0


def run_tests(version: str, pytest_arguments: list[str]) -> str:
    """Install the project for this version, run the tests, and return what happened."""
    interpreter = find_python(version)
    if interpreter is None:
        return "skipped, because it is not installed (searched PATH and pyenv)"
    start = time.monotonic()
    python = ROOT / f".venv-{version}" / "bin" / "python"
    sys.stderr.write(f"Python {version}: {interpreter}\n")
    pins = {"PIP_CONSTRAINT": "constraints.txt", "PIP_BUILD_CONSTRAINT": "constraints.txt"}
    install = [str(python), "-m", "pip", "install", "-qq", "-e", ".[dev]"]
    for command in ([interpreter, "-m", "venv", str(python.parents[1])], install):
        if subprocess.run(command, cwd=ROOT, env={**os.environ, **pins}).returncode:
            return "failed: the packages cannot be installed"
    arguments = [*DEFAULT_PYTEST_ARGUMENTS, *pytest_arguments]
    status = subprocess.run([str(python), "-m", "pytest", *arguments], cwd=ROOT).returncode
    return f"{'failed' if status else 'passed'}, {time.monotonic() - start:.0f} s"


def find_python(version: str) -> str | None:
    """Return an interpreter of this version that runs; None if there is none."""
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        yield sys.executable
    if found := shutil.which(f"python{version}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True))


def _runs(path: str, version: str) -> bool:
    """Return whether this is a Python of the version. A shim of pyenv may exist without one."""
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    ran = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return ran.stdout.strip() == version


if __name__ == "__main__":
    sys.exit(main())
