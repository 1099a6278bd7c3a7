"""`interlingua dialects`: what is known. Its own commands show one, check one on recorded text, and draft a new one."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

import interlingua as il
from interlingua.cli.common import console as io
from interlingua.cli.common.options import add_command
from interlingua.cli.dialects import check, draft, show
from interlingua.dialects.registry import DETECT_DIALECT
from interlingua.dialects.validation import shape_name

NAME = "dialects"
HELP = "the dialects that are known, and how to write a new one"
DESCRIPTION = "Lists every dialect: its name, what it is, its shape, and the models that speak it."
EPILOG = """\
examples:
  interlingua dialects
  interlingua dialects --json | jq -r '.[].name'
  interlingua dialects show kimi_k2 > my_model.yaml
  interlingua dialects draft chat_template.jinja -o my_model.yaml
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml
"""
MIN_TWO_COLUMN_WIDTH = 60
"""From this width on, names stand beside what is said of them."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as a JSON list")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands (without one: the list)")
    for command in (show, check, draft):
        add_command(commands, command)


def run(args: argparse.Namespace) -> None:
    all_dialects = il.dialects()
    if args.json:
        io.write_json([_as_json(dialect) for dialect in all_dialects])
    else:
        name_width = max(len(dialect.name) for dialect in all_dialects)
        io.write("".join(_format_entry(dialect, name_width) for dialect in (*all_dialects, DETECT_DIALECT)).encode())


def _as_json(dialect: il.Dialect) -> dict[str, Any]:
    shape = shape_name(dialect.shape) if dialect.shape else None
    return {"name": dialect.name, "models": list(dialect.models), "summary": dialect.summary, "shape": shape}


def _format_entry(dialect: il.Dialect, name_width: int) -> str:
    """The name, and beside it, or below where there is little room, the summary and the models."""
    width = io.terminal_width()
    two_columns = width >= MIN_TWO_COLUMN_WIDTH
    indent = " " * (name_width + 2 if two_columns else 2)
    no_models_note = "(every other model)" if dialect is il.dialect_for("") else "(by name only)"
    shape = f" ({shape_name(dialect.shape)})" if dialect.shape and dialect is not DETECT_DIALECT else ""
    lines = [] if two_columns else [dialect.name]
    first_indent = f"{dialect.name:{name_width}}  " if two_columns else indent
    lines += textwrap.wrap(f"{dialect.summary}{shape}", width, initial_indent=first_indent, subsequent_indent=indent)
    lines += textwrap.wrap(
        " ".join(dialect.models) or no_models_note,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)
