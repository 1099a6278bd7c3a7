"""Pinned releases of the peers, and their installation under `.peers/`, once.

python -m bench.peers.install    install all peers in advance
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = [
    "AGENTIC_API",
    "CCR",
    "LITELLM",
    "PEERS",
    "SGLANG_ROUTER",
    "SMG",
    "CannotInstall",
    "agentic_api",
    "ccr",
    "litellm",
    "sglang_router",
    "smg",
]

PEERS = Path(__file__).resolve().parents[2] / ".peers"
LITELLM = "1.108.4"
AGENTIC_API = "0.9.0"
SGLANG_ROUTER = "0.3.2"
SMG = "1.13.0"
"""Successor of sglang-router, by the same authors."""
CCR = "2.0.0"
"""Newest release that could be installed on 2026-11-17: 3.1.1 needs a package that the registry did not have."""
NODE = "24"
"""Release of Node that is installed too, if the system has no recent one."""
OLDEST_NODE = 20
REQUIREMENTS = """\
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for one in map(Requirement, requires("litellm")):
    if one.marker is None or one.marker.evaluate({"extra": "proxy"}):
        one.marker = None
        print("certifi" if one.name == "certifi" else one)
"""
"""Program that prints LiteLLM's requirements, with any release of certifi. On 2026-11-17 the index did not have the
release that LiteLLM requires. Nothing here uses its certificates."""


class CannotInstall(Exception):
    """A peer cannot be installed; the message says why."""


def litellm() -> Path:
    """Install LiteLLM's proxy in a virtual environment and return the path of its command."""
    folder = PEERS / "litellm"
    python = folder / "bin" / "python"

    def install() -> None:
        _create_environment(folder)
        _run([str(python), "-m", "pip", "install", "-qq", "--no-deps", f"litellm=={LITELLM}"])
        listed = subprocess.run([str(python), "-c", REQUIREMENTS], check=True, capture_output=True, text=True).stdout
        (folder / "requirements.txt").write_text(listed, encoding="utf-8")
        _run([str(python), "-m", "pip", "install", "-qq", "-r", str(folder / "requirements.txt")])

    _once(folder, f"LiteLLM {LITELLM}", "two minutes", install)
    return folder / "bin" / "litellm"


def agentic_api() -> Path:
    """Install agentic-api and return the path of its server."""
    return _python_package("agentic-api", AGENTIC_API) / "agentic-server"


def sglang_router() -> Path:
    """Install sglang-router and return the path of its command."""
    return _python_package("sglang-router", SGLANG_ROUTER) / "sglang-router"


def smg() -> Path:
    """Install smg and return the path of its command."""
    return _python_package("smg", SMG) / "smg"


def ccr() -> tuple[Path, Path]:
    """Install claude-code-router and return the paths of Node and of its program."""
    folder = PEERS / "ccr"

    def install() -> None:
        if (npm := shutil.which("npm")) is None:
            raise CannotInstall("error: claude-code-router needs npm\nhint: apt-get install npm")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
        wanted = [f"@musistudio/claude-code-router@{CCR}", *([] if _node() else [f"node@{NODE}"])]
        _run([npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *wanted], folder)

    _once(folder, f"claude-code-router {CCR}", "a few seconds", install)
    modules = folder / "node_modules"
    own = modules / "node" / "bin" / "node"
    node = own if own.exists() else _node()
    if node is None:
        raise CannotInstall(f"error: claude-code-router needs Node {OLDEST_NODE}\nhint: rm -r {folder}")
    return node, modules / "@musistudio" / "claude-code-router" / "dist" / "cli.js"


def _python_package(name: str, version: str) -> Path:
    """Install a package in a virtual environment and return the folder of its commands."""
    folder = PEERS / name

    def install() -> None:
        _create_environment(folder)
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", f"{name}=={version}"])

    _once(folder, f"{name} {version}", "a few seconds", install)
    return folder / "bin"


def _create_environment(folder: Path) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])


def _once(folder: Path, what: str, time: str, install: Callable[[], None]) -> None:
    """Install, unless this release is already there. A lock file allows only one process at a time."""
    PEERS.mkdir(exist_ok=True)
    done = folder / ".installed"
    with (PEERS / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text(encoding="utf-8") == what:
            return
        print(f"installing {what} in {folder}, once: {time}", file=sys.stderr, flush=True)
        install()
        done.write_text(what, encoding="utf-8")


def _run(args: list[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(args, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=900)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(f"error: cannot install a peer: {error}") from None


def _node() -> Path | None:
    """Return the system's Node, or None if there is none or it is too old."""
    if (path := shutil.which("node")) is None:
        return None
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.", output)
    return Path(os.path.realpath(path)) if version and int(version[1]) >= OLDEST_NODE else None


if __name__ == "__main__":
    print(litellm())
    print(agentic_api())
    print(sglang_router())
    print(smg())
    print(*ccr())
