"""Writer for JSON values as YAML that people read and compare: texts of several lines stay lines, and a value that
occurs again is an alias.

PyYAML's own writer puts every text with a space at the end of a line into quotes, with escapes. Tool results and code
are full of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml

from interlingua.common.jsontext.codec import write_json

__all__ = ["write_yaml"]

INDENT = 2
SINGLE_QUOTE = "'"
MIN_SHARED_CHARS = 80
"""Length from which on a value that occurs twice is written once. A shorter one is easier to read in its place."""
MAX_SIMPLE_KEY_CHARS = 1000
"""Longest key before a colon; YAML allows 1024 characters. A longer one is an explicit key, after a question mark."""
_UNPRINTABLE = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"  # line ends of YAML, too
)
_PLAIN_TEXT = re.compile(r"(?![\d.][\d.eE+-]*$)[A-Za-z0-9_/.(][^\n\t]*")  # nothing that looks like a number
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_NOT_PLAIN = re.compile(r":(\s|$)|\s#|\s$")
_ANCHOR_NAME = re.compile(r"[^A-Za-z0-9]+")
_resolver = yaml.resolver.Resolver()


def write_yaml(value: Any) -> str:
    """Return a JSON value as a YAML document. Texts must not contain unpaired surrogates."""
    return "".join(f"{line}\n" for line in _Writer(value).lines())


class _Writer:
    def __init__(self, value: Any) -> None:
        self._value = value
        self._counts: Counter[str] = Counter()
        self._count(value)
        self._anchors: dict[str, str] = {}
        self._anchor_numbers: Counter[str] = Counter()

    def lines(self) -> Iterator[str]:
        yield from self._block(self._value, -INDENT, "", "value")

    def _count(self, value: Any) -> None:
        """Count the values that may be shared. What is inside a repeated value is written, and counted, once."""
        if (key := _shared_key(value)) is not None:
            self._counts[key] += 1
            if self._counts[key] > 1:
                return
        if isinstance(value, dict):
            for item in value.values():
                self._count(item)
        elif isinstance(value, list):
            for item in value:
                self._count(item)

    def _block(self, value: Any, column: int, prefix: str, name: str) -> Iterator[str]:
        """Yield the lines of a value.

        Args:
            value: The value.
            column: The column of the key or the dash that the value belongs to.
            prefix: What precedes the value on its first line, up to the key's colon or the dash.
            name: The name for an anchor.
        """
        anchor = ""
        if (key := _shared_key(value)) is not None and self._counts[key] > 1:
            if key in self._anchors:
                yield f"{prefix} *{self._anchors[key]}"
                return
            anchor = self._anchors[key] = self._new_anchor(name)
        head = f"{prefix} &{anchor}" if anchor else prefix
        if isinstance(value, str):
            yield from _text_lines(value, column + INDENT, head)
        elif not isinstance(value, dict | list) or not value:
            yield _after(head, _scalar(value))
        elif isinstance(value, dict):
            yield from self._mapping(value, column + INDENT, head, is_item=prefix.endswith("-") and not anchor)
        else:
            is_field = prefix.endswith(":")  # its dashes are below the key
            yield from self._sequence(value, column if is_field else column + INDENT, head, name)

    def _mapping(self, value: dict[str, Any], column: int, head: str, *, is_item: bool) -> Iterator[str]:
        """Yield the fields of a mapping. The first field of an item is on the line of its dash."""
        if head and not is_item:
            yield head
        for number, (key, item) in enumerate(value.items()):
            start, written = f"{head} " if is_item and number == 0 else " " * column, _key(key)
            if len(written) > MAX_SIMPLE_KEY_CHARS:
                yield f"{start}? {written}"
                start, written = " " * column, ""
            yield from self._block(item, column, f"{start}{written}:", key)

    def _sequence(self, value: list[Any], column: int, head: str, name: str) -> Iterator[str]:
        if head:
            yield head
        singular = name[:-1] if name.endswith("s") else name
        for item in value:
            yield from self._block(item, column, " " * column + "-", singular)

    def _new_anchor(self, name: str) -> str:
        base = _ANCHOR_NAME.sub("-", name).strip("-")[:20] or "value"
        self._anchor_numbers[base] += 1
        return f"{base}-{self._anchor_numbers[base]}"


def _shared_key(value: Any) -> str | None:
    """Return the identity of a value that is long enough to be shared; None for others."""
    if isinstance(value, str):
        return f'"{value}' if len(value) >= MIN_SHARED_CHARS else None
    if not isinstance(value, dict | list):
        return None
    encoded = write_json(value)
    return encoded if len(encoded) >= MIN_SHARED_CHARS else None


def _text_lines(text: str, column: int, head: str) -> Iterator[str]:
    if "\n" not in text or not text.strip() or _UNPRINTABLE.search(text):
        yield _after(head, _text(text))
        return
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    indicator = str(INDENT) if text[0] in " \t\n" else ""
    yield _after(head, f"|{indicator}{'-' if ends == 0 else '' if ends == 1 else '+'}")
    for line in body.split("\n"):
        yield " " * column + line if line else ""
    yield from [""] * (ends - 1)


def _after(head: str, text: str) -> str:
    return f"{head} {text}" if head else text


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and _is_resolved_as_text(key) else _quoted(key)


def _text(text: str) -> str:
    """Return a text on one line, without quotes if it cannot be taken for anything else."""
    is_plain = (
        _PLAIN_TEXT.fullmatch(text)
        and not _NOT_PLAIN.search(text)
        and not _UNPRINTABLE.search(text)
        and _is_resolved_as_text(text)
    )
    if is_plain:
        return text
    is_json_like = '"' in text or "\\" in text  # double quotes would escape each of them
    return f"'{text.replace(SINGLE_QUOTE, 2 * SINGLE_QUOTE)}'" if is_json_like and _is_one_line(text) else _quoted(text)


def _is_one_line(text: str) -> bool:
    return "\n" not in text and "\t" not in text and not _UNPRINTABLE.search(text)


def _is_resolved_as_text(text: str) -> bool:
    tag = _resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return bool(tag == "tag:yaml.org,2002:str")


def _quoted(text: str) -> str:
    """Return a text in double quotes. The escapes of JSON are escapes of YAML, too."""
    return _UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], json.dumps(text, ensure_ascii=False))


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        text = repr(value)
        mantissa, exponent, power = text.partition("e")  # YAML 1.1 has no floats without a point or a sign
        return (
            f"{mantissa}.0e{power if power[0] in '+-' else '+' + power}" if exponent and "." not in mantissa else text
        )
    return json.dumps(value)
