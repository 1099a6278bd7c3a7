"""Fault 40: for any tool schema, parsing a call takes time in proportion to the size. A client may send any schema:
patterns are never run, and references are followed to a bounded depth."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import interlingua as il
from tests.support.growth import check_growth

CALL = "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>"


def tool(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


def param(schema: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **keywords}


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


def doubling(n: int) -> dict[str, Any]:
    """Each definition refers to the next one twice: without a limit, resolving takes 2 to the n steps."""
    last = {f"d{n}": {"type": "integer"}}
    both = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(n)}
    return param({"$ref": "#/$defs/d0"}, **{"$defs": both | last})


def chain(n: int) -> dict[str, Any]:
    """A long cycle of references."""
    around = {f"d{i}": {"$ref": f"#/$defs/d{(i + 1) % n}"} for i in range(n)}
    return param({"$ref": "#/$defs/d0"}, **{"$defs": around})


EVIL: dict[str, Callable[[int], tuple[dict[str, Any], str]]] = {
    # a schema and the raw text of a value, both of about this size
    "a pattern": lambda n: (param({"type": "string", "pattern": "^(a+)+$"}), "a" * n + "!"),
    "a pattern of names": lambda n: (
        {"type": "object", "patternProperties": {"^(a+)+$": {"type": "integer"}}},
        "a" * n + "!",
    ),
    "a reference to itself": lambda n: (param({"$ref": "#/properties/a"}), "x" * n),
    "a ring of references": lambda n: (chain(n), "1"),
    "doubling references": lambda n: (doubling(n // 20), "1"),
    "doubling objects": lambda n: (
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/t"}},
            "$defs": {"t": {"type": "object", "properties": {"l": {"$ref": "#/$defs/t"}, "r": {"$ref": "#/$defs/t"}}}},
        },
        '{"l": ' * 50 + '"' + "x" * n + '"' + "}" * 50,
    ),
    "a long union": lambda n: (
        param({"anyOf": [{"properties": {f"p{i}": {}}} for i in range(n)]}),
        "{}",
    ),
    "a long enum": lambda n: (param({"enum": [f"e{i}" for i in range(n)]}), f"e{n}"),
    "many params": lambda n: (
        {"type": "object", "properties": {"a": {"type": "integer"}} | {f"p{i}": {"type": "integer"} for i in range(n)}},
        "7",
    ),
    "deep unions": lambda n: (param(nested(min(n, 400), lambda s: {"anyOf": [s, {"type": "null"}]})), "x"),
    "deep arrays": lambda n: (
        param(nested(min(n, 400), lambda s: {"type": "array", "items": s})),
        "[" * 300 + "]" * 300,
    ),
    "no schema": lambda n: (param({"type": ["", 5, None], "enum": {}, "anyOf": 7, "items": True, "$ref": [n]}), "x"),
}


@pytest.mark.parametrize("kind", EVIL)
def test_40_time_is_linear(kind: str) -> None:
    """Quadratic time would take 64 times as long, and exponential time would not end."""

    def parse_and_translate(size: int) -> None:
        schema, value = EVIL[kind](size)
        tools = tool(schema)
        (call,) = il.parse(CALL.format(value), "qwen3_coder", tools).calls
        assert call.complete
        assert isinstance(json.loads(call.arguments), dict)
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
        il.translate_request(body, "openai-chat", "anthropic-messages", "m")

    check_growth(parse_and_translate, 2000, 16_000, limit=24)
