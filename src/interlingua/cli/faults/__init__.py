"""`interlingua faults`: fault injection for gateways and agents."""

from __future__ import annotations

import argparse

from interlingua.cli.common.command_parser import CommandEntry, add_commands

COMMANDS = {
    "list": CommandEntry("interlingua.cli.faults.list_", "list the faults and the expected behaviour"),
    "serve": CommandEntry(
        "interlingua.cli.faults.serve", "run an upstream that injects the fault that the model id selects"
    ),
    "engine": CommandEntry(
        "interlingua.cli.faults.engine", "run a model server whose template, model, parser or delivery has a fault"
    ),
    "check": CommandEntry("interlingua.cli.faults.check", "test a gateway that has the fault server as its upstream"),
}
DESCRIPTION = """\
42 faults of upstreams and clients, each with one or more scenarios. `serve`
runs an upstream that injects the fault that the model name selects. `check`
sends requests to a gateway in front of that upstream, and rates the replies. It
works with any gateway. `engine` runs a model server with a fault in one of its
stages, for `doctor` and `verify`."""
EPILOG = """\
examples:
  interlingua faults list
  interlingua faults serve    prints how to configure a gateway for it
  interlingua faults check http://127.0.0.1:8484
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, COMMANDS, "commands (default: list)")


def run(_: argparse.Namespace) -> None:
    from interlingua.cli.faults import list_

    list_.run(argparse.Namespace(json=False, recorded=False))
