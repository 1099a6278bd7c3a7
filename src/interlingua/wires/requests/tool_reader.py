"""The tools in a request, however its wire writes them."""

from __future__ import annotations

from typing import Any

from interlingua.core.tools import Tool, is_hosted
from interlingua.wires.requests.object_reader import Fields

__all__ = ["read_tools"]


def read_tools(fields: Fields, key: str = "tools") -> tuple[list[Tool], list[dict[str, Any]]]:
    """The tools that the client runs, and those that the server runs, as they came."""
    tools: list[Tool] = []
    hosted: list[dict[str, Any]] = []
    for one in fields.objects(key):
        if is_hosted(one.object):
            hosted.append(one.whole())
        else:
            _check(one)
            tools += Tool.read_all(one.whole())
    return tools, hosted


def _check(tool: Fields) -> None:
    if tool.object.get("type") == "namespace":
        tool.text("name")
        for inner in tool.objects("tools"):
            _check(inner)
        return
    key = next((key for key in ("function", "custom") if tool.object.get(key) is not None), "")
    body = tool.inner(key) if key else tool
    if not body.text("name"):
        body.refuse("name", "should be a name, not an empty string")
    body.text("description", "")
    body.mapping("parameters")
    body.mapping("input_schema")
