"""`interlingua faults`: upstreams that fail in every way that is known, to try a gateway or an agent with."""

from __future__ import annotations

import argparse

from interlingua.cli.common.options import add_command
from interlingua.cli.faults import check, serve
from interlingua.cli.faults import list_ as list

NAME = "faults"
HELP = "a server with every known fault, and a check for gateways"
DESCRIPTION = """\
The faults that upstreams and clients of a gateway have: 42, each in one or more
scenarios. A server plays them, picked by the name of the model; a check plays
the client of any gateway in front of it, and judges what comes."""
EPILOG = """\
examples:
  interlingua faults list
  interlingua faults serve                          says how to point a gateway at it
  interlingua faults check http://127.0.0.1:8484
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands (without one: list)")
    for command in (list, serve, check):
        add_command(commands, command)


def run(_: argparse.Namespace) -> None:
    list.run(argparse.Namespace(json=False))
