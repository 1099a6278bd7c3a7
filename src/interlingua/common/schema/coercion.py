"""How the raw text that a model wrote for a param becomes JSON, by the param's schema and without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from interlingua.common.jsontext.codec import read_json, write_json
from interlingua.common.jsontext.literals import to_json
from interlingua.common.schema.resolver import ANY, NULL, TYPES, Types, as_list, as_mapping, read_schema, types_of

__all__ = ["GUESS", "Kind", "Plan", "Value"]

Kind: TypeAlias = Literal["string", "object", "array", "scalar", "any"]

_BOOLEANS = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_BRACKETS = ("{", "[", "(")
_DIGITS = "-0123456789"


class Value(NamedTuple):
    """A param's JSON text. If the raw text did not fit its type, it is that text as a string, and `problem` says so."""

    json: str
    problem: str | None = None


class Plan:
    """What becomes of the raw text of one param."""

    def __init__(self, schema: object = True, root: object = True) -> None:
        facts = read_schema(schema, root)
        types = facts.types
        self.streams = types == TYPES["string"]
        """Only a string fits: its text can go on as it comes."""
        self.takes_string = "string" in types
        self.guess = types == ANY
        """Nothing is known about the type: JSON counts as a value, all else as a string."""
        self.kind: Kind = _kind(types)
        """How it is built, null aside. A union that has both values with and without brackets is `any`."""
        self._types = types
        self._parts = facts.parts
        self._root = root
        self._choices = {} if self.streams or self.guess else _spellings(facts.choices, types)
        self._readers = [read for read in _READERS if read.type in types]
        self._starts = "".join(read.starts for read in self._readers) + ('"' if self._choices else "")
        self._members: dict[str | None, Plan] = {}  # under None what is not declared: models invent keys
        self._item: Plan | None = None

    def may_be_value(self, first_char: str) -> bool:
        """Whether text with this first character, white space aside, may become anything but that text as a string.

        Where it may not, the text can go on as it comes. Where no string fits, it has to end before a problem is known.
        Before the first character has come (it is empty), all may come.
        """
        if self.guess:
            return first_char in _GUESSED
        return not self.streams and ("string" not in self._types or first_char in self._starts)

    def convert(self, text: str) -> Value:
        """The JSON text for the raw text. Of several types, a string takes only what none of the others does."""
        json = None if self.streams else self._choices.get(text) or self._read(text.strip())
        if json is not None:
            return Value(json)
        if "string" in self._types:
            return Value(write_json(text))
        return Value(write_json(text), f"expected {_words(self._types)}, found {text[:40]!r}; kept as a string")

    def _read(self, text: str) -> str | None:
        if self.guess:
            return text if text[:1] in _GUESSED and to_json(text) == text else None
        for reader in self._readers:
            json = reader.read(text)
            # `5.0` is an integer where nothing else will do; where a string will, it may be a version.
            if json is not None and (reader.type != "integer" or json == text or "string" not in self._types):
                return json
        return None

    def declares(self, key: str) -> bool:
        """Whether this is an object with a property of that name."""
        return any(key in as_mapping(part.get("properties")) for part in self._parts)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The properties that this has as an object."""
        return tuple(dict.fromkeys(str(key) for part in self._parts for key in as_mapping(part.get("properties"))))

    def member(self, key: str) -> Plan:
        """The plan for what an object has under this key."""
        place = key if self.declares(key) else None
        if place not in self._members:
            declared = [as_mapping(part.get("properties")) for part in self._parts]
            schemas = [properties[key] for properties in declared if key in properties]
            others = [part.get("additionalProperties") for part in self._parts]
            self._members[place] = self._union(schemas or [other for other in others if other not in (None, False)])
        return self._members[place]

    @property
    def item(self) -> Plan:
        """The plan for what an array has in it."""
        if self._item is None:
            said = [part.get(word) for part in self._parts for word in ("items", "prefixItems")]
            lists = [as_list(schemas) or [schemas] for schemas in said if schemas is not None]
            self._item = self._union([schema for schemas in lists for schema in schemas])
        return self._item

    def _union(self, schemas: list[Any]) -> Plan:
        return Plan({"anyOf": schemas}, self._root) if schemas else GUESS


# How the text of each type is read.


class _Reader(NamedTuple):
    type: str
    words: str
    starts: str  # what text that it takes may begin with
    read: Callable[[str], str | None]


def _bracketed(text: str, opener: str) -> str | None:
    """An object or array, be it inside a JSON string: some encode them twice."""
    if text.startswith('"'):
        text = (read_json(text, str) or "").strip()
    json = to_json(text) if text[:1] in _BRACKETS else None
    return json if json is not None and json[0] == opener else None


def _number(text: str) -> str | None:
    return text if text and text[0] in _DIGITS and to_json(text) == text else None


def _integer(text: str) -> str | None:
    """Counts digits, because a float does not keep them all: `5.0` and `1e3` are integers, `5.1` and `1e-3` are not."""
    if _number(text) is None:
        return None
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    if not fraction and not exponent:
        return text
    if len(exponent) > 4:
        return None  # no float is larger than 1e+308
    digits = whole + fraction
    point = max(0, len(whole) + int(exponent or 0))
    if digits[point:].strip("0"):
        return None
    return ("-" if text[0] == "-" else "") + (digits[:point].ljust(point, "0").lstrip("0") or "0")


_READERS = [
    _Reader("object", "an object", '{("', lambda text: _bracketed(text, "{")),
    _Reader("array", "an array", '[("', lambda text: _bracketed(text, "[")),
    _Reader("null", "null", "nN", lambda text: "null" if text in ("null", "None") else None),
    _Reader("boolean", "a boolean", "tTfF", _BOOLEANS.get),
    _Reader("number", "a number", _DIGITS, _number),
    _Reader("integer", "an integer", _DIGITS, _integer),
]
_GUESSED = "{[ntf" + _DIGITS
"""What JSON begins with, but for strings: those are taken as they are, with their quotes."""


def _spellings(choices: Iterable[object], types: Types) -> dict[str, str]:
    """The JSON text of each choice by the texts that stand for it, unless they stand for another choice too."""
    found: dict[str, set[str]] = {}
    for choice in choices:
        if isinstance(choice, str | int | float | None) and types_of(choice) & types:
            json = write_json(choice)
            for text in (json, str(choice)):
                found.setdefault(text, set()).add(json)
    return {text: jsons.pop() for text, jsons in found.items() if len(jsons) == 1}


def _kind(types: Types) -> Kind:
    types -= NULL
    pure: tuple[Kind, ...] = ("string", "object", "array")
    for kind in pure:
        if types == TYPES[kind]:
            return kind
    return "any" if types & {"object", "array"} else "scalar"


def _words(types: Types) -> str:
    """The types in words, for a finding."""
    readers = [reader for reader in _READERS if reader.type in types]
    return " or ".join(reader.words for reader in readers if reader.type != "integer" or "number" not in types)


GUESS = Plan()
"""The plan where nothing is known."""
