"""Agent setup as a shell command, for users who start the agent themselves."""

from __future__ import annotations

import shlex
from itertools import pairwise

from interlingua.agents.base import AgentSetup

__all__ = ["format_shell_command"]

MAX_LINE_CHARS = 110
LINE_CONTINUATION = " \\\n"


def format_shell_command(setup: AgentSetup, indent: str = "  ", max_chars: int = MAX_LINE_CHARS) -> str:
    """Return one shell command, wrapped with backslashes. All lines but the first are indented.

    Args:
        setup: The agent's environment and arguments.
        indent: The beginning of each line but the first.
        max_chars: The length of a line, unless a single argument is longer.
    """
    lines: list[str] = []
    for part in (
        *(f"{name}={shlex.quote(value)}" for name, value in setup.environment.items()),
        *_quote_arguments(setup.argv),
    ):
        if lines and len(indent) + len(lines[-1]) + len(f" {part}{LINE_CONTINUATION}") <= max_chars + 1:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return f"{LINE_CONTINUATION}{indent}".join(lines)


def _quote_arguments(argv: list[str]) -> list[str]:
    """Quote the arguments, and keep each option together with its value."""
    parts: list[str] = []
    for previous, argument in pairwise(["", *argv]):
        if previous.startswith("-") and not argument.startswith("-"):
            parts[-1] += f" {shlex.quote(argument)}"
        else:
            parts.append(shlex.quote(argument))
    return parts
