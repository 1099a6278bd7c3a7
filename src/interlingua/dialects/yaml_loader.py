"""Loader for dialects in YAML files: reads values by the types of the dataclass fields, and validates the dialect.

The fields are those of Dialect and of the shapes. The loader has no code for single fields or shapes, so a new field
needs no change here.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from interlingua.common.jsontext.codec import read_full_object
from interlingua.common.typed_yaml import TYPE_DESCRIPTIONS, Field, TypedReader, ValuePath, item_type_of, union_members
from interlingua.common.yaml_reader import TEXT_TAG, compose
from interlingua.dialects.registry import list_dialects
from interlingua.dialects.response_template import TEMPLATE_KEY, dialect_from_template
from interlingua.dialects.validation import check_dialect
from interlingua.errors import BadInput, expect_type, suggestion_hint
from interlingua.parsing.dialect import Dialect, Shape, Span
from interlingua.parsing.shapes.channels.grammar import Channels
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams

__all__ = ["SHAPES", "dialect_from_node", "load_dialect"]

SHAPES: dict[str, type[Any]] = {
    shape.NAME: shape for shape in (Channels, FramedJson, JsonEnvelope, LineParams, Literals, Pythonic, TaggedParams)
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


def load_dialect(source: str | os.PathLike[str]) -> Dialect:
    """Load a dialect from a YAML file, or from the YAML text itself.

    A tokenizer_config.json of Hugging Face is such a file, too, if it has a `response_template`.

    Raises:
        BadInput: The file or the dialect is invalid; the message names the line and the field.
    """
    expect_type(source, str | os.PathLike, "a dialect source is a path or YAML text", 'for example "my_model.yaml"')
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return _read_text(source, "the dialect")
    path = os.fspath(source)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", "pass the path of a YAML file, or its text") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    return _read_text(text, path)


def _read_text(text: str, source_name: str) -> Dialect:
    config = read_full_object(text) if text.lstrip().startswith("{") and TEMPLATE_KEY in text else None
    if config is None or TEMPLATE_KEY not in config:
        return dialect_from_node(compose(text, source_name), source_name)
    return dialect_from_template(config, source_name)


def dialect_from_node(node: yaml.Node, source_name: str) -> Dialect:
    """Read a dialect from the root of a file, or from a part of another file. `source_name` is its name in errors."""
    dialect = _DialectReader(source_name).read(node, Dialect)
    assert isinstance(dialect, Dialect)
    check_dialect(dialect, source_name)
    return dialect


class _DialectReader(TypedReader):
    """Reader for the notation of dialect files.

    A span is a pair `[open, close]`, or a mapping. A shape is a mapping with the name of the shape as its only key.
    """

    default_hint = "for example: name: my_model"
    type_descriptions: ClassVar = {**TYPE_DESCRIPTIONS, Shape: "a mapping with one shape", Span: "a pair [open, close]"}

    def resolve(self, node: yaml.Node, type_: Any, path: ValuePath) -> tuple[yaml.Node, Any, ValuePath]:
        if type_ is Span:
            return _expand_pair(node), type_, path
        if type_ is Shape or type_ in SHAPES.values():
            return self._resolve_shape(node, type_, path)
        return node, type_, path

    def field_example(self, field: Field) -> str:
        type_ = item_type_of(union_members(field.type)[0])
        if field.name in FIELD_EXAMPLES:
            return FIELD_EXAMPLES[field.name]
        if type_ is str:
            return _example_texts().get(field.name, '"…"')
        if type_ is Span:
            return '["<think>", "</think>"]'
        return "{…: …}" if type_ is Shape or dataclasses.is_dataclass(type_) else super().field_example(field)

    def _resolve_shape(self, node: yaml.Node, type_: Any, path: ValuePath) -> tuple[yaml.Node, Any, ValuePath]:
        """Return the fields of the shape. `type_` is a shape, or Shape for any of them."""
        if not isinstance(node, yaml.MappingNode):
            return node, Shape, path
        shapes = {name: shape for name, shape in SHAPES.items() if type_ in (Shape, shape)}
        if len(node.value) != 1:
            names = ", ".join(key.value for key, _ in node.value) or "none"
            raise self.error_at(node, path, f"expected exactly one shape, got {names}", f"one of: {', '.join(shapes)}")
        [(key, fields)] = node.value
        if key.value not in shapes:
            raise self.error_at(key, path, f"unknown shape {key.value!r}", suggestion_hint(key.value, shapes))
        return fields, shapes[key.value], (*path, key.value)


def _expand_pair(node: yaml.Node) -> yaml.Node:
    """Expand a pair to the mapping that it abbreviates."""
    if not isinstance(node, yaml.SequenceNode) or [type(part) for part in node.value] != [yaml.ScalarNode] * 2:
        return node
    names = [yaml.ScalarNode(TEXT_TAG, name, node.start_mark) for name in ("open", "close")]
    return yaml.MappingNode("tag:yaml.org,2002:map", list(zip(names, node.value, strict=True)), node.start_mark)


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
