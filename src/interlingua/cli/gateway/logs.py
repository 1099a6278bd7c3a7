"""`interlingua logs`: what a gateway in the background has told."""

from __future__ import annotations

import argparse
from pathlib import Path

from interlingua.cli.common import console as io
from interlingua.cli.gateway.daemon.instances import InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.log_reader import follow, last_lines
from interlingua.errors import BadInput, UsageError

NAME = "logs"
HELP = "what the gateway in the background has told"
DESCRIPTION = "The last lines of its log, also of one that has ended."
EPILOG = """\
examples:
  interlingua logs -n 200
  interlingua logs -f       as it is written, until Ctrl-C
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name_option(parser)
    parser.add_argument("-n", dest="lines", default="50", metavar="N", help="how many lines; default: 50")
    parser.add_argument("-f", "--follow", action="store_true", help="and those that come")


def run(args: argparse.Namespace) -> None:
    name = instance_name(args)
    if not (args.lines.isascii() and args.lines.isdigit()):
        raise UsageError(f"-n: {args.lines!r} is no number of lines", "for example: -n 100")
    instances = InstanceStore()
    instance = instances.find(name)
    path = Path(instance.log) if instance is not None else instances.log_path(name)
    if not path.is_file():
        raise BadInput(f"{name!r} has no log: {path} is not there", "`interlingua start` begins one")
    if not args.follow:
        io.write(b"".join(last_lines(path, int(args.lines))))
        return
    end, chunks = follow(path)
    io.write(b"".join(last_lines(path, int(args.lines), end)))
    for chunk in chunks:
        io.write(chunk)
