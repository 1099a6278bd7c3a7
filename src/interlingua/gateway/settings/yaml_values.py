"""How the nodes of a settings file are read by the types of the settings: values, the line of each, and what is wrong.

Nothing here knows one setting from another: a new field needs no line.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
import yaml
from msgspec import Meta, Struct

from interlingua.common.yaml_reader import NULL, TEXT, came, place
from interlingua.errors import BadInput, nearest

__all__ = ["NoVariable", "Path", "Reader", "expected", "is_secret", "missing", "unquoted", "without_meta"]

Path: TypeAlias = tuple[str, ...]
_SCHEMA = "`interlingua config schema` tells what may be set"
_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
_construct = yaml.constructor.SafeConstructor().construct_object
_resolver = yaml.resolver.Resolver()


class NoVariable(Exception):
    """A text names a variable that there is not. `str()` is what is wrong, `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Reader:
    """Reads what one file, variable or flag says. `expand` puts variables into texts."""

    def __init__(self, where: str, expand: Callable[[str], str]) -> None:
        self._where = where
        self._expand = expand
        self.places: dict[Path, str] = {}
        """Where everything stands that was read."""
        self.open_secrets: list[Path] = []
        """The secrets that were written down, instead of the variable that has them."""
        self.expanded: dict[Path, str] = {}
        """The texts with variables in them, as they were written."""

    def read(self, node: yaml.Node, kind: Any, path: Path = (), hint: str = _SCHEMA) -> Any:
        """The node as a value of this type, in plain data. A Struct is a dict here, with what was set and no more."""
        self.places[path] = place(self._where, node)
        inner, _ = without_meta(kind)
        if get_origin(inner) in (Union, types.UnionType):
            return self._union(node, inner, path, hint)
        if isinstance(inner, type) and issubclass(inner, Struct):
            return self._struct(node, inner, path)
        if get_origin(inner) is dict and isinstance(node, yaml.MappingNode):
            keys, values = get_args(inner)
            return self._mapping(node, keys, values, path)
        if get_origin(inner) is list and isinstance(node, yaml.SequenceNode):
            [of] = get_args(inner)
            return [self.read(one, of, (*path, str(n)), hint) for n, one in enumerate(node.value)]
        if inner is Any:
            return self._anything(node, path)
        return self._scalar(node, kind, path, hint)

    def wrong(self, node: yaml.Node, path: Path, problem: str, hint: str) -> BadInput:
        at = f"{'.'.join(path)}: " if path else ""
        return BadInput(f"{place(self._where, node)}: {at}{problem}", hint)

    def _union(self, node: yaml.Node, kind: Any, path: Path, hint: str) -> Any:
        """Something or nothing; or a Struct or a text."""
        kinds = [one for one in get_args(kind) if one is not types.NoneType]
        if len(kinds) < len(get_args(kind)) and node.tag == NULL:
            return None
        if len(kinds) == 1:
            return self.read(node, kinds[0], path, hint)
        fitting = [one for one in kinds if isinstance(node, yaml.ScalarNode) == (one is str)]
        if isinstance(node, yaml.SequenceNode) or node.tag == NULL:
            raise self.wrong(node, path, f"expected {expected(kind)}, got {came(node)}", hint)
        return self.read(node, fitting[0], path, hint)

    def _struct(self, node: yaml.Node, kind: type[Struct], path: Path) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, path, f"expected {expected(kind)}, got {_came(node, kind)}", _SCHEMA)
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        values = {}
        for key, value in node.value:
            at = (*path, key.value)
            if key.value not in fields:
                raise self.wrong(key, at, "unknown field", nearest(key.value, fields))
            field = fields[key.value]
            values[key.value] = self.read(value, field.type, at, _example(field))
            self.places[at] = place(self._where, key)
        return values

    def _mapping(self, node: yaml.MappingNode, keys: Any, kind: Any, path: Path) -> dict[str, Any]:
        allowed = get_args(keys) if get_origin(keys) is Literal else ()
        values = {}
        for key, value in node.value:
            at = (*path, key.value)
            if allowed and key.value not in allowed:
                raise self.wrong(key, at, "unknown field", nearest(key.value, allowed))
            values[key.value] = self.read(value, kind, at)
            self.places[at] = place(self._where, key)
        return values

    def _anything(self, node: yaml.Node, path: Path) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, str, Any, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(one, Any, (*path, str(n))) for n, one in enumerate(node.value)]
        if node.tag.rpartition(":")[2] in ("bool", "int", "float", "null"):
            return _construct(node)
        return self._text(node, path)

    def _scalar(self, node: yaml.Node, kind: Any, path: Path, hint: str) -> Any:
        inner, meta = without_meta(kind)
        value = self._plain(node, inner, path) if isinstance(node, yaml.ScalarNode) else None
        if value is None or not _is_in(value, inner, meta):
            raise self.wrong(node, path, f"expected {expected(kind)}, got {_came(node, inner)}", hint)
        if is_secret(kind) and value and "${" not in node.value:
            self.open_secrets.append(path)
        return value

    def _plain(self, node: yaml.ScalarNode, kind: Any, path: Path) -> Any:
        """The scalar, if it can be of this type; else None. What a variable says is a number where one is expected."""
        if kind is str:
            return self._text(node, path) if node.tag == TEXT else None
        if get_origin(kind) is Literal:
            return self._text(node, path)
        if "${" in node.value:
            node = unquoted(self._text(node, path))
        value = _number(node)
        if kind is float and type(value) is int:
            return float(value)
        return value if type(value) is kind else None

    def _text(self, node: yaml.Node, path: Path) -> str:
        if "${" in node.value:
            self.expanded[path] = node.value
        try:
            return self._expand(node.value)
        except NoVariable as error:
            raise self.wrong(node, path, str(error), error.hint) from None


def missing(data: Any, kind: Any, path: Path = ()) -> tuple[Path, str] | None:
    """The first required setting that is not there: the path of what lacks it, and its name."""
    inner, _ = without_meta(kind)
    if get_origin(inner) in (Union, types.UnionType):
        inner = next((one for one in get_args(inner) if isinstance(one, type) and issubclass(one, Struct)), None)
    if get_origin(inner) is dict and isinstance(data, dict):
        parts = [(value, get_args(inner)[1], name) for name, value in data.items()]
    elif isinstance(inner, type) and issubclass(inner, Struct) and isinstance(data, dict):
        fields = msgspec.structs.fields(inner)
        lacking = next((field.name for field in fields if field.required and field.name not in data), None)
        if lacking is not None:
            return path, lacking
        parts = [(data[field.name], field.type, field.name) for field in fields if field.name in data]
    else:
        return None
    found = (missing(value, of, (*path, name)) for value, of, name in parts)
    return next(filter(None, found), None)


def unquoted(text: str) -> yaml.ScalarNode:
    """The text as YAML has it without quotes: a number if it looks like one."""
    tag = _resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(tag, text)


def without_meta(kind: Any) -> tuple[Any, Meta]:
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        return inner, next((note for note in notes if isinstance(note, Meta)), Meta())
    return kind, Meta()


def is_secret(kind: Any) -> bool:
    return bool((without_meta(kind)[1].extra_json_schema or {}).get("writeOnly"))


# ── scalars ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _number(node: yaml.ScalarNode) -> Any:
    """A number or truth value, as YAML says; None: it is neither."""
    if node.tag.rpartition(":")[2] not in ("bool", "int", "float"):
        return None
    try:
        value = _construct(node)
    except ValueError:  # 0x_ looks like a number
        return None
    return value if math.isfinite(value) else None


def _is_in(value: Any, kind: Any, meta: Meta) -> bool:
    """Whether it is one of those that are allowed."""
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    low = meta.ge is None or value >= meta.ge
    return low and (meta.gt is None or value > meta.gt) and (meta.le is None or value <= meta.le)


def expected(kind: Any) -> str:
    """What values of this type are, in words."""
    inner, meta = without_meta(kind)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(get_args(inner))}"
    if get_origin(inner) in (Union, types.UnionType):
        return " or ".join(expected(one) for one in get_args(inner) if one is not types.NoneType)
    words = _WORDS.get(get_origin(inner) or inner, "a mapping")
    if meta.gt is not None:
        return f"{words} over {meta.gt}"
    if meta.le is not None:
        return f"{words} from {meta.ge} to {meta.le}"
    return f"{words} of at least {meta.ge}" if meta.ge is not None else words


def _came(node: yaml.Node, kind: Any) -> str:
    """What came; what a variable says is not told, for it may be a secret."""
    if isinstance(node, yaml.ScalarNode) and "${" in node.value:
        return f"what {node.value} says"
    return came(node) if kind is str else came(node).removesuffix(", which is a text only in quotes")


def _example(field: msgspec.structs.FieldInfo) -> str:
    inner, _ = without_meta(field.type)
    default = field.default if isinstance(field.default, str | bool | int | float) else None
    if get_origin(inner) is Literal:
        default = default or get_args(inner)[0]
    if default in (None, ""):
        return _SCHEMA
    return f"for example: {field.name}: {default if isinstance(default, str) else json.dumps(default)}"
