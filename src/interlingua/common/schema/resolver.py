"""What a JSON Schema says of a value: its types, the choices it has, and where its members and items are described.

Schemas come from clients: anything may stand anywhere in them. What makes no sense counts as not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

__all__ = ["ANY", "NULL", "TYPES", "Facts", "Types", "as_list", "as_mapping", "read_schema", "resolve", "types_of"]

Types: TypeAlias = frozenset[str]

ANY: Types = frozenset(("object", "array", "null", "boolean", "number", "integer", "string"))
NULL: Types = frozenset(("null",))

# What each type's name stands for. Every integer is a number too, so that types can be intersected.
TYPES: dict[str, Types] = {name: frozenset((name,)) for name in ANY} | {"number": frozenset(("number", "integer"))}
# Some write Python's names.
TYPES |= {"str": TYPES["string"], "int": TYPES["integer"], "float": TYPES["number"], "bool": TYPES["boolean"]}
TYPES |= {"dict": TYPES["object"], "list": TYPES["array"]}

MAX_DEPTH, MAX_NODES = 32, 1000
"""How far references and unions of one schema are followed, nested and in all: they may lead in circles."""


class Facts(NamedTuple):
    """What a schema says, its references and unions resolved."""

    types: Types = ANY
    choices: tuple[object, ...] = ()
    parts: tuple[Mapping[str, Any], ...] = ()  # every schema that may name members or items


def read_schema(schema: object, root: object) -> Facts:
    """What the schema says; its references lead into the root."""
    return _Resolver(root).read(schema, MAX_DEPTH)


class _Resolver:
    """Follows references and unions, as far as it may."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = MAX_NODES

    def read(self, schema: object, depth: int) -> Facts:
        self._left -= 1
        if not isinstance(schema, Mapping) or depth == 0 or self._left < 0:
            return Facts()
        said = [Facts(_named_types(schema.get("type"))), _chosen(schema), *self._applied(schema, depth - 1)]
        types = ANY.intersection(*(facts.types for facts in said)) or ANY  # no type fits: nothing was said
        if types == ANY:
            types = _implied_types(schema)
        choices = [choice for facts in said for choice in facts.choices]
        if schema.get("nullable") is True:
            types |= NULL
            choices += [None] if choices else []
        return Facts(types, tuple(choices), (schema, *(part for facts in said for part in facts.parts)))

    def _applied(self, schema: Mapping[str, Any], depth: int) -> Iterable[Facts]:
        """What the schemas say that hold for the same value."""
        if "$ref" in schema:
            yield self.read(resolve(schema["$ref"], self._root), depth)
        for branch in as_list(schema.get("allOf")):
            yield self.read(branch, depth)
        for word in ("anyOf", "oneOf"):
            branches = [self.read(branch, depth) for branch in as_list(schema.get(word))]
            if branches:
                yield _any_of(branches)


def resolve(ref: object, root: object) -> object:
    """What a reference such as `#/$defs/point` leads to in the root; None if nothing is there."""
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


def _any_of(branches: list[Facts]) -> Facts:
    return Facts(
        frozenset().union(*(facts.types for facts in branches)),
        tuple(choice for facts in branches for choice in facts.choices),
        tuple(part for facts in branches for part in facts.parts),
    )


def _named_types(said: object) -> Types:
    """Gemini's clients write the names in capitals."""
    names = as_list(said) or [said]
    types = (TYPES.get(name.lower(), ANY) if isinstance(name, str) else ANY for name in names)
    return frozenset().union(*types)


def _implied_types(schema: Mapping[str, Any]) -> Types:
    """Who names properties means an object, even without saying so."""
    if isinstance(schema.get("properties"), Mapping):
        return TYPES["object"]
    return TYPES["array"] if "items" in schema or "prefixItems" in schema else ANY


def _chosen(schema: Mapping[str, Any]) -> Facts:
    """What `enum` and `const` say."""
    choices = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
    if not choices:
        return Facts()
    types = [types_of(choice) or ANY for choice in choices]
    return Facts(frozenset().union(*types), tuple(choices))


def types_of(value: object) -> Types:
    match value:
        case str():
            return TYPES["string"]
        case bool():
            return TYPES["boolean"]
        case None:
            return NULL
        case int() if value.bit_length() < 10_000:  # Python refuses to print much larger ones
            return TYPES["integer"]
        case float() if isfinite(value):
            return TYPES["number"]
        case Mapping():
            return TYPES["object"]
        case list() | tuple():
            return TYPES["array"]
    return frozenset()


def as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def as_mapping(value: object) -> Mapping[str, Any]:
    """Schemas come from clients: what should be an object may be anything."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}  # the first is far faster
