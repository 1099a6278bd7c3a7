"""What a person types to point an agent at a gateway that runs already: its setup as a line for a shell."""

from __future__ import annotations

import shlex
from itertools import pairwise

from interlingua.agents.base import Setup

__all__ = ["by_hand"]

WIDTH = 110
GOES_ON = " \\\n"


def by_hand(setup: Setup, indent: str = "  ") -> str:
    """One command, in as many lines as it takes; all but the first are indented."""
    lines: list[str] = []
    for part in (*(f"{name}={shlex.quote(text)}" for name, text in setup.environment.items()), *_parts(setup.argv)):
        if lines and len(indent) + len(lines[-1]) + len(part) < WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return f"{GOES_ON}{indent}".join(lines)


def _parts(argv: list[str]) -> list[str]:
    """An option stays with its value."""
    parts: list[str] = []
    for before, word in pairwise(["", *argv]):
        if before.startswith("-") and not word.startswith("-"):
            parts[-1] += f" {shlex.quote(word)}"
        else:
            parts.append(shlex.quote(word))
    return parts
