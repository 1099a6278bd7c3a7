"""A dialect from a YAML file: read by the types of its fields, and checked.

The fields are those of Dialect and of the shapes. Nothing here knows one shape from another: a new field needs no line.
Where a list of texts is expected, a single text will do. A span is a pair `[open, close]`, or a mapping.
"""

from __future__ import annotations

import dataclasses
import json
import os
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from interlingua.common.yaml_reader import NULL, TEXT, came, compose, place
from interlingua.dialects.registry import dialects
from interlingua.dialects.validation import check
from interlingua.errors import BadInput, UsageError, expect, nearest
from interlingua.parsing.dialect import Dialect, Shape, Span
from interlingua.parsing.shapes.channels.grammar import Channels
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams

__all__ = ["SHAPES", "dialect_in", "load_dialect"]

SHAPES: dict[str, type[Any]] = {
    shape.NAME: shape for shape in (Channels, FramedJson, JsonEnvelope, Literals, Pythonic, TaggedParams)
}
"""Every shape by its name in dialect files."""

EXAMPLES = {
    "name": "my_model",
    "summary": '"My Model: calls in tags, no ids"',
    "models": '["*my-model*"]',
    "shape": '{json_envelope: {open: "<tool_call>", close: "</tool_call>"}}',
    "noise": '["<|im_end|>"]',
    "trim": '"\\n"',
    "sample": "the text of a genuine reply, with two calls",
}
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def load_dialect(source: str | os.PathLike[str]) -> Dialect:
    """The dialect in a YAML file, or in the YAML text itself. BadInput says what is wrong with it, and where."""
    expect(source, str | os.PathLike, "a dialect's file is a path, or its text", 'for example "my_model.yaml"')
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return dialect_in(compose(source, "the dialect"), "the dialect")
    where = os.fspath(source)
    try:
        text = Path(where).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {where}: {error.strerror}", "give the path of a YAML file, or its text") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{where} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    return dialect_in(compose(text, where), where)


def dialect_in(node: yaml.Node, where: str) -> Dialect:
    """The dialect in a file's root, or in a part of another file. `where` is what errors call it."""
    dialect = _read_fields(node, Dialect, _Place(where))
    assert isinstance(dialect, Dialect)
    check(dialect, where)
    return dialect


# ── from nodes to dataclasses ─────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where in the file a value stands."""

    where: str
    path: tuple[str, ...] = ()

    def field(self, name: str) -> _Place:
        return _Place(self.where, (*self.path, name))

    def wrong(self, node: yaml.Node, problem: str, hint: str) -> BadInput:
        path = f"{'.'.join(self.path)}: " if self.path else ""
        return BadInput(f"{place(self.where, node)}: {path}{problem}", hint)

    def unexpected(self, node: yaml.Node, kind: Any) -> BadInput:
        name = self.path[-1] if self.path else ""
        return self.wrong(node, f"expected {_expected(kind)}, got {came(node)}", _example(name, kind))


def _read(node: yaml.Node, kind: Any, at: _Place) -> object:
    """The node as a value of this type. One branch for each kind of type that a dialect or a shape has in it."""
    if get_origin(kind) in (Union, types.UnionType):
        return _read_union(node, kind, at)
    if kind is Shape or kind in SHAPES.values():
        return _read_shape(node, {name: one for name, one in SHAPES.items() if kind in (Shape, one)}, at)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _read_fields(_spelled_out(node, kind), kind, at)
    if get_origin(kind) is tuple:
        return _read_tuple(node, kind, at)
    return _read_scalar(node, kind, at)


def _read_union(node: yaml.Node, kind: Any, at: _Place) -> object:
    kinds = [one for one in get_args(kind) if one is not types.NoneType]
    if len(kinds) < len(get_args(kind)) and node.tag == NULL:
        return None
    if len(kinds) == 1:
        return _read(node, kinds[0], at)
    return _read_shape(node, {name: shape for name, shape in SHAPES.items() if shape in kinds}, at)


def _read_shape(node: yaml.Node, shapes: dict[str, type[Any]], at: _Place) -> object:
    if not isinstance(node, yaml.MappingNode):
        raise at.unexpected(node, Shape)
    if len(node.value) != 1:
        names = ", ".join(key.value for key, _ in node.value) or "none"
        raise at.wrong(node, f"expected exactly one shape, got {names}", f"one of: {', '.join(shapes)}")
    [(key, fields)] = node.value
    if key.value not in shapes:
        raise at.wrong(key, f"no shape is called {key.value!r}", nearest(key.value, shapes))
    return _read_fields(fields, shapes[key.value], at.field(key.value))


def _read_fields(node: yaml.Node, kind: type[Any], at: _Place) -> object:
    if not isinstance(node, yaml.MappingNode):
        raise at.unexpected(node, kind)
    types_of = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values = {}
    for key, value in node.value:
        if key.value not in fields:
            near = nearest(key.value, fields)
            meant = next((name for name in fields if repr(name) in near), "")
            example = f" {_example(meant, types_of[meant])}" if meant else ""
            raise at.field(key.value).wrong(key, "there is no such field", f"{near}{example}")
        values[key.value] = _read(value, types_of[key.value], at.field(key.value))
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING:
            raise at.field(name).wrong(
                node,
                f"this field is missing, and expected is {_expected(types_of[name])}",
                _example(name, types_of[name]),
            )
    try:
        return kind(**values)
    except UsageError as error:
        raise at.wrong(node, str(error), error.hint) from error


def _spelled_out(node: yaml.Node, kind: type[Any]) -> yaml.Node:
    """A pair as the mapping that it is short for."""
    if kind is not Span or not _is_pair(node):
        return node
    names = [
        yaml.ScalarNode(TEXT, name, part.start_mark) for name, part in zip(("open", "close"), node.value, strict=True)
    ]
    return yaml.MappingNode("tag:yaml.org,2002:map", list(zip(names, node.value, strict=True)), node.start_mark)


def _is_pair(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode) and [type(part) for part in node.value] == [yaml.ScalarNode] * 2


def _read_tuple(node: yaml.Node, kind: Any, at: _Place) -> object:
    inner = get_args(kind)
    if inner[-1] is not Ellipsis:
        if not isinstance(node, yaml.SequenceNode) or len(node.value) != len(inner):
            raise at.unexpected(node, kind)
        return tuple(_read(part, one, at) for part, one in zip(node.value, inner, strict=True))
    if isinstance(node, yaml.SequenceNode) and not (inner[0] is Span and _is_pair(node)):
        return tuple(_read(part, inner[0], at) for part in node.value)
    if isinstance(node, yaml.ScalarNode) and node.tag != TEXT:
        raise at.unexpected(node, kind)
    return (_read(node, inner[0], at),)


def _read_scalar(node: yaml.Node, kind: Any, at: _Place) -> object:
    if isinstance(node, yaml.ScalarNode):
        text = node.value
        if get_origin(kind) is Literal and text in get_args(kind):
            return text
        if kind is str and node.tag == TEXT:
            return text
        if kind is bool and node.tag.endswith(":bool"):
            return _TRUTH[text.lower()]
        if kind is int and node.tag.endswith(":int") and text.isdecimal():
            return int(text)
    raise at.unexpected(node, kind)


def _expected(kind: Any) -> str:
    inner = [one for one in get_args(kind) if one is not types.NoneType]
    if kind is Shape or get_origin(kind) in (Union, types.UnionType):
        return _expected(inner[0]) if len(inner) == 1 and inner[0] is not Shape else "a mapping with one shape in it"
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if get_origin(kind) is tuple and inner[-1] is not Ellipsis:
        return f"a list of {len(inner)}"
    if get_origin(kind) is tuple:
        return f"{_expected(inner[0])}, or a list of such"
    return {str: "a text", bool: "true or false", int: "a number", Span: "a pair [open, close]"}.get(kind, "a mapping")


@cache
def _known_texts() -> dict[str, str]:
    """What the first dialect that has it says in each field of texts."""
    known: dict[str, str] = {}
    for dialect in dialects():
        for name, value in _texts_in(dialect):
            known.setdefault(name, json.dumps(value, ensure_ascii=False))
    return known


def _texts_in(value: Any) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        for one in inner if isinstance(inner, tuple) else (inner,):
            if dataclasses.is_dataclass(one):
                yield from _texts_in(one)
            elif isinstance(one, str) and one:
                yield field.name, one


def _example(name: str, kind: Any) -> str:
    expected = _expected(kind)
    if name in EXAMPLES:
        value = EXAMPLES[name]
    elif expected.startswith("a pair"):
        value = '["<think>", "</think>"]'
    elif expected.startswith("one of "):
        value = expected.removeprefix("one of ").partition(",")[0]
    elif expected.startswith("a text"):
        value = _known_texts().get(name, '"…"')
    else:
        value = {"true or false": "false", "a number": "1"}.get(expected, "{…: …}")
    return f"for example: {name}: {value}" if name else "for example: name: my_model"
