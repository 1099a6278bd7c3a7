"""SDKs are run by small programs of ours in `scripts/`, which the documentation shows as well.

They are started as `KEY=… python SCRIPT API BASE MODEL PROMPT`, in an environment where the SDK is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from e2e.client import Launch, Task

__all__ = ["SCRIPTS", "by_script", "dev_pins", "pins"]

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"


def by_script(program: str, script: str, environment: Mapping[str, str] | None = None) -> Callable[[Task], Launch]:
    def start(task: Task) -> Launch:
        return Launch(
            argv=[program, str(SCRIPTS / script), task.api, task.base, task.model, task.prompt],
            environment={"KEY": task.key, **(environment or {})},
        )

    return start


def pins(venv: str) -> dict[str, str]:
    """All that is in this environment."""
    lines = (HERE / "requirements" / f"{venv}.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines)


def dev_pins(*packages: str) -> dict[str, str]:
    """Of what the project's own tests use, too."""
    return {package: version(package) for package in packages}
