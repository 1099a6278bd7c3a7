"""Type-directed reader of YAML nodes: converts nodes to values, records the line of each, reports errors.

The reader is driven by the type annotations of the settings. A new setting needs no change here.
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

from interlingua.common.yaml_reader import NULL_TAG, TEXT_TAG, describe_node, node_location
from interlingua.errors import BadInput, suggestion_hint

__all__ = [
    "SettingPath",
    "SettingsReader",
    "UndefinedVariable",
    "describe_type",
    "find_missing",
    "is_secret_type",
    "plain_scalar",
    "unwrap_annotated",
]

SettingPath: TypeAlias = tuple[str, ...]
_SCHEMA_HINT = "`interlingua config schema` prints all settings"
_TYPE_DESCRIPTIONS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
_construct = yaml.constructor.SafeConstructor().construct_object
_resolver = yaml.resolver.Resolver()


class UndefinedVariable(Exception):
    """A text refers to a variable that is not set, or the reference is malformed. `hint` is what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SettingsReader:
    """Reader for one source: a file, an environment variable or a flag.

    Args:
        source: Name of the source in error messages.
        expand: Function that replaces `${NAME}` in a text. It raises UndefinedVariable.
    """

    def __init__(self, source: str, expand: Callable[[str], str]) -> None:
        self._source = source
        self._expand = expand
        self.locations: dict[SettingPath, str] = {}
        """Source and line of every value that was read."""
        self.plaintext_secrets: list[SettingPath] = []
        """Secrets written in plain text instead of as a variable."""
        self.texts_with_variables: dict[SettingPath, str] = {}
        """Texts that contain variables, before expansion."""

    def read(self, node: yaml.Node, type_: Any, path: SettingPath = (), hint: str = _SCHEMA_HINT) -> Any:
        """Convert the node to a value of this type, as plain data.

        A Struct becomes a dict that contains only the fields that are set.

        Raises:
            BadInput: The node does not fit the type.
        """
        self.locations[path] = node_location(self._source, node)
        inner, _ = unwrap_annotated(type_)
        if get_origin(inner) in (Union, types.UnionType):
            return self._read_union(node, inner, path, hint)
        if isinstance(inner, type) and issubclass(inner, Struct):
            return self._read_struct(node, inner, path)
        if get_origin(inner) is dict and isinstance(node, yaml.MappingNode):
            keys, values = get_args(inner)
            return self._read_mapping(node, keys, values, path)
        if get_origin(inner) is list and isinstance(node, yaml.SequenceNode):
            [item_type] = get_args(inner)
            return [self.read(item, item_type, (*path, str(n)), hint) for n, item in enumerate(node.value)]
        if inner is Any:
            return self._read_untyped(node, path)
        return self._read_scalar(node, type_, path, hint)

    def error_at(self, node: yaml.Node, path: SettingPath, problem: str, hint: str) -> BadInput:
        label = f"{'.'.join(path)}: " if path else ""
        return BadInput(f"{node_location(self._source, node)}: {label}{problem}", hint)

    def _read_union(self, node: yaml.Node, type_: Any, path: SettingPath, hint: str) -> Any:
        """Read an optional value, or a union of a Struct and a text."""
        members = [member for member in get_args(type_) if member is not types.NoneType]
        if len(members) < len(get_args(type_)) and node.tag == NULL_TAG:
            return None
        if len(members) == 1:
            return self.read(node, members[0], path, hint)
        matching = [member for member in members if isinstance(node, yaml.ScalarNode) == (member is str)]
        if isinstance(node, yaml.SequenceNode) or node.tag == NULL_TAG:
            raise self.error_at(node, path, f"expected {describe_type(type_)}, got {describe_node(node)}", hint)
        return self.read(node, matching[0], path, hint)

    def _read_struct(self, node: yaml.Node, type_: type[Struct], path: SettingPath) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise self.error_at(
                node, path, f"expected {describe_type(type_)}, got {_describe_node(node, type_)}", _SCHEMA_HINT
            )
        fields = {field.name: field for field in msgspec.structs.fields(type_)}
        values = {}
        for key, value in node.value:
            field_path = (*path, key.value)
            if key.value not in fields:
                raise self.error_at(key, field_path, "unknown field", suggestion_hint(key.value, fields))
            field = fields[key.value]
            values[key.value] = self.read(value, field.type, field_path, _example_hint(field))
            self.locations[field_path] = node_location(self._source, key)
        return values

    def _read_mapping(
        self, node: yaml.MappingNode, key_type: Any, value_type: Any, path: SettingPath
    ) -> dict[str, Any]:
        allowed = get_args(key_type) if get_origin(key_type) is Literal else ()
        values = {}
        for key, value in node.value:
            key_path = (*path, key.value)
            if allowed and key.value not in allowed:
                raise self.error_at(key, key_path, "unknown field", suggestion_hint(key.value, allowed))
            values[key.value] = self.read(value, value_type, key_path)
            self.locations[key_path] = node_location(self._source, key)
        return values

    def _read_untyped(self, node: yaml.Node, path: SettingPath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._read_mapping(node, str, Any, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, Any, (*path, str(n))) for n, item in enumerate(node.value)]
        if node.tag.rpartition(":")[2] in ("bool", "int", "float", "null"):
            return _construct(node)
        return self._expand_text(node, path)

    def _read_scalar(self, node: yaml.Node, type_: Any, path: SettingPath, hint: str) -> Any:
        inner, meta = unwrap_annotated(type_)
        value = self._scalar_value(node, inner, path) if isinstance(node, yaml.ScalarNode) else None
        if value is None or not _is_allowed(value, inner, meta):
            raise self.error_at(node, path, f"expected {describe_type(type_)}, got {_describe_node(node, inner)}", hint)
        if is_secret_type(type_) and value and "${" not in node.value:
            self.plaintext_secrets.append(path)
        return value

    def _scalar_value(self, node: yaml.ScalarNode, type_: Any, path: SettingPath) -> Any:
        """Return the scalar as a value of this type, or None if it does not fit.

        The value of a variable is read as a number where the type is a number.
        """
        if type_ is str:
            return self._expand_text(node, path) if node.tag == TEXT_TAG else None
        if get_origin(type_) is Literal:
            return self._expand_text(node, path)
        if "${" in node.value:
            node = plain_scalar(self._expand_text(node, path))
        value = _number_or_bool(node)
        if type_ is float and type(value) is int:
            return float(value)
        return value if type(value) is type_ else None

    def _expand_text(self, node: yaml.Node, path: SettingPath) -> str:
        if "${" in node.value:
            self.texts_with_variables[path] = node.value
        try:
            return self._expand(node.value)
        except UndefinedVariable as error:
            raise self.error_at(node, path, str(error), error.hint) from None


def find_missing(data: Any, type_: Any, path: SettingPath = ()) -> tuple[SettingPath, str] | None:
    """Return the first required setting that is missing, as the path of its parent and its name, or None."""
    inner, _ = unwrap_annotated(type_)
    if get_origin(inner) in (Union, types.UnionType):
        inner = next(
            (member for member in get_args(inner) if isinstance(member, type) and issubclass(member, Struct)), None
        )
    if get_origin(inner) is dict and isinstance(data, dict):
        children = [(value, get_args(inner)[1], name) for name, value in data.items()]
    elif isinstance(inner, type) and issubclass(inner, Struct) and isinstance(data, dict):
        fields = msgspec.structs.fields(inner)
        missing_name = next((field.name for field in fields if field.required and field.name not in data), None)
        if missing_name is not None:
            return path, missing_name
        children = [(data[field.name], field.type, field.name) for field in fields if field.name in data]
    else:
        return None
    missing_in_children = (find_missing(value, child_type, (*path, name)) for value, child_type, name in children)
    return next(filter(None, missing_in_children), None)


def plain_scalar(text: str) -> yaml.ScalarNode:
    """Return the text as an unquoted YAML scalar: a number if it looks like a number."""
    tag = _resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(tag, text)


def unwrap_annotated(type_: Any) -> tuple[Any, Meta]:
    if get_origin(type_) is Annotated:
        inner, *annotations = get_args(type_)
        return inner, next((annotation for annotation in annotations if isinstance(annotation, Meta)), Meta())
    return type_, Meta()


def is_secret_type(type_: Any) -> bool:
    return bool((unwrap_annotated(type_)[1].extra_json_schema or {}).get("writeOnly"))


# ── scalars ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _number_or_bool(node: yaml.ScalarNode) -> Any:
    """Return the scalar as a number or boolean by the rules of YAML, or None if it is neither."""
    if node.tag.rpartition(":")[2] not in ("bool", "int", "float"):
        return None
    try:
        value = _construct(node)
    except ValueError:  # `0x_` has the tag of a number, but is none
        return None
    return value if math.isfinite(value) else None


def _is_allowed(value: Any, type_: Any, meta: Meta) -> bool:
    """Return whether the value is one of the literals, or within the bounds."""
    if get_origin(type_) is Literal:
        return value in get_args(type_)
    is_above_minimum = meta.ge is None or value >= meta.ge
    return is_above_minimum and (meta.gt is None or value > meta.gt) and (meta.le is None or value <= meta.le)


def describe_type(type_: Any) -> str:
    """Return a description of the type for messages and documentation."""
    inner, meta = unwrap_annotated(type_)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(get_args(inner))}"
    if get_origin(inner) in (Union, types.UnionType):
        return " or ".join(describe_type(member) for member in get_args(inner) if member is not types.NoneType)
    description = _TYPE_DESCRIPTIONS.get(get_origin(inner) or inner, "a mapping")
    if meta.gt is not None:
        return f"{description} over {meta.gt}"
    if meta.le is not None:
        return f"{description} from {meta.ge} to {meta.le}"
    return f"{description} of at least {meta.ge}" if meta.ge is not None else description


def _describe_node(node: yaml.Node, type_: Any) -> str:
    """Return a description of the node. The value of a variable is left out, because it may be a secret."""
    if isinstance(node, yaml.ScalarNode) and "${" in node.value:
        return f"the value of {node.value}"
    return (
        describe_node(node) if type_ is str else describe_node(node).removesuffix("; put it in quotes to make it text")
    )


def _example_hint(field: msgspec.structs.FieldInfo) -> str:
    inner, _ = unwrap_annotated(field.type)
    default = field.default if isinstance(field.default, str | bool | int | float) else None
    if get_origin(inner) is Literal:
        default = default or get_args(inner)[0]
    if default in (None, ""):
        return _SCHEMA_HINT
    return f"for example: {field.name}: {default if isinstance(default, str) else json.dumps(default)}"
