"""`interlingua logs`: show the log of the background gateway."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from interlingua.cli.common import console, terminal
from interlingua.cli.gateway.daemon.instances import InstanceStore, add_name_option, instance_name
from interlingua.cli.gateway.daemon.log_reader import follow, last_lines
from interlingua.errors import BadInput, UsageError

DESCRIPTION = "Prints the last lines of the log. It also works after the gateway has stopped."
EPILOG = """\
examples:
  interlingua logs -n 200
  interlingua logs -f       print new lines as they are written, until Ctrl-C
"""
CONTINUATION_INDENT = "    "


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
        _write_lines(last_lines(path, int(args.lines)))
        return
    end, chunks = follow(path)
    _write_lines(last_lines(path, int(args.lines), end))
    for lines in _complete_lines(chunks):
        _write_lines(lines)


def _complete_lines(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the complete lines of each chunk. The rest of a chunk waits for the end of its line."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield [line + b"\n" for line in lines]


def _write_lines(lines: list[bytes]) -> None:
    """Write lines as they are, or on a terminal wrapped between words as the gateway does it. JSON is not wrapped."""
    if not console.stdout_is_terminal():
        console.write(b"".join(lines))
        return
    for line in lines:
        text = line.decode("utf-8", "replace").rstrip("\n")
        parts = [text] if text.startswith("{") else terminal.wrap(text, next_indent=CONTINUATION_INDENT)
        console.write("".join(f"{part}\n" for part in parts or [""]).encode())
