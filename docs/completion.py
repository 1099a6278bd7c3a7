"""Completion scripts for shells, generated from the parsers of all commands. `make docs` writes them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import shtab

import interlingua as il
from interlingua.agents import AGENTS
from interlingua.cli import build_parser
from interlingua.cli.common.command_parser import CommandParser
from interlingua.cli.completion import SCRIPT_NAMES
from interlingua.core.findings import FINDING_KINDS
from interlingua.faults.engines import ENGINE_FAULTS
from interlingua.upstreams import list_profiles
from interlingua.wires import WIRES

__all__ = ["completion_scripts"]

SCRIPT_FOLDER = Path(__file__).parents[1] / "src" / "interlingua" / "cli" / "completion"
FILE_NAMES, FOLDER_NAMES = ("FILE", "CAPTURE", "SOURCE", "LOG", "PATH"), ("DIR",)
"""Names of arguments in the help (`metavar`) that are files or folders."""
PROFILES = [profile.name for profile in list_profiles()]
VALUES = {
    "--dialect": [dialect.name for dialect in il.dialects()],
    "--from": list(WIRES),
    "--to": list(WIRES),
    "--upstream-api": list(WIRES),
    "--api": list(WIRES),
    "--upstream-profile": PROFILES,
    "PROFILE": PROFILES,
    "--modes": ["stream", "whole", "stream,whole"],
    "--log-format": ["text", "json"],
    "--log-level": ["error", "info", "debug"],
    "AGENT": list(AGENTS),
    "FAULT": list(ENGINE_FAULTS),
    "KIND": list(FINDING_KINDS),
    "DIALECT": [dialect.name for dialect in il.dialects()],
}
"""Values of options and arguments that the parser does not list, because they are checked later."""


def completion_scripts() -> dict[Path, str]:
    """Return the script of each shell, by its file."""
    scripts = {}
    for shell, name in SCRIPT_NAMES.items():
        parser = build_parser()
        for command in list(_all_parsers(parser)):  # all of them are loaded before their descriptions are changed
            for action in command._actions:
                _describe_values(action)
                _describe_commands(action)
        text = shtab.complete(parser, shell=shell, root_prefix="interlingua")
        scripts[SCRIPT_FOLDER / name] = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return scripts


def _all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser and those of all commands below it, loaded."""
    if isinstance(parser, CommandParser):
        parser.load()
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _all_parsers(command)


def _describe_commands(action: argparse.Action) -> None:
    """Describe commands by their line in the help: shtab takes the first line of descriptions, half a sentence."""
    if isinstance(action, argparse._SubParsersAction):
        for command in action._choices_actions:
            action.choices[command.dest].description = command.help


def _describe_values(action: argparse.Action) -> None:
    names = [*action.option_strings, str(action.metavar)]
    values = next((VALUES[name] for name in names if name in VALUES), None)
    if action.choices is None and values is not None:
        action.choices = values
    elif action.metavar in FILE_NAMES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab reads this attribute
    elif action.metavar in FOLDER_NAMES:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
