"""Upper bound on the work of validating a value against a JSON Schema.

A validator evaluates a subschema again for each path that leads to it. A schema in which each of 26 definitions refers
twice to the next one takes 2^26 evaluations, although it is short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from interlingua.common.schema.resolver import as_list, as_mapping, resolve_reference

__all__ = ["MAX_EVALUATIONS", "count_evaluations"]

MAX_EVALUATIONS = 500_000
"""Higher counts are not distinguished."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE = ("not", "if", "then", "else")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
"""Keywords whose subschemas apply to the same value."""
_OF_EACH_MEMBER = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_OF_EACH_ITEM = ("items", "additionalItems", "unevaluatedItems", "contains")


def count_evaluations(schema: Mapping[str, Any], value: Any) -> int:
    """Return how many subschemas a validator evaluates at most, up to MAX_EVALUATIONS + 1.

    The result is 0 for a schema without references, because then each subschema is evaluated at most once per value.
    """
    named_schemas = dict(_named_schemas(schema))
    if None not in named_schemas:
        return 0
    return _EvaluationCounter(schema, named_schemas).count(schema, value)


class _Subschemas(NamedTuple):
    """The subschemas of one schema, by the values to which they apply."""

    in_place: list[Any]
    properties: Mapping[str, Any]
    of_each_member: list[Any]
    of_each_item: list[Any]
    item_lists: list[list[Any]]


class _Frame:
    """A pair of a subschema and a value whose evaluations are being counted. The lowest frame has no pair."""

    def __init__(self, pair: tuple[int, int] | None, applied: Iterator[tuple[Any, Any]], count: int) -> None:
        self.pair = pair
        self.applied = applied
        self.count = count

    def add(self, count: int) -> None:
        self.count = min(self.count + count, MAX_EVALUATIONS + 1)


class _EvaluationCounter:
    """Counts evaluations with one visit per pair of a subschema and a value."""

    def __init__(self, root: Mapping[str, Any], named_schemas: Mapping[str | None, Any]) -> None:
        self._root = root
        self._named_schemas = named_schemas
        self._counts: dict[tuple[int, int], int] = {}
        self._subschemas: dict[int, _Subschemas] = {}

    def count(self, schema: Any, value: Any) -> int:
        """Return the count for this pair. It uses its own stack, because values can be nested deeply."""
        stack = [_Frame(None, iter([(schema, value)]), 0)]
        while True:
            frame = stack[-1]
            applied = next(frame.applied, None)
            if applied is None:
                stack.pop()
                if frame.pair is None:
                    return frame.count
                self._counts[frame.pair] = frame.count
                stack[-1].add(frame.count)
                continue
            subschema, subvalue = applied
            pair = (id(subschema), id(subvalue))
            if not isinstance(subschema, Mapping):
                frame.add(1)
            elif pair in self._counts:
                frame.add(self._counts[pair])
            elif len(self._counts) > MAX_EVALUATIONS:
                return MAX_EVALUATIONS + 1
            else:
                self._counts[pair] = 1  # for a circular reference that leads to the same value
                stack.append(_Frame(pair, self._applied(subschema, subvalue), 1))

    def _applied(self, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the subschemas that are evaluated directly, each with its value."""
        subschemas = self._subschemas.get(id(schema))
        if subschemas is None:
            subschemas = self._subschemas[id(schema)] = self._read_subschemas(schema)
        for subschema in subschemas.in_place:
            yield subschema, value
        if isinstance(value, Mapping):
            for key, member in value.items():
                if key in subschemas.properties:
                    yield subschemas.properties[key], member
                for subschema in subschemas.of_each_member:
                    yield subschema, member
        elif isinstance(value, list):
            for item in value:
                for subschema in subschemas.of_each_item:
                    yield subschema, item
            for items in subschemas.item_lists:
                yield from zip(items, value, strict=False)

    def _read_subschemas(self, schema: Mapping[str, Any]) -> _Subschemas:
        in_place = [self._resolve(schema[keyword]) for keyword in _REFERENCES if keyword in schema]
        in_place += [schema[keyword] for keyword in _IN_PLACE if keyword in schema]
        in_place += [branch for keyword in _IN_PLACE_LISTS for branch in as_list(schema.get(keyword))]
        in_place += [branch for keyword in _IN_PLACE_MAPS for branch in as_mapping(schema.get(keyword)).values()]
        of_each_member = [schema[keyword] for keyword in _OF_EACH_MEMBER if keyword in schema]
        return _Subschemas(
            in_place,
            as_mapping(schema.get("properties")),
            [*of_each_member, *as_mapping(schema.get("patternProperties")).values()],
            [schema[keyword] for keyword in _OF_EACH_ITEM if isinstance(schema.get(keyword), Mapping)],
            [as_list(schema.get(keyword)) for keyword in ("items", "prefixItems")],
        )

    def _resolve(self, ref: Any) -> Any:
        target = resolve_reference(ref, self._root)
        return target if target is not None or not isinstance(ref, str) else self._named_schemas.get(ref)


def _named_schemas(root: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield all schemas with an anchor or an id, by the reference to them; and (None, …) for one with a reference."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            if any(keyword in node for keyword in _REFERENCES):
                yield None, node
            for keyword, prefix in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""), ("id", "")):
                if isinstance(node.get(keyword), str):
                    yield prefix + node[keyword], node
            pending += node.values()
        elif isinstance(node, list | tuple):
            pending += node
