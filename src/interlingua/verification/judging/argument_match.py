"""Comparison of arguments with expected ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.common.jsontext.codec import read_full_object
from interlingua.verification.samples.sample import ExpectedCall

__all__ = ["describe_difference", "pair_calls", "values_match"]


def values_match(expected: Any, actual: Any) -> bool:
    """Return whether a value is the expected one.

    Objects may have more members: the schema decides about them. White space around a string does not count, because
    the prompt cannot say where a text ends.
    """
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            name in actual and values_match(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, str):
        return isinstance(actual, str) and _normalize_text(actual) == _normalize_text(expected)
    if isinstance(expected, Sequence):
        is_list = isinstance(actual, Sequence) and not isinstance(actual, str)
        return is_list and len(actual) == len(expected) and all(map(values_match, expected, actual))
    return isinstance(expected, bool) == isinstance(actual, bool) and bool(expected == actual)


def _normalize_text(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def describe_difference(expected: Any, actual: Any, place: str = "") -> str:
    """Return the first difference in words; "" if there is none."""
    if values_match(expected, actual):
        return ""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name, value in expected.items():
            if name not in actual:
                return f"{_join(place, name)} is missing"
            if difference := describe_difference(value, actual[name], _join(place, name)):
                return difference
    if isinstance(expected, str) and isinstance(actual, str):
        return f"{place or 'the text'} {_first_difference(expected.strip(), actual.strip())}"
    return f"{place or 'the value'} is {_shorten(actual)} instead of {_shorten(expected)}"


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _first_difference(expected: str, actual: str) -> str:
    pairs = zip(expected, actual, strict=False)
    index = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(expected), len(actual)))
    if index == 0:
        return f"is {_shorten(actual)} instead of {_shorten(expected)}"
    start, count = max(0, index - 10), "1 character" if index == 1 else f"{index} characters"
    return f"differs after {count}: {_shorten(actual[start:])} instead of {_shorten(expected[start:])}"


def _shorten(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:36]}…{text[-1]}"


def pair_calls(expected: Sequence[ExpectedCall], calls: Sequence[tuple[str, str]]) -> list[int | None]:
    """Return for each expected call the number of the call that fits it best; None if no call of its tool is left.

    Args:
        expected: The expected calls, in any order.
        calls: Names and arguments of the calls of a reply.
    """
    left = list(range(len(calls)))
    pairs: list[int | None] = [None] * len(expected)
    for is_fit in (_is_exact, _is_same_tool):
        for position, wanted in enumerate(expected):
            number = next((n for n in left if is_fit(wanted, *calls[n])), None) if pairs[position] is None else None
            if number is not None:
                pairs[position] = number
                left.remove(number)
    return pairs


def _is_exact(wanted: ExpectedCall, name: str, arguments: str) -> bool:
    return wanted.name == name and (
        wanted.arguments is None or values_match(wanted.arguments, read_full_object(arguments))
    )


def _is_same_tool(wanted: ExpectedCall, name: str, _: str) -> bool:
    return wanted.name == name
