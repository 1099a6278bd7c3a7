"""Text of `--help`: lines that fit the terminal, split between words only, and headings in bold."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from interlingua.cli.common.terminal import (
    Style,
    gap_end,
    stdout_styler,
    terminal_width,
    wrap,
    wrap_line,
)

__all__ = ["HelpFormatter", "style_headings", "usage_of"]

MAX_WIDTH = 100
"""Longer lines are hard to read."""
_HEADING = re.compile(r"^(usage|[a-z][^\n:.`]*)(?=:$|: interlingua)", re.MULTILINE)
_CONTINUES = " \\"
"""End of a line of a shell command that continues on the next line."""
_SHELL_WORD = r"(?:'[^']*'|\"[^\"]*\"|\S)+"
_COMMAND_PART = re.compile(rf"(?:(?:-\S+|\||>) (?=[^-|>]))?{_SHELL_WORD}")
"""A word of a command. An option stays together with its value."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that keeps the lines of descriptions and examples, and wraps what does not fit.

    A paragraph is wrapped as a whole, so that long and short lines do not alternate.
    """

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
        lines = [indent + line for line in text.splitlines()]
        return "".join(f"{line}\n" for line in _wrap_lines(lines, width))

    def _format_usage(self, *args: Any) -> str:
        usage = super()._format_usage(*args)
        return (
            "".join(f"{line}\n" for part in usage.split("\n") for line in wrap_line(part, self._width)).rstrip()
            + "\n\n"
        )


def _wrap_lines(lines: list[str], width: int) -> Iterator[str]:
    is_example = False
    for block in _split_blocks(lines):
        if block[0] and not _indent(block[0]):
            is_example = block[0] == "examples:"
        if all(len(line) <= width for line in block):
            yield from block
        elif is_example and gap_end(block[0]) is None:
            yield from _wrap_command(block, width)
        else:
            text = " ".join([block[0], *(line.strip() for line in block[1:])])
            yield from wrap_line(text, width) if _indent(text) else wrap(text, width=width)


def _split_blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield each paragraph, each entry of a list and each command: the lines that are wrapped together."""
    block: list[str] = []
    for line in lines:
        if block and _is_continued(block, line):
            block.append(line)
        else:
            if block:
                yield block
            block = [line]
    if block:
        yield block


def _is_continued(block: list[str], line: str) -> bool:
    if block[-1].endswith(_CONTINUES):
        return True
    column = gap_end(block[0]) if _indent(block[0]) else 0
    return bool(block[0] and line) and _indent(line) == column


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _wrap_command(block: list[str], width: int) -> list[str]:
    """Wrap a shell command, so that it can be pasted."""
    indent = " " * _indent(block[0])
    words = " ".join(line.strip().removesuffix(_CONTINUES) for line in block)
    first, *parts = _COMMAND_PART.findall(words)
    lines = [indent + first]
    for part in parts:
        if len(lines[-1]) + 1 + len(part) + len(_CONTINUES) <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += _CONTINUES
            lines.append(f"{indent}    {part}")
    return lines


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
