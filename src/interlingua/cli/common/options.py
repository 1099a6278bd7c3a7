"""The options that several commands share, and what they mean."""

from __future__ import annotations

import argparse
from typing import Any, Protocol

import interlingua as il
from interlingua.cli.common.console import STDIN, FindingFormat, read_all, read_json
from interlingua.dialects.registry import get_dialect
from interlingua.errors import BadInput, UsageError
from interlingua.wires import WIRES

__all__ = [
    "add_command",
    "add_dialect",
    "add_file",
    "add_findings",
    "add_prefill",
    "add_tools",
    "add_wires",
    "dialect_from_args",
    "load_tools",
    "resolve_dialect",
]

AUTO = "auto"
DIALECT_FILE_SUFFIXES = (".yaml", ".yml")
_TOOLS_HINT = 'write a JSON list of tools, as in a request: [{"type": "function", "function": {"name": "…"}}]'


class Command(Protocol):
    """A module with a command in it."""

    NAME: str
    HELP: str
    DESCRIPTION: str
    EPILOG: str

    def add_options(self, parser: argparse.ArgumentParser, /) -> None: ...

    def run(self, args: argparse.Namespace, /) -> int | None:
        """Its exit status, if it is not 0."""


def add_command(commands: argparse._SubParsersAction[Any], command: Command) -> None:
    """Add the command that this module defines."""
    parser = commands.add_parser(
        command.NAME,
        help=command.HELP,
        description=command.DESCRIPTION,
        epilog=command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_options(parser)
    parser.set_defaults(run=command.run)


def add_wires(parser: argparse.ArgumentParser) -> None:
    for option, destination in (("--from", "source"), ("--to", "target")):
        parser.add_argument(option, dest=destination, default=WIRES[0], metavar="WIRE", help=f"default: {WIRES[0]}")


def add_file(parser: argparse.ArgumentParser, description: str) -> None:
    parser.add_argument(
        "file", nargs="?", default=STDIN, metavar="FILE", help=f"{description}; - or nothing: standard input"
    )


def add_dialect(parser: argparse.ArgumentParser, auto_description: str) -> None:
    parser.add_argument(
        "--dialect",
        default=AUTO,
        metavar="NAME",
        help=f"how the model writes calls: a name, or a file of yours such as ./my.yaml; auto: {auto_description}",
    )
    parser.add_argument("--model", metavar="ID", help="the model's id, such as moonshotai/kimi-k2.5")


def add_tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tools", metavar="FILE", help="the tools that were offered, as a JSON list; else not known")


def add_prefill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prefill",
        default="",
        metavar="TEXT",
        help="what the prompt had already written of the reply, such as <think>",
    )


def add_findings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--quiet",
        dest="tell",
        action="store_const",
        const=FindingFormat.NONE,
        default=FindingFormat.LINES,
        help="tell no findings",
    )
    group.add_argument(
        "--json",
        dest="tell",
        action="store_const",
        const=FindingFormat.JSON,
        help="tell findings as JSON lines (standard error)",
    )


def resolve_dialect(name: str) -> il.Dialect:
    """The dialect with this name, or from this file."""
    return il.load_dialect(name) if name.endswith(DIALECT_FILE_SUFFIXES) else get_dialect(name)


def dialect_from_args(args: argparse.Namespace) -> il.Dialect:
    """The dialect by its name or by the model; native text itself tells neither."""
    if args.dialect != AUTO:
        return resolve_dialect(args.dialect)
    if args.model is None:
        raise UsageError(
            "which dialect is it?", "give --dialect NAME (`interlingua dialects` lists them) or --model ID"
        )
    return il.dialect_for(args.model)


def load_tools(path: str | None) -> list[il.Tool] | None:
    if path is None:
        return None
    definitions = read_json(read_all(path, "tools"), list[dict[str, Any]], f"the tools file {path}", _TOOLS_HINT)
    try:
        return [il.Tool.read(tool) for tool in definitions]
    except BadInput as error:
        raise BadInput(f"the tools file {path} has {error}", error.hint) from error
