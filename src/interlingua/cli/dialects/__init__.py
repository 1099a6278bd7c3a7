"""`interlingua dialects`: list the dialects. Subcommands show, check and draft a dialect."""

from __future__ import annotations

import argparse
from typing import Any

import interlingua as il
from interlingua.cli.common import console, terminal
from interlingua.cli.common.command_parser import CommandEntry, add_commands
from interlingua.dialects.registry import DETECT_DIALECT
from interlingua.dialects.validation import shape_name

COMMANDS = {
    "show": CommandEntry("interlingua.cli.dialects.show", "print a dialect as a YAML file, to copy and change"),
    "check": CommandEntry("interlingua.cli.dialects.check", "test a dialect with recorded texts"),
    "draft": CommandEntry("interlingua.cli.dialects.draft", "draft a dialect from a chat template or from recordings"),
}
DESCRIPTION = """\
Lists all dialects: name, summary, shape, and the models that use it. A dialect
is the format in which a model family writes tool calls and reasoning as text.
Its shape is the layout that it shares with other dialects."""
EPILOG = """\
examples:
  interlingua dialects
  interlingua dialects --json | jq -r '.[].name'
  interlingua dialects show kimi_k2 > my_model.yaml
  interlingua dialects draft chat_template.jinja -o my_model.yaml
  interlingua dialects check recorded.jsonl --dialect ./my_model.yaml
"""
MIN_TWO_COLUMN_WIDTH = 60
"""On narrower terminals, the summary goes below the name."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    add_commands(parser, COMMANDS, "commands (default: list all dialects)")


def run(args: argparse.Namespace) -> None:
    all_dialects = il.dialects()
    if args.json:
        console.write_json([_as_json(dialect) for dialect in all_dialects])
    else:
        name_width = max(len(dialect.name) for dialect in all_dialects)
        console.write(
            "".join(_format_entry(dialect, name_width) for dialect in (*all_dialects, DETECT_DIALECT)).encode()
        )


def _as_json(dialect: il.Dialect) -> dict[str, Any]:
    shape = shape_name(dialect.shape) if dialect.shape else None
    return {"name": dialect.name, "models": list(dialect.models), "summary": dialect.summary, "shape": shape}


def _format_entry(dialect: il.Dialect, name_width: int) -> str:
    """Format one list entry: the name, and next to it or below it the summary and the models."""
    width = terminal.terminal_width()
    two_columns = width >= MIN_TWO_COLUMN_WIDTH
    indent = " " * (name_width + 2 if two_columns else 2)
    no_models_note = "(every other model)" if dialect is il.dialect_for("") else "(by name only)"
    shape = f" ({shape_name(dialect.shape)})" if dialect.shape and dialect is not DETECT_DIALECT else ""
    lines = [] if two_columns else [dialect.name]
    first_indent = f"{dialect.name:{name_width}}  " if two_columns else indent
    lines += terminal.wrap(f"{dialect.summary}{shape}", first_indent, indent)
    lines += terminal.wrap(" ".join(dialect.models) or no_models_note, indent)
    return "".join(f"{line}\n" for line in lines)
