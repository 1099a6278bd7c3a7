"""A plain function as a tool: its schema from its type hints, what is said of it and its params from its docstring."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from interlingua.client.tools.docstrings import read_docstring
from interlingua.common.schema.validation import misfits
from interlingua.core.tools import LONGEST, Tool
from interlingua.errors import UsageError, expect

__all__ = ["Function"]

EXACT = 2**53
"""Whole numbers below are the same as a float."""
_name = re.compile(r"[A-Za-z0-9_.-]+")
_NO_PARAMS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")
_GIVE_A_TOOL = "give its schema: box.add(function, tool=Tool(name, schema)); it gets the arguments as they are then"


class Function:
    """A function that a model may call: with a tool that is given, or with one made of its hints and docstring."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        description: str = "",
        tool: Tool | Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(f"{function!r:.60} cannot be a tool: it is no function", "give what can be called")
        expect(tool, Tool | Mapping | None, "a tool should be a Tool", "give a Tool, or the dict that a request has")
        self.run = function
        self._kind: type[msgspec.Struct] | None = None
        if tool is None:
            self.tool = self._made(name, description)
        else:
            given = tool if isinstance(tool, Tool) else Tool.read(tool)
            self.tool = msgspec.structs.replace(
                given, name=name or given.name, description=description or given.description
            )
            misfits({}, self.tool.schema, self.tool.name)  # it raises if the schema is none
        self.name = self.tool.name
        if not _name.fullmatch(self.name) or len(self.name) > LONGEST:
            raise UsageError(f"{self.name!r} is no name of a tool", "give it another: box.add(function, name=…)")

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.run) or inspect.iscoroutinefunction(_behind(self.run))

    def _made(self, name: str, description: str) -> Tool:
        whole = _whole(self.run)
        name = name or getattr(whole, "__name__", "") or type(whole).__name__
        behind = _behind(whole)
        said = inspect.getdoc(whole) if behind is whole else behind.__doc__ or type(whole).__doc__
        about, params = read_docstring(said or "")
        self._kind, defaults = _struct(name, self.run, params)
        schema = _schema(self._kind)
        for param, default in defaults.items():
            schema["properties"][param] = _with_default(schema["properties"][param], default)
        return Tool(name, schema, description or about)

    def typed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function's types have them: enums, dates. Raises msgspec.ValidationError, or whatever
        the types raise."""
        if self._kind is None:
            return {**arguments}
        try:
            converted = msgspec.convert(arguments, self._kind)
        except msgspec.ValidationError:  # to JSON Schema, 5.0 is an integer
            converted = msgspec.convert(_with_whole_numbers(arguments), self._kind)
        return {key: getattr(converted, key) for key in self._kind.__struct_fields__ if key in arguments}


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a partial is a part of."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """What has the hints: for an object, its `__call__`."""
    function = _whole(function)
    is_plain = inspect.isroutine(function) or inspect.isclass(function) or hasattr(function, "__wrapped__")
    return function if is_plain else type(function).__call__


# ── its schema ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _struct(
    name: str, function: Callable[..., Any], about: Mapping[str, str]
) -> tuple[type[msgspec.Struct], dict[str, Any]]:
    """The params as one type, of which msgspec knows the schema, and the defaults that they have."""
    try:
        hints = get_type_hints(_behind(function), include_extras=True)
        params = inspect.signature(function).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise UsageError(f"{name!r} cannot be a tool: {error}", "give it a signature with type hints") from None
    fields: list[Any] = []
    for param in params:
        if param.kind in _NO_PARAMS:
            raise UsageError(f"{name!r} cannot be a tool: a model cannot give {param}", "name each of its params")
        kind = _kind(name, param.name, hints.get(param.name, Any), about.get(param.name, ""))
        optional = () if param.default is param.empty else (msgspec.field(default=msgspec.UNSET),)
        fields.append((param.name, kind, *optional))
    defaults = {param.name: param.default for param in params if param.default is not param.empty}
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True), defaults


def _kind(name: str, param: str, hint: Any, about: str) -> Any:
    """The type of a param, with what is said of it. Raises UsageError if JSON has no such type."""
    metas = list(_metas(hint))
    own = next((meta.description for meta in metas if meta.description), about)
    kind = Any if hint is object else hint
    for meta in [*metas, *([msgspec.Meta(description=own)] if own else [])]:
        kind = Annotated[kind, meta]
    try:
        msgspec.json.schema(kind)
    except (TypeError, ValueError) as error:
        unknown = str(error).startswith("Generating JSON schema for custom types")
        why = "JSON has no such type" if unknown else str(error).partition("\n")[0]
        shown = hint.__name__ if isinstance(hint, type) else str(hint)
        raise UsageError(
            f"{name!r} cannot be a tool: its param {param!r} is {shown}: {why}", f"use another type, or {_GIVE_A_TOOL}"
        ) from None
    return kind


def _metas(hint: Any) -> Iterator[msgspec.Meta]:
    """What `Annotated` says: a text, or a pydantic Field with its description and limits."""
    for said in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(said, str):
            yield msgspec.Meta(description=said)
        elif isinstance(said, msgspec.Meta):
            yield said
        else:
            if isinstance(description := getattr(said, "description", None), str):
                yield msgspec.Meta(description=description)
            for limit in (said, *(getattr(said, "metadata", None) or ())):
                found = {key: getattr(limit, key) for key in _LIMITS if getattr(limit, key, None) is not None}
                if found:
                    yield msgspec.Meta(**found)


def _schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    (own,), others = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    schema = dict(others.pop(own["$ref"].removeprefix("#/$defs/")))
    schema.pop("title", None)
    return {**schema, "$defs": others} if others else schema


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """The default is told if JSON has it: a param has it in any case."""
    try:
        plain = json.loads(json.dumps(msgspec.to_builtins(default), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return schema
    return {**schema, "default": plain}


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < EXACT else value
