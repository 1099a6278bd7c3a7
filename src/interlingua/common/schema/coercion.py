"""Schema-driven, lossless conversion of the raw text that a model wrote for a param to JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from interlingua.common.jsontext.codec import read_json, write_json
from interlingua.common.jsontext.literals import literal_to_json
from interlingua.common.schema.resolver import (
    ANY_TYPE,
    NULL_TYPE,
    TYPES_BY_NAME,
    TypeSet,
    as_list,
    as_mapping,
    read_schema,
    types_of,
)

__all__ = ["UNTYPED", "ConvertedValue", "DeclaredType", "ValueCoercion", "ValueKind"]

ValueKind: TypeAlias = Literal["string", "object", "array", "scalar", "any"]
DeclaredType: TypeAlias = Literal["", "string", "json"]
"""Type that the text of a value declares: a string, a JSON value, or nothing."""

_BOOLEANS = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_BRACKETS = ("{", "[", "(")
_DIGITS = "-0123456789"
_EMPTY_VALUES = (("object", "{}"), ("array", "[]"), ("string", '""'))


class ConvertedValue(NamedTuple):
    """JSON text of a param. Raw text that does not match the type becomes a string, and `problem` describes that."""

    json: str
    problem: str | None = None


class ValueCoercion:
    """Conversion of the raw text of one param, derived from its schema."""

    def __init__(self, schema: object = True, root: object = True) -> None:
        facts = read_schema(schema, root)
        types = facts.types
        self.is_string_only = types == TYPES_BY_NAME["string"]
        """True if the schema allows only a string: its text can be forwarded as it arrives."""
        self.accepts_string = "string" in types
        self.is_untyped = types == ANY_TYPE
        """True if the type is unknown: JSON becomes a value, anything else a string."""
        self.kind: ValueKind = _kind_of(types)
        """Kind of the value, ignoring null. A union of types with and without brackets is `any`."""
        self._types = types
        self._parts = facts.parts
        self._root = root
        self._choices = {} if self.is_untyped else _spellings(facts.choices, types)
        self.has_choices = bool(self._choices)
        """True if the schema lists values. A listed value is found also with whitespace around it."""
        self._readers = [read for read in _READERS if read.type in types]
        self._first_chars = "".join(read.first_chars for read in self._readers) + ('"' if self._choices else "")
        self._members: dict[str | None, ValueCoercion] = {}  # None: undeclared keys, which models may invent
        self._item: ValueCoercion | None = None

    def can_be_value(self, first_char: str) -> bool:
        """Return whether text with this first character (after whitespace) can become something other than a string.

        If not, the text can be forwarded as it arrives. If the schema allows no string, the result is true: an error is
        known only at the end of the text. An empty `first_char` means that the first character has not arrived yet;
        then the result is true.
        """
        if self.is_untyped:
            return first_char in _UNTYPED_FIRST_CHARS
        return not self.is_string_only and ("string" not in self._types or first_char in self._first_chars)

    @property
    def empty_value(self) -> str:
        """JSON of a value without text: an empty object if the schema allows it, or else an array or a string."""
        return next((json for name, json in _EMPTY_VALUES if name in self._types), "{}")

    def convert(self, text: str, declared: DeclaredType = "") -> ConvertedValue:
        """Convert raw text to JSON text.

        Args:
            text: The raw text.
            declared: The type that the text itself declares, if any. It decides where the schema allows several types.
                Otherwise a string is used only if no other type matches.
        """
        is_string = self.is_string_only or (declared == "string" and self.accepts_string)
        json = self._read_declared(text) if declared == "json" else None
        json = json or self._find_choice(text, strings_only=is_string)
        if json is None and not is_string:
            json = self._read_typed(text.strip())
        if json is not None:
            return ConvertedValue(json)
        expected = _describe_types(self._types)
        if self.accepts_string:
            if declared != "json" or literal_to_json(text) is not None:
                return ConvertedValue(write_json(text))
            expected = "JSON, as the text declares"
        return ConvertedValue(write_json(text), f"expected {expected}, found {text[:40]!r}; kept as a string")

    def _read_declared(self, text: str) -> str | None:
        """Return the JSON value that the text is written as, if the schema allows its type."""
        json = literal_to_json(text)
        if json is None or self.is_untyped:
            return json
        is_number = json[0] in _DIGITS  # the readers decide which numbers are integers
        return json if not is_number and _TYPES_BY_FIRST_CHAR[json[0]] in self._types else None

    def _find_choice(self, text: str, *, strings_only: bool) -> str | None:
        """Return the listed value that the text spells, with or without whitespace around it."""
        json = self._choices.get(text) or self._choices.get(text.strip())
        return json if json is None or not strings_only or json[0] == '"' else None

    def _read_typed(self, text: str) -> str | None:
        if self.is_untyped:
            return text if text[:1] in _UNTYPED_FIRST_CHARS and literal_to_json(text) == text else None
        for reader in self._readers:
            json = reader.read(text)
            # `5.0` becomes an integer only if no string is allowed; otherwise it may be a version number.
            if json is not None and (reader.type != "integer" or json == text or "string" not in self._types):
                return json
        return None

    def declares(self, key: str) -> bool:
        """Return whether this is an object with a property of that name."""
        return any(key in as_mapping(part.get("properties")) for part in self._parts)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Names of the declared properties."""
        return tuple(dict.fromkeys(str(key) for part in self._parts for key in as_mapping(part.get("properties"))))

    def member(self, key: str) -> ValueCoercion:
        """Return the coercion of the object member with this key."""
        slot = key if self.declares(key) else None
        if slot not in self._members:
            declared = [as_mapping(part.get("properties")) for part in self._parts]
            schemas = [properties[key] for properties in declared if key in properties]
            others = [part.get("additionalProperties") for part in self._parts]
            self._members[slot] = self._union(schemas or [other for other in others if other not in (None, False)])
        return self._members[slot]

    @property
    def item(self) -> ValueCoercion:
        """Coercion of the items of an array."""
        if self._item is None:
            item_schemas = [part.get(keyword) for part in self._parts for keyword in ("items", "prefixItems")]
            lists = [as_list(schemas) or [schemas] for schemas in item_schemas if schemas is not None]
            self._item = self._union([schema for schemas in lists for schema in schemas])
        return self._item

    def _union(self, schemas: list[Any]) -> ValueCoercion:
        return ValueCoercion({"anyOf": schemas}, self._root) if schemas else UNTYPED


# Readers of the raw text, one per type.


class _TypeReader(NamedTuple):
    type: str
    description: str
    first_chars: str  # possible first characters of text that it accepts
    read: Callable[[str], str | None]


def _read_bracketed(text: str, opener: str) -> str | None:
    """Read an object or array, also inside a JSON string: some models encode them twice."""
    if text.startswith('"'):
        text = (read_json(text, str) or "").strip()
    json = literal_to_json(text) if text[:1] in _BRACKETS else None
    return json if json is not None and json[0] == opener else None


def _read_number(text: str) -> str | None:
    return text if text and text[0] in _DIGITS and literal_to_json(text) == text else None


def _read_integer(text: str) -> str | None:
    """Read an integer by its digits, because a float loses precision: `5.0` and `1e3` are integers, `5.1` and
    `1e-3` are not."""
    if _read_number(text) is None:
        return None
    mantissa, _, exponent = text.lower().partition("e")
    integer, _, fraction = mantissa.removeprefix("-").partition(".")
    if not fraction and not exponent:
        return text
    if len(exponent) > 4:
        return None  # no float is larger than 1e+308
    digits = integer + fraction
    point = max(0, len(integer) + int(exponent or 0))
    if digits[point:].strip("0"):
        return None
    return ("-" if text[0] == "-" else "") + (digits[:point].ljust(point, "0").lstrip("0") or "0")


_READERS = [
    _TypeReader("object", "an object", '{("', lambda text: _read_bracketed(text, "{")),
    _TypeReader("array", "an array", '[("', lambda text: _read_bracketed(text, "[")),
    _TypeReader("null", "null", "nN", lambda text: "null" if text in ("null", "None") else None),
    _TypeReader("boolean", "a boolean", "tTfF", _BOOLEANS.get),
    _TypeReader("number", "a number", _DIGITS, _read_number),
    _TypeReader("integer", "an integer", _DIGITS, _read_integer),
]
_TYPES_BY_FIRST_CHAR = {"{": "object", "[": "array", '"': "string", "n": "null", "t": "boolean", "f": "boolean"}
_UNTYPED_FIRST_CHARS = "{[ntf" + _DIGITS
"""First characters of JSON values except strings: strings of unknown type are kept with their quotes."""


def _spellings(choices: Iterable[object], types: TypeSet) -> dict[str, str]:
    """Map the possible spellings of each choice to its JSON text. Ambiguous spellings are left out."""
    spellings: dict[str, set[str]] = {}
    for choice in choices:
        if isinstance(choice, str | int | float | None) and types_of(choice) & types:
            json = write_json(choice)
            for text in (json, str(choice)):
                spellings.setdefault(text, set()).add(json)
    return {text: jsons.pop() for text, jsons in spellings.items() if len(jsons) == 1}


def _kind_of(types: TypeSet) -> ValueKind:
    types -= NULL_TYPE
    simple_kinds: tuple[ValueKind, ...] = ("string", "object", "array")
    for kind in simple_kinds:
        if types == TYPES_BY_NAME[kind]:
            return kind
    return "any" if types & {"object", "array"} else "scalar"


def _describe_types(types: TypeSet) -> str:
    """Describe the types for a finding."""
    readers = [reader for reader in _READERS if reader.type in types]
    return " or ".join(reader.description for reader in readers if reader.type != "integer" or "number" not in types)


UNTYPED = ValueCoercion()
"""Coercion for a param without a known schema."""
