"""Reader of JSON Schemas: the type of the values that fit a schema.

Schemas come from clients and can contain anything anywhere. Keywords that no grammar enforces are collected as notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from math import ceil, floor, isfinite
from typing import Any, TypeGuard

from interlingua.common.schema.resolver import (
    ANY_TYPE,
    TypeSet,
    as_list,
    as_mapping,
    implied_types,
    named_types,
    resolve_reference,
    types_of,
)
from interlingua.errors import NotExpressible
from interlingua.exports.value_types import (
    ANY_VALUE,
    MAX_EXACT_INTEGER,
    NO_VALUE,
    Array,
    Boolean,
    Constant,
    Member,
    Null,
    Number,
    Object,
    Reference,
    String,
    Union,
    ValueType,
    union,
)

__all__ = ["read_value_type"]

MAX_SCHEMAS = 2000
MAX_DEPTH = 64
"""Maximum number of subschemas that are read for one tool, and of those inside each other."""
_NOT_ENFORCED = (
    *("contains", "dependencies", "dependentRequired", "dependentSchemas", "else", "format", "if", "maxContains"),
    *("maxProperties", "minContains", "minProperties", "multipleOf", "not", "pattern", "patternProperties"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"),
)
_ANNOTATIONS = ("$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")
_DEFINITIONS = ("$defs", "$id", "$schema", "definitions", "id")
_NO_CONSTRAINTS = (*_ANNOTATIONS, *_DEFINITIONS)


def read_value_type(schema: object, name: str, notes: list[str]) -> ValueType:
    """Read a schema.

    Args:
        schema: The schema.
        name: The name of the schema in notes and errors.
        notes: Receives what the schema requires and the type does not.

    Raises:
        NotExpressible: The schema is too large, or no value can fit it.
    """
    return _SchemaReader(schema, name, notes).read_root()


class _SchemaReader:
    def __init__(self, root: object, name: str, notes: list[str]) -> None:
        self._root = root
        self._name = name
        self._notes = notes
        self._definitions: dict[str, ValueType] = {}
        self._remaining = MAX_SCHEMAS
        self._depth = 0

    @contextmanager
    def _level(self) -> Iterator[None]:
        """Count one subschema inside another one."""
        self._remaining -= 1
        if self._remaining < 0 or self._depth == MAX_DEPTH:
            raise NotExpressible(
                f"{self._name}: more than {MAX_SCHEMAS:,} subschemas, or more than {MAX_DEPTH} inside each other",
                "use fewer unions, references and allOf",
            )
        self._depth += 1
        yield
        self._depth -= 1

    def read_root(self) -> ValueType:
        type_ = self._read(self._root, self._name)
        if _has_cycle(self._definitions):
            raise NotExpressible(f"{self._name}: a definition refers to itself alone", "correct the tool's schema")
        if not all(_has_value(inner, self._find_finite()) for inner in (type_, *self._definitions.values())):
            raise NotExpressible(f"{self._name}: no finite value fits the schema", "correct the tool's schema")
        return type_

    def _find_finite(self) -> set[str]:
        """Return the definitions that have finite values, starting with those that do not need others."""
        names: set[str] = set()
        while True:
            more = {name for name, type_ in self._definitions.items() if _has_value(type_, names)} - names
            if not more:
                return names
            names |= more

    def _read(self, schema: object, path: str) -> ValueType:
        with self._level():
            return self._read_schema(schema, path)

    def _read_schema(self, schema: object, path: str) -> ValueType:
        if schema is False:
            return NO_VALUE
        if not isinstance(schema, Mapping):
            return ANY_VALUE
        if "$ref" in schema and not _has_constraints(schema, "$ref"):
            return self._read_reference(schema["$ref"], path)
        if any(part is False for part in as_list(schema.get("allOf"))):
            return NO_VALUE
        if "$ref" in schema or as_list(schema.get("allOf")):
            schema = self._merge_all(schema, path)
        for keyword in _NOT_ENFORCED:
            if keyword in schema:
                self._note(path, f"{keyword!r} is not enforced")
        type_ = self._read_branches(schema, path)
        return union(type_, Null()) if schema.get("nullable") is True else type_

    def _note(self, path: str, note: str) -> None:
        if f"{path}: {note}" not in self._notes:
            self._notes.append(f"{path}: {note}")

    def _read_reference(self, ref: object, path: str) -> ValueType:
        name = f"{self._name} {ref}"
        if name not in self._definitions:
            target = resolve_reference(ref, self._root)
            if target is None:
                self._note(path, f"{ref!r} does not exist in the schema: any value is allowed")
            self._definitions[name] = NO_VALUE  # until it is read
            self._definitions[name] = self._read(True if target is None else target, name)
        return Reference(name, self._definitions)

    def _read_branches(self, schema: Mapping[str, Any], path: str) -> ValueType:
        if "const" in schema or as_list(schema.get("enum")):
            for keyword in schema:
                if keyword not in ("const", "enum", "type", "nullable", *_NO_CONSTRAINTS, *_NOT_ENFORCED):
                    self._note(path, f"{keyword!r} is not enforced beside 'enum' and 'const'")
            return _read_constants(schema)
        for keyword in ("anyOf", "oneOf"):
            branches = as_list(schema.get(keyword))
            if not branches:
                continue
            if keyword == "oneOf":
                self._note(path, "'oneOf' is enforced as 'anyOf'")
            around = {key: value for key, value in schema.items() if key != keyword}
            if _has_constraints(around):
                branches = [self._merge(around, branch, path) for branch in branches]
            return union(*(self._read(branch, path) for branch in branches))
        types = named_types(schema.get("type"))
        types = implied_types(schema) if types == ANY_TYPE else types
        return ANY_VALUE if types == ANY_TYPE else union(*self._read_types(types, schema, path))

    def _read_types(self, types: TypeSet, schema: Mapping[str, Any], path: str) -> Iterator[ValueType]:
        if "string" in types:
            yield String(_read_count(schema, "minLength") or 0, _read_count(schema, "maxLength"))
        if "integer" in types:
            yield self._read_number(schema, path, is_integer="number" not in types)
        elif "number" in types:
            yield self._read_number(schema, path, is_integer=False)
        if "boolean" in types:
            yield Boolean()
        if "object" in types:
            yield self._read_object(schema, path)
        if "array" in types:
            yield self._read_array(schema, path)
        if "null" in types:
            yield Null()

    def _read_object(self, schema: Mapping[str, Any], path: str) -> Object:
        properties = as_mapping(schema.get("properties"))
        required = [key for key in as_list(schema.get("required")) if isinstance(key, str)]
        members = [
            Member(str(key), self._read(properties.get(key, True), f"{path}.{key}"), key in required)
            for key in dict.fromkeys((*properties, *required))
        ]
        other = schema.get("additionalProperties", "properties" not in schema)
        return Object(
            tuple(member for member in members if member.type != NO_VALUE or member.is_required),
            None if other is False else self._read(other, f"{path}.*"),
        )

    def _read_array(self, schema: Mapping[str, Any], path: str) -> Array:
        items = schema.get("items")
        first = as_list(schema.get("prefixItems")) or as_list(items)
        item = schema.get("additionalItems", True) if isinstance(items, list) else schema.get("items", True)
        return Array(
            tuple(self._read(part, f"{path}[{n}]") for n, part in enumerate(first)),
            None if item is False else self._read(item, f"{path}[]"),
            _read_count(schema, "minItems") or 0,
            _read_count(schema, "maxItems"),
        )

    def _read_number(self, schema: Mapping[str, Any], path: str, *, is_integer: bool) -> Number:
        minimum, maximum = _read_limit(schema, "minimum"), _read_limit(schema, "maximum")
        above, below = _read_limit(schema, "exclusiveMinimum"), _read_limit(schema, "exclusiveMaximum")
        if is_integer:
            above = None if above is None else floor(above) + 1
            below = None if below is None else ceil(below) - 1
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if _is_number(schema.get(keyword)) and _read_limit(schema, keyword) is None:
                self._note(path, f"{keyword!r} is not enforced: engines read limits as floating-point numbers")
        for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
            if schema.get(keyword) is True or (not is_integer and _read_limit(schema, keyword) is not None):
                self._note(path, f"the limit of {keyword!r} itself is allowed")
        return Number(is_integer, _tighter(max, minimum, above), _tighter(min, maximum, below))

    def _merge_all(self, schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """Return one schema with the constraints of its reference and of all parts of `allOf`."""
        merged: Mapping[str, Any] = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        for part in (*([{"$ref": schema["$ref"]}] if "$ref" in schema else []), *as_list(schema.get("allOf"))):
            merged = self._merge(merged, part, path)
        return merged

    def _merge(self, schema: Mapping[str, Any], part: object, path: str) -> Mapping[str, Any]:
        """Return one schema with the constraints of both."""
        other = as_mapping(part)
        with self._level():
            if "$ref" in other and not _has_constraints(other, "$ref"):
                other = as_mapping(resolve_reference(other["$ref"], self._root))
            if "$ref" in other or as_list(other.get("allOf")):
                other = self._merge_all(other, path)
        merged = {**other, **schema}
        for keyword in (keyword for keyword in schema if keyword in other and schema[keyword] != other[keyword]):
            if keyword == "properties":
                merged[keyword] = _merge_properties(as_mapping(schema[keyword]), as_mapping(other[keyword]))
            elif keyword == "required":
                merged[keyword] = [*as_list(schema[keyword]), *as_list(other[keyword])]
            elif keyword not in _NO_CONSTRAINTS:
                self._note(path, f"only one of several {keyword!r} is enforced")
        closed = [part for part in (schema, other) if part.get("additionalProperties") is False]
        if any(part.get("properties") != merged.get("properties") for part in closed):
            self._note(path, "'additionalProperties' applies to all parts of 'allOf' together")
        return merged


def _merge_properties(first: Mapping[str, Any], second: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of both, in this order. A value of one that both declare has to fit both."""
    shared = {key: {"allOf": [first[key], second[key]]} for key in first if second.get(key, first[key]) != first[key]}
    return {**first, **second, **shared}


def _has_constraints(schema: Mapping[str, Any], *but: str) -> bool:
    """Return whether a schema restricts values, apart from these keywords."""
    return not set(schema) <= {*but, *_NO_CONSTRAINTS}


def _read_constants(schema: Mapping[str, Any]) -> ValueType:
    values = [schema["const"]] if "const" in schema else as_list(schema["enum"])
    types = named_types(schema.get("type"))
    return union(*map(_read_constant, [value for value in values if types_of(value) & types] or values))


def _read_constant(value: object) -> ValueType:
    """Return the type of a single value. The members and items of a container are constants."""
    if isinstance(value, Mapping):
        return Object(tuple(Member(str(key), _read_constant(inner), True) for key, inner in value.items()), None)
    if isinstance(value, list | tuple):
        return Array(tuple(map(_read_constant, value)), None, len(value))
    return Constant((value,))


def _tighter(choose: Callable[..., float], *limits: float | None) -> float | None:
    return choose((limit for limit in limits if limit is not None), default=None)


def _read_limit(schema: Mapping[str, Any], keyword: str) -> float | None:
    """Return a limit of numbers; None if there is none, or if it is so large that engines would round or refuse it."""
    value = schema.get(keyword)
    return value if _is_number(value) and abs(value) < MAX_EXACT_INTEGER else None


def _is_number(value: object) -> TypeGuard[float]:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _read_count(schema: Mapping[str, Any], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _has_cycle(definitions: Mapping[str, ValueType]) -> bool:
    """Return whether a definition can be itself, without an object or array in between."""
    done: set[str] = set()  # definitions that lead to no cycle

    def leads_to_cycle(type_: ValueType, outer: tuple[str, ...]) -> bool:
        match type_:
            case Reference(name) if name not in done:
                if name in outer or leads_to_cycle(type_.type, (*outer, name)):
                    return True
                done.add(name)
                return False
            case Union(types):
                return any(leads_to_cycle(inner, outer) for inner in types)
            case _:
                return False

    return any(leads_to_cycle(Reference(name, definitions), ()) for name in definitions)


def _has_value(type_: ValueType, names_with_value: Set[str]) -> bool:
    """Return whether a finite value of this type exists. `names_with_value` are the definitions that have one."""
    match type_:
        case Reference(name):
            return name in names_with_value
        case Union(types):
            return any(_has_value(inner, names_with_value) for inner in types)
        case Object(members):
            return all(_has_value(member.type, names_with_value) for member in members if member.is_required)
        case Array(first, item, min_items, max_items):
            most = [count for count in (max_items, len(first) if item is None else None) if count is not None]
            needed = (*first, *([item] if item else ()))[:min_items]
            return min_items <= min(most, default=min_items) and all(
                _has_value(inner, names_with_value) for inner in needed
            )
        case Number(_, minimum, maximum):
            return minimum is None or maximum is None or minimum <= maximum
        case String(min_length, max_length):
            return max_length is None or min_length <= max_length
        case _:
            return True
