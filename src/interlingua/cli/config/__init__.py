"""`interlingua config`: write, validate and show the gateway's settings, print their JSON Schema."""

from __future__ import annotations

import argparse

from interlingua.cli.common.command_parser import CommandEntry, add_commands

COMMANDS = {
    "init": CommandEntry("interlingua.cli.config.init", "write a settings file, with comments"),
    "check": CommandEntry("interlingua.cli.config.check", "validate the settings and print a summary"),
    "show": CommandEntry("interlingua.cli.config.show", "print the effective settings, with secrets redacted"),
    "schema": CommandEntry("interlingua.cli.config.schema", "print the JSON Schema of the settings file"),
}
DESCRIPTION = """\
Reads the settings in the same way as `interlingua serve`: from
./interlingua.yaml, or if there is none, from
~/.config/interlingua/interlingua.yaml. Environment variables INTERLINGUA_*
override the file."""
EPILOG = """\
examples:
  interlingua config init
  interlingua config check
  interlingua config check ./interlingua.yaml
  INTERLINGUA_LOG__FORMAT=json interlingua config show
  interlingua config schema > interlingua.schema.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, COMMANDS, "commands (default: check)")


def run(_: argparse.Namespace) -> None:
    from interlingua.cli.config import check

    check.run(argparse.Namespace(file=None, config=None, json=False, online=False))
