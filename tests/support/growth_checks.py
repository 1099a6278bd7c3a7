"""Captures, redaction, token estimates and checks of arguments of any size, for tests of growth."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from interlingua.common.schema.validation import validation_errors
from interlingua.errors import BadInput
from interlingua.gateway.observability.capture_writer import CaptureWriter
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.settings.schema import Capture
from interlingua.tokens.estimator import estimate_tokens
from tests.support.growth import GrowthCase

__all__ = ["CHECK_CASES"]

KEY = "ab" * 20
"""A key that repeats itself: a text like it ends with a part of the key after each byte."""
MAX_NESTING = 30
"""Depth of nested schemas. A client's schema of any depth is read, but Python limits the depth of its JSON."""


def _capture(text: bytes) -> None:
    """Record a reply that arrives byte by byte."""
    with tempfile.TemporaryDirectory() as folder:
        captures = CaptureWriter(Capture(dir=folder), Redactor([KEY]))
        exchange = ExchangeRecord(id="x", path="/v1/messages", wire="anthropic-messages", started=0.0)
        recording = captures.start_recording(exchange)
        for at in range(len(text)):
            recording.on_received(text[at : at + 1])
        recording.on_finish(exchange)
        captures.close(seconds=60)
        assert captures.dropped == 0


def _redact(value: Any) -> Any:
    return Redactor([KEY]).redact_value(value)


def _validate(check: tuple[Any, dict[str, Any]]) -> list[str]:
    arguments, schema = check
    with suppress(BadInput):  # more checks than the limit allows
        return validation_errors(arguments, schema, "f")
    return []


def _unknown_keys(n: int) -> tuple[Any, dict[str, Any]]:
    schema = {"type": "object", "properties": {f"p{k}": {} for k in range(n)}, "additionalProperties": False}
    return {f"x{k}": 1 for k in range(n)}, schema


def _missing_keys(n: int) -> tuple[Any, dict[str, Any]]:
    names = [f"p{k}" for k in range(n)]
    return {}, {"type": "object", "properties": {name: {} for name in names}, "required": names}


def _enum_values(n: int) -> tuple[Any, dict[str, Any]]:
    return {"a": ["x"] * n}, {"properties": {"a": {"items": {"enum": [f"e{k}" for k in range(1000)]}}}}


def _union(n: int) -> tuple[Any, dict[str, Any]]:
    return {"a": {}}, {"properties": {"a": {"anyOf": [{"required": [f"p{k}"]} for k in range(n)]}}}


def _nested_unions(n: int) -> tuple[Any, dict[str, Any]]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(MAX_NESTING):
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {"a": [1] * n}, {"properties": {"a": {"items": schema}}}


def _references(n: int) -> tuple[Any, dict[str, Any]]:
    definitions = {f"d{k}": {"$ref": f"#/$defs/d{k + 1}"} for k in range(MAX_NESTING)}
    schema = {"properties": {"a": {"items": {"$ref": "#/$defs/d0"}}}}
    return {"a": [1] * n}, schema | {"$defs": definitions | {f"d{MAX_NESTING}": {"type": "string"}}}


def _request(n: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "some text"}]}] * n}


ROWS: list[tuple[str, Callable[[int], Any], Callable[[Any], object]]] = [
    ("capture, byte by byte", lambda n: b"some text" * (n // 8), _capture),
    ("capture of a text like a key, byte by byte", lambda n: b"ab" * (n // 2), _capture),
    ("redaction of a list", lambda n: [{"text": "some text", "authorization": "Bearer x"}] * n, _redact),
    ("redaction of a text with keys", lambda n: f"the key {KEY}, " * n, _redact),
    ("redaction of a text like a key", lambda n: KEY[:-1] * n, _redact),
    ("token estimate", _request, estimate_tokens),
    ("arguments with unknown keys", _unknown_keys, _validate),
    ("arguments without required keys", _missing_keys, _validate),
    ("arguments that are in no enum", _enum_values, _validate),
    ("arguments for a long union", _union, _validate),
    ("arguments for nested unions", _nested_unions, _validate),
    ("arguments for nested references", _references, _validate),
]
CHECK_CASES = [GrowthCase(*row) for row in ROWS]
