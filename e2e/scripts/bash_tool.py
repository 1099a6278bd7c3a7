"""A tool for `llm --functions`, which makes a tool of each function in this file."""

import subprocess


def bash(command: str) -> str:
    """Run a shell command."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
