"""Check the pinned runtime packages for known vulnerabilities with pip-audit.

pip-audit needs its database on the network. Without it, the check is skipped, and the output says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MAX_SECONDS = 60
COMMAND = ["--requirement", str(ROOT / "requirements.txt"), "--require-hashes", "--disable-pip"]
OPTIONS = ["--format", "json", "--progress-spinner", "off", "--timeout", "5"]


def main() -> None:
    if find_spec("pip_audit") is None:
        print("audit: skipped, because pip-audit is not installed")
        return
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pip_audit", *COMMAND, *OPTIONS], capture_output=True, text=True, timeout=MAX_SECONDS
        )
    except subprocess.TimeoutExpired:
        print(f"audit: skipped, because pip-audit took more than {MAX_SECONDS} s")
        return
    sys.exit(report(ran.stdout, ran.stderr))


def report(output: str, errors: str) -> int:
    """Print the result of pip-audit, and return the exit status: 1 if there are vulnerabilities."""
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except ValueError:
        reason = (errors.strip().splitlines() or ["no output"])[-1]
        print(f"audit: skipped, because pip-audit failed: {reason[:200]}")
        return 0
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        ids = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        print(f"audit: {package['name']} {package['version']} is vulnerable: {ids}")
    if unknown:
        print(f"audit: skipped for {len(unknown)} of {len(packages)} packages, which are not in the database")
    elif not vulnerable:
        print(f"audit: no known vulnerabilities in {len(packages)} packages")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    main()
