"""Lenient JSON decoding and encoding."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.common.jsontext.codec import (
    explain_invalid_object,
    read_full_list,
    read_full_object,
    read_json,
    read_shallow_object,
    write_json,
)

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
    value = read_shallow_object(text)
    assert (list(value) if value is not None else None) == keys


@pytest.mark.parametrize(
    ("text", "items"),
    [("[1]", 1), (b'["a"]', 1), (b'["\\ud83d", 2]', 2), ("{}", None), ("[", None), ("[NaN]", None), (DEEP, None)],
)
def test_read_list(text: str | bytes, items: int | None) -> None:
    value = read_full_list(text)
    assert (len(value) if value is not None else None) == items


def test_read_json_checks_the_type() -> None:
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


WRONG = [
    ("", "expecting value (line 1, column 1)"),
    ('{"a": 1,\n "b"', "expecting ':' delimiter (line 2, column 5)"),
    ("[1]", "it is a list"),
    ("3", "it is a number"),
    ("null", "it is null"),
    ('{"a": NaN}', "NaN is not JSON"),
    ('{"a": [-Infinity]}', "-Infinity is not JSON"),
    ('{"a": 1e400}', "the number 1e400 is too large"),
    ('{"a": -1e400, "b": "\\ud83d"}', "the number -1e400 is too large"),
    ('{"a": ' + "9" * 5000 + "}", "a number has more than 4,300 digits"),
    ('{"a": ' + "1." + "9" * 5000 + "e400}", f"the number 1.{'9' * 38} is too large"),
    ('{"a":' * 100_000, "it is nested too deeply"),
]


@pytest.mark.parametrize(("text", "why"), WRONG, ids=[text[:20] for text, _ in WRONG])
def test_explain_invalid_object(text: str, why: str) -> None:
    assert read_full_object(text) is None
    assert explain_invalid_object(text) == why
