"""Text of `--help`: lines that fit the terminal, split between words only, and headings in bold."""

from __future__ import annotations

import argparse
import re
from typing import Any

from interlingua.cli.common.terminal import Style, stdout_styler, terminal_width, wrap, wrap_line

__all__ = ["HelpFormatter", "style_headings", "usage_of"]

MAX_WIDTH = 100
"""Longer lines are hard to read."""
_HEADING = re.compile(r"^(usage|[a-z][^\n:.`]*)(?=:$|: interlingua)", re.MULTILINE)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that keeps the lines of descriptions and examples, and wraps those that are too long."""

    def __init__(self, prog: str, **options: object) -> None:  # noqa: ARG002 (newer versions of argparse pass colours)
        super().__init__(prog, max_help_position=26, width=min(terminal_width(), MAX_WIDTH))

    def _format_action(self, action: argparse.Action) -> str:
        """Return the lines of an option or argument. Commands are listed without a line for the word COMMAND."""
        if isinstance(action, argparse._SubParsersAction):
            return "".join(map(self._format_action, action._get_subactions()))
        return super()._format_action(action)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(f"{line}\n" for part in text.splitlines() for line in wrap_line(indent + part, width))

    def _format_usage(self, *args: Any) -> str:
        usage = super()._format_usage(*args)
        return (
            "".join(f"{line}\n" for part in usage.split("\n") for line in wrap_line(part, self._width)).rstrip()
            + "\n\n"
        )


def usage_of(parser: argparse.ArgumentParser) -> str:
    """Return a short usage: the positional arguments, and `[options]` for all options, which are listed below it."""
    words = ["%(prog)s", "[options]"]
    for action in parser._actions:
        if action.option_strings or isinstance(action, argparse._SubParsersAction):
            continue
        name = str(action.metavar or action.dest)
        words.append({"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}.get(str(action.nargs), name))
    if any(isinstance(action, argparse._SubParsersAction) for action in parser._actions):
        words.append("COMMAND" if parser.get_default("run") is None else "[COMMAND]")
    return " ".join(words)


def style_headings(text: str) -> str:
    styler = stdout_styler()
    return _HEADING.sub(lambda match: styler(match[1], Style.HEADING), text)
