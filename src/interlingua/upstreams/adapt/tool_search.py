"""Convert deferred tools for upstreams of the Messages API that have no tool search."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlingua.core.reply import Text
from interlingua.core.request import Content, Extra, Message, Piece, Request, Result
from interlingua.core.tools import TOOL_FOUND_TEXT, Tool
from interlingua.upstreams.adapt.context import AdaptContext

__all__ = ["resolve_deferred_tools", "resolve_references"]

DEFER_FIELD = "defer_loading"
SERVER_SEARCH_PREFIX = "tool_search_tool"
"""Start of the type and the name of a search that the upstream runs itself, and of the type of its results."""


def _needs_conversion(request: Request, context: AdaptContext) -> bool:
    """Return whether the upstream has no tool search, although its API has. On other wires their writers do this."""
    is_same_wire = request.wire == context.wire
    return is_same_wire and context.traits.has_tool_references and not context.profile.tool_search


def resolve_references(request: Request, context: AdaptContext) -> Request:
    """State in the text which tools a search has found."""
    if not _needs_conversion(request, context):
        return request
    messages = [_without_references(message) for message in request.messages]
    if messages == request.messages:
        return request
    context.report("content-as-text", "references to tools that a search has found: sent as text")
    return msgspec.structs.replace(request, messages=[message for message in messages if message.pieces])


def resolve_deferred_tools(request: Request, context: AdaptContext) -> Request:
    """Offer the tools that a search has found as usual tools."""
    if not _needs_conversion(request, context):
        return request
    hosted = [tool for tool in request.hosted if not _is_server_search(tool.get("type"))]
    has_server_search = len(hosted) < len(request.hosted)
    if has_server_search:
        context.report("hosted-tool", "the upstream has no tool search: all deferred tools are offered")
    if not has_server_search and not any(DEFER_FIELD in tool.extra or tool.deferred for tool in request.tools):
        return request
    tools = [_undeferred(tool) for tool in request.tools if has_server_search or not tool.deferred]
    if len(tools) < len(request.tools):
        context.report("deferred-tool", f"{len(request.tools) - len(tools)} tools, not found by a search: not offered")
    return msgspec.structs.replace(request, tools=tools, hosted=hosted)


def _undeferred(tool: Tool) -> Tool:
    if DEFER_FIELD not in tool.extra:
        return tool
    extra = {name: value for name, value in tool.extra.items() if name != DEFER_FIELD}
    return msgspec.structs.replace(tool, extra=extra, deferred=False)


def _without_references(message: Message) -> Message:
    if not any(isinstance(piece, Result | Extra) for piece in message.pieces):
        return message
    pieces = [_resolve_piece(piece) for piece in message.pieces if not _is_search_step(piece)]
    return Message(message.role, pieces, message.name)


def _resolve_piece(piece: Piece) -> Piece:
    if not isinstance(piece, Result):
        return piece
    return msgspec.structs.replace(piece, content=_resolve_references(piece.content))


def _resolve_references(content: Sequence[Content]) -> list[Content]:
    return [
        Text(TOOL_FOUND_TEXT.format(part.data.get("tool_name")))
        if isinstance(part, Extra) and part.data.get("type") == "tool_reference"
        else part
        for part in content
    ]


def _is_search_step(piece: Piece) -> bool:
    """Return whether this is a past search that an upstream has run, or its result."""
    if not isinstance(piece, Extra):
        return False
    kind, name = piece.data.get("type"), piece.data.get("name")
    return _is_server_search(kind) or (kind == "server_tool_use" and _is_server_search(name))


def _is_server_search(name: object) -> bool:
    return isinstance(name, str) and name.startswith(SERVER_SEARCH_PREFIX)
