"""Text that may not be JSON: its value, or None. The only place that knows all the ways in which decoding fails."""

from __future__ import annotations

import json
import math
import sys
from typing import Any, TypeVar

import msgspec

__all__ = [
    "NOT_JSON",
    "encode_json",
    "read_json",
    "read_object",
    "read_values",
    "unwrapped",
    "why_no_object",
    "wrapped",
    "write_json",
]

T = TypeVar("T")
NOT_JSON = "INVALID_JSON"
"""The one key of an object that stands for arguments which are none: many clients and upstreams take nothing else."""

# Text with half a surrogate pair cannot be encoded, and nesting beyond any use exhausts the stack.
_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError)


def read_json(text: str, type: type[T]) -> T | None:
    """The value, if this is JSON of that type."""
    try:
        return msgspec.json.decode(text, type=type)
    except _FAILURES:
        return None


def read_object(text: str) -> dict[str, Any] | None:
    """The object if this is one. Its values are left unread where that can be."""
    value = read_json(text, dict[str, msgspec.Raw])
    return value if value is not None else _read_leniently(text)


def read_values(text: str) -> dict[str, Any] | None:
    """The same, with all its values."""
    value = read_json(text, dict[str, Any])
    return value if value is not None else _read_leniently(text)


def why_no_object(text: str) -> str:
    """What is wrong with a text that is no JSON object, in words."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_readable)
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deep"
    return f"it is {_KINDS.get(type(value), 'nested too deep')}"


_KINDS = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "a truth value", type(None): "null"}


def _read_leniently(text: str) -> dict[str, Any] | None:
    """Half a surrogate pair is no character, but `"\\ud83d"` is JSON: the standard library reads it."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    """What is beyond any float would be written as Infinity, which is not JSON."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _readable(digits: str) -> int:
    most = sys.get_int_max_str_digits()
    if 0 < most < len(digits):
        raise ValueError(f"a number has more than {most:,} digits")
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


def wrapped(arguments: str) -> dict[str, Any]:
    """Arguments that are no JSON object, as one."""
    return {NOT_JSON: arguments}


def unwrapped(arguments: str) -> str:
    """The arguments that were wrapped; any others as they are."""
    value = _read_leniently(arguments) if NOT_JSON in arguments else None
    text = value.get(NOT_JSON) if value is not None and len(value) == 1 else None
    return text if isinstance(text, str) else arguments
