"""Launch of SDKs by small programs in `scripts/`, which the documentation also shows.

The command is `KEY=… python SCRIPT API BASE MODEL PROMPT`, in an environment that has the SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from e2e.client import Launch, Task

__all__ = ["SCRIPTS", "dev_pins", "launch_script", "pins"]

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"


def launch_script(program: str, script: str, environment: Mapping[str, str] | None = None) -> Callable[[Task], Launch]:
    def start(task: Task) -> Launch:
        return Launch(
            argv=[program, str(SCRIPTS / script), task.api, task.base, task.model, task.prompt],
            environment={"KEY": task.key, **(environment or {})},
        )

    return start


def pins(venv: str) -> dict[str, str]:
    """Return all pinned packages of this environment."""
    lines = (HERE / "requirements" / f"{venv}.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines)


def dev_pins(*packages: str) -> dict[str, str]:
    """Return the versions of packages that the project's own tests use too."""
    return {package: version(package) for package in packages}
