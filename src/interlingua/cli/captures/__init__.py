"""`interlingua captures`: list the captures of the gateway, and show one."""

from __future__ import annotations

import argparse

from interlingua.cli.common.command_parser import CommandEntry, add_commands

COMMANDS = {
    "list": CommandEntry("interlingua.cli.captures.list_", "list the captures, the newest first"),
    "show": CommandEntry("interlingua.cli.captures.show", "show one capture, or the bytes in it"),
}
DESCRIPTION = """\
A gateway with `--capture DIR` records each exchange in a file: the request,
what the upstream sent, what the client received, and what was found. A capture
is named by its file, or by the id of the request, which is in the log and in
the response header x-interlingua-id."""
EPILOG = """\
examples:
  interlingua captures list --failed
  interlingua captures show req_1f3a
  interlingua translate --explain req_1f3a
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, COMMANDS, "commands (default: list)")


def run(args: argparse.Namespace) -> None:
    from interlingua.cli.captures import list_

    parser = argparse.ArgumentParser()
    list_.add_options(parser)
    list_.run(parser.parse_args([], args))
