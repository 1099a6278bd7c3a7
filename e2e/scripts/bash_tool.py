"""A tool for `llm --functions`: it makes one of each function that stands here."""

import subprocess


def bash(command: str) -> str:
    """Runs a command of the shell."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
