"""Options that several commands share, and functions that read their values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import interlingua as il
from interlingua.cli.common.console import STDIN, FindingFormat, read_all, read_json
from interlingua.core.tool_choice import ToolChoice, read_tool_choice
from interlingua.dialects.registry import get_dialect
from interlingua.errors import BadInput, UnknownDialect, UsageError, suggestion_hint
from interlingua.wires import WIRES

__all__ = [
    "add_dialect",
    "add_file",
    "add_findings",
    "add_prefill",
    "add_tool_choice",
    "add_tools",
    "add_wires",
    "dialect_from_args",
    "load_tools",
    "resolve_dialect",
    "tool_choice_from_args",
]

AUTO = "auto"
DIALECT_FILE_SUFFIXES = (".yaml", ".yml")
_CHOICE_HINT = "use auto, required, none, the name of a tool, or the tool_choice of a request as JSON"
_TOOLS_HINT = 'use a JSON list of tools, as in a request: [{"type": "function", "function": {"name": "…"}}]'


def add_wires(parser: argparse.ArgumentParser) -> None:
    for option, destination, role in (("--from", "source", "input"), ("--to", "target", "output")):
        help = f"wire (API format) of the {role}; default: {WIRES[0]}"
        parser.add_argument(option, dest=destination, default=WIRES[0], metavar="WIRE", help=help)


def add_file(parser: argparse.ArgumentParser, description: str) -> None:
    parser.add_argument(
        "file", nargs="?", default=STDIN, metavar="FILE", help=f"{description}; default or -: standard input"
    )


def add_dialect(parser: argparse.ArgumentParser, auto_description: str) -> None:
    parser.add_argument(
        "--dialect",
        default=AUTO,
        metavar="NAME",
        help=f"dialect in which the model writes calls: a name, or a file such as ./my.yaml; auto: {auto_description}",
    )
    parser.add_argument("--model", metavar="ID", help="model id, such as moonshotai/kimi-k2.5")


def add_tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tools", metavar="FILE", help="JSON list of the tools that the client offered; default: unknown"
    )


def add_tool_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tool-choice",
        metavar="CHOICE",
        help="tool choice of the request: auto, required, none, the name of a tool, or JSON; default: unknown",
    )


def add_prefill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prefill",
        default="",
        metavar="TEXT",
        help="beginning of the reply that the prompt already contains, such as <think>",
    )


def add_findings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--quiet",
        dest="finding_format",
        action="store_const",
        const=FindingFormat.NONE,
        default=FindingFormat.LINES,
        help="print no findings",
    )
    group.add_argument(
        "--json",
        dest="finding_format",
        action="store_const",
        const=FindingFormat.JSON,
        help="print findings as JSON lines (to standard error)",
    )


def resolve_dialect(name: str) -> il.Dialect:
    """Return the dialect with this name or from this file.

    Raises:
        BadInput: There is no such file; the hint names those that the user may mean.
        UsageError: There is no such dialect; the hint names a file of this name.
    """
    if name.endswith(DIALECT_FILE_SUFFIXES):
        path = Path(name)
        if not path.exists() and (files := _dialect_files(path.parent)):
            raise BadInput(f"{name} does not exist", suggestion_hint(str(path), files))
        return il.load_dialect(name)
    try:
        return get_dialect(name)
    except UnknownDialect as error:
        file = next((f"{name}{suffix}" for suffix in DIALECT_FILE_SUFFIXES if Path(f"{name}{suffix}").exists()), "")
        raise UsageError(str(error), f"for the file, write --dialect ./{file}" if file else error.hint) from None


def _dialect_files(folder: Path) -> list[str]:
    """Return the files of a folder that may be dialects."""
    return [str(path) for suffix in DIALECT_FILE_SUFFIXES for path in folder.glob(f"*{suffix}")]


def dialect_from_args(args: argparse.Namespace) -> il.Dialect:
    """Return the dialect that --dialect or --model selects. Native text alone does not identify it."""
    if args.dialect != AUTO:
        return resolve_dialect(args.dialect)
    if args.model is None:
        raise UsageError(
            "the dialect is not specified", "add --dialect NAME (`interlingua dialects` lists them) or --model ID"
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


def tool_choice_from_args(args: argparse.Namespace, tools: list[il.Tool] | None) -> ToolChoice | None:
    """Return the choice of `--tool-choice`: a word, the name of a tool, or the JSON of a request's `tool_choice`.

    Raises:
        BadInput: It is not a tool choice, or names a tool that is not in `--tools`.
    """
    text = args.tool_choice
    if not text:
        return None
    is_json = text.startswith("{")
    choice = read_tool_choice(
        read_json(text.encode(), dict[str, Any], "--tool-choice", _CHOICE_HINT) if is_json else text
    )
    known_names = [tool.name for tool in tools or ()]
    unknown = next((name for name in choice.names if name not in known_names), None) if choice and tools else None
    if unknown is not None:
        hint = f"use auto, required, none or one of: {', '.join(known_names[:20])}"
        raise BadInput(f"--tool-choice names {unknown!r}, which is not in the file of --tools", hint)
    return choice
