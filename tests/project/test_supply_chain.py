"""Tests of the pins with hashes, the list of components, and the check for known vulnerabilities."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, version

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import audit, sbom
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENTS = (ROOT / "requirements.txt").read_text("utf-8")
SBOM = json.loads(sbom.SBOM_PATH.read_text("utf-8"))


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): pinned for name, pinned in pins}


def runtime_packages() -> set[str]:
    """Return the packages that a gateway needs on this system, directly or indirectly."""
    found: set[str] = set()
    pending = [Requirement(text) for text in PROJECT["dependencies"]]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        pending += [Requirement(text) for text in distribution(name).requires or ()]
    return found


def test_every_runtime_package_has_hashes() -> None:
    entries = re.findall(r"^([\w-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n", REQUIREMENTS, re.M)
    comments = re.findall(r"^#.*\n", REQUIREMENTS, re.M)
    assert "".join(comments) + "".join(f"{name}=={pin}{hashes}\n" for name, pin, hashes in entries) == REQUIREMENTS
    pinned = {name: pin for name, pin, _ in entries}
    assert runtime_packages() <= pinned.keys()
    assert pinned.items() <= constraints().items(), "the versions are those of constraints.txt"


def test_components_are_the_runtime_packages() -> None:
    components = {component["name"]: component["version"] for component in SBOM["components"]}
    assert components == sbom.pinned_versions()
    assert (SBOM["bomFormat"], SBOM["metadata"]["component"]["version"]) == ("CycloneDX", PROJECT["version"])
    assert [component["name"] for component in SBOM["components"] if not component["licenses"]] == []


def test_components_are_up_to_date() -> None:
    """`make sbom` writes the file."""
    for name, pinned in sbom.pinned_versions().items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = ""
        if installed != pinned:
            pytest.skip(f"{name} {installed} is installed, and {pinned} is pinned")
    assert sbom.make_sbom() == SBOM


GOOD = {"name": "attrs", "version": "1", "vulns": []}
BAD = {"name": "aiohttp", "version": "3", "vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]}
NOT_FOUND = {"name": "idna", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.mark.parametrize(
    ("output", "errors", "status", "printed"),
    [
        (json.dumps({"dependencies": [GOOD]}), "", 0, "audit: no known vulnerabilities in 1 packages"),
        (json.dumps({"dependencies": [GOOD, BAD]}), "", 1, "audit: aiohttp 3 is vulnerable: PYSEC-1, PYSEC-2"),
        (json.dumps({"dependencies": [GOOD, NOT_FOUND]}), "", 0, "audit: skipped for 1 of 2 packages"),
        (
            "",
            "Traceback\nConnectionError: no network\n",
            0,
            "audit: skipped, because pip-audit failed: ConnectionError",
        ),
        ("", "", 0, "audit: skipped, because pip-audit failed: no output"),
    ],
)
def test_audit_reports_vulnerabilities_or_that_it_cannot_run(
    output: str, errors: str, status: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.report(output, errors) == status
    assert printed in capsys.readouterr().out
