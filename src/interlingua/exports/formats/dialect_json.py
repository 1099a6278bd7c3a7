"""A dialect as JSON, with examples of replies, for programs in other languages; and the JSON Schema of that.

The fields are those of dialect files, with all defaults written out. A new version is a change that a reader of the
old one would not understand.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.core.tools import Tool
from interlingua.dialects.native_text import parse, render
from interlingua.dialects.validation import shape_name
from interlingua.dialects.yaml_loader import SHAPES
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect, Shape

__all__ = ["VERSION", "dialect_schema", "write_dialect"]

VERSION = 1
EXAMPLE_TOOL = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "metric": {"type": "boolean"},
            "units": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
)
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"city": "Paris"},
    {"city": "São Paulo", "days": 3, "metric": True, "units": ["c", "f"]},
    {"city": 'line one\nline two "quoted" \\ <b> & 100%'},
)


def write_dialect(dialect: Dialect) -> dict[str, Any]:
    """Return a dialect as JSON values, with examples that `parse` and `render` agree on."""
    tool = {"name": EXAMPLE_TOOL.name, "parameters": EXAMPLE_TOOL.schema}
    return {
        "version": VERSION,
        "dialect": _write_fields(dialect),
        "tools": [{"type": "function", "function": tool}],
        "examples": list(_examples(dialect)),
    }


def _write_fields(value: Any) -> dict[str, Any]:
    return {field.name: _write_value(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _write_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_write_value(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    fields = _write_fields(value)
    return {shape_name(value): fields} if type(value) in SHAPES.values() else fields  # type: ignore[arg-type]


# ── examples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _examples(dialect: Dialect) -> Iterator[dict[str, Any]]:
    """Yield texts and the replies that they are. What the dialect cannot write is left out."""
    for name, parts in _example_replies(dialect):
        try:
            text = render(Reply(parts=parts), dialect)
        except RenderError:
            continue
        reply = parse(text, dialect, tools=[EXAMPLE_TOOL])
        yield {
            "name": name,
            "text": text,
            "reply": {
                "reasoning": reply.reasoning,
                "text": reply.text,
                "calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.calls],
                "stop_reason": reply.stop_reason,
            },
        }


def _example_replies(dialect: Dialect) -> Iterator[tuple[str, list[Part]]]:
    calls = [
        Call(
            f"abcdefgh{n}" if dialect.ids == "nine" else f"call_{n}",
            EXAMPLE_TOOL.name,
            json.dumps(arguments, ensure_ascii=False),
        )
        for n, arguments in enumerate(_ARGUMENTS)
    ]
    yield "text", [Text("Hello.")]
    yield "a call", [calls[0]]
    yield "text and a call", [Text("Let me look."), calls[0]]
    yield "two calls", [calls[0], calls[1]]
    yield "a string with markup and line breaks", [calls[2]]
    yield "thinking and text", [Reasoning("An easy one."), Text("Hello.")]
    yield "thinking, text and calls", [Reasoning("Two cities."), Text("Let me look."), calls[0], calls[1]]


# ── JSON Schema ───────────────────────────────────────────────────────────────────────────────────────────────────────


def dialect_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `write_dialect` returns."""
    definitions: dict[str, Any] = {}
    dialect = _type_schema(Dialect, definitions)
    reply = {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "text": {"type": "string"},
            "calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                    "required": ["name", "arguments"],
                },
            },
            "stop_reason": {"type": ["string", "null"]},
        },
        "required": ["reasoning", "text", "calls", "stop_reason"],
    }
    example = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "text": {"type": "string"}, "reply": reply},
        "required": ["name", "text", "reply"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Interlingua dialect",
        "type": "object",
        "properties": {
            "version": {"const": VERSION},
            "dialect": dialect,
            "tools": {"type": "array", "items": {"type": "object"}},
            "examples": {"type": "array", "items": example},
        },
        "required": ["version", "dialect", "tools", "examples"],
        "$defs": definitions,
    }


def _type_schema(type_: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field's type."""
    simple = {str: "string", bool: "boolean", int: "integer", NoneType: "null"}
    if type_ in simple:
        return {"type": simple[type_]}
    if type_ is Shape:
        return {"anyOf": [_shape_schema(shape, definitions) for shape in SHAPES.values()]}
    if get_origin(type_) is Literal:
        return {"enum": list(get_args(type_))}
    if get_origin(type_) is UnionType:
        return {"anyOf": [_type_schema(member, definitions) for member in get_args(type_)]}
    if get_origin(type_) is tuple:
        first, *others = get_args(type_)
        if others == [Ellipsis]:
            return {"type": "array", "items": _type_schema(first, definitions)}
        items = [_type_schema(item, definitions) for item in (first, *others)]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    return _shape_schema(type_, definitions) if type_ in SHAPES.values() else _reference(type_, definitions)


def _shape_schema(shape: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = shape.NAME
    return {
        "type": "object",
        "properties": {name: _reference(shape, definitions)},
        "required": [name],
        "additionalProperties": False,
    }


def _reference(class_: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a dataclass, and add it to the definitions."""
    name = class_.__name__
    if name not in definitions:
        definitions[name] = {}  # it may contain itself
        types = get_type_hints(class_)
        fields = {field.name: _type_schema(types[field.name], definitions) for field in dataclasses.fields(class_)}
        definitions[name] = {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}
