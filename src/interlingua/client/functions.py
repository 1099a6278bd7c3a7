"""A plain function as a tool: its schema from its type hints, what is said of it and its params from its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import msgspec

from interlingua.errors import UsageError
from interlingua.tools import Tool

__all__ = ["Function"]

_AS_SECTION = re.compile(r"^\s*(?:Args|Arguments|Parameters|Params):?\s*$", re.M)
_SECTION_END = re.compile(r"^\s*(?:Returns?|Raises|Yields|Examples?|Notes?|See Also):?\s*$", re.M)
_IN_SECTION = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(\S.*)$")
_NUMPY = re.compile(r"^(\w+)\s*(?::.*)?$")
_REST = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$", re.M)
_NO_PARAMS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


class Function:
    """A function that a model may call."""

    def __init__(self, function: Callable[..., Any], name: str = "", description: str = "") -> None:
        self.run = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.name = name or getattr(function, "__name__", "") or type(function).__name__
        about, params = _read_docstring(inspect.getdoc(function) or "")
        self._kind = _struct(self.name, function, params)
        self.tool = Tool(self.name, _schema(self._kind), description or about)

    def typed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function's types have them: enums, dates. Raises msgspec.ValidationError."""
        converted = msgspec.convert(arguments, self._kind)
        return {key: getattr(converted, key) for key in self._kind.__struct_fields__ if key in arguments}


def _struct(name: str, function: Callable[..., Any], about: Mapping[str, str]) -> type[msgspec.Struct]:
    """The params as one type, of which msgspec knows the schema."""
    try:
        hints = get_type_hints(function, include_extras=True)
        params = inspect.signature(function).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise UsageError(f"{name!r} cannot be a tool: {error}", "give it a signature with type hints") from None
    fields: list[Any] = []
    for param in params:
        if param.kind in _NO_PARAMS:
            raise UsageError(f"{name!r} cannot be a tool: a model cannot give {param}", "name each of its params")
        kind = hints.get(param.name, Any)
        if param.name in about:
            kind = Annotated[kind, msgspec.Meta(description=about[param.name])]
        default = () if param.default is param.empty else (msgspec.field(default=param.default),)
        fields.append((param.name, kind, *default))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        why = str(error).partition("\n")[0]
        raise UsageError(
            f"{kind.__name__!r} cannot be a tool: {why}", "use types that JSON has, or give a Tool"
        ) from None
    others = schema.get("$defs", {})
    own = dict(others.pop(kind.__name__, schema))
    own.pop("title", None)
    return {**own, "$defs": others} if others else own


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What it says of the function, and of each param: in the ways of Google, NumPy and reStructuredText."""
    params = {name: " ".join(about.split()) for name, about in _REST.findall(text)}
    begun = _AS_SECTION.search(text)
    if begun:
        ended = _SECTION_END.search(text, begun.end())
        params |= _in_section(text[begun.end() : ended.start() if ended else len(text)])
    ends = [found.start() for found in (begun, _REST.search(text), _SECTION_END.search(text)) if found]
    return text[: min(ends, default=len(text))].strip(), params


def _in_section(text: str) -> dict[str, str]:
    """`name (type): about`, or `name : type` with the rest in the lines below."""
    params: dict[str, str] = {}
    name = ""
    lines = [line for line in inspect.cleandoc(text).splitlines() if line.strip() and set(line.strip()) != {"-"}]
    for line in lines:
        indented = line[:1].isspace()
        if not indented and (found := _IN_SECTION.match(line)) and " : " not in line:
            name = found[1]
            params[name] = found[2].strip()
        elif not indented and (found := _NUMPY.match(line)):
            name = found[1]
            params[name] = ""
        elif name:
            params[name] = f"{params[name]} {line.strip()}".strip()
    return {name: about for name, about in params.items() if about}
