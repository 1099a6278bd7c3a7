"""Generator of tool call arguments, from the schema, the names of params and the words of the prompt.

Schemas come from clients. The generator returns a result for every schema; for a sensible schema the result is valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from interlingua.common.schema.resolver import (
    ANY_TYPE,
    NULL_TYPE,
    TYPES_BY_NAME,
    as_list,
    as_mapping,
    resolve_reference,
    types_of,
)

__all__ = ["ArgumentHints", "fake_arguments"]

MAX_DEPTH = 8
MAX_SCHEMAS = 2000
"""Maximum depth and number of schemas that are visited: references may be circular."""
MAX_PATTERN_CANDIDATE_CHARS = 20
"""Maximum length of a text that is matched against a pattern."""
_SIMPLE_PATTERN = re.compile(
    r"\^?(?:(?:\[\^?[^][\\^]{1,60}\]|\\[dDwWsS.+*?/-]|[\w :/@#,.-])(?:\{\d{1,2}(?:,\d{0,2})?\}|[*+?])?){1,20}\$?"
)
_QUANTIFIER = re.compile(r"[*+?]|,\d*\}")
MAX_QUANTIFIERS = 3
"""Maximum number of quantifiers in a pattern. Patterns come from clients and could backtrack without end, so only
patterns without groups and alternatives are matched."""
MAX_GENERATED_LENGTH = 64
"""Maximum number of generated items and characters of a generated text."""
MIN_STEP = 2**-53
"""Minimum `multipleOf` whose multiples are tried. The quotient of a number and a smaller one may be infinite."""
_DEFAULT_BOUNDS = {"minimum": -inf, "exclusiveMinimum": -inf, "maximum": inf, "exclusiveMaximum": inf}
_FORMAT_EXAMPLES = {
    "date": "2025-01-01",
    "date-time": "2025-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "demo@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.com",
}
_PATTERN_CANDIDATES = ("a", "A", "1", "abc", "ABC", "a1", "12", "123", "2025-01-01", "12:00", "a@b.co", "/a", "a-b")


@dataclass(frozen=True)
class ArgumentHints:
    """Input for guesses: model id, prompt, and the number of calls generated from them before (`nth`)."""

    model: str
    prompt: str = ""
    nth: int = 0
    careful: bool = False
    """True if the tool may change files. Then no path is used that may exist on the user's machine."""

    @cached_property
    def names(self) -> list[str]:
        """Capitalised words that do not start a sentence. Adjacent words form one name: `São Paulo`."""
        names: list[str] = []
        previous = "."
        for word in self.prompt.split():
            stripped = word.strip("\"'“”‘’()")
            name = stripped.rstrip(".,;:!?")
            if name[:1].isupper() and len(name) > 1 and previous[-1:] not in ".!?:":
                if names and names[-1].endswith(previous):
                    names[-1] += f" {name}"
                else:
                    names.append(name)
            previous = stripped or "."
        return names

    @cached_property
    def urls(self) -> list[str]:
        return re.findall(r"https?://[^\s'\"<>)]+", self.prompt)

    @cached_property
    def paths(self) -> list[str]:
        prose = re.sub(r"https?://\S+", "", self.prompt)
        return re.findall(r"(?<![\w./~-])(?:[~.]{0,2}/[\w./-]*\w|[\w-][\w./-]*\.[A-Za-z]\w{0,4})(?!\w)", prose)

    @cached_property
    def numbers(self) -> list[float]:
        return [float(number) for number in re.findall(r"(?<![\w.-])-?\d{1,9}(?:\.\d{1,9})?(?![\w-])", self.prompt)]

    def pick(self, candidates: list[str], default: str) -> str:
        """Return another candidate for each call, in rotation; `default` if there is none."""
        return candidates[self.nth % len(candidates)] if candidates else default

    def guess_text(self, name: str) -> str:
        """Return a string for a param of this name."""
        words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
        greeting = f"hello{' again' * self.nth} from {self.model}"
        path = "interlingua-demo.txt" if self.careful else self.pick(self.paths, "README.md")
        city = self.pick(self.names, "Rome" if self.nth % 2 else "Paris")
        guesses = (
            ("command cmd shell script commandline", f"echo {greeting}"),
            ("code program snippet python javascript", f"print({greeting!r})"),
            ("url uri link href website", self.pick(self.urls, "https://example.com/")),
            ("cwd dir directory folder workdir", "."),
            ("pattern glob regex", "README*"),
            ("path file filename filepath", path),
            ("city location place town address destination origin", city),
            ("country", "France"),
            ("email recipient", _FORMAT_EXAMPLES["email"]),
            ("timezone tz", "UTC"),
            ("date day", _FORMAT_EXAMPLES["date"]),
            ("language lang locale", "en"),
            ("currency", "EUR"),
            ("query search question keyword keywords q topic", self.prompt[:MAX_GENERATED_LENGTH].strip() or "hello"),
            ("id", str(self.nth + 1)),
        )
        return next((guess for keywords, guess in guesses if words & set(keywords.split())), greeting)


def fake_arguments(schema: object, hints: ArgumentHints, provided: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return arguments for a tool with this schema: the provided ones and generated ones for all other required
    params."""
    return _ArgumentFaker(schema, hints).fake_object(schema, provided or {}, MAX_DEPTH)


class _ArgumentFaker:
    def __init__(self, root: object, hints: ArgumentHints) -> None:
        self._root = root
        self._hints = hints
        self._numbers = iter(hints.numbers)
        self._schemas_left = MAX_SCHEMAS

    def fake_value(self, schema: object, name: str, depth: int, nth: int = 0) -> Any:
        """Return a value for this schema and name. Each `nth` gives a different value if the schema allows several."""
        schema_fields = self._flatten(schema, depth)
        depth = depth if self._schemas_left > 0 else 0
        fixed_values = _fixed_values(schema_fields)
        if fixed_values:
            return fixed_values[min(nth, len(fixed_values) - 1)]
        match _primary_type(schema_fields):
            case "string":
                return self._fake_string(schema_fields, name, nth)
            case "integer" | "number" as type:
                return self._fake_number(schema_fields, type, nth)
            case "boolean":
                return bool(nth)
            case "array":
                return self._fake_array(schema_fields, name, depth - 1)
            case "object":
                return self.fake_object(schema_fields, {}, depth - 1)
        return None

    def fake_object(self, schema: object, provided: Mapping[str, Any], depth: int) -> dict[str, Any]:
        schema_fields = self._flatten(schema, depth)
        properties = as_mapping(schema_fields.get("properties"))
        required = [key for key in as_list(schema_fields.get("required")) if isinstance(key, str)] if depth > 0 else []
        keys = dict.fromkeys((*provided, *required))
        optional = [key for key in properties if key not in keys] if depth > 0 else []
        keys |= dict.fromkeys(optional[: max(_non_negative_int(schema_fields, "minProperties", 0) - len(keys), 0)])
        order = {key: n for n, key in enumerate(properties)}
        return {
            key: provided[key] if key in provided else self.fake_value(properties.get(key), key, depth)
            for key in sorted(keys, key=lambda key: order.get(key, len(order)))
        }

    def _flatten(self, schema: object, depth: int) -> Mapping[str, Any]:
        """Return the schema merged with its reference, with `allOf`, and with the first branch of its unions that is
        not null."""
        merged = dict(as_mapping(schema))
        self._schemas_left -= 1
        if depth <= 0 or self._schemas_left < 0:
            return merged
        subschemas: list[object] = [resolve_reference(merged.pop("$ref"), self._root)] if "$ref" in merged else []
        subschemas += as_list(merged.pop("allOf", None))
        for keyword in ("anyOf", "oneOf"):
            branches = as_list(merged.pop(keyword, None))
            subschemas += [branch for branch in branches if as_mapping(branch).get("type") != "null"][:1] or branches[
                :1
            ]
        for subschema in subschemas:
            merged = _merge_schemas(merged, self._flatten(subschema, depth - 1))
        return merged

    def _fake_string(self, schema_fields: Mapping[str, Any], name: str, nth: int) -> str:
        guess = _FORMAT_EXAMPLES.get(str(schema_fields.get("format"))) or self._hints.guess_text(name)
        guess = f"{guess} {nth + 1}" if nth else guess
        pattern = schema_fields.get("pattern")
        if isinstance(pattern, str):
            guess = _first_match(pattern, (guess[:MAX_PATTERN_CANDIDATE_CHARS], *_PATTERN_CANDIDATES)) or guess
        min_length, max_length = _non_negative_int(schema_fields, "minLength", 0), schema_fields.get("maxLength")
        guess = guess.ljust(min(min_length, MAX_GENERATED_LENGTH * MAX_GENERATED_LENGTH), ".")
        return guess[:max_length] if isinstance(max_length, int) and 0 <= max_length < len(guess) else guess

    def _fake_number(self, schema_fields: Mapping[str, Any], type: str, nth: int) -> float:
        """Return the next number of the prompt that fits, else a small number, else a number near a limit."""
        limits = [n for keyword in _DEFAULT_BOUNDS if (n := _finite_number(schema_fields.get(keyword))) is not None]
        step = abs(_finite_number(schema_fields.get("multipleOf")) or (type == "integer"))
        prompt_numbers = (n for n in self._numbers if _is_valid_number(n, schema_fields, step))
        candidates = [
            1,
            step,
            0,
            *(limit + offset for limit in limits for offset in (0, 1, -1)),
            sum(limits) / max(len(limits), 1),
        ]
        near_limits = [n for limit in limits for n in (limit, limit + step, limit - step)]
        multiples = [round(n / step) * step for n in near_limits] if step >= MIN_STEP else []
        fitting = (n for n in (*candidates, *multiples) if _is_valid_number(n, schema_fields, step))
        number = next(prompt_numbers, None) if nth == 0 else None
        if number is None:
            first, distance = next(fitting, 1), nth * (step or 1)
            others = (first + distance, first - distance)
            number = next((n for n in others if _is_valid_number(n, schema_fields, step)), first)
        return int(number) if number == int(number) else number

    def _fake_array(self, schema_fields: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        prefix_items, items = as_list(schema_fields.get("prefixItems")), schema_fields.get("items")
        max_items = _non_negative_int(schema_fields, "maxItems", MAX_GENERATED_LENGTH)
        count = (
            min(
                max(_non_negative_int(schema_fields, "minItems", 1), len(prefix_items)), max_items, MAX_GENERATED_LENGTH
            )
            if depth > 0
            else 0
        )
        if name in ("command", "cmd") and max_items > 1 and self._is_plain_string(items, depth):
            return self._hints.guess_text("command").split(" ", 1)
        schemas = [*prefix_items, *[items] * count][:count]
        return [self.fake_value(schema, name, depth, nth) for nth, schema in enumerate(schemas)]

    def _is_plain_string(self, schema: Any, depth: int) -> bool:
        """Return whether any string is valid for this schema."""
        schema_fields = self._flatten(schema, depth)
        return _primary_type(schema_fields) == "string" and schema_fields.keys() <= {"type", "title", "description"}


def _fixed_values(schema_fields: Mapping[str, Any]) -> list[Any]:
    """Return the values that the schema itself names: const, enum, default, examples."""
    choices = [schema_fields["const"]] if "const" in schema_fields else as_list(schema_fields.get("enum"))
    if choices:
        return [choice for choice in choices if choice is not None] or choices
    suggested = [schema_fields[keyword] for keyword in ("default", "example") if schema_fields.get(keyword) is not None]
    accepted_types = _accepted_types(schema_fields.get("type"))
    return [
        value for value in (*suggested, *as_list(schema_fields.get("examples"))) if types_of(value) & accepted_types
    ]


def _accepted_types(declared: object) -> frozenset[str]:
    names = as_list(declared) or [declared]
    types = (TYPES_BY_NAME.get(name.lower(), frozenset()) for name in names if isinstance(name, str))
    return frozenset[str]().union(*types) or ANY_TYPE


def _primary_type(schema_fields: Mapping[str, Any]) -> str:
    """Return the type to generate: the first declared type that is not null."""
    names = [
        name.lower()
        for name in as_list(schema_fields.get("type")) or [schema_fields.get("type")]
        if isinstance(name, str)
    ]
    known_types = [TYPES_BY_NAME[name] for name in names if name in TYPES_BY_NAME]
    if not known_types:
        return (
            "object"
            if "properties" in schema_fields
            else "array"
            if "items" in schema_fields or "prefixItems" in schema_fields
            else "string"
        )
    types = next((types for types in known_types if types != NULL_TYPE), NULL_TYPE)
    return "number" if "number" in types else next(iter(types))


def _merge_schemas(schema: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the constraints of both."""
    merged = {**other, **schema}
    for keyword, combine in (
        ("minimum", max),
        ("maximum", min),
        ("minLength", max),
        ("maxLength", min),
        ("minItems", max),
    ):
        bounds = [n for n in (_finite_number(schema.get(keyword)), _finite_number(other.get(keyword))) if n is not None]
        if len(bounds) == 2:
            merged[keyword] = combine(bounds)
    properties = {**as_mapping(other.get("properties")), **as_mapping(schema.get("properties"))}
    required = [*as_list(schema.get("required")), *as_list(other.get("required"))]
    return merged | ({"properties": properties} if properties else {}) | ({"required": required} if required else {})


def _first_match(pattern: str, candidates: tuple[str, ...]) -> str | None:
    """Return the first candidate that matches; None if there is none or the pattern is not a simple one."""
    if not _SIMPLE_PATTERN.fullmatch(pattern) or len(_QUANTIFIER.findall(pattern)) > MAX_QUANTIFIERS:
        return None
    try:
        return next((text for text in candidates if re.search(pattern, text)), None)
    except (re.error, RecursionError, OverflowError):
        return None


def _is_valid_number(number: float, schema_fields: Mapping[str, Any], step: float) -> bool:
    limits = (
        limit if (limit := _finite_number(schema_fields.get(keyword))) is not None else default
        for keyword, default in _DEFAULT_BOUNDS.items()
    )
    low, above, high, below = limits
    return low <= number <= high and above < number < below and (not step or number % step == 0)


def _finite_number(value: object) -> float | None:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return number if number is not None and abs(number) < 2**53 else None


def _non_negative_int(schema_fields: Mapping[str, Any], keyword: str, default: int) -> int:
    value = schema_fields.get(keyword)
    return value if isinstance(value, int) and value >= 0 else default
