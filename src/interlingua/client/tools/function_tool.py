"""Python function as a tool: the schema from its type hints, the descriptions from its docstring."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from interlingua.client.tools.docstrings import read_docstring
from interlingua.common.schema.validation import validation_errors
from interlingua.core.tools import MAX_NAME_CHARS, Tool
from interlingua.errors import UsageError, expect_type

__all__ = ["FunctionTool"]

MAX_EXACT_INTEGER = 2**53
"""Integers below this are exactly representable as a float."""
_name_pattern = re.compile(r"[A-Za-z0-9_.-]+")
_UNSUPPORTED_PARAM_KINDS = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)
_LIMIT_NAMES = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")
_SCHEMA_HINT = "pass a schema: box.add(function, tool=Tool(name, schema)); the arguments are then passed unconverted"


class FunctionTool:
    """Function that a model may call. Its tool definition is passed, or built from type hints and docstring."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        description: str = "",
        tool: Tool | Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(f"{function!r:.60} cannot be a tool: it is not callable", "pass a function")
        expect_type(tool, Tool | Mapping | None, "tool should be a Tool", "pass a Tool, or a tool dict as in a request")
        self.run = function
        self._arguments_type: type[msgspec.Struct] | None = None
        if tool is None:
            self.tool = self._build_tool(name, description)
        else:
            base_tool = tool if isinstance(tool, Tool) else Tool.read(tool)
            self.tool = msgspec.structs.replace(
                base_tool, name=name or base_tool.name, description=description or base_tool.description
            )
            validation_errors({}, self.tool.schema, self.tool.name)  # raises if the schema is invalid
        self.name = self.tool.name
        if not _name_pattern.fullmatch(self.name) or len(self.name) > MAX_NAME_CHARS:
            raise UsageError(f"{self.name!r} is not a valid tool name", "pass another: box.add(function, name=…)")

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.run) or inspect.iscoroutinefunction(_annotated_callable(self.run))

    def _build_tool(self, name: str, description: str) -> Tool:
        unwrapped = _unwrap_partial(self.run)
        name = name or getattr(unwrapped, "__name__", "") or type(unwrapped).__name__
        annotated = _annotated_callable(unwrapped)
        docstring = (
            inspect.getdoc(unwrapped) if annotated is unwrapped else annotated.__doc__ or type(unwrapped).__doc__
        )
        summary, params = read_docstring(docstring or "")
        self._arguments_type, defaults = _arguments_struct(name, self.run, params)
        schema = _struct_schema(self._arguments_type)
        for param, default in defaults.items():
            schema["properties"][param] = _with_default(schema["properties"][param], default)
        return Tool(name, schema, description or summary)

    def convert_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the arguments to the function's types, such as enums and dates.

        Raises:
            msgspec.ValidationError: An argument does not fit its type. The types may raise other exceptions.
        """
        if self._arguments_type is None:
            return {**arguments}
        try:
            converted = msgspec.convert(arguments, self._arguments_type)
        except msgspec.ValidationError:  # in JSON Schema, 5.0 is an integer
            converted = msgspec.convert(_floats_to_integers(arguments), self._arguments_type)
        return {key: getattr(converted, key) for key in self._arguments_type.__struct_fields__ if key in arguments}


def _unwrap_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside `functools.partial` objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _annotated_callable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable with the type hints: for an object, its `__call__`."""
    function = _unwrap_partial(function)
    is_plain = inspect.isroutine(function) or inspect.isclass(function) or hasattr(function, "__wrapped__")
    return function if is_plain else type(function).__call__


# ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _arguments_struct(
    name: str, function: Callable[..., Any], param_docs: Mapping[str, str]
) -> tuple[type[msgspec.Struct], dict[str, Any]]:
    """Return the params as one struct type, from which msgspec derives the schema, and their defaults."""
    try:
        hints = get_type_hints(_annotated_callable(function), include_extras=True)
        params = inspect.signature(function).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise UsageError(f"{name!r} cannot be a tool: {error}", "add type hints to its signature") from None
    fields: list[Any] = []
    for param in params:
        if param.kind in _UNSUPPORTED_PARAM_KINDS:
            raise UsageError(f"{name!r} cannot be a tool: a model cannot pass {param}", "declare each param by name")
        param_type = _param_type(name, param.name, hints.get(param.name, Any), param_docs.get(param.name, ""))
        optional = () if param.default is param.empty else (msgspec.field(default=msgspec.UNSET),)
        fields.append((param.name, param_type, *optional))
    defaults = {param.name: param.default for param in params if param.default is not param.empty}
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True), defaults


def _param_type(name: str, param: str, hint: Any, doc: str) -> Any:
    """Return the type of a param with its description. Raises UsageError if the type has no JSON schema."""
    metas = list(_annotation_metas(hint))
    doc_text = next((meta.description for meta in metas if meta.description), doc)
    param_type = Any if hint is object else hint
    for meta in [*metas, *([msgspec.Meta(description=doc_text)] if doc_text else [])]:
        param_type = Annotated[param_type, meta]
    try:
        msgspec.json.schema(param_type)
    except (TypeError, ValueError) as error:
        unknown = str(error).startswith("Generating JSON schema for custom types")
        reason = "JSON has no such type" if unknown else str(error).partition("\n")[0]
        type_name = hint.__name__ if isinstance(hint, type) else str(hint)
        raise UsageError(
            f"{name!r} cannot be a tool: its param {param!r} is {type_name}: {reason}",
            f"use another type, or {_SCHEMA_HINT}",
        ) from None
    return param_type


def _annotation_metas(hint: Any) -> Iterator[msgspec.Meta]:
    """Yield the metadata in `Annotated`: a description, or the description and limits of a pydantic Field."""
    for annotation in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(annotation, str):
            yield msgspec.Meta(description=annotation)
        elif isinstance(annotation, msgspec.Meta):
            yield annotation
        else:
            if isinstance(description := getattr(annotation, "description", None), str):
                yield msgspec.Meta(description=description)
            for limit in (annotation, *(getattr(annotation, "metadata", None) or ())):
                limits = {key: getattr(limit, key) for key in _LIMIT_NAMES if getattr(limit, key, None) is not None}
                if limits:
                    yield msgspec.Meta(**limits)


def _struct_schema(struct_type: type[msgspec.Struct]) -> dict[str, Any]:
    (root,), definitions = msgspec.json.schema_components((struct_type,), ref_template="#/$defs/{name}")
    schema = dict(definitions.pop(root["$ref"].removeprefix("#/$defs/")))
    schema.pop("title", None)
    return {**schema, "$defs": definitions} if definitions else schema


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """Add the default to the schema if JSON can represent it. The function applies its default in any case."""
    try:
        json_default = json.loads(json.dumps(msgspec.to_builtins(default), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return schema
    return {**schema, "default": json_default}


def _floats_to_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _floats_to_integers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_floats_to_integers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_INTEGER else value
