"""Text that may not be JSON."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.json_text import read_json, read_object, write_json

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"a": 1, "b": [2]}', ["a", "b"]),
        ('{"a": "\\ud83d"}', ["a"]),
        ("{}", []),
        ("[]", None),
        ("nul", None),
        ("", None),
        ('{"a": NaN}', None),
        ('{"a": "\ud83d"}', ["a"]),
        ('{"a": ' + DEEP, None),
    ],
)
def test_read_object(text: str, keys: list[str] | None) -> None:
    value = read_object(text)
    assert (list(value) if value is not None else None) == keys


def test_read_json_is_strict_about_the_type() -> None:
    assert read_json('"a"', str) == "a"
    assert read_json("1", str) is None


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"), [({"a": "é"}, '{"a":"é"}'), ("\ud83d", '"\\ud83d"'), (_nested(9999), "null")]
)
def test_write_json(value: Any, text: str) -> None:
    assert write_json(value) == text
