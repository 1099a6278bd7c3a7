"""`interlingua logs`: show the log of the background gateway."""

from __future__ import annotations

import argparse
from pathlib import Path

from interlingua.cli.common import console
from interlingua.cli.gateway.daemon.instances import InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.log_reader import follow, last_lines
from interlingua.errors import BadInput, UsageError

DESCRIPTION = "Prints the last lines of the log. It also works after the gateway has stopped."
EPILOG = """\
examples:
  interlingua logs -n 200
  interlingua logs -f       print new lines as they are written, until Ctrl-C
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)
    parser.add_argument("-n", dest="lines", default="50", metavar="N", help="number of lines to print; default: 50")
    parser.add_argument("-f", "--follow", action="store_true", help="continue with new lines as they are written")


def run(args: argparse.Namespace) -> None:
    name = instance_name(args)
    if not (args.lines.isascii() and args.lines.isdigit()):
        raise UsageError(f"-n: {args.lines!r} is not a number of lines", "for example: -n 100")
    instances = InstanceStore()
    instance = instances.find(name)
    path = Path(instance.log) if instance is not None else instances.log_path(name)
    if not path.is_file():
        raise BadInput(f"the gateway {name!r} has no log: {path} does not exist", "`interlingua start` creates it")
    if not args.follow:
        console.write(b"".join(last_lines(path, int(args.lines))))
        return
    end, chunks = follow(path)
    console.write(b"".join(last_lines(path, int(args.lines), end)))
    for chunk in chunks:
        console.write(chunk)
