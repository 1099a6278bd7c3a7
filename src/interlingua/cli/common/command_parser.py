"""Argument parser whose commands are imported only when they are used.

A command is a module with `DESCRIPTION`, `EPILOG`, `add_options` and `run`. Its name and its line of help are in its
parent's table, so that `interlingua --help` imports none of them.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from interlingua.errors import UsageError

__all__ = ["Command", "CommandEntry", "CommandParser", "add_commands"]


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
        defaults = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
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
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")

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
            option = unknown[0].partition("=")[0]
            close_matches = difflib.get_close_matches(option, self._option_string_actions, n=1)
            suggestion = f"did you mean {close_matches[0]}? " if close_matches else ""
            separator_hint = "arguments for the agent go after `--`; " if runs_program and not close_matches else ""
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
