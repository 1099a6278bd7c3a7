"""`interlingua cassettes`: recorded exchanges."""

from __future__ import annotations

import argparse

from interlingua.cli.common import console
from interlingua.cli.common.command_parser import CommandEntry, add_commands

COMMANDS = {
    "show": CommandEntry("interlingua.cli.cassettes.show", "show the requests and replies of cassettes"),
    "check": CommandEntry("interlingua.cli.cassettes.check", "check that recorded replies still mean the same"),
    "import": CommandEntry("interlingua.cli.cassettes.import_", "make cassettes of captures"),
}
DESCRIPTION = """\
A cassette has recorded exchanges: requests of clients, and the replies of
upstreams. `interlingua serve --record` and the pytest plugin write cassettes.
`interlingua serve --replay` and the plugin answer requests from them, without a
model, a key or a network. See docs/guides/testing.md."""
EPILOG = """\
examples:
  interlingua serve --upstream http://localhost:8000/v1 --record cassettes
  interlingua serve --replay cassettes
  interlingua cassettes show cassettes
  interlingua cassettes check tests/cassettes
  interlingua cassettes import captures/*.jsonl --to cassettes
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, COMMANDS, "commands")
    parser.set_defaults(cassettes_parser=parser)


def run(args: argparse.Namespace) -> int:
    """Print the help: there is no default command."""
    console.print_stderr(args.cassettes_parser.format_help())
    return 2
