"""The tools that a client offered. What their schemas say of one param is its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias
from zlib import crc32

import msgspec

from interlingua.common.jsontext.codec import read_shallow_object
from interlingua.common.schema.coercion import UNTYPED, ValueCoercion
from interlingua.common.schema.resolver import as_mapping
from interlingua.errors import BadInput

__all__ = ["TEXT_INPUT_SCHEMA", "Tool", "ToolSet", "ToolsLike", "is_hosted", "qualified_name", "shorten_name"]

ToolsLike: TypeAlias = "ToolSet | Iterable[Tool | Mapping[str, Any]] | None"


MAX_NAME_CHARS = 64
"""How long a name may be on every wire."""
TEXT_INPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""The schema of a custom tool, for models that know only functions."""
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
TOOL_EXAMPLE_HINT = (
    'write {"type": "function", "function": {"name": …, "parameters": {…}}} or {"name": …, "input_schema": {…}}'
)


class Tool(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tool: its name and the JSON Schema of its arguments.

    A *custom* tool takes text instead: its one param is `input`, and `grammar` says what that text may be. A tool of a
    *namespace* has a name that is unique among all; `local` is its name there. A *deferred* tool is one that the model
    has yet to find by a search.
    """

    name: str
    schema: Mapping[str, Any] = {}
    description: str = ""
    kind: Literal["function", "custom"] = "function"
    strict: bool | None = None
    namespace: str = ""
    local: str = ""
    grammar: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = {}
    """What the client's wire says of it beside that."""
    about: str = ""
    """What is said of its namespace."""
    deferred: bool = False
    found: bool = False
    """Whether only the conversation offers it, in what a search has found."""

    @classmethod
    def read(cls, tool: Mapping[str, Any]) -> Tool:
        """A tool as a client of any wire writes it: under `function`, with `parameters` or `input_schema`; or as MCP
        lists it, with `inputSchema`."""
        tool = as_mapping(tool)
        kind: Literal["function", "custom"] = (
            "custom" if tool.get("type") == "custom" and "input_schema" not in tool else "function"
        )
        body = as_mapping(tool.get("function") or tool.get("custom") or tool)
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise BadInput(
                f"a tool without a name: {str(tool)[:80]}",
                TOOL_EXAMPLE_HINT,
            )
        schema = next(filter(None, map(body.get, _SCHEMA_KEYS)), None)
        strict, description = body.get("strict"), body.get("description")
        known_keys = {"function", "custom", "type", "name", "description", "strict", "format", *_SCHEMA_KEYS}
        return cls(
            name,
            TEXT_INPUT_SCHEMA if kind == "custom" else as_mapping(schema),
            description if isinstance(description, str) else "",
            kind,
            strict if isinstance(strict, bool) else None,
            grammar=_flatten_grammar(as_mapping(body["format"])) if kind == "custom" and body.get("format") else None,
            extra={key: value for key, value in {**tool, **body}.items() if key not in known_keys},
        )

    @classmethod
    def read_all(cls, tool: Mapping[str, Any]) -> list[Tool]:
        """A tool, or all tools of a namespace, under names that are unique among all."""
        tool = as_mapping(tool)
        if tool.get("type") != "namespace":
            return [cls.read(tool)]
        namespace, about, inner = str(tool.get("name") or ""), tool.get("description"), tool.get("tools")
        about = about if isinstance(about, str) else ""
        tools = [cls.read(item) for item in inner] if isinstance(inner, list) else []
        return [
            msgspec.structs.replace(
                one, name=qualified_name(namespace, one.name), namespace=namespace, local=one.name, about=about
            )
            for one in tools
        ]

    def takes(self, keys: Iterable[str]) -> bool:
        """Whether arguments with these keys could be meant for this tool."""
        keys = set(keys)
        return self.required <= keys <= set(as_mapping(self.schema.get("properties")))

    @property
    def required(self) -> set[str]:
        required = self.schema.get("required")
        return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


class ToolSet:
    """All the tools of one request. `Offer(None)` is not knowing: any name may be a tool's."""

    def __init__(self, tools: ToolsLike = None) -> None:
        self._tools: dict[str, Tool] | None
        self._coercions: dict[str, ValueCoercion] = {}  # of each tool's arguments, made when first asked for
        if isinstance(tools, ToolSet):
            self._tools, self._coercions = tools._tools, tools._coercions
        elif tools is None:
            self._tools = None
        elif isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            raise BadInput(f"tools should be a list of tools, not {tools!r:.60}", TOOL_EXAMPLE_HINT)
        else:
            offered = [tool for tool in tools if not is_hosted(tool)]
            groups = ([tool] if isinstance(tool, Tool) else Tool.read_all(tool) for tool in offered)
            self._tools = {tool.name: tool for group in groups for tool in group}

    @cached_property
    def _full_names(self) -> dict[str, str]:
        """The names that are too long for some wires, by what was told instead."""
        return {shorten_name(name): name for name in self.names if len(name) > MAX_NAME_CHARS}

    @property
    def is_known(self) -> bool:
        return self._tools is not None

    @property
    def is_empty(self) -> bool:
        """The client is known to have offered nothing, so nothing may become a call."""
        return self._tools == {}

    @property
    def names(self) -> list[str]:
        return list(self._tools or ())

    def has(self, name: str) -> bool:
        return self._tools is not None and name in self._tools

    def get(self, name: str) -> Tool | None:
        """The offered tool of this name."""
        return (self._tools or {}).get(name)

    def accepts(self, name: str) -> bool:
        """Whether this may be a tool on offer: it is, or what was offered is not known."""
        return self._tools is None or self.resolve_name(name) is not None

    def resolve_name(self, name: str) -> str | None:
        """The offered tool that is meant: some leave the prompt's `functions.` and `:0` on a name, take other capitals,
        or call a tool of a namespace by its name there; and a long name was told in short."""
        if self.has(name):
            return name
        stripped = name.removeprefix("functions.")
        if stripped in self._full_names:
            return self._full_names[stripped]
        stem, _, number = stripped.rpartition(":")
        unnumbered = [stem] if number.isdecimal() else []
        case_matches = [tool for tool in self.names if tool.casefold() == stripped.casefold()]
        local_matches = [
            tool.name for tool in (self._tools or {}).values() if tool.local and stripped in _local_names(tool)
        ]
        return self.first_offered((stripped, *unnumbered, *_if_unique(case_matches), *_if_unique(local_matches)))

    def first_offered(self, candidates: Iterable[str]) -> str | None:
        """The first of these names that was offered."""
        return next((name for name in candidates if self.has(name)), None)

    def match_by_arguments(self, arguments: str) -> str | None:
        """The name of the one tool whose params fit these arguments; None if there is none or more than one."""
        keys = read_shallow_object(arguments)
        matches = [tool.name for tool in (self._tools or {}).values() if keys is not None and tool.takes(keys)]
        return matches[0] if len(matches) == 1 else None

    def coercion_for(self, tool: str, key: str) -> ValueCoercion:
        """What becomes of the raw text that a model writes for this param: a guess, where nothing is known of it."""
        return self._coercion(tool).member(key)

    def has_param(self, tool: str, key: str) -> bool:
        """Whether the tool was offered with this param."""
        return self._coercion(tool).declares(key)

    def param_names(self, tool: str) -> tuple[str, ...]:
        """The params that the tool was offered with."""
        return self._coercion(tool).keys

    def only_missing_param(self, tool: str, present_keys: set[str]) -> str | None:
        """The one param that has to come yet, or the only one that can; None if there is no such one."""
        required = self._tools[tool].required if self._tools and tool in self._tools else set()
        for keys in (required - present_keys, set(self.param_names(tool)) - present_keys):
            if len(keys) == 1:
                return next(iter(keys))
        return None

    def _coercion(self, tool: str) -> ValueCoercion:
        if self._tools is None or tool not in self._tools:
            return UNTYPED
        if tool not in self._coercions:
            schema = self._tools[tool].schema
            self._coercions[tool] = ValueCoercion(schema, schema)
        return self._coercions[tool]


def _local_names(tool: Tool) -> tuple[str, ...]:
    """How a tool of a namespace is called by those who do not join the names as we do."""
    return tool.local, f"{tool.namespace}.{tool.local}", f"{tool.namespace}/{tool.local}"


def _if_unique(names: list[str]) -> list[str]:
    """The one that is meant, if it is one."""
    return names if len(names) == 1 else []


def is_hosted(tool: object) -> bool:
    """Whether only its wire knows this tool, such as web_search, which the server runs itself, or bash, which the
    client does: no schema of it is told."""
    tool = as_mapping(tool)
    tool_type = tool.get("type", "function")
    if tool_type in ("function", "custom", "namespace"):
        return False
    return "name" not in tool or ("input_schema" not in tool and "parameters" not in tool)


def _flatten_grammar(text_format: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a custom tool takes, as Responses say it; chat completions put the grammar in an object of its own."""
    inner = as_mapping(text_format.get("grammar"))
    return {**{key: value for key, value in text_format.items() if key != "grammar"}, **inner} if inner else text_format


def qualified_name(namespace: str, name: str) -> str:
    """A tool's name among all tools."""
    return shorten_name(f"{namespace}{'' if namespace.endswith('__') else '__'}{name}")


def shorten_name(name: str) -> str:
    """A name that every wire takes: of one that is too long the end is a sum of it. An offer knows it again."""
    return (
        name
        if len(name) <= MAX_NAME_CHARS
        else f"{name[: MAX_NAME_CHARS - 9]}_{crc32(name.encode(errors='replace')):08x}"
    )
