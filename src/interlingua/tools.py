"""The tools that a client offered. What their schemas say of one param is its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from interlingua.errors import BadInput
from interlingua.json_text import read_object
from interlingua.plan import GUESS, Plan
from interlingua.schema import as_mapping

__all__ = ["Offer", "Tool", "ToolsLike"]

ToolsLike: TypeAlias = "Offer | Iterable[Tool | Mapping[str, Any]] | None"


EXAMPLE = 'write {"type": "function", "function": {"name": …, "parameters": {…}}} or {"name": …, "input_schema": {…}}'


class Tool(msgspec.Struct, frozen=True):
    """One tool: its name and the JSON Schema of its arguments."""

    name: str
    schema: Mapping[str, Any] = {}

    @classmethod
    def read(cls, tool: Mapping[str, Any]) -> Tool:
        """A tool as a client of any wire writes it: under `function`, with `parameters` or `input_schema`."""
        tool = as_mapping(tool)
        body = as_mapping(tool.get("function") or tool.get("custom") or tool)
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise BadInput(
                f"a tool without a name: {str(tool)[:80]}",
                EXAMPLE,
            )
        schema = body.get("parameters") or body.get("input_schema")
        return cls(name, as_mapping(schema))

    def takes(self, keys: Iterable[str]) -> bool:
        """Whether arguments with these keys could be meant for this tool."""
        keys = set(keys)
        required = self.schema.get("required")
        needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        return needed <= keys <= set(as_mapping(self.schema.get("properties")))


class Offer:
    """All the tools of one request. `Offer(None)` is not knowing: any name may be a tool's."""

    def __init__(self, tools: ToolsLike = None) -> None:
        self._tools: dict[str, Tool] | None
        self._plans: dict[str, Plan] = {}  # of each tool's arguments, made when first asked for
        if isinstance(tools, Offer):
            self._tools, self._plans = tools._tools, tools._plans
        elif tools is None:
            self._tools = None
        elif isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            raise BadInput(f"tools should be a list of tools, not {tools!r:.60}", EXAMPLE)
        else:
            read = (tool if isinstance(tool, Tool) else Tool.read(tool) for tool in tools if not _is_hosted(tool))
            self._tools = {tool.name: tool for tool in read}

    @property
    def known(self) -> bool:
        return self._tools is not None

    @property
    def empty(self) -> bool:
        """The client is known to have offered nothing, so nothing may become a call."""
        return self._tools == {}

    @property
    def names(self) -> list[str]:
        return list(self._tools or ())

    def has(self, name: str) -> bool:
        return self._tools is not None and name in self._tools

    def may_have(self, name: str) -> bool:
        """Whether this may be a tool on offer: it is, or what was offered is not known."""
        return self._tools is None or self.meant(name) is not None

    def meant(self, name: str) -> str | None:
        """The offered tool that is meant: some leave the prompt's `functions.` and `:0` on a name, or take other
        capitals."""
        if self.has(name):
            return name
        plain = name.removeprefix("functions.")
        stem, _, number = plain.rpartition(":")
        folded = [tool for tool in self.names if tool.casefold() == plain.casefold()]
        return self.pick((plain, *([stem] if number.isdecimal() else []), *(folded if len(folded) == 1 else [])))

    def pick(self, candidates: Iterable[str]) -> str | None:
        """The first of these names that was offered."""
        return next((name for name in candidates if self.has(name)), None)

    def fitting(self, arguments: str) -> str | None:
        """The name of the one tool whose params fit these arguments; None if there is none or more than one."""
        keys = read_object(arguments)
        fits = [tool.name for tool in (self._tools or {}).values() if keys is not None and tool.takes(keys)]
        return fits[0] if len(fits) == 1 else None

    def param(self, tool: str, key: str) -> Plan:
        """What becomes of the raw text that a model writes for this param: a guess, where nothing is known of it."""
        return self._plan(tool).member(key)

    def declares(self, tool: str, key: str) -> bool:
        """Whether the tool was offered with this param."""
        return self._plan(tool).declares(key)

    def params(self, tool: str) -> tuple[str, ...]:
        """The params that the tool was offered with."""
        return self._plan(tool).keys

    def _plan(self, tool: str) -> Plan:
        if self._tools is None or tool not in self._tools:
            return GUESS
        if tool not in self._plans:
            schema = self._tools[tool].schema
            self._plans[tool] = Plan(schema, schema)
        return self._plans[tool]


def _is_hosted(tool: object) -> bool:
    """Whether the server runs this tool itself, such as web_search: no model writes calls to it."""
    tool = as_mapping(tool)
    return "name" not in tool and tool.get("type", "function") not in ("function", "custom")
