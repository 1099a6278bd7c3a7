"""Typed reader for the JSON objects of a request. A field of the wrong type raises BadRequest with its path.

fields = ObjectReader(body)
model = fields.text("model")                       # BadRequest: model: should be a string, not 5
for message in fields.objects("messages"): ...     # each with its own path, such as messages[3]
extra = fields.unread_fields()                     # the fields that were not read
"""

from __future__ import annotations

from typing import Any, NoReturn

from interlingua.errors import BadRequest

__all__ = ["ObjectReader"]

_EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})
_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
}


class ObjectReader:
    """Reader for one JSON object. It records the fields that are read. A field that is null counts as absent."""

    __slots__ = ("_inner", "_read_keys", "object", "path")

    def __init__(self, value: Any, path: str = "") -> None:
        self.path = path
        if not isinstance(value, dict):
            self._reject_type("", "an object", value)
        self.object: dict[str, Any] = value
        self._read_keys: set[str] = set()
        self._inner: dict[str, list[ObjectReader]] = {}

    def get(self, key: str) -> Any:
        """Return the value of any type; None if the field is absent."""
        self._read_keys.add(key)
        return self.object.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string. Without a default the field is required."""
        self._read_keys.add(key)
        value = self.object.get(key)
        if isinstance(value, str):
            return value
        if value is not None or default is None:
            self._reject_type(key, "a string", value)
        return default

    def one_of(self, key: str, *allowed: str) -> str:
        """Return one of the `allowed` strings; the first is the default."""
        value = self.get(key)
        if value is None:
            return allowed[0]
        if value not in allowed:
            self._reject_type(key, " or ".join(map(repr, allowed)), value)
        return str(value)

    def integer(self, key: str) -> int | None:
        value = self.get(key)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            self._reject_type(key, "an integer", value)
        return value

    def number(self, key: str) -> float | int | None:
        value = self.get(key)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            self._reject_type(key, "a number", value)
        return value

    def flag(self, key: str) -> bool | None:
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            self._reject_type(key, "true or false", value)
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an object as a dict; an empty one if the field is absent."""
        value = self.get(key)
        if value is not None and not isinstance(value, dict):
            self._reject_type(key, "an object", value)
        return value or {}

    def inner(self, key: str) -> ObjectReader:
        """Return a reader for an object; for an empty one if the field is absent."""
        if key not in self._inner:
            self._inner[key] = [ObjectReader(self.mapping(key), self.path_of(key))]
        return self._inner[key][0]

    def items(self, key: str, expected: str = "a list") -> list[Any]:
        """Return a list; an empty one if the field is absent."""
        value = self.get(key)
        if value is not None and not isinstance(value, list):
            self._reject_type(key, expected, value)
        return value or []

    def required_objects(self, key: str) -> list[ObjectReader]:
        """Return readers for a required list of objects."""
        if self.get(key) is None:
            self._reject_type(key, "a list", None)
        return self.objects(key)

    def texts(self, key: str) -> list[str]:
        values = self.items(key)
        for n, value in enumerate(values):
            if not isinstance(value, str):
                self._reject_type(f"{key}[{n}]", "a string", value)
        return values

    def objects(self, key: str, expected: str = "a list") -> list[ObjectReader]:
        """Return readers for a list of objects. `expected` describes the allowed types in the error message."""
        if key not in self._inner:
            values = self.items(key, expected)
            self._inner[key] = [ObjectReader(value, f"{self.path_of(key)}[{n}]") for n, value in enumerate(values)]
        return self._inner[key]

    def content(self, key: str) -> str | list[ObjectReader]:
        """Return the content of a message: a string that is not empty, or readers for a list of objects."""
        value = self.get(key)
        if isinstance(value, str):
            return value or []
        return self.objects(key, "a string or a list")

    def unread_fields(self) -> dict[str, Any]:
        """Return the fields that were not read yet, and count them as read."""
        unread = {key: value for key, value in self.object.items() if key not in self._read_keys and value is not None}
        self._read_keys.update(unread)
        return unread

    def raw(self) -> dict[str, Any]:
        """Return the object as it is, and count all that is in it as read."""
        self._read_keys.update(self.object)
        self._inner.clear()
        return self.object

    def ignore(self, *keys: str) -> None:
        """Count these fields as read: they are known, and dropping them loses nothing."""
        self._read_keys.update(keys)

    def unread_paths(self) -> list[str]:
        """Return the paths of all fields that were not read, in this object and the objects inside it."""
        unread: list[str] = []
        self._collect_unread(unread)
        return unread

    def _collect_unread(self, unread: list[str]) -> None:
        if not self._read_keys.issuperset(self.object):
            missed = {key: value for key, value in self.object.items() if key not in self._read_keys}
            unread += [self.path_of(key) for key, value in missed.items() if value not in _EMPTY_VALUES]
        for inner in self._inner.values():
            for fields in inner:
                fields._collect_unread(unread)

    def path_of(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path and key else self.path or key

    def reject(self, key: str, message: str, hint: str = "") -> NoReturn:
        raise BadRequest(self.path_of(key), message, hint)

    def _reject_type(self, key: str, expected: str, value: Any) -> NoReturn:
        if value is None:
            self.reject(key, f"missing or null; should be {expected}")
        type_name = _TYPE_NAMES.get(type(value), "something else")
        description = f"{type_name} ({value!r:.40})" if isinstance(value, str | int | float) else type_name
        self.reject(key, f"should be {expected}, not {description}")
