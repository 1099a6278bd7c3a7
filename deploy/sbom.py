"""Write deploy/sbom.json: the runtime packages with versions, licences and dependencies, in CycloneDX format.

The packages and their versions are those of requirements.txt. Licences and dependencies come from the packages that are
installed here. The file contains no date and no random id: the same packages give the same file.
"""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageMetadata, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SBOM_PATH = ROOT / "deploy" / "sbom.json"
MAX_LICENSE_NAME_CHARS = 100
"""Some packages have the text of their licence where its name is expected."""


def main() -> None:
    SBOM_PATH.write_text(json.dumps(make_sbom(), indent=2) + "\n", encoding="utf-8")


def make_sbom() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = pinned_versions()
    own_reference = package_url(project["name"], project["version"])
    references = {name: package_url(name, version) for name, version in versions.items()}
    needed = {own_reference: [Requirement(text) for text in project["dependencies"]]}
    for name, reference in references.items():
        needed[reference] = [Requirement(text) for text in distribution(name).requires or ()]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own_reference,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own_reference,
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": references[name],
                "name": name,
                "version": version,
                "licenses": licenses(distribution(name).metadata),
                "purl": references[name],
            }
            for name, version in versions.items()
        ],
        "dependencies": [
            {"ref": reference, "dependsOn": depends_on(requirements, references)}
            for reference, requirements in needed.items()
        ],
    }


def pinned_versions() -> dict[str, str]:
    """Return the versions in requirements.txt, by the name of the package."""
    text = (ROOT / "requirements.txt").read_text("utf-8")
    return dict(re.findall(r"^([\w-]+)==([^\s\\]+)", text, re.M))


def package_url(name: str, version: str) -> str:
    return f"pkg:pypi/{canonicalize_name(name)}@{version}"


def depends_on(requirements: list[Requirement], references: dict[str, str]) -> list[str]:
    """Return the references of the required packages. Packages that only extras need are not in `references`."""
    names = {canonicalize_name(requirement.name) for requirement in requirements}
    return sorted(references[name] for name in names if name in references)


def licenses(metadata: PackageMetadata) -> list[dict[str, Any]]:
    """Return the licence as the package states it: as an SPDX expression, by name, or in its classifiers."""
    if expressions := metadata.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    name = (metadata.get_all("License") or [""])[0]
    if not name or len(name) > MAX_LICENSE_NAME_CHARS or "\n" in name:
        classifiers = metadata.get_all("Classifier") or []
        name = next((text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")), "")
    return [{"license": {"name": name}}] if name else []


if __name__ == "__main__":
    main()
