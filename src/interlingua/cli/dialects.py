"""`interlingua dialects`: what is known."""

from __future__ import annotations

import argparse
import textwrap

import interlingua as il
from interlingua.cli import io

HELP = "the dialects that are known"
DESCRIPTION = "Lists every dialect: its name, what it is, and the models that speak it."
EPILOG = """\
examples:
  interlingua dialects
  interlingua dialects --json | jq -r '.[].name'
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as a JSON list")


def run(args: argparse.Namespace) -> None:
    known = il.dialects()
    if args.json:
        io.write_json([{"name": d.name, "models": list(d.models), "summary": d.summary} for d in known])
    else:
        names = max(len(dialect.name) for dialect in known)
        io.write("".join(_entry(dialect, names) for dialect in known).encode())


def _entry(dialect: il.Dialect, names: int) -> str:
    """The name, and beside it the summary and the models."""
    width = io.terminal_width()
    indent = " " * (names + 2)
    others = "(every other model)" if dialect is il.dialect_for("") else "(by name only)"
    models = " ".join(dialect.models) or others
    lines = textwrap.wrap(dialect.summary, width, initial_indent=f"{dialect.name:{names}}  ", subsequent_indent=indent)
    lines += textwrap.wrap(
        models, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "".join(f"{line}\n" for line in lines)
