"""How does a conversation go on? A reply, and what its tools answered, as each wire writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua.client.results import ToolResult
from interlingua.reply import Reply, Text
from interlingua.request import Message, Request, Result
from interlingua.tools import Tool
from interlingua.upstreams import profile_named
from interlingua.wire.wire import Json
from interlingua.wires import wire_named

__all__ = ["as_messages", "as_tools"]


def as_messages(wire: str, reply: Reply | None = None, results: Iterable[ToolResult] = ()) -> list[Json]:
    """What is added to `messages`, or to `input` of Responses."""
    answered = [Result(result.call.id, [Text(result.content)], error=not result.ok) for result in results]
    messages = [Message("assistant", [*reply.parts])] if reply is not None and reply.parts else []
    messages += [Message("user", [*answered])] if answered else []
    body = _written(wire, Request(wire=wire, model="", messages=messages))
    told: list[Json] = body["input"] if "input" in body else body["messages"]
    return told


def as_tools(wire: str, tools: list[Tool]) -> list[Json]:
    """What `tools` of a request are."""
    offered: list[Json] = _written(wire, Request(wire=wire, model="", tools=tools)).get("tools", [])
    return offered


def _written(wire: str, request: Request) -> dict[str, Any]:
    body, _ = wire_named(wire).write_request(request, profile_named("any"))
    return body
