"""A request's objects, read field by field: what is not as it should be is told with its place.

fields = Fields(body)
model = fields.text("model")                       # BadRequest: model: should be a string, not 5
for message in fields.objects("messages"): ...     # each with its own path, such as messages[3]
extra = fields.rest()                              # the fields that nobody has asked for
"""

from __future__ import annotations

from typing import Any, NoReturn

from interlingua.errors import BadRequest

__all__ = ["Fields"]

_NOTHING: tuple[Any, ...] = (None, "", [], {})
_NAMES = {dict: "an object", list: "a list", str: "a string", int: "an integer", float: "a number", bool: "a boolean"}


class Fields:
    """One object. A field that is null counts as left out."""

    __slots__ = ("_asked", "_inner", "object", "path")

    def __init__(self, value: Any, path: str = "") -> None:
        self.path = path
        if not isinstance(value, dict):
            self._refuse("", "an object", value)
        self.object: dict[str, Any] = value
        self._asked: set[str] = set()
        self._inner: dict[str, list[Fields]] = {}

    def get(self, key: str) -> Any:
        """Whatever stands there; None if nothing does."""
        self._asked.add(key)
        return self.object.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """A string. Without a default it has to be there."""
        self._asked.add(key)
        value = self.object.get(key)
        if isinstance(value, str):
            return value
        if value is not None or default is None:
            self._refuse(key, "a string", value)
        return default

    def one_of(self, key: str, *words: str) -> str:
        """One of these words; the first is the default."""
        value = self.get(key)
        if value is None:
            return words[0]
        if value not in words:
            self._refuse(key, " or ".join(map(repr, words)), value)
        return str(value)

    def integer(self, key: str) -> int | None:
        value = self.get(key)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            self._refuse(key, "an integer", value)
        return value

    def number(self, key: str) -> float | int | None:
        value = self.get(key)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            self._refuse(key, "a number", value)
        return value

    def flag(self, key: str) -> bool | None:
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            self._refuse(key, "true or false", value)
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """An object as it is; an empty one where there is none."""
        value = self.get(key)
        if value is not None and not isinstance(value, dict):
            self._refuse(key, "an object", value)
        return value or {}

    def inner(self, key: str) -> Fields:
        """An object, to be read field by field; an empty one where there is none."""
        if key not in self._inner:
            self._inner[key] = [Fields(self.mapping(key), self.at(key))]
        return self._inner[key][0]

    def items(self, key: str, expected: str = "a list") -> list[Any]:
        """A list as it is; an empty one where there is none."""
        value = self.get(key)
        if value is not None and not isinstance(value, list):
            self._refuse(key, expected, value)
        return value or []

    def listed(self, key: str) -> list[Fields]:
        """A list of objects that has to be there."""
        if self.get(key) is None:
            self._refuse(key, "a list", None)
        return self.objects(key)

    def texts(self, key: str) -> list[str]:
        values = self.items(key)
        for n, value in enumerate(values):
            if not isinstance(value, str):
                self._refuse(f"{key}[{n}]", "a string", value)
        return values

    def objects(self, key: str, expected: str = "a list") -> list[Fields]:
        """A list of objects, each to be read field by field. `expected` is what else would be right."""
        if key not in self._inner:
            values = self.items(key, expected)
            self._inner[key] = [Fields(value, f"{self.at(key)}[{n}]") for n, value in enumerate(values)]
        return self._inner[key]

    def said(self, key: str) -> str | list[Fields]:
        """What somebody says: a text that is not empty, or objects."""
        given = self.get(key)
        if isinstance(given, str):
            return given or []
        return self.objects(key, "a string or a list")

    def rest(self) -> dict[str, Any]:
        """The fields that nobody has asked for. Whoever asks for the rest has asked for all."""
        rest = {key: value for key, value in self.object.items() if key not in self._asked and value is not None}
        self._asked.update(rest)
        return rest

    def whole(self) -> dict[str, Any]:
        """The object as it is, with all that is in it."""
        self._asked.update(self.object)
        self._inner.clear()
        return self.object

    def pass_over(self, *keys: str) -> None:
        """Says that these are known, and that nothing is lost without them."""
        self._asked.update(keys)

    def unread(self) -> list[str]:
        """The places of all that nobody has asked for, here and in the objects inside."""
        unread: list[str] = []
        self._add_unread(unread)
        return unread

    def _add_unread(self, unread: list[str]) -> None:
        if not self._asked.issuperset(self.object):
            left = {key: value for key, value in self.object.items() if key not in self._asked}
            unread += [self.at(key) for key, value in left.items() if value not in _NOTHING]
        for inner in self._inner.values():
            for fields in inner:
                fields._add_unread(unread)

    def at(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}" if self.path and key else self.path or key

    def refuse(self, key: str, message: str, hint: str = "") -> NoReturn:
        raise BadRequest(self.at(key), message, hint)

    def _refuse(self, key: str, expected: str, came: Any) -> NoReturn:
        kind = "nothing" if came is None else _NAMES.get(type(came), "something else")
        what = f"{kind} ({came!r:.40})" if isinstance(came, str | int | float) else kind
        self.refuse(key, f"should be {expected}, not {what}")
