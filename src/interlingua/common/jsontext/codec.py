"""Lenient JSON decoding: return the value, or None for invalid text. All decoding errors are handled here."""

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
    "is_deeper_than",
    "read_full_list",
    "read_full_object",
    "read_json",
    "read_shallow_object",
    "unwrap_invalid_arguments",
    "wrap_invalid_arguments",
    "write_json",
]

T = TypeVar("T")
INVALID_JSON_KEY = "INVALID_JSON"
"""Only key of an object that wraps invalid arguments: many clients and upstreams accept nothing but an object."""

# Text with an unpaired surrogate cannot be encoded, and extreme nesting exhausts the stack.
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)


def read_json(text: str | bytes, type: type[T]) -> T | None:
    """Return the value if the text, or its UTF-8, is JSON of that type, else None."""
    try:
        return msgspec.json.decode(text, type=type)
    except _DECODE_ERRORS:
        return None


def read_shallow_object(text: str) -> dict[str, Any] | None:
    """Return the object, or None if the text is not a JSON object. Values stay undecoded if possible."""
    value = read_json(text, dict[str, msgspec.Raw])
    return value if value is not None else _read_leniently(text)


def read_full_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object with all values decoded, or None if the text is not a JSON object."""
    value = read_json(text, dict[str, Any])
    return value if value is not None else _read_leniently(text)


def read_full_list(text: str | bytes) -> list[Any] | None:
    """Return the list with all values decoded, or None if the text is not a JSON list."""
    value = read_json(text, list[Any])
    if value is None and isinstance(found := _load_leniently(text), list):
        return found
    return value


def explain_invalid_object(text: str) -> str:
    """Describe why a text is not a JSON object."""
    try:
        value = json.loads(
            text, parse_constant=_reject_constant, parse_float=_parse_finite_float, parse_int=_parse_bounded_int
        )
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return f"it is {_TYPE_DESCRIPTIONS.get(type(value), 'nested too deeply')}"


_TYPE_DESCRIPTIONS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def _read_leniently(text: str | bytes) -> dict[str, Any] | None:
    value = _load_leniently(text)
    return value if isinstance(value, dict) else None


def _load_leniently(text: str | bytes) -> Any:
    """Decode with the standard library, which accepts unpaired surrogates: `"\\ud83d"` is valid JSON."""
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=_parse_finite_float)
    except (ValueError, RecursionError):
        return None


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite_float(digits: str) -> float:
    """Reject numbers that overflow a float: they would be written as Infinity, which is not JSON."""
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
    """Return the value as JSON text; `null` if it is nested too deeply to be encoded."""
    return encode_json(value).decode()


def encode_json(value: Any) -> bytes:
    """Return the value as JSON bytes; `null` if it is nested too deeply to be encoded."""
    try:
        return msgspec.json.encode(value)
    except UnicodeError:
        return json.dumps(value, default=_decode_raw).encode()
    except RecursionError:
        return b"null"


def _decode_raw(value: Any) -> Any:
    """Decode JSON that is a part of a value, for the encoder of the standard library."""
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def wrap_invalid_arguments(arguments: str) -> dict[str, Any]:
    """Wrap arguments that are not a JSON object into one."""
    return {INVALID_JSON_KEY: arguments}


def unwrap_invalid_arguments(arguments: str) -> str:
    """Return the original text of wrapped arguments; other arguments are returned unchanged."""
    value = _read_leniently(arguments) if INVALID_JSON_KEY in arguments else None
    text = value.get(INVALID_JSON_KEY) if value is not None and len(value) == 1 else None
    return text if isinstance(text, str) else arguments


def is_deeper_than(value: Any, levels: int) -> bool:
    """Return whether a JSON value has more than this many levels of objects and arrays, however deep it is."""
    level = [value]
    for _ in range(levels + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [item for one in level for item in (one.values() if isinstance(one, dict) else one)]
    return True
