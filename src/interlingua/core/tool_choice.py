"""Tool choice: the tools that the model may or must call in a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.common.schema.resolver import as_mapping
from interlingua.errors import BadInput

__all__ = ["ToolChoice", "ToolChoiceLike", "ToolChoiceMode", "read_tool_choice"]

ToolChoiceMode: TypeAlias = Literal["auto", "required", "none"]

_MODES: dict[object, ToolChoiceMode] = {"auto": "auto", "required": "required", "any": "required", "none": "none"}
"""The mode for each word that a wire uses."""
_HINT = 'use "auto", "required", "none", the name of a tool, or the tool_choice of a request'


class ToolChoice(msgspec.Struct, frozen=True):
    """Tools that the model may or must call. `names` restricts `auto` and `required` to these tools."""

    mode: ToolChoiceMode = "auto"
    names: tuple[str, ...] = ()


ToolChoiceLike: TypeAlias = 'ToolChoice | Literal["auto", "required", "none"] | str | Mapping[str, Any] | None'
"""A tool choice of the public API: `auto`, `required` (or `any`), `none`, the name of a tool, or the `tool_choice` of a
request on any wire. None: not known."""


def read_tool_choice(value: ToolChoiceLike) -> ToolChoice | None:
    """Return the tool choice that a caller has passed; None if it is not known.

    Raises:
        BadInput: The value is not a tool choice.
    """
    if value is None or isinstance(value, ToolChoice):
        return value
    if isinstance(value, str) and value:
        return ToolChoice(_MODES[value]) if value in _MODES else ToolChoice("required", (value,))
    choice = as_mapping(value)
    choice_type = choice.get("type")
    if choice_type == "allowed_tools":
        allowed = as_mapping(choice.get("allowed_tools")) or choice
        mode, tools = _MODES.get(allowed.get("mode"), "auto"), allowed.get("tools")
        return ToolChoice(mode, tuple(map(_read_name, tools)) if isinstance(tools, list) else ())
    if isinstance(choice_type, str) and choice_type in _MODES:
        return ToolChoice(_MODES[choice_type])
    return ToolChoice("required", (_read_name(value),))


def _read_name(tool: object) -> str:
    """Return the name in an object that refers to a tool: under `function`, under `custom`, or directly."""
    reference = as_mapping(tool)
    name = as_mapping(reference.get("function") or reference.get("custom") or reference).get("name")
    if not isinstance(name, str) or not name:
        raise BadInput(f"not a tool choice: {str(tool)[:80]!r}", _HINT)
    return name
