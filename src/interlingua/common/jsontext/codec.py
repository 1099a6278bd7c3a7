"""Text that may not be JSON: its value, or None. The only place that knows all the ways in which decoding fails."""

from __future__ import annotations

import json
import math
import sys
from typing import Any, TypeVar

import msgspec

__all__ = [
    "INVALID_JSON_KEY",
    "encode_json",
    "explain_invalid_object",
    "read_full_object",
    "read_json",
    "read_shallow_object",
    "unwrap_invalid_arguments",
    "wrap_invalid_arguments",
    "write_json",
]

T = TypeVar("T")
INVALID_JSON_KEY = "INVALID_JSON"
"""The one key of an object that stands for arguments which are none: many clients and upstreams take nothing else."""

# Text with half a surrogate pair cannot be encoded, and nesting beyond any use exhausts the stack.
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)


def read_json(text: str, type: type[T]) -> T | None:
    """The value, if this is JSON of that type."""
    try:
        return msgspec.json.decode(text, type=type)
    except _DECODE_ERRORS:
        return None


def read_shallow_object(text: str) -> dict[str, Any] | None:
    """The object if this is one. Its values are left unread where that can be."""
    value = read_json(text, dict[str, msgspec.Raw])
    return value if value is not None else _read_leniently(text)


def read_full_object(text: str) -> dict[str, Any] | None:
    """The same, with all its values."""
    value = read_json(text, dict[str, Any])
    return value if value is not None else _read_leniently(text)


def explain_invalid_object(text: str) -> str:
    """What is wrong with a text that is no JSON object, in words."""
    try:
        value = json.loads(
            text, parse_constant=_reject_constant, parse_float=_parse_finite_float, parse_int=_parse_bounded_int
        )
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deep"
    return f"it is {_TYPE_DESCRIPTIONS.get(type(value), 'nested too deep')}"


_TYPE_DESCRIPTIONS = {
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}


def _read_leniently(text: str) -> dict[str, Any] | None:
    """Half a surrogate pair is no character, but `"\\ud83d"` is JSON: the standard library reads it."""
    try:
        value = json.loads(text, parse_constant=_reject_constant, parse_float=_parse_finite_float)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite_float(digits: str) -> float:
    """What is beyond any float would be written as Infinity, which is not JSON."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _parse_bounded_int(digits: str) -> int:
    max_digits = sys.get_int_max_str_digits()
    if 0 < max_digits < len(digits):
        raise ValueError(f"a number has more than {max_digits:,} digits")
    return int(digits)


def write_json(value: Any) -> str:
    """The value as JSON text; `null` if it is nested too deep to be written."""
    return encode_json(value).decode()


def encode_json(value: Any) -> bytes:
    """The same, as bytes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeError:
        return json.dumps(value).encode()
    except RecursionError:
        return b"null"


def wrap_invalid_arguments(arguments: str) -> dict[str, Any]:
    """Arguments that are no JSON object, as one."""
    return {INVALID_JSON_KEY: arguments}


def unwrap_invalid_arguments(arguments: str) -> str:
    """The arguments that were wrapped; any others as they are."""
    value = _read_leniently(arguments) if INVALID_JSON_KEY in arguments else None
    text = value.get(INVALID_JSON_KEY) if value is not None and len(value) == 1 else None
    return text if isinstance(text, str) else arguments
