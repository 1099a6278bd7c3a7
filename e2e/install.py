"""Install the clients with pinned versions into a folder, unless they are already there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from e2e.client import DEV, Client

__all__ = ["CannotInstall", "install_clients", "search_path"]

NODE = "24.21.0"
"""Version to install if the machine's Node is too old for the clients."""
NODE_NEEDED = (22, 19)
SECONDS = 1200


class CannotInstall(Exception):
    pass


def install_clients(folder: Path, clients: Iterable[Client]) -> dict[str, str]:
    """Install everything that these clients need.

    Returns:
        Clients that cannot be installed on this machine, each with the reason.
    """
    chosen = list(clients)
    unable: dict[str, str] = {}
    packages = {name: version for client in chosen for name, version in client.npm.items()}
    if packages:
        _npm(folder / "npm", packages)
    for venv in sorted({client.venv for client in chosen if client.python} - {DEV}):
        members = [client for client in chosen if client.venv == venv]
        pins = {name: pin for one in members for name, pin in one.python.items()}
        try:
            _python(folder / venv, pins, max(one.needs_python for one in members))
        except CannotInstall as error:
            unable |= {one.name: str(error) for one in members}
    return unable


def search_path(folder: Path, client: Client, rest: str) -> str:
    """Return PATH with the folders of the client's programs first."""
    modules = folder / "npm" / "node_modules"
    venv = folder / client.venv / "bin" if client.venv != DEV else Path(sys.executable).parent
    places = [venv] if client.python else []
    places += [modules / "node" / "bin", modules / ".bin"] if client.npm else []
    return ":".join([*map(str, places), rest])


def _npm(folder: Path, packages: Mapping[str, str]) -> None:
    wanted = dict(packages)
    if _node_version() < NODE_NEEDED:
        wanted["node"] = NODE
    manifest, ready = folder / "package.json", folder / ".ready"
    before = json.loads(ready.read_text()) if ready.exists() else {}
    merged = dict(sorted({**before, **wanted}.items()))
    if merged == before:
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"private": True, "dependencies": merged}, indent=2))
    _run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"], folder, wanted)
    ready.write_text(json.dumps(merged))


def _node_version() -> tuple[int, ...]:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise CannotInstall("npm is not installed; clients written in JavaScript need it (or exclude them with --only)")
    output = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(number) for number in re.findall(r"\d+", output)[:2])


def _python(folder: Path, pins: Mapping[str, str], needed: tuple[int, int]) -> None:
    ready = folder / ".ready"
    before = json.loads(ready.read_text()) if ready.exists() else {}
    merged = dict(sorted({**before, **pins}.items()))
    if merged == before:
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not (folder / "bin" / "python").exists():
        _run([_interpreter(needed), "-m", "venv", str(folder)], folder.parent, {})
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "-qq", *(f"{name}=={pin}" for name, pin in merged.items())], folder, pins)
    ready.write_text(json.dumps(merged))


def _interpreter(needed: tuple[int, int]) -> str:
    """Return a Python that is new enough: the running one, or one from PATH or pyenv."""
    if sys.version_info[:2] >= needed:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(needed[1], needed[1] + 4)]
    by_pyenv = [path for name in names for path in Path.home().glob(f".pyenv/versions/*/bin/{name}")]
    for python in (*filter(None, map(shutil.which, names)), *map(str, by_pyenv)):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    raise CannotInstall(f"Python {needed[0]}.{needed[1]} or newer is required, and none was found")


def _run(argv: list[str], folder: Path, what: Mapping[str, str]) -> None:
    if what:
        listed = textwrap.shorten(", ".join(f"{name} {version}" for name, version in what.items()), 500)
        print(f"e2e: installing {listed} into {folder}", file=sys.stderr, flush=True)
    try:
        subprocess.run(argv, cwd=folder, check=True, timeout=SECONDS, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(f"cannot install: {error}") from None
