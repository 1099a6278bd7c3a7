"""Conversion of a reply, its tool results and the offered tools to the request format of each wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua.client.tools.tool_result import ToolResult
from interlingua.core.reply import Part, Reasoning, Reply, Text
from interlingua.core.request import Message, Piece, Request, Result
from interlingua.core.tools import Tool
from interlingua.core.wire_traits import WireTraits
from interlingua.upstreams import get_profile
from interlingua.wires import get_wire
from interlingua.wires.base import Json

__all__ = ["as_messages", "as_tools"]


def as_messages(wire: str, reply: Reply | None = None, results: Iterable[ToolResult] = ()) -> list[Json]:
    """Return the messages to append to the conversation: to `messages`, or to `input` of Responses."""
    traits = get_wire(wire).TRAITS
    tool_results = [Result(result.call.id, [Text(result.content)], error=not result.ok) for result in results]
    pieces = _reply_pieces(traits, reply) if reply is not None else []
    messages = [Message("assistant", pieces)] if pieces else []
    messages += [Message("user", [*tool_results])] if tool_results else []
    body = _write_request_body(wire, Request(wire=wire, model="", messages=messages))
    wire_messages: list[Json] = body[traits.conversation_field]
    if reply is not None and reply.refusal and traits.has_refusal_field:
        assistant_message = wire_messages.pop(0) if pieces else {"role": "assistant", "content": None}
        wire_messages.insert(0, {**assistant_message, "refusal": reply.refusal})
    return wire_messages


def _reply_pieces(traits: WireTraits, reply: Reply) -> list[Piece]:
    """Return the parts of the reply that the wire with these traits accepts back."""
    pieces: list[Piece] = [
        part for part in reply.parts if not (traits.rejects_foreign_thinking and _is_foreign(part, traits.wire))
    ]
    return [*pieces, Text(reply.refusal)] if reply.refusal and not traits.has_refusal_field else pieces


def _is_foreign(part: Part, wire: str) -> bool:
    return isinstance(part, Reasoning) and part.seal is not None and part.seal.wire != wire


def as_tools(wire: str, tools: list[Tool]) -> list[Json]:
    """Return the value of `tools` in a request."""
    tool_objects: list[Json] = _write_request_body(wire, Request(wire=wire, model="", tools=tools)).get("tools", [])
    return tool_objects


def _write_request_body(wire: str, request: Request) -> dict[str, Any]:
    body, _ = get_wire(wire).write_request(request, get_profile("any"))
    return body
