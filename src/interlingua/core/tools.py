"""Tools that a client offers, and the coercion of each param that follows from its schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar
from weakref import WeakValueDictionary
from zlib import crc32

import msgspec

from interlingua.common.derived_values import DerivedValues
from interlingua.common.jsontext.codec import encode_json, read_full_object, read_shallow_object
from interlingua.common.schema.coercion import UNTYPED, ValueCoercion
from interlingua.common.schema.resolver import as_mapping
from interlingua.core.tool_choice import ToolChoice, ToolChoiceLike, read_tool_choice
from interlingua.errors import BadInput

__all__ = [
    "NO_TOOL_FOUND_TEXT",
    "TEXT_INPUT_SCHEMA",
    "TOOL_FOUND_TEXT",
    "TOOL_SEARCH",
    "SharedTools",
    "Tool",
    "ToolSet",
    "ToolsLike",
    "is_client_search",
    "is_hosted",
    "qualified_name",
    "shared_tool_set",
    "shorten_name",
]

T = TypeVar("T")

ToolsLike: TypeAlias = "ToolSet | Iterable[Tool | Mapping[str, Any]] | None"


MAX_NAME_CHARS = 64
"""Maximum length of a tool name that every wire accepts."""
MAX_GUESSED_TOOLS = 1000
"""Largest number of tools among which the tool of a call without a name is searched."""
MAX_DERIVED_VALUES = 128
"""Number of values that a `ToolSet` keeps for others."""
TEXT_INPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""Schema of a custom tool, for models that support only functions."""
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
TOOL_EXAMPLE_HINT = (
    'write {"type": "function", "function": {"name": …, "parameters": {…}}} or {"name": …, "input_schema": {…}}'
)

TOOL_FOUND_TEXT = "[the tool {} can be called from now on]"
"""Text in the place of a reference to a deferred tool that a search has found, with its name."""
NO_TOOL_FOUND_TEXT = "[no tool was found]"
TOOL_SEARCH = "tool_search"
"""Type of a tool that searches for deferred tools, and its name for models."""
TOOL_SEARCH_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool should do, in a few words."}},
    "required": ["query"],
}
"""Schema of a tool search whose definition has none."""
ToolKind: TypeAlias = Literal["function", "custom", "search"]


class Tool(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tool: its name and the JSON Schema of its arguments.

    A *custom* tool takes text instead: its only param is `input`, and `grammar` restricts that text. A tool of a
    *namespace* has a `name` that is unique among all tools; `local` is its name inside the namespace. A *deferred* tool
    is one that the model has to search for first. A *search* tool is the search, run by the client.
    """

    name: str
    schema: Mapping[str, Any] = {}
    description: str = ""
    kind: ToolKind = "function"
    strict: bool | None = None
    namespace: str = ""
    local: str = ""
    grammar: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = {}
    """Further fields of the tool on the client's wire."""
    about: str = ""
    """Description of the namespace."""
    deferred: bool = False
    found: bool = False
    """True if the tool is offered only by a tool search result in the conversation."""

    @classmethod
    def read(cls, tool: Mapping[str, Any]) -> Tool:
        """Read a tool in the format of any wire (under `function`, with `parameters` or `input_schema`) or of MCP
        (with `inputSchema`)."""
        tool = as_mapping(tool)
        if is_client_search(tool):
            return cls._read_search(tool)
        kind: ToolKind = "custom" if tool.get("type") == "custom" and "input_schema" not in tool else "function"
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
    def _read_search(cls, tool: Mapping[str, Any]) -> Tool:
        description = tool.get("description")
        return cls(
            TOOL_SEARCH,
            as_mapping(tool.get("parameters")) or TOOL_SEARCH_SCHEMA,
            description if isinstance(description, str) else "",
            "search",
            extra={key: value for key, value in tool.items() if key not in ("type", "description", "parameters")},
        )

    @classmethod
    def read_all(cls, tool: Mapping[str, Any]) -> list[Tool]:
        """Read a tool, or all tools of a namespace, with names that are unique among all tools."""
        tool = as_mapping(tool)
        if tool.get("type") != "namespace":
            return [cls.read(tool)]
        namespace, about, inner = str(tool.get("name") or ""), tool.get("description"), tool.get("tools")
        about = about if isinstance(about, str) else ""
        tools = [cls.read(item) for item in inner] if isinstance(inner, list) else []
        return [
            msgspec.structs.replace(
                item, name=qualified_name(namespace, item.name), namespace=namespace, local=item.name, about=about
            )
            for item in tools
        ]

    def for_reply(self) -> Tool:
        """Return what the translation of replies needs of the tool, in less memory: most streams wait most of the time,
        and call few of their tools."""
        if isinstance(self.schema, _EncodedSchema):
            return self
        return msgspec.structs.replace(
            self, schema=_EncodedSchema(self.schema), description="", grammar=None, extra={}, about=""
        )

    @property
    def required(self) -> set[str]:
        required = self.schema.get("required")
        return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


class _EncodedSchema(Mapping[str, Any]):
    """JSON Schema that is kept encoded, in a third of the memory, and decoded at each use."""

    __slots__ = ("_encoded",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._encoded = encode_json(schema)

    def decode(self) -> dict[str, Any]:
        return read_full_object(self._encoded) or {}

    def __getitem__(self, key: str) -> Any:
        return self.decode()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.decode())

    def __len__(self) -> int:
        return len(self.decode())


class ToolSet:
    """Tools of one request, and its tool choice. `ToolSet(None)` means that the tools are unknown: any name may be a
    tool. The tool choice `none` offers no tool."""

    def __init__(self, tools: ToolsLike = None, choice: ToolChoiceLike = None) -> None:
        self._tools: dict[str, Tool] | None
        self._choice = read_tool_choice(choice)
        self._coercions: dict[str, ValueCoercion] = {}  # by tool name, created on first use
        self._derived_values: dict[Hashable, Any] = {}
        if isinstance(tools, ToolSet):
            self._tools, self._coercions = tools._tools, tools._coercions
            self._choice = self._choice or tools._choice
        elif tools is None:
            self._tools = None
        elif isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            raise BadInput(f"tools should be a list of tools, not {tools!r:.60}", TOOL_EXAMPLE_HINT)
        else:
            offered = [tool for tool in tools if not is_hosted(tool)]
            groups = ([tool] if isinstance(tool, Tool) else Tool.read_all(tool) for tool in offered)
            self._tools = {tool.name: tool for group in groups for tool in group}
        if self._choice is not None and self._choice.mode == "none":
            self._tools = {}

    def derive(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value that was computed for this key before, or compute it: all replies with these tools share it.

        A few values are kept.
        """
        if key not in self._derived_values:
            if len(self._derived_values) >= MAX_DERIVED_VALUES:
                self._derived_values.clear()
            self._derived_values[key] = compute()
        value: T = self._derived_values[key]
        return value

    @property
    def tools(self) -> Collection[Tool]:
        return (self._tools or {}).values()

    @cached_property
    def _names_by_casefold(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self.names:
            names.setdefault(name.casefold(), []).append(name)
        return names

    @cached_property
    def _names_by_local(self) -> dict[str, list[str]]:
        """Names of the tools of namespaces, by the other names that models use for them."""
        names: dict[str, list[str]] = {}
        for tool in (self._tools or {}).values():
            for local_name in set(_local_names(tool)) if tool.local else ():
                names.setdefault(local_name, []).append(tool.name)
        return names

    @cached_property
    def _param_sets(self) -> list[tuple[str, Set[str], Set[str]]]:
        """The name, the required params and all params of each tool."""
        tools = (self._tools or {}).values()
        return [(tool.name, tool.required, set(as_mapping(tool.schema.get("properties")))) for tool in tools]

    @cached_property
    def _full_names(self) -> dict[str, str]:
        """Map of shortened names to the full names that are too long for some wires."""
        return {shorten_name(name): name for name in self.names if len(name) > MAX_NAME_CHARS}

    @property
    def is_known(self) -> bool:
        return self._tools is not None

    @property
    def is_empty(self) -> bool:
        """True if the client offered no tools, so that no text may become a call."""
        return self._tools == {}

    @property
    def requires_call(self) -> bool:
        """True if the client has required a call, so that the server may have constrained the model to write one."""
        return self._choice is not None and self._choice.mode == "required" and not self.is_empty

    @property
    def required_tool(self) -> str | None:
        """The only tool that the model must call; None if it may choose, or if the tool is not offered."""
        names = self._choice.names if self._choice is not None and self.requires_call else ()
        return names[0] if len(names) == 1 and (self._tools is None or names[0] in self._tools) else None

    @property
    def names(self) -> list[str]:
        return list(self._tools or ())

    def has(self, name: str) -> bool:
        return self._tools is not None and name in self._tools

    def get(self, name: str) -> Tool | None:
        """Return the offered tool with this name, or None."""
        return (self._tools or {}).get(name)

    def accepts(self, name: str) -> bool:
        """Return whether this can be an offered tool: it is offered, or the offered tools are unknown."""
        return self._tools is None or self.resolve_name(name) is not None

    def resolve_name(self, name: str) -> str | None:
        """Return the name of the offered tool that the model refers to, or None. Models leave the prompt's `functions.`
        and `:0` on a name, write it twice (`NAME.NAME`), change its case, or use a tool's local name in its namespace.
        A long name was sent to the upstream in its short form."""
        if self.has(name):
            return name
        stripped = name.removeprefix("functions.")
        if stripped in self._full_names:
            return self._full_names[stripped]
        stem, _, number = stripped.rpartition(":")
        unnumbered = [stem] if number.isdecimal() else []
        undoubled = [half] if (half := stripped[: len(stripped) // 2]) and stripped == f"{half}.{half}" else []
        case_matches = self._names_by_casefold.get(stripped.casefold(), [])
        local_matches = self._names_by_local.get(stripped, [])
        return self.first_offered(
            (stripped, *unnumbered, *undoubled, *_if_unique(case_matches), *_if_unique(local_matches))
        )

    def first_offered(self, candidates: Iterable[str]) -> str | None:
        """Return the first of these names that is an offered tool, or None."""
        return next((name for name in candidates if self.has(name)), None)

    def match_by_arguments(self, arguments: str) -> str | None:
        """Return the name of the only tool whose params match these arguments; None if none or several match, or if
        too many tools are offered to compare all of them with each call."""
        arguments_object = read_shallow_object(arguments)
        if arguments_object is None or len(self._tools or ()) > MAX_GUESSED_TOOLS:
            return None
        keys = set(arguments_object)
        matches = [name for name, required, params in self._param_sets if required <= keys <= params]
        return matches[0] if len(matches) == 1 else None

    def coercion_for(self, tool: str, key: str) -> ValueCoercion:
        """Return the coercion of the raw text that a model writes for this param; an untyped one if its schema is
        unknown."""
        return self._coercion(tool).member(key)

    def has_param(self, tool: str, key: str) -> bool:
        """Return whether the tool's schema declares this param."""
        return self._coercion(tool).declares(key)

    def param_names(self, tool: str) -> tuple[str, ...]:
        """Return the params that the tool's schema declares."""
        return self._coercion(tool).keys

    def can_omit_all_params(self, tool: str) -> bool:
        """Return whether the tool can be called without arguments, as far as its schema is known."""
        return not (self._tools and tool in self._tools and self._tools[tool].required)

    def only_missing_param(self, tool: str, present_keys: set[str]) -> str | None:
        """Return the only required param that is missing, else the only declared one; None if it is not unique."""
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
            decoded = schema.decode() if isinstance(schema, _EncodedSchema) else schema
            self._coercions[tool] = ValueCoercion(decoded, decoded)
        return self._coercions[tool]


_shared_sets: WeakValueDictionary[Hashable, ToolSet] = WeakValueDictionary()


class SharedTools(list[Tool]):
    """Tools that many requests share, with what was derived from them. No code may modify them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._derived = DerivedValues()
        self._tool_sets: WeakValueDictionary[ToolChoice | None, ToolSet] = WeakValueDictionary()

    def derive(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value that was computed for this key before, or compute it. It depends on the tools only."""
        return self._derived.get(key, compute)

    def tool_set(self, choice: ToolChoice | None) -> ToolSet:
        """Return the tools and a tool choice for the replies to these requests."""
        shared = self._tool_sets.get(choice)
        if shared is None:
            offered = self.derive(ToolSet, lambda: ToolSet([tool.for_reply() for tool in self]))
            shared = self._tool_sets[choice] = offered if choice is None else ToolSet(offered, choice)
        return shared


def shared_tool_set(tools: Sequence[Tool], choice: ToolChoice | None) -> ToolSet:
    """Return a `ToolSet` that all current replies share whose requests have the same tools and the same choice.

    Most requests of an agent have the same tools. If they are no `SharedTools`, their schemas must be the same objects:
    to compare them takes long.
    """
    if isinstance(tools, SharedTools):
        return tools.tool_set(choice)
    key = (tuple([tool.name for tool in tools]), choice)
    shared = _shared_sets.get(key)
    if shared is None or not all(map(_is_same_tool, shared.tools, tools)):
        shared = _shared_sets[key] = ToolSet(tools, choice)
    return shared


def _is_same_tool(tool: Tool, other: Tool) -> bool:
    return tool is other or (tool.schema is other.schema and tool == other)


def _local_names(tool: Tool) -> tuple[str, ...]:
    """Return the names that models use for a tool of a namespace, apart from the qualified name."""
    return tool.local, f"{tool.namespace}.{tool.local}", f"{tool.namespace}/{tool.local}"


def _if_unique(names: list[str]) -> list[str]:
    """Return the list if it has exactly one name, else an empty list."""
    return names if len(names) == 1 else []


def is_hosted(tool: object) -> bool:
    """Return whether this tool exists only on its own wire, and its definition has no schema. Examples: web_search,
    which the server runs, or bash, which the client runs."""
    tool = as_mapping(tool)
    tool_type = tool.get("type", "function")
    if tool_type in ("function", "custom", "namespace") or is_client_search(tool):
        return False
    return "name" not in tool or ("input_schema" not in tool and "parameters" not in tool)


def is_client_search(tool: Mapping[str, Any]) -> bool:
    """Return whether this is a search for deferred tools that the client runs."""
    return tool.get("type") == TOOL_SEARCH and tool.get("execution") == "client"


def _flatten_grammar(text_format: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the format of a custom tool as in Responses. Chat completions nest the grammar in an object."""
    inner = as_mapping(text_format.get("grammar"))
    return {**{key: value for key, value in text_format.items() if key != "grammar"}, **inner} if inner else text_format


def qualified_name(namespace: str, name: str) -> str:
    """Return the tool's name that is unique among all tools: the namespace as a prefix."""
    return shorten_name(f"{namespace}{'' if namespace.endswith('__') else '__'}{name}")


def shorten_name(name: str) -> str:
    """Shorten a name to the maximum of all wires. The end of a shortened name is a checksum of the full name, so that
    `ToolSet` can map it back."""
    return (
        name
        if len(name) <= MAX_NAME_CHARS
        else f"{name[: MAX_NAME_CHARS - 9]}_{crc32(name.encode(errors='replace')):08x}"
    )
