"""Argument parser whose commands are imported only when they are used.

A command is a module with `DESCRIPTION`, `EPILOG`, `add_options` and `run`. Its name and its line of help are in its
parent's table, so that `interlingua --help` imports none of them.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from interlingua.cli.common.help_formatter import HelpFormatter, style_headings, usage_of
from interlingua.errors import UsageError

__all__ = ["Command", "CommandEntry", "CommandParser", "add_commands"]

MIN_SIMILARITY = 0.7
"""Similarity from which on a word is taken for a misspelling of another."""


class Command(Protocol):
    """Interface of a module that defines a command."""

    DESCRIPTION: str
    EPILOG: str

    def add_options(self, parser: argparse.ArgumentParser, /) -> None: ...

    def run(self, args: argparse.Namespace, /) -> int | None:
        """Run the command. Returns its exit status; None means 0."""


class CommandEntry(NamedTuple):
    """A command in its parent's table."""

    module: str
    help: str


class CommandParser(argparse.ArgumentParser):
    """Argument parser that raises `UsageError`, so that its errors are printed like all others."""

    def __init__(self, *args: Any, command_module: str = "", **kwargs: Any) -> None:
        defaults: dict[str, Any] = {"formatter_class": HelpFormatter, "allow_abbrev": False}
        if sys.version_info >= (3, 14):
            defaults["color"] = False  # headings are styled here, the same way for all versions
        super().__init__(*args, **{**defaults, **kwargs})
        self._command_module = command_module

    def load(self) -> None:
        """Import the command's module and add its options. Does nothing the second time."""
        if self._command_module:
            command = cast(Command, import_module(self._command_module))
            self._command_module = ""
            self.description, self.epilog = command.DESCRIPTION, command.EPILOG
            command.add_options(self)
            self.set_defaults(run=command.run)

    def format_help(self) -> str:
        self.load()
        self.usage = self.usage or usage_of(self)
        return style_headings(super().format_help())

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise UsageError, with a suggestion, if a value is none of the choices of its argument."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        is_command = isinstance(action, argparse._SubParsersAction)
        name = "command" if is_command else "/".join(action.option_strings) or str(action.metavar or action.dest)
        known = f"known: {', '.join(choices)}; see `{self.prog} --help`"
        hint = _suggestion(str(value), choices)
        raise UsageError(f"{name}: {value!r} is unknown", f"{hint}see `{self.prog} --help`" if hint else known)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments; raise `UsageError` for unknown ones.

        Each command's own parser reports them, because only it can suggest a similar option of this command.
        Commands that start another program get the arguments after `--` in `program_args`.
        """
        self.load()
        arguments = list(sys.argv[1:] if args is None else args)
        runs_program = self.get_default("program_args") is not None
        end = arguments.index("--") if runs_program and "--" in arguments else len(arguments)
        # With subcommands, the value of an unknown option would be reported as an unknown command.
        parsed, unknown = namespace, self._unknown_option_before_command(arguments[:end])
        if not unknown:
            parsed, unknown = super().parse_known_args(arguments[:end], namespace)
        if runs_program:
            parsed.program_args = arguments[end + 1 :]
        if unknown:
            suggestion = _suggestion(unknown[0].partition("=")[0], self._option_string_actions)
            separator_hint = "arguments for the agent go after `--`; " if runs_program and not suggestion else ""
            raise UsageError(
                f"unrecognized arguments: {' '.join(unknown)}", f"{suggestion}{separator_hint}see `{self.prog} --help`"
            )
        return parsed, unknown

    def _unknown_option_before_command(self, arguments: list[str]) -> list[str]:
        """Return the first option that this parser does not have, before its subcommand; [] if there is none."""
        commands = [
            name for action in self._actions if action.nargs == argparse.PARSER for name in action.choices or ()
        ]
        for word in arguments if commands else ():
            if word in commands:
                break
            if word.startswith("--") and word != "--" and word.partition("=")[0] not in self._option_string_actions:
                return [word]
        return []


def _suggestion(word: str, known_words: Iterable[str]) -> str:
    """Return the question whether the user means a similar word; "" if there is none."""
    matches = difflib.get_close_matches(word, list(known_words), n=1, cutoff=MIN_SIMILARITY)
    return f"did you mean {matches[0]}? " if matches else ""


def add_commands(
    parser: argparse.ArgumentParser, commands: Mapping[str, CommandEntry], title: str, dest: str | None = None
) -> None:
    """Add the commands of this table as subcommands of a parser.

    Args:
        parser: the parent, a `CommandParser`.
        commands: each command's module and line of help, by its name.
        title: the heading of the list in the parent's help.
        dest: the attribute that gets the name of the chosen command.
    """
    subparsers = parser.add_subparsers(
        metavar="COMMAND", title=title, dest=dest or argparse.SUPPRESS, parser_class=CommandParser
    )
    for name, command in commands.items():
        subparsers.add_parser(name, help=command.help, command_module=command.module)
