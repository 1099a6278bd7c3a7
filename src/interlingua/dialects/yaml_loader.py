"""Loader for dialects in YAML files: reads values by the types of the dataclass fields, and validates the dialect.

The fields are those of Dialect and of the shapes. The loader has no code for single fields or shapes, so a new field
needs no change here. A single text is accepted in place of a list of texts. A span is a pair `[open, close]`, or a
mapping.
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

from interlingua.common.yaml_reader import NULL_TAG, TEXT_TAG, compose, describe_node, node_location
from interlingua.dialects.registry import list_dialects
from interlingua.dialects.validation import check_dialect
from interlingua.errors import BadInput, UsageError, expect_type, suggestion_hint
from interlingua.parsing.dialect import Dialect, Shape, Span
from interlingua.parsing.shapes.channels.grammar import Channels
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams

__all__ = ["SHAPES", "dialect_from_node", "load_dialect"]

SHAPES: dict[str, type[Any]] = {
    shape.NAME: shape for shape in (Channels, FramedJson, JsonEnvelope, Literals, Pythonic, TaggedParams)
}
"""All shapes, by their names in dialect files."""

FIELD_EXAMPLES = {
    "name": "my_model",
    "summary": '"My Model: calls in tags, no ids"',
    "models": '["*my-model*"]',
    "shape": '{json_envelope: {open: "<tool_call>", close: "</tool_call>"}}',
    "noise": '["<|im_end|>"]',
    "trim": '"\\n"',
    "sample": "the text of a genuine reply, with two calls",
}
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def load_dialect(source: str | os.PathLike[str]) -> Dialect:
    """Load a dialect from a YAML file, or from the YAML text itself.

    Raises:
        BadInput: The file or the dialect is invalid; the message names the line and the field.
    """
    expect_type(source, str | os.PathLike, "a dialect source is a path or YAML text", 'for example "my_model.yaml"')
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return dialect_from_node(compose(source, "the dialect"), "the dialect")
    path = os.fspath(source)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", "pass the path of a YAML file, or its text") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    return dialect_from_node(compose(text, path), path)


def dialect_from_node(node: yaml.Node, source_name: str) -> Dialect:
    """Read a dialect from the root of a file, or from a part of another file. `source_name` is its name in errors."""
    dialect = _read_fields(node, Dialect, _FieldLocation(source_name))
    assert isinstance(dialect, Dialect)
    check_dialect(dialect, source_name)
    return dialect


# ── YAML nodes to dataclasses ─────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True)
class _FieldLocation:
    """Location of a value in the file."""

    source_name: str
    path: tuple[str, ...] = ()

    def field(self, name: str) -> _FieldLocation:
        return _FieldLocation(self.source_name, (*self.path, name))

    def error(self, node: yaml.Node, problem: str, hint: str) -> BadInput:
        path = f"{'.'.join(self.path)}: " if self.path else ""
        return BadInput(f"{node_location(self.source_name, node)}: {path}{problem}", hint)

    def type_error(self, node: yaml.Node, type_: Any) -> BadInput:
        name = self.path[-1] if self.path else ""
        return self.error(
            node, f"expected {_describe_type(type_)}, got {describe_node(node)}", _example_hint(name, type_)
        )


def _read_value(node: yaml.Node, type_: Any, location: _FieldLocation) -> object:
    """Read the node as a value of this type. There is one branch for each kind of type in dialects and shapes."""
    if get_origin(type_) in (Union, types.UnionType):
        return _read_union(node, type_, location)
    if type_ is Shape or type_ in SHAPES.values():
        return _read_shape(node, {name: shape for name, shape in SHAPES.items() if type_ in (Shape, shape)}, location)
    if isinstance(type_, type) and dataclasses.is_dataclass(type_):
        return _read_fields(_expand_pair(node, type_), type_, location)
    if get_origin(type_) is tuple:
        return _read_tuple(node, type_, location)
    return _read_scalar(node, type_, location)


def _read_union(node: yaml.Node, type_: Any, location: _FieldLocation) -> object:
    members = [member for member in get_args(type_) if member is not types.NoneType]
    if len(members) < len(get_args(type_)) and node.tag == NULL_TAG:
        return None
    if len(members) == 1:
        return _read_value(node, members[0], location)
    return _read_shape(node, {name: shape for name, shape in SHAPES.items() if shape in members}, location)


def _read_shape(node: yaml.Node, shapes: dict[str, type[Any]], location: _FieldLocation) -> object:
    if not isinstance(node, yaml.MappingNode):
        raise location.type_error(node, Shape)
    if len(node.value) != 1:
        names = ", ".join(key.value for key, _ in node.value) or "none"
        raise location.error(node, f"expected exactly one shape, got {names}", f"one of: {', '.join(shapes)}")
    [(key, fields)] = node.value
    if key.value not in shapes:
        raise location.error(key, f"unknown shape {key.value!r}", suggestion_hint(key.value, shapes))
    return _read_fields(fields, shapes[key.value], location.field(key.value))


def _read_fields(node: yaml.Node, type_: type[Any], location: _FieldLocation) -> object:
    if not isinstance(node, yaml.MappingNode):
        raise location.type_error(node, type_)
    type_hints = get_type_hints(type_)
    fields = {field.name: field for field in dataclasses.fields(type_)}
    values = {}
    for key, value in node.value:
        if key.value not in fields:
            suggestion = suggestion_hint(key.value, fields)
            suggested = next((name for name in fields if repr(name) in suggestion), "")
            example = f" {_example_hint(suggested, type_hints[suggested])}" if suggested else ""
            raise location.field(key.value).error(key, "unknown field", f"{suggestion}{example}")
        values[key.value] = _read_value(value, type_hints[key.value], location.field(key.value))
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING:
            raise location.field(name).error(
                node,
                f"this field is missing; expected {_describe_type(type_hints[name])}",
                _example_hint(name, type_hints[name]),
            )
    try:
        return type_(**values)
    except UsageError as error:
        raise location.error(node, str(error), error.hint) from error


def _expand_pair(node: yaml.Node, type_: type[Any]) -> yaml.Node:
    """Expand a pair to the mapping that it abbreviates."""
    if type_ is not Span or not _is_pair(node):
        return node
    names = [
        yaml.ScalarNode(TEXT_TAG, name, part.start_mark)
        for name, part in zip(("open", "close"), node.value, strict=True)
    ]
    return yaml.MappingNode("tag:yaml.org,2002:map", list(zip(names, node.value, strict=True)), node.start_mark)


def _is_pair(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode) and [type(part) for part in node.value] == [yaml.ScalarNode] * 2


def _read_tuple(node: yaml.Node, type_: Any, location: _FieldLocation) -> object:
    item_types = get_args(type_)
    if item_types[-1] is not Ellipsis:
        if not isinstance(node, yaml.SequenceNode) or len(node.value) != len(item_types):
            raise location.type_error(node, type_)
        return tuple(
            _read_value(part, item_type, location) for part, item_type in zip(node.value, item_types, strict=True)
        )
    if isinstance(node, yaml.SequenceNode) and not (item_types[0] is Span and _is_pair(node)):
        return tuple(_read_value(part, item_types[0], location) for part in node.value)
    if isinstance(node, yaml.ScalarNode) and node.tag != TEXT_TAG:
        raise location.type_error(node, type_)
    return (_read_value(node, item_types[0], location),)


def _read_scalar(node: yaml.Node, type_: Any, location: _FieldLocation) -> object:
    if isinstance(node, yaml.ScalarNode):
        text = node.value
        if get_origin(type_) is Literal and text in get_args(type_):
            return text
        if type_ is str and node.tag == TEXT_TAG:
            return text
        if type_ is bool and node.tag.endswith(":bool"):
            return _BOOLEANS[text.lower()]
        if type_ is int and node.tag.endswith(":int") and text.isdecimal():
            return int(text)
    raise location.type_error(node, type_)


def _describe_type(type_: Any) -> str:
    args = [arg for arg in get_args(type_) if arg is not types.NoneType]
    if type_ is Shape or get_origin(type_) in (Union, types.UnionType):
        return _describe_type(args[0]) if len(args) == 1 and args[0] is not Shape else "a mapping with one shape"
    if get_origin(type_) is Literal:
        return f"one of {', '.join(map(str, args))}"
    if get_origin(type_) is tuple and args[-1] is not Ellipsis:
        return f"a list of {len(args)}"
    if get_origin(type_) is tuple:
        return f"{_describe_type(args[0])}, or a list of them"
    return {str: "a text", bool: "true or false", int: "a number", Span: "a pair [open, close]"}.get(type_, "a mapping")


@cache
def _example_texts() -> dict[str, str]:
    """Return an example for each text field: its value in the first dialect that sets it."""
    texts: dict[str, str] = {}
    for dialect in list_dialects():
        for name, value in _iter_texts(dialect):
            texts.setdefault(name, json.dumps(value, ensure_ascii=False))
    return texts


def _iter_texts(value: Any) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        for item in inner if isinstance(inner, tuple) else (inner,):
            if dataclasses.is_dataclass(item):
                yield from _iter_texts(item)
            elif isinstance(item, str) and item:
                yield field.name, item


def _example_hint(name: str, type_: Any) -> str:
    expected = _describe_type(type_)
    if name in FIELD_EXAMPLES:
        value = FIELD_EXAMPLES[name]
    elif expected.startswith("a pair"):
        value = '["<think>", "</think>"]'
    elif expected.startswith("one of "):
        value = expected.removeprefix("one of ").partition(",")[0]
    elif expected.startswith("a text"):
        value = _example_texts().get(name, '"…"')
    else:
        value = {"true or false": "false", "a number": "1"}.get(expected, "{…: …}")
    return f"for example: {name}: {value}" if name else "for example: name: my_model"
