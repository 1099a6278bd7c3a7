"""Value types: what a grammar can know about the values of a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "ANY_VALUE",
    "MAX_EXACT_INTEGER",
    "NO_VALUE",
    "AnyValue",
    "Array",
    "Boolean",
    "Constant",
    "Member",
    "Null",
    "Number",
    "Object",
    "PlainType",
    "Reference",
    "String",
    "Union",
    "ValueType",
    "alternatives",
    "union",
]


@dataclass(frozen=True)
class AnyValue:
    pass


@dataclass(frozen=True)
class Null:
    pass


@dataclass(frozen=True)
class Boolean:
    pass


@dataclass(frozen=True)
class Number:
    """A number. The limits are included in the range."""

    is_integer: bool = False
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class String:
    min_length: int = 0
    max_length: int | None = None


@dataclass(frozen=True)
class Constant:
    """One of the listed values, which are neither objects nor arrays."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Array:
    """An array: items of these types first, then any number of others."""

    first: tuple[ValueType, ...]
    item: ValueType | None
    """The type of all further items. None: there are none."""
    min_items: int = 0
    max_items: int | None = None


@dataclass(frozen=True)
class Member:
    key: str
    type: ValueType
    is_required: bool


@dataclass(frozen=True)
class Object:
    """An object, with its members in this order."""

    members: tuple[Member, ...]
    other: ValueType | None
    """The type of members with other keys. None: there are none."""


@dataclass(frozen=True)
class Union:
    """A value of one of these types. Without types, there is no value."""

    types: tuple[ValueType, ...]


@dataclass(frozen=True, eq=False)
class Reference:
    """The type of a definition, which may contain itself."""

    name: str
    definitions: Mapping[str, ValueType] = field(repr=False)

    @property
    def type(self) -> ValueType:
        return self.definitions[self.name]


PlainType: TypeAlias = AnyValue | Null | Boolean | Number | String | Constant | Array | Object
ValueType: TypeAlias = PlainType | Union | Reference

MAX_EXACT_INTEGER = 2**53
"""Up to here, engines that read a schema's numbers as floating-point numbers do not round integers."""
ANY_VALUE = AnyValue()
NO_VALUE = Union(())


def union(*types: ValueType) -> ValueType:
    """Join types. All constants become one, and a value of any type makes the others superfluous."""
    flat = [inner for type_ in types for inner in (type_.types if isinstance(type_, Union) else (type_,))]
    if ANY_VALUE in flat:
        return ANY_VALUE
    constants = [type_ for type_ in flat if isinstance(type_, Constant)]
    all_constants = Constant(tuple(value for type_ in constants for value in type_.values))
    others = (type_ for type_ in flat if not isinstance(type_, Constant) or type_ is constants[0])
    joined = tuple(dict.fromkeys(all_constants if isinstance(type_, Constant) else type_ for type_ in others))
    return joined[0] if len(joined) == 1 else Union(joined)


def alternatives(type_: ValueType) -> Iterator[PlainType]:
    """Yield the types that a value may have, without unions and references. Those of a definition come once."""
    known: set[str] = set()
    pending: list[ValueType] = [type_]
    while pending:
        match pending.pop():
            case Union(types):
                pending.extend(reversed(types))
            case Reference(name) as reference:
                pending.extend([] if name in known else [reference.type])
                known.add(name)
            case other:
                yield other
