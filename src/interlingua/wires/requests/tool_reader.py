"""Reader for the tools of a request, in the formats of all wires."""

from __future__ import annotations

from typing import Any

from interlingua.core.tools import SharedTools, Tool, is_client_search, is_hosted
from interlingua.wires.requests.object_reader import ObjectReader
from interlingua.wires.requests.shared_tools import SharedToolList

__all__ = ["read_tools"]


def read_tools(fields: ObjectReader, key: str = "tools") -> tuple[list[Tool], list[dict[str, Any]]]:
    """Return the tools that the client runs, and the hosted tools (run by the server) as raw JSON.

    The lists may be shared with other requests.
    """
    shared = fields.get(key)
    if not isinstance(shared, SharedToolList):
        return _read_tools(fields, key)
    return shared.derive(read_tools, lambda: _read_shared_tools(fields, key))


def _read_shared_tools(fields: ObjectReader, key: str) -> tuple[list[Tool], list[dict[str, Any]]]:
    tools, hosted = _read_tools(fields, key)
    return SharedTools(tools), hosted


def _read_tools(fields: ObjectReader, key: str) -> tuple[list[Tool], list[dict[str, Any]]]:
    tools: list[Tool] = []
    hosted: list[dict[str, Any]] = []
    for tool in fields.objects(key):
        if is_hosted(tool.object):
            hosted.append(tool.raw())
        else:
            _check_tool(tool)
            tools += Tool.read_all(tool.raw())
    return tools, hosted


def _check_tool(tool: ObjectReader) -> None:
    if is_client_search(tool.object):
        tool.mapping("parameters")
        return
    if tool.object.get("type") == "namespace":
        tool.text("name")
        for inner in tool.objects("tools"):
            _check_tool(inner)
        return
    key = next((key for key in ("function", "custom") if tool.object.get(key) is not None), "")
    body = tool.inner(key) if key else tool
    if not body.text("name"):
        body.reject("name", "should be a name, not an empty string")
    body.text("description", "")
    body.mapping("parameters")
    body.mapping("input_schema")
