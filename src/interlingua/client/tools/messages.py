"""How does a conversation go on? A reply, and what its tools answered, as each wire writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua.client.tools.tool_result import ToolResult
from interlingua.core.reply import Part, Reasoning, Reply, Text
from interlingua.core.request import Message, Piece, Request, Result
from interlingua.core.tools import Tool
from interlingua.upstreams import profile_named
from interlingua.upstreams.profile import CHAT, MESSAGES
from interlingua.wires import wire_named
from interlingua.wires.base import Json

__all__ = ["as_messages", "as_tools"]


def as_messages(wire: str, reply: Reply | None = None, results: Iterable[ToolResult] = ()) -> list[Json]:
    """What is added to `messages`, or to `input` of Responses."""
    answered = [Result(result.call.id, [Text(result.content)], error=not result.ok) for result in results]
    said = _said(wire, reply) if reply is not None else []
    messages = [Message("assistant", said)] if said else []
    messages += [Message("user", [*answered])] if answered else []
    body = _written(wire, Request(wire=wire, model="", messages=messages))
    told: list[Json] = body["input"] if "input" in body else body["messages"]
    if reply is not None and reply.refusal and wire == CHAT:
        model = told.pop(0) if said else {"role": "assistant", "content": None}
        told.insert(0, {**model, "refusal": reply.refusal})
    return told


def _said(wire: str, reply: Reply) -> list[Piece]:
    """What the model said, as far as this wire takes it back: Messages wants a signature of its own on thinking."""
    pieces: list[Piece] = [part for part in reply.parts if wire != MESSAGES or not _is_foreign(part)]
    return [*pieces, Text(reply.refusal)] if reply.refusal and wire != CHAT else pieces


def _is_foreign(part: Part) -> bool:
    return isinstance(part, Reasoning) and part.seal is not None and part.seal.wire != MESSAGES


def as_tools(wire: str, tools: list[Tool]) -> list[Json]:
    """What `tools` of a request are."""
    offered: list[Json] = _written(wire, Request(wire=wire, model="", tools=tools)).get("tools", [])
    return offered


def _written(wire: str, request: Request) -> dict[str, Any]:
    body, _ = wire_named(wire).write_request(request, profile_named("any"))
    return body
