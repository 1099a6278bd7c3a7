"""`interlingua config`: the gateway's settings. Its own commands check them, show them, and tell what may be set."""

from __future__ import annotations

import argparse

from interlingua.cli.common.options import add_command
from interlingua.cli.config import check, schema, show

NAME = "config"
HELP = "check and show the gateway's settings"
DESCRIPTION = """\
Reads the settings as `interlingua serve` does: ./interlingua.yaml, else the one
in ~/.config/interlingua; over it INTERLINGUA_* of the environment."""
EPILOG = """\
examples:
  interlingua config check
  interlingua config check ./interlingua.yaml
  INTERLINGUA_LOG__FORMAT=json interlingua config show
  interlingua config schema > interlingua.schema.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands (without one: check)")
    for command in (check, show, schema):
        add_command(commands, command)


def run(_: argparse.Namespace) -> None:
    check.run(argparse.Namespace(file=None))
