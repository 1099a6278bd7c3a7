"""Reader of settings: expands variables, records secrets written in plain text, finds missing settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

import yaml

from interlingua.common.typed_yaml import Field, TypedReader, ValuePath, fields_of, struct_member, unwrap_annotated
from interlingua.common.yaml_reader import plain_scalar
from interlingua.errors import BadInput

__all__ = ["SettingsReader", "UndefinedVariable", "find_missing", "is_secret_type"]


class UndefinedVariable(Exception):
    """A text refers to a variable that is not set, or the reference is malformed. `hint` is what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SettingsReader(TypedReader):
    """Reader for one source: a file, an environment variable or a flag.

    Args:
        source: Name of the source in error messages.
        expand: Function that replaces `${NAME}` in a text. It raises UndefinedVariable.
        own_path: The setting that a flag or variable sets. Errors do not name its path, which the user never wrote.
    """

    default_hint = "`interlingua config schema` prints all settings"
    collects_problems = True

    def __init__(self, source: str, expand: Callable[[str], str], own_path: ValuePath = ()) -> None:
        super().__init__(source)
        self._own_path = own_path
        self._expand = expand
        self.plaintext_secrets: list[ValuePath] = []
        """Secrets written in plain text instead of as a variable."""
        self.texts_with_variables: dict[ValuePath, str] = {}
        """Texts that contain variables, before expansion."""

    def resolve(self, node: yaml.Node, type_: Any, path: ValuePath) -> tuple[yaml.Node, Any, ValuePath]:
        """Expand the variables of a scalar. The value is read as a number where the type is a number."""
        if not isinstance(node, yaml.ScalarNode):
            return node, type_, path
        if "${" in node.value:
            self.texts_with_variables[path] = node.value
        elif is_secret_type(type_) and node.value:
            self.plaintext_secrets.append(path)
        try:
            text = self._expand(node.value)
        except UndefinedVariable as error:
            raise self.error_at(node, path, str(error), error.hint) from None
        if text != node.value:
            is_number = unwrap_annotated(type_)[0] in (bool, int, float)
            tag = plain_scalar(text).tag if is_number else node.tag
            node = yaml.ScalarNode(tag, text, node.start_mark)
        return node, type_, path

    def error_at(self, node: yaml.Node, path: ValuePath, problem: str, hint: str) -> BadInput:
        return super().error_at(node, () if path == self._own_path else path, problem, hint)

    def describe(self, node: yaml.Node, type_: Any, path: ValuePath) -> str:
        """Describe the node without the value of a variable, because that may be a secret."""
        text = self.texts_with_variables.get(path)
        return f"the value of {text}" if text else super().describe(node, type_, path)


def find_missing(data: Any, type_: Any, path: ValuePath = ()) -> Iterator[tuple[ValuePath, Field]]:
    """Yield each required setting that is missing, as the path of its parent and its field."""
    if not isinstance(data, dict):
        return
    inner, struct = unwrap_annotated(type_)[0], struct_member(type_)
    if struct is not None:
        fields = fields_of(struct).values()
        yield from ((path, field) for field in fields if field.is_required and field.name not in data)
        children = [(data[field.name], field.type, field.name) for field in fields if field.name in data]
    elif get_origin(inner) is dict:
        children = [(value, get_args(inner)[1], name) for name, value in data.items()]
    else:
        return
    for value, child_type, name in children:
        yield from find_missing(value, child_type, (*path, name))


def is_secret_type(type_: Any) -> bool:
    return bool((unwrap_annotated(type_)[1].extra_json_schema or {}).get("writeOnly"))
