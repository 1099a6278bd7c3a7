"""Write requirements.txt: the pinned runtime packages with the hashes of their wheels, for deployments.

`constraints.txt` has the versions. pip looks up the wheels that it would install on each system, in the package index
that it is configured with, and reports their hashes. Nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HEADING = """\
# The runtime packages with the hashes of their wheels: pip install --require-hashes -r requirements.txt
# For CPython 3.11 to 3.13 on Linux (glibc 2.28 or musl 1.2, or newer; x86-64 and ARM) and macOS 11 or newer (ARM).
# Not written by hand: `make pins` refreshes them, together with constraints.txt.
"""
PYTHON_VERSIONS = ("3.11", "3.12", "3.13")
LINUX_MACHINES = ("x86_64", "aarch64")
GLIBC_VERSIONS = (28, 34, 39)
"""Minor versions of glibc 2 to look up. pip prefers the wheel for the newest version that a system has."""
OLDEST_GLIBC_VERSION = 5
MUSL_VERSION = 2
MAC_PLATFORMS = ("macosx_11_0_arm64", "macosx_14_0_arm64")
PARALLEL_LOOKUPS = 4


class System(NamedTuple):
    python_version: str
    platforms: tuple[str, ...]
    """Platform tags of the wheels that the system accepts."""


class Wheel(NamedTuple):
    package: str
    version: str
    sha256: str


def main() -> None:
    with ThreadPoolExecutor(PARALLEL_LOOKUPS) as pool:
        wheels = {wheel for found in pool.map(look_up_wheels, systems()) for wheel in found}
    (ROOT / "requirements.txt").write_text(HEADING + "".join(requirement_lines(wheels)), encoding="utf-8")


def systems() -> Iterator[System]:
    for python_version in PYTHON_VERSIONS:
        for machine in LINUX_MACHINES:
            for newest in GLIBC_VERSIONS:
                tags = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, OLDEST_GLIBC_VERSION - 1, -1)]
                yield System(python_version, (*tags, f"manylinux2014_{machine}"))
            yield System(
                python_version, tuple(f"musllinux_1_{minor}_{machine}" for minor in range(MUSL_VERSION, -1, -1))
            )
        for platform in MAC_PLATFORMS:
            yield System(python_version, (platform,))


def look_up_wheels(system: System) -> list[Wheel]:
    """Return the wheels that pip would install on this system. Ends the program if a package has no wheel for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        options = ["--dry-run", "--ignore-installed", "--quiet", "--quiet", "--only-binary=:all:", "--target", folder]
        options += ["--python-version", system.python_version, "--constraint", str(ROOT / "constraints.txt")]
        options += [word for tag in system.platforms for word in ("--platform", tag)]
        command = [sys.executable, "-m", "pip", "install", *options, "--report", str(report), *project["dependencies"]]
        if subprocess.run(command).returncode:
            sys.exit(f"pins: not all wheels exist for Python {system.python_version}, {system.platforms[0]}")
        installations = json.loads(report.read_text("utf-8"))["install"]
    return [
        Wheel(
            canonical_name(installation["metadata"]["name"]),
            installation["metadata"]["version"],
            installation["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for installation in installations
    ]


def requirement_lines(wheels: set[Wheel]) -> Iterator[str]:
    for package, version in sorted({(wheel.package, wheel.version) for wheel in wheels}):
        hashes = sorted(wheel.sha256 for wheel in wheels if wheel.package == package)
        yield f"{package}=={version}"
        yield from (f" \\\n    --hash=sha256:{digest}" for digest in hashes)
        yield "\n"


def canonical_name(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    main()
