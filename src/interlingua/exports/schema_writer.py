"""Writer of JSON Schemas, for engines that read them."""

from __future__ import annotations

from typing import Any, assert_never

from interlingua.exports.value_types import (
    MAX_EXACT_INTEGER,
    AnyValue,
    Array,
    Boolean,
    Constant,
    Null,
    Number,
    Object,
    Reference,
    String,
    Union,
    ValueType,
)

__all__ = ["has_exact_schema", "write_schema"]


def has_exact_schema(type_: ValueType) -> bool:
    """Return whether engines take the numbers in the schema of this type for what they are.

    They read them as floating-point numbers, and allow other digits for 0.1 and for large integers than a model writes.
    """
    known: set[str] = set()
    pending: list[ValueType | None] = [type_]
    while pending:
        match pending.pop():
            case Constant(values) if any(map(_is_rounded, values)):
                return False
            case Array(first, item):
                pending += (*first, item)
            case Object(members, other):
                pending += (*(member.type for member in members), other)
            case Union(types):
                pending += types
            case Reference(name) as reference if name not in known:
                known.add(name)
                pending.append(reference.type)
    return True


def _is_rounded(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER)


def write_schema(type_: ValueType) -> dict[str, Any]:
    """Return a JSON Schema that the values of this type fit, and no others."""
    writer = _SchemaWriter()
    schema = writer.write(type_)
    return {**schema, "$defs": writer.definitions} if writer.definitions else schema


class _SchemaWriter:
    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}  # by the name of the reference

    def write(self, type_: ValueType) -> dict[str, Any]:
        match type_:
            case AnyValue():
                return {}
            case Null() | Boolean() | Number() | String():
                return _write_scalar(type_)
            case Constant(values):
                return {"enum": list(values)}
            case Array(first, item):
                limits = _drop_none(minItems=type_.min_items or None, maxItems=type_.max_items)
                prefix = {"prefixItems": [self.write(inner) for inner in first]} if first else {}
                return {"type": "array", **prefix, "items": self.write(item) if item else False, **limits}
            case Object(members, other):
                return {
                    "type": "object",
                    "properties": {member.key: self.write(member.type) for member in members},
                    "required": [member.key for member in members if member.is_required],
                    "additionalProperties": self.write(other) if other else False,
                }
            case Union(types):
                return {"anyOf": [self.write(inner) for inner in types]}
            case Reference(name):
                if name not in self._names:
                    self._names[name] = f"d{len(self._names)}"
                    self.definitions[self._names[name]] = self.write(type_.type)
                return {"$ref": f"#/$defs/{self._names[name]}"}
            case _:
                assert_never(type_)


def _write_scalar(type_: Null | Boolean | Number | String) -> dict[str, Any]:
    match type_:
        case Null():
            return {"type": "null"}
        case Boolean():
            return {"type": "boolean"}
        case Number(is_integer, minimum, maximum):
            return {"type": "integer" if is_integer else "number", **_drop_none(minimum=minimum, maximum=maximum)}
        case String(min_length, max_length):
            return {"type": "string", **_drop_none(minLength=min_length or None, maxLength=max_length)}
        case _:
            assert_never(type_)


def _drop_none(**keywords: float | None) -> dict[str, float]:
    return {keyword: value for keyword, value in keywords.items() if value is not None}
