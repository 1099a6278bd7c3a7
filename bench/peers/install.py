"""Which release of each peer is compared, and how it comes under `.peers/`: once, and nowhere else.

python -m bench.peers.install    all of them, ahead of time
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

__all__ = ["CCR", "LITELLM", "PEERS", "ccr", "litellm"]

PEERS = Path(__file__).resolve().parents[2] / ".peers"
LITELLM = "1.106.2"
"""The newest whose dependencies were all to be had on 2026-11-15: those behind it ask for a certifi that was not."""
CCR = "2.0.0"
"""The newest that could be installed on 2026-11-15: 3.1 asks for a package that the registry did not have."""
NODE = "24"
"""Installed beside it where the system has no Node that is young enough."""
OLDEST_NODE = 20


def litellm() -> Path:
    """The `litellm` command, in a virtual environment."""
    folder = PEERS / "litellm"

    def install() -> None:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", f"litellm[proxy]=={LITELLM}"])

    _once(folder, f"LiteLLM {LITELLM}", "two minutes", install)
    return folder / "bin" / "litellm"


def ccr() -> tuple[Path, Path]:
    """Node, and the program of claude-code-router for it."""
    folder = PEERS / "ccr"

    def install() -> None:
        if (npm := shutil.which("npm")) is None:
            raise SystemExit("error: claude-code-router needs npm\nhint: apt-get install npm")
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
        raise SystemExit(f"error: claude-code-router needs Node {OLDEST_NODE}\nhint: rm -r {folder}")
    return node, modules / "@musistudio" / "claude-code-router" / "dist" / "cli.js"


def _once(folder: Path, what: str, time: str, install: Callable[[], None]) -> None:
    """One process at a time, and nothing if this release is there."""
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
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as wrong:
        raise SystemExit(f"error: a peer could not be installed: {wrong}") from None


def _node() -> Path | None:
    """The system's, if it is young enough."""
    if (path := shutil.which("node")) is None:
        return None
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.", told)
    return Path(os.path.realpath(path)) if found and int(found[1]) >= OLDEST_NODE else None


if __name__ == "__main__":
    print(litellm())
    print(*ccr())
