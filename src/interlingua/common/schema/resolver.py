"""Facts from a JSON Schema: types, choices, and the subschemas that describe members and items.

Schemas come from clients and can contain anything anywhere. Invalid keywords are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

__all__ = [
    "ANY_TYPE",
    "NULL_TYPE",
    "TYPES_BY_NAME",
    "SchemaFacts",
    "TypeSet",
    "as_list",
    "as_mapping",
    "implied_types",
    "named_types",
    "read_schema",
    "resolve_reference",
    "types_of",
]

TypeSet: TypeAlias = frozenset[str]

ANY_TYPE: TypeSet = frozenset(("object", "array", "null", "boolean", "number", "integer", "string"))
NULL_TYPE: TypeSet = frozenset(("null",))

# Types by name. Every integer is a number, too, so that types can be intersected.
TYPES_BY_NAME: dict[str, TypeSet] = {name: frozenset((name,)) for name in ANY_TYPE} | {
    "number": frozenset(("number", "integer"))
}
# Some clients use Python's type names.
TYPES_BY_NAME |= {
    "str": TYPES_BY_NAME["string"],
    "int": TYPES_BY_NAME["integer"],
    "float": TYPES_BY_NAME["number"],
    "bool": TYPES_BY_NAME["boolean"],
}
TYPES_BY_NAME |= {"dict": TYPES_BY_NAME["object"], "list": TYPES_BY_NAME["array"]}

MAX_DEPTH, MAX_NODES = 32, 1000
"""Limits for following references and unions of one schema: nesting depth, and nodes in total. References can be
circular."""


class SchemaFacts(NamedTuple):
    """Content of a schema after its references and unions are resolved."""

    types: TypeSet = ANY_TYPE
    choices: tuple[object, ...] = ()
    parts: tuple[Mapping[str, Any], ...] = ()  # all subschemas that can declare members or items


def read_schema(schema: object, root: object) -> SchemaFacts:
    """Return the facts of the schema. References are resolved in the root."""
    return _SchemaResolver(root).read(schema, MAX_DEPTH)


class _SchemaResolver:
    """Resolves references and unions, up to the limits."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._remaining_nodes = MAX_NODES

    def read(self, schema: object, depth: int) -> SchemaFacts:
        self._remaining_nodes -= 1
        if not isinstance(schema, Mapping) or depth == 0 or self._remaining_nodes < 0:
            return SchemaFacts()
        all_facts = [
            SchemaFacts(named_types(schema.get("type"))),
            _enum_facts(schema),
            *self._applied_facts(schema, depth - 1),
        ]
        types = (
            ANY_TYPE.intersection(*(facts.types for facts in all_facts)) or ANY_TYPE
        )  # an empty intersection is contradictory: ignore the types
        if types == ANY_TYPE:
            types = implied_types(schema)
        choices = [choice for facts in all_facts for choice in facts.choices]
        if schema.get("nullable") is True:
            types |= NULL_TYPE
            choices += [None] if choices else []
        return SchemaFacts(types, tuple(choices), (schema, *(part for facts in all_facts for part in facts.parts)))

    def _applied_facts(self, schema: Mapping[str, Any], depth: int) -> Iterable[SchemaFacts]:
        """Yield the facts of the subschemas that apply to the same value."""
        if "$ref" in schema:
            yield self.read(resolve_reference(schema["$ref"], self._root), depth)
        for branch in as_list(schema.get("allOf")):
            yield self.read(branch, depth)
        for keyword in ("anyOf", "oneOf"):
            branches = [self.read(branch, depth) for branch in as_list(schema.get(keyword))]
            if branches:
                yield _merge_any_of(branches)


def resolve_reference(ref: object, root: object) -> object:
    """Return the target of a reference such as `#/$defs/point` in the root; None if it does not exist."""
    if not isinstance(ref, str) or ref.partition("/")[0] != "#":
        return None
    node = root
    for step in unquote(ref).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and len(name) < 5 and int(name) < len(node):
            node = node[int(name)]
        else:
            node = as_mapping(node).get(name)
    return node


def _merge_any_of(branches: list[SchemaFacts]) -> SchemaFacts:
    return SchemaFacts(
        frozenset().union(*(facts.types for facts in branches)),
        tuple(choice for facts in branches for choice in facts.choices),
        tuple(part for facts in branches for part in facts.parts),
    )


def named_types(type_field: object) -> TypeSet:
    """Read the `type` keyword. Gemini clients write the names in capitals."""
    names = as_list(type_field) or [type_field]
    types = (TYPES_BY_NAME.get(name.lower(), ANY_TYPE) if isinstance(name, str) else ANY_TYPE for name in names)
    return frozenset().union(*types)


def implied_types(schema: Mapping[str, Any]) -> TypeSet:
    """Return the types implied by other keywords: a schema with properties describes an object, also without `type`."""
    if isinstance(schema.get("properties"), Mapping):
        return TYPES_BY_NAME["object"]
    return TYPES_BY_NAME["array"] if "items" in schema or "prefixItems" in schema else ANY_TYPE


def _enum_facts(schema: Mapping[str, Any]) -> SchemaFacts:
    """Return the facts of `enum` and `const`."""
    choices = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
    if not choices:
        return SchemaFacts()
    types = [types_of(choice) or ANY_TYPE for choice in choices]
    return SchemaFacts(frozenset().union(*types), tuple(choices))


def types_of(value: object) -> TypeSet:
    match value:
        case str():
            return TYPES_BY_NAME["string"]
        case bool():
            return TYPES_BY_NAME["boolean"]
        case None:
            return NULL_TYPE
        case int() if value.bit_length() < 10_000:  # Python refuses to print much larger integers
            return TYPES_BY_NAME["integer"]
        case float() if isfinite(value):
            return TYPES_BY_NAME["number"]
        case Mapping():
            return TYPES_BY_NAME["object"]
        case list() | tuple():
            return TYPES_BY_NAME["array"]
    return frozenset()


def as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return the mapping, or an empty one: schemas come from clients and can contain anything."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}  # the first is far faster
