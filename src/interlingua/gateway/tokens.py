"""About how many tokens is a request? Nobody here has the model's tokenizer: an estimate, and never an error."""

from __future__ import annotations

from typing import Any

__all__ = ["estimate"]

PER_TOKEN = 3.6
"""Bytes of text and of JSON, over the vocabularies of today."""
PER_IMAGE = 1500
PER_MESSAGE = 4
COUNTED = ("system", "instructions", "messages", "input", "tools", "functions")
_DATA = frozenset({"data", "image_url", "file_data", "url"})


def estimate(body: dict[str, Any]) -> int:
    """Of what a client of any wire sends: what the model will read of it."""
    size, images, messages = 0, 0, 0
    waiting: list[Any] = [body.get(name) for name in COUNTED]
    messages += sum(len(part) for part in waiting[2:4] if isinstance(part, list))
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            size += _bytes(value)
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            for key, inner in value.items():
                if key in _DATA and (isinstance(inner, dict) or _is_data(inner)):
                    images += 1
                    continue
                size += len(key) + 3
                if isinstance(inner, str):  # as most are
                    size += _bytes(inner)
                else:
                    waiting.append(inner)
        elif value is not None:
            size += 4
    return int(size / PER_TOKEN) + PER_IMAGE * images + PER_MESSAGE * messages


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _is_data(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 256
