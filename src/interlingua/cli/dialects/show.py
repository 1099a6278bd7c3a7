"""`interlingua dialects show`: print a dialect as the YAML file that `load_dialect` reads."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import interlingua as il
from interlingua.cli.common import console, options
from interlingua.dialects.registry import DETECT_DIALECT
from interlingua.dialects.validation import shape_name
from interlingua.errors import UsageError

DESCRIPTION = """\
Prints a dialect in the YAML format that --dialect FILE.yaml reads, with a
description of each field and a sample. Fields with default values are left out."""
EPILOG = """\
examples:
  interlingua dialects show kimi_k2
  interlingua dialects show kimi_k2 > my_model.yaml
  interlingua parse --dialect ./my_model.yaml reply.txt
"""
MAX_LINE_WIDTH = 100
NEWLINE = "\n"
DEFAULT_HEADER = "A dialect, for `--dialect FILE.yaml`. Markers are in double quotes, so \\n is a line break."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="DIALECT", help="name of a dialect, or a file such as ./my_model.yaml")


def run(args: argparse.Namespace) -> None:
    dialect = options.resolve_dialect(args.name)
    if dialect is DETECT_DIALECT:
        raise UsageError(
            "'detect' is not a dialect of its own: it tries all dialects", "show the dialect that it detects"
        )
    console.write(dialect_yaml(dialect).encode())


def dialect_yaml(dialect: il.Dialect, notes: Mapping[str, str] | None = None) -> str:
    """Return the dialect as YAML.

    Args:
        dialect: The dialect.
        notes: Comments by field path, such as `shape.framed_json.open`; they go above the field. "" is the header.
    """
    lines = _YamlWriter(notes or {}).fields(dialect, "", "")
    return "".join(f"{line}\n" for line in (*_comment((notes or {}).get("", DEFAULT_HEADER), ""), *lines))


class _YamlWriter:
    def __init__(self, notes: Mapping[str, str]) -> None:
        self._notes = notes
        self._written_docs: set[str] = set()

    def fields(self, value: Any, indent: str, path: str) -> Iterator[str]:
        docs = field_docs(type(value))
        for field in dataclasses.fields(value):
            inner, field_path = getattr(value, field.name), f"{path}.{field.name}".lstrip(".")
            if inner != field.default:
                yield from self._comment_once(docs.get(field.name, ""), indent)
                yield from _comment(self._notes.get(field_path, ""), indent)
                yield from self._field(field.name, inner, indent, field_path)

    def _comment_once(self, doc: str, indent: str) -> Iterator[str]:
        if doc not in self._written_docs:
            self._written_docs.add(doc)
            yield from _comment(doc, indent)

    def _field(self, name: str, value: Any, indent: str, path: str) -> Iterator[str]:
        """Yield `name: value` on one line if it fits, otherwise in block style."""
        inner_indent, one_line = f"{indent}  ", _one_line_or_none(value)
        if isinstance(value, str) and ("\n" in value or '"' in value) and _is_block(value):
            yield f"{indent}{name}: |{'' if value.endswith(NEWLINE) else '-'}"
            yield from (f"{inner_indent}{line}" if line else "" for line in value.removesuffix(NEWLINE).split(NEWLINE))
        elif isinstance(value, str) or (
            one_line is not None and len(indent) + len(name) + 2 + len(one_line) <= MAX_LINE_WIDTH
        ):
            yield f"{indent}{name}: {one_line}"
        elif isinstance(value, tuple):
            yield f"{indent}{name}:"
            yield from (f"{inner_indent}- {format_value(part)}" for part in value)
        else:
            yield f"{indent}{name}:"
            if hasattr(value, "grammar"):
                shape = shape_name(value)
                yield from self._comment_once(inspect.getdoc(inspect.getmodule(value)) or "", inner_indent)
                yield f"{inner_indent}{shape}:"
                inner_indent, path = f"{inner_indent}  ", f"{path}.{shape}"
            yield from self.fields(value, inner_indent, path)


def _one_line_or_none(value: Any) -> str | None:
    """Return the value on one line; None if that would be hard to read."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], str | il.Span):
        return _one_line_or_none(value[0])
    if isinstance(value, tuple):
        parts = [_one_line_or_none(part) for part in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    if value == il.Span(getattr(value, "open", ""), getattr(value, "close", "")):
        return f"[{_quote(value.open)}, {_quote(value.close)}]"
    return (
        _flow_mapping(value) if isinstance(value, il.Span) else None if dataclasses.is_dataclass(value) else str(value)
    )


def format_value(value: Any) -> str:
    """Return the value on one line, even if it is hard to read."""
    return _one_line_or_none(value) or _flow_mapping(value)


def _flow_mapping(value: Any) -> str:
    """Return a dataclass as a YAML flow mapping, on one line."""
    fields = [(field.name, getattr(value, field.name), field.default) for field in dataclasses.fields(value)]
    flow = (
        "{" + ", ".join(f"{name}: {format_value(inner)}" for name, inner, default in fields if inner != default) + "}"
    )
    return f"{{{shape_name(value)}: {flow}}}" if hasattr(value, "grammar") else flow


def _quote(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _escape(char)) for char in text) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _is_block(text: str) -> bool:
    """Return whether a YAML block scalar shows the text exactly: no invisible characters, at most one final newline."""
    lines = text.removesuffix(NEWLINE).split(NEWLINE)
    visible = all(line.isprintable() and line == line.rstrip() for line in lines)
    return visible and bool(lines[-1]) and lines[0] == lines[0].lstrip() != ""


def _comment(text: str, indent: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        for line in textwrap.wrap(
            paragraph, MAX_LINE_WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False
        ):
            yield f"{indent}# {line}"


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the docstring below each field in the source of the class; {} if the source is not available."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for field, doc in zip(body.body, body.body[1:], strict=False):
        match field, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = inspect.cleandoc(text)
    return docs
