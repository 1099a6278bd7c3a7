"""Arguments made up for a tool: what its schema asks for, guessed by the names of params and the words of the prompt.

Schemas come from clients: whatever they say, something is made, and where they make sense it is valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from interlingua.common.schema.resolver import ANY, NULL, TYPES, as_list, as_mapping, resolve, types_of

__all__ = ["Hints", "fill"]

DEEPEST = 8
LARGEST = 2000
"""How deep, and how many schemas, are followed: they may lead in circles."""
SHORT = 20
"""How much of a text is tried on a pattern."""
_PLAIN = re.compile(
    r"\^?(?:(?:\[\^?[^][\\^]{1,60}\]|\\[dDwWsS.+*?/-]|[\w :/@#,.-])(?:\{\d{1,2}(?:,\d{0,2})?\}|[*+?])?){1,20}\$?"
)
_ELASTIC = re.compile(r"[*+?]|,\d*\}")
STRETCHES = 3
"""A pattern is a client's, and may take for ever. Those that are tried have neither groups nor alternatives, and no
more than so many parts that stretch."""
MOST = 64
"""How many items, and how much of a text, at most are made up on demand."""
_LIMITS = {"minimum": -inf, "exclusiveMinimum": -inf, "maximum": inf, "exclusiveMaximum": inf}
_FORMATS = {
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
_FOR_PATTERNS = ("a", "A", "1", "abc", "ABC", "a1", "12", "123", "2025-01-01", "12:00", "a@b.co", "/a", "a-b")


@dataclass(frozen=True)
class Hints:
    """What guesses are made of: the model's id, the prompt, and how many calls were made up from them before."""

    model: str
    prompt: str = ""
    nth: int = 0
    careful: bool = False
    """Whether the tool may change files: then none is taken that the user may have."""

    @cached_property
    def names(self) -> list[str]:
        """The capitalised words that begin no sentence; neighbours are one name: `São Paulo`."""
        names: list[str] = []
        last = "."
        for word in self.prompt.split():
            plain = word.strip("\"'“”‘’()")
            name = plain.rstrip(".,;:!?")
            if name[:1].isupper() and len(name) > 1 and last[-1:] not in ".!?:":
                if names and names[-1].endswith(last):
                    names[-1] += f" {name}"
                else:
                    names.append(name)
            last = plain or "."
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

    def pick(self, found: list[str], other: str) -> str:
        """For each call another one of those that were found, as long as there are some."""
        return found[self.nth % len(found)] if found else other

    def text(self, name: str) -> str:
        """A string for a param of this name."""
        words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
        hello = f"hello{' again' * self.nth} from {self.model}"
        path = "interlingua-demo.txt" if self.careful else self.pick(self.paths, "README.md")
        place = self.pick(self.names, "Rome" if self.nth % 2 else "Paris")
        guesses = (
            ("command cmd shell script commandline", f"echo {hello}"),
            ("code program snippet python javascript", f"print({hello!r})"),
            ("url uri link href website", self.pick(self.urls, "https://example.com/")),
            ("cwd dir directory folder workdir", "."),
            ("pattern glob regex", "README*"),
            ("path file filename filepath", path),
            ("city location place town address destination origin", place),
            ("country", "France"),
            ("email recipient", _FORMATS["email"]),
            ("timezone tz", "UTC"),
            ("date day", _FORMATS["date"]),
            ("language lang locale", "en"),
            ("currency", "EUR"),
            ("query search question keyword keywords q topic", self.prompt[:MOST].strip() or "hello"),
            ("id", str(self.nth + 1)),
        )
        return next((guess for among, guess in guesses if words & set(among.split())), hello)


def fill(schema: object, hints: Hints, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments for a tool with this schema: those that were given, and whatever else it requires."""
    return _Filling(schema, hints).members(schema, given or {}, DEEPEST)


class _Filling:
    def __init__(self, root: object, hints: Hints) -> None:
        self._root = root
        self._hints = hints
        self._numbers = iter(hints.numbers)
        self._left = LARGEST

    def value(self, schema: object, name: str, depth: int, nth: int = 0) -> Any:
        """A value for this schema, under this name; another one for each number, if there are several."""
        flat = self._flat(schema, depth)
        depth = depth if self._left > 0 else 0
        known = _known(flat)
        if known:
            return known[min(nth, len(known) - 1)]
        match _type(flat):
            case "string":
                return self._string(flat, name, nth)
            case "integer" | "number" as type:
                return self._number(flat, type, nth)
            case "boolean":
                return bool(nth)
            case "array":
                return self._array(flat, name, depth - 1)
            case "object":
                return self.members(flat, {}, depth - 1)
        return None

    def members(self, schema: object, given: Mapping[str, Any], depth: int) -> dict[str, Any]:
        flat = self._flat(schema, depth)
        properties = as_mapping(flat.get("properties"))
        required = [key for key in as_list(flat.get("required")) if isinstance(key, str)] if depth > 0 else []
        wanted = dict.fromkeys((*given, *required))
        others = [key for key in properties if key not in wanted] if depth > 0 else []
        wanted |= dict.fromkeys(others[: max(_count(flat, "minProperties", 0) - len(wanted), 0)])
        order = {key: n for n, key in enumerate(properties)}
        return {
            key: given[key] if key in given else self.value(properties.get(key), key, depth)
            for key in sorted(wanted, key=lambda key: order.get(key, len(order)))
        }

    def _flat(self, schema: object, depth: int) -> Mapping[str, Any]:
        """The schema with its references, all of `allOf`, and the best of its unions in it."""
        said = dict(as_mapping(schema))
        self._left -= 1
        if depth <= 0 or self._left < 0:
            return said
        inner: list[object] = [resolve(said.pop("$ref"), self._root)] if "$ref" in said else []
        inner += as_list(said.pop("allOf", None))
        for word in ("anyOf", "oneOf"):
            branches = as_list(said.pop(word, None))
            inner += [branch for branch in branches if as_mapping(branch).get("type") != "null"][:1] or branches[:1]
        for each in inner:
            said = _both(said, self._flat(each, depth - 1))
        return said

    def _string(self, flat: Mapping[str, Any], name: str, nth: int) -> str:
        guess = _FORMATS.get(str(flat.get("format"))) or self._hints.text(name)
        guess = f"{guess} {nth + 1}" if nth else guess
        pattern = flat.get("pattern")
        if isinstance(pattern, str):
            guess = _matching(pattern, (guess[:SHORT], *_FOR_PATTERNS)) or guess
        least, most = _count(flat, "minLength", 0), flat.get("maxLength")
        guess = guess.ljust(min(least, MOST * MOST), ".")
        return guess[:most] if isinstance(most, int) and 0 <= most < len(guess) else guess

    def _number(self, flat: Mapping[str, Any], type: str, nth: int) -> float:
        """The next number of the prompt that fits, or a small one, or one by a limit."""
        limits = [n for word in _LIMITS if (n := _finite(flat.get(word))) is not None]
        step = abs(_finite(flat.get("multipleOf")) or (type == "integer"))
        asked = (n for n in self._numbers if _fits(n, flat, step))
        near = [1, step, 0, *(limit + by for limit in limits for by in (0, 1, -1)), sum(limits) / max(len(limits), 1)]
        by_steps = (
            [round(n / step) * step for limit in limits for n in (limit, limit + step, limit - step)] if step else []
        )
        made = [n + nth for n in (*near, *by_steps) if _fits(n + nth, flat, step)]
        number = next(asked, None) if nth == 0 else None
        number = number if number is not None else next(iter(made), 1)
        return int(number) if number == int(number) else number

    def _array(self, flat: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        firsts, items = as_list(flat.get("prefixItems")), flat.get("items")
        most = _count(flat, "maxItems", MOST)
        count = min(max(_count(flat, "minItems", 1), len(firsts)), most, MOST) if depth > 0 else 0
        if name in ("command", "cmd") and _type(self._flat(items, depth)) == "string" and most > 1:
            return self._hints.text("command").split(" ", 1)
        schemas = [*firsts, *[items] * count][:count]
        return [self.value(schema, name, depth, nth) for nth, schema in enumerate(schemas)]


def _known(flat: Mapping[str, Any]) -> list[Any]:
    """What the schema itself has as values."""
    choices = [flat["const"]] if "const" in flat else as_list(flat.get("enum"))
    if choices:
        return [choice for choice in choices if choice is not None] or choices
    offered = [flat[word] for word in ("default", "example") if flat.get(word) is not None]
    fitting = _types(flat.get("type"))
    return [value for value in (*offered, *as_list(flat.get("examples"))) if types_of(value) & fitting]


def _types(said: object) -> frozenset[str]:
    names = as_list(said) or [said]
    types = (TYPES.get(name.lower(), frozenset()) for name in names if isinstance(name, str))
    return frozenset[str]().union(*types) or ANY


def _type(flat: Mapping[str, Any]) -> str:
    """The one that is made up: the first that is named, but for null."""
    names = [name.lower() for name in as_list(flat.get("type")) or [flat.get("type")] if isinstance(name, str)]
    named = [TYPES[name] for name in names if name in TYPES]
    if not named:
        return "object" if "properties" in flat else "array" if "items" in flat or "prefixItems" in flat else "string"
    types = next((types for types in named if types != NULL), NULL)
    return "number" if "number" in types else next(iter(types))


def _both(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that says what both say."""
    said = {**other, **one}
    for word, join in (("minimum", max), ("maximum", min), ("minLength", max), ("maxLength", min), ("minItems", max)):
        bounds = [n for n in (_finite(one.get(word)), _finite(other.get(word))) if n is not None]
        if len(bounds) == 2:
            said[word] = join(bounds)
    properties = {**as_mapping(other.get("properties")), **as_mapping(one.get("properties"))}
    required = [*as_list(one.get("required")), *as_list(other.get("required"))]
    return said | ({"properties": properties} if properties else {}) | ({"required": required} if required else {})


def _matching(pattern: str, candidates: tuple[str, ...]) -> str | None:
    """The first that matches, if the pattern is a plain one."""
    if not _PLAIN.fullmatch(pattern) or len(_ELASTIC.findall(pattern)) > STRETCHES:
        return None
    try:
        return next((text for text in candidates if re.search(pattern, text)), None)
    except (re.error, RecursionError, OverflowError):
        return None


def _fits(number: float, flat: Mapping[str, Any], step: float) -> bool:
    limits = (limit if (limit := _finite(flat.get(word))) is not None else other for word, other in _LIMITS.items())
    low, above, high, below = limits
    return low <= number <= high and above < number < below and (not step or number % step == 0)


def _finite(value: object) -> float | None:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return number if number is not None and abs(number) < 2**53 else None


def _count(flat: Mapping[str, Any], word: str, other: int) -> int:
    said = flat.get(word)
    return said if isinstance(said, int) and said >= 0 else other
