"""Type-directed reader of YAML nodes: converts nodes to values, records the line of each, reports errors.

The reader is driven by the annotations of dataclasses and msgspec Structs. A new field needs no change here.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

import yaml
from msgspec import Meta, Struct, structs

from interlingua.common.yaml_reader import NULL_TAG, TEXT_TAG, describe_node, node_location
from interlingua.errors import BadInput, UsageError, suggestion_hint

__all__ = [
    "TYPE_DESCRIPTIONS",
    "Field",
    "TypedReader",
    "ValuePath",
    "describe_missing_field",
    "describe_type",
    "fields_of",
    "item_type_of",
    "struct_member",
    "union_members",
    "unwrap_annotated",
]

ValuePath: TypeAlias = tuple[str, ...]
"""Names of the fields and indexes of the items that lead to a value."""
TYPE_DESCRIPTIONS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
_MISFIT: Any = object()
"""Result of a conversion for which the node does not fit the type."""


class Field(NamedTuple):
    """Field of a dataclass or Struct, or key of a mapping."""

    name: str
    type: Any
    is_required: bool = False
    default: Any = None


class TypedReader:
    """Reader for one source, such as a file. Subclasses add the notation of their files.

    A dataclass becomes an object. A Struct becomes a dict of the fields that are set, so that the caller can merge
    several sources before it converts them. A single value is accepted in place of a list for `tuple[T, ...]`.
    """

    default_hint = ""
    """Hint for values that have no example."""
    collects_problems = False
    """True if a wrong field is recorded in `problems` and left out, instead of ending the reading."""
    type_descriptions: ClassVar[Mapping[Any, str]] = TYPE_DESCRIPTIONS

    def __init__(self, source_name: str) -> None:
        self._source_name = source_name
        self.locations: dict[ValuePath, str] = {}
        """Source and line of every value that was read."""
        self.problems: dict[ValuePath, BadInput] = {}
        """Wrong fields, if they are collected."""

    def resolve(self, node: yaml.Node, type_: Any, path: ValuePath) -> tuple[yaml.Node, Any, ValuePath]:
        """Return the node, type and path to read in place of these."""
        return node, type_, path

    def describe(self, node: yaml.Node, type_: Any, path: ValuePath) -> str:  # noqa: ARG002
        """Return a description of a resolved node that does not fit the type."""
        return describe_node(node, suggest_quotes=_accepts_text(type_))

    def field_example(self, field: Field) -> str:
        """Return an example for the field, in YAML: its default or its first literal; "" if it has neither."""
        inner, _ = unwrap_annotated(field.type)
        value = field.default if isinstance(field.default, str | bool | int | float | tuple) else None
        if value is None and get_origin(inner) is Literal:
            value = get_args(inner)[0]
        if value in (None, "", ()):
            return ""
        return yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf).partition("\n")[0]

    def read(self, node: yaml.Node, type_: Any, path: ValuePath = (), field: Field | None = None) -> Any:
        """Convert the node at this path to a value of this type. The hint of an error is an example for the field.

        Raises:
            BadInput: The node does not fit the type.
        """
        self.locations[path] = node_location(self._source_name, node)
        inner, _ = unwrap_annotated(type_)
        item_type = item_type_of(inner)
        if _is_union(inner):
            return self._read_union(node, inner, path, field)
        if item_type is not inner and self._is_single_item(node, item_type, path):
            return (self.read(node, item_type, path, field),)
        node, type_, path = self.resolve(node, type_, path)
        value = self._convert(node, type_, path, field)
        if value is _MISFIT:
            raise self._type_error(node, type_, path, field)
        return value

    def error_at(self, node: yaml.Node, path: ValuePath, problem: str, hint: str) -> BadInput:
        label = f"{'.'.join(path)}: " if path else ""
        return BadInput(f"{node_location(self._source_name, node)}: {label}{problem}", hint)

    def _type_error(self, node: yaml.Node, type_: Any, path: ValuePath, field: Field | None) -> BadInput:
        expected, found = describe_type(type_, self.type_descriptions), self.describe(node, type_, path)
        return self.error_at(node, path, f"expected {expected}, got {found}", self._hint(field))

    def _read_union(self, node: yaml.Node, type_: Any, path: ValuePath, field: Field | None) -> Any:
        """Read an optional value, or a union of types that are written differently: a text, a list, a mapping."""
        members = union_members(type_)
        if types.NoneType in get_args(type_) and node.tag == NULL_TAG:
            return None
        if len(members) == 1:
            return self.read(node, members[0], path, field)
        member = next((member for member in members if _node_type(member) is type(node)), None)
        if member is None or node.tag == NULL_TAG:
            raise self._type_error(node, type_, path, field)
        return self.read(node, member, path, field)

    def _is_single_item(self, node: yaml.Node, item_type: Any, path: ValuePath) -> bool:
        """Return whether the node is an item in place of a list. A scalar must be a text for that."""
        if isinstance(node, yaml.ScalarNode):
            return bool(node.tag == TEXT_TAG)
        return not isinstance(self.resolve(node, item_type, path)[0], yaml.SequenceNode)

    def _convert(self, node: yaml.Node, type_: Any, path: ValuePath, field: Field | None) -> Any:
        """Return the node as a value of this type, or `_MISFIT`."""
        inner, meta = unwrap_annotated(type_)
        if isinstance(node, yaml.ScalarNode):
            return _convert_scalar(node, inner, meta)
        if isinstance(node, yaml.SequenceNode):
            return self._read_items(node, inner, path, field)
        assert isinstance(node, yaml.MappingNode)
        if _has_fields(inner):
            return self._read_object(node, inner, path)
        if inner is not Any and get_origin(inner) is not dict:
            return _MISFIT
        key_type, value_type = get_args(inner) or (str, Any)
        names = get_args(key_type) if get_origin(key_type) is Literal else [key.value for key, _ in node.value]
        return self._read_entries(node, {name: Field(name, value_type) for name in names}, path)

    def _read_items(self, node: yaml.SequenceNode, type_: Any, path: ValuePath, field: Field | None) -> Any:
        collection = list if type_ is Any else get_origin(type_)
        item_types = get_args(type_) or (Any,)
        if collection is list or item_types[-1] is Ellipsis:
            item_types = item_types[:1] * len(node.value)
        if collection not in (list, tuple) or len(item_types) != len(node.value):
            return _MISFIT
        items = enumerate(zip(node.value, item_types, strict=True))
        return collection(self.read(item, item_type, (*path, str(n)), field) for n, (item, item_type) in items)

    def _read_object(self, node: yaml.MappingNode, type_: Any, path: ValuePath) -> Any:
        fields = fields_of(type_)
        values = self._read_entries(node, fields, path)
        if issubclass(type_, Struct):
            return values
        for name, field in fields.items():
            if field.is_required and name not in values:
                problem = describe_missing_field(field, self.type_descriptions)
                raise self.error_at(node, (*path, name), problem, self._hint(field))
        try:
            return type_(**values)
        except UsageError as error:
            raise self.error_at(node, path, str(error), error.hint) from error

    def _read_entries(self, node: yaml.MappingNode, fields: Mapping[str, Field], path: ValuePath) -> dict[str, Any]:
        values = {}
        for key, value in node.value:
            name, field_path = key.value, (*path, key.value)
            try:
                if name not in fields:
                    raise self.error_at(key, field_path, "unknown field", self._unknown_field_hint(name, fields))
                values[name] = self.read(value, fields[name].type, field_path, fields[name])
            except BadInput as error:
                if not self.collects_problems:
                    raise
                self.problems[field_path] = error
            self.locations[field_path] = node_location(self._source_name, key)
        return values

    def _unknown_field_hint(self, name: str, fields: Mapping[str, Field]) -> str:
        suggestion = suggestion_hint(name, fields)
        example = next((self._example_hint(field) for field in fields.values() if repr(field.name) in suggestion), "")
        return f"{suggestion} {example}".rstrip()

    def _hint(self, field: Field | None) -> str:
        return (field and self._example_hint(field)) or self.default_hint

    def _example_hint(self, field: Field) -> str:
        example = self.field_example(field)
        return f"for example: {field.name}: {example}" if example else ""


# ── types ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def fields_of(type_: type[Any]) -> Mapping[str, Field]:
    """Return the fields of a dataclass or Struct by name."""
    if issubclass(type_, Struct):
        return {item.name: Field(item.name, item.type, item.required, item.default) for item in structs.fields(type_)}
    hints = get_type_hints(type_, include_extras=True)
    return {
        item.name: Field(item.name, hints[item.name], item.default is item.default_factory, item.default)
        for item in dataclasses.fields(type_)  # both defaults are MISSING if the field is required
    }


def unwrap_annotated(type_: Any) -> tuple[Any, Meta]:
    if get_origin(type_) is Annotated:
        inner, *annotations = get_args(type_)
        return inner, next((annotation for annotation in annotations if isinstance(annotation, Meta)), Meta())
    return type_, Meta()


def union_members(type_: Any) -> list[Any]:
    """Return the members of a union except None, or the type itself if it is no union."""
    inner, _ = unwrap_annotated(type_)
    return [member for member in get_args(inner) if member is not types.NoneType] if _is_union(inner) else [type_]


def struct_member(type_: Any) -> type[Struct] | None:
    """Return the type if it is a Struct, or the Struct in a union, or None."""
    members = (member for member in union_members(type_) if isinstance(member, type))
    return next((member for member in members if issubclass(member, Struct)), None)


def item_type_of(type_: Any) -> Any:
    """Return T for `tuple[T, ...]`, and any other type itself."""
    is_variadic = get_origin(type_) is tuple and get_args(type_)[-1] is Ellipsis
    return get_args(type_)[0] if is_variadic else type_


def describe_type(type_: Any, type_descriptions: Mapping[Any, str] = TYPE_DESCRIPTIONS) -> str:
    """Return a description of the type for messages and documentation."""
    inner, meta = unwrap_annotated(type_)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(get_args(inner))}"
    if _is_union(inner):
        return " or ".join(describe_type(member, type_descriptions) for member in union_members(inner))
    if item_type_of(inner) is not inner:
        return f"{describe_type(item_type_of(inner), type_descriptions)}, or a list of them"
    if get_origin(inner) is tuple:
        return f"a list of {len(get_args(inner))}"
    description = type_descriptions.get(get_origin(inner) or inner, "a mapping")
    if meta.gt is not None:
        return f"{description} over {meta.gt}"
    if meta.le is not None:
        return f"{description} from {meta.ge} to {meta.le}"
    return f"{description} of at least {meta.ge}" if meta.ge is not None else description


def describe_missing_field(field: Field, type_descriptions: Mapping[Any, str] = TYPE_DESCRIPTIONS) -> str:
    return f"required field is missing; expected {describe_type(field.type, type_descriptions)}"


def _node_type(type_: Any) -> type[yaml.Node]:
    """Return the type of the node with which a member of a union is written."""
    if type_ is str:
        return yaml.ScalarNode
    return yaml.SequenceNode if get_origin(type_) is list else yaml.MappingNode


def _is_union(type_: Any) -> bool:
    return get_origin(type_) in (Union, types.UnionType)


def _has_fields(type_: Any) -> bool:
    return isinstance(type_, type) and (dataclasses.is_dataclass(type_) or issubclass(type_, Struct))


def _accepts_text(type_: Any) -> bool:
    return any(unwrap_annotated(item_type_of(member))[0] is str for member in union_members(type_))


# ── scalars ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _convert_scalar(node: yaml.ScalarNode, type_: Any, meta: Meta) -> Any:
    if type_ is str:
        return node.value if node.tag == TEXT_TAG else _MISFIT
    if get_origin(type_) is Literal:
        return node.value if node.value in get_args(type_) else _MISFIT
    value = _untyped_value(node)
    if type_ is Any:
        return value
    if type_ is float and type(value) is int:
        with suppress(OverflowError):
            value = float(value)
    return value if type(value) is type_ and _is_within_bounds(value, meta) else _MISFIT


def _untyped_value(node: yaml.ScalarNode) -> Any:
    """Return the scalar as a number, a boolean or None by the rules of YAML, and any other scalar as text."""
    if node.tag.rpartition(":")[2] in ("bool", "int", "float", "null"):
        with suppress(ValueError):  # `0x_` has the tag of a number, but is none
            return yaml.constructor.SafeConstructor().construct_object(node)
    return node.value


def _is_within_bounds(value: float, meta: Meta) -> bool:
    is_finite = -math.inf < value < math.inf
    is_above_minimum = (meta.ge is None or value >= meta.ge) and (meta.gt is None or value > meta.gt)
    return is_finite and is_above_minimum and (meta.le is None or value <= meta.le)
