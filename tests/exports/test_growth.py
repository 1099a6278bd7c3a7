"""Export takes time in proportion to the schemas of the tools, however their parts are nested or shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interlingua.exports.exporter import export
from tests.support.export_cases import closed, function
from tests.support.growth import check_growth

INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def nested(depth: int, wrap: Callable[[Any], Any]) -> dict[str, Any]:
    schema: Any = INTEGER
    for _ in range(depth):
        schema = wrap(schema)
    return closed({"x": schema})


def shared(depth: int, join: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Return a schema with two definitions at each level, which both refer to both of the next level."""
    definitions: dict[str, Any] = {}
    for level in range(depth):
        parts = ({"$ref": f"#/$defs/{name}{level + 1}"} for name in "ab")
        definitions[f"a{level}"] = definitions[f"b{level}"] = join(*parts)
    definitions |= {f"a{depth}": INTEGER, f"b{depth}": STRING}
    return {**closed({"x": {"$ref": "#/$defs/a0"}}), "$defs": definitions}


DEEP: dict[str, Callable[[int], dict[str, Any]]] = {
    "arrays": lambda n: nested(n, lambda inner: {"type": "array", "items": inner}),
    "arrays with limits": lambda n: nested(n, lambda inner: {"type": "array", "items": inner, "minItems": 2}),
    "tuples": lambda n: nested(n, lambda inner: {"type": "array", "prefixItems": [INTEGER, inner]}),
    "objects": lambda n: nested(n, lambda inner: closed({"a": STRING, "b": inner})),
    "open objects": lambda n: nested(n, lambda inner: {"type": "object", "additionalProperties": inner}),
    "unions": lambda n: nested(n, lambda inner: {"anyOf": [{"type": "array", "items": inner}, {"type": "null"}]}),
    "shared unions": lambda n: shared(n, lambda a, b: {"anyOf": [a, b]}),
    "shared objects": lambda n: shared(n, lambda a, b: closed({"a": a, "b": b})),
    "shared items": lambda n: shared(n, lambda a, b: {"type": "array", "prefixItems": [a, b], "items": a}),
}
LONG: dict[str, Callable[[int], dict[str, Any]]] = {
    "an enum": lambda n: closed({"x": {"enum": [f"v{k}" for k in range(n)]}}),
    "an enum of objects": lambda n: closed({"x": {"enum": [{"k": k} for k in range(n)]}}),
    "a union": lambda n: closed({"x": {"anyOf": [{"const": f"v{k}"} for k in range(n)]}}),
    "params": lambda n: closed({f"p{k}": STRING for k in range(n)}),
    "enums": lambda n: closed({f"p{k}": {"enum": ["a", "b"]} for k in range(n)}),
}
by_format = pytest.mark.parametrize("format_", ["structural-tag", "gbnf", "lark"])
by_dialect = pytest.mark.parametrize("dialect", ["hermes", "glm47", "minimax_m3", "gemma4", "pythonic"])


@pytest.mark.one_row_in(7)
@by_format
@by_dialect
@pytest.mark.parametrize("name", DEEP)
def test_deep_schemas(name: str, dialect: str, format_: str) -> None:
    if (name, dialect) == ("open objects", "minimax_m3"):
        return  # not expressible
    check_growth(lambda n: export(format_, dialect, [function("f", DEEP[name](n))]), 6, 18, limit=10)


@pytest.mark.one_row_in(7)
@by_format
@by_dialect
@pytest.mark.parametrize("name", LONG)
def test_long_schemas(name: str, dialect: str, format_: str) -> None:
    check_growth(lambda n: export(format_, dialect, [function("f", LONG[name](n))]), 100, 400, limit=10)
