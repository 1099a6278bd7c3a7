"""The three client APIs, and minimal requests for them."""

from __future__ import annotations

import json
from typing import Any

__all__ = [
    "APIS",
    "API_BY_NAME",
    "CHAT_PATH",
    "MESSAGES_PATH",
    "RESPONSES_PATH",
    "TOOL_PARAMETERS",
    "api_for_path",
    "minimal_body",
    "past_call_fields",
    "tools_field",
]

CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH = "chat/completions", "messages", "responses"
"""Ends of the paths; they identify the APIs."""
APIS = (CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH)
API_BY_NAME = {"chat": CHAT_PATH, "messages": MESSAGES_PATH, "responses": RESPONSES_PATH}
"""APIs by the names on the command line."""
TOOL_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}


def api_for_path(path: str) -> str | None:
    """Return the API of this request path; None if it is unknown."""
    path_only = path.partition("?")[0]
    return next((api for api in APIS if path_only.endswith(f"/{api}")), None)


def minimal_body(api: str, model: str, stream: bool = True, **fields: Any) -> dict[str, Any]:
    """Return a minimal request body for this API, with `fields` added."""
    user = [{"role": "user", "content": "hi"}]
    conversation: dict[str, Any] = {"input": "hi"} if api == RESPONSES_PATH else {"messages": user}
    return {
        "model": model,
        "stream": stream,
        **conversation,
        **({"max_tokens": 100} if api == MESSAGES_PATH else {}),
        **fields,
    }


def tools_field(api: str, name: str = "get_weather", schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the `tools` field of a request, with one tool."""
    if api == MESSAGES_PATH:
        return {"tools": [{"name": name, "input_schema": schema or TOOL_PARAMETERS}]}
    function = {"name": name, "parameters": schema or TOOL_PARAMETERS}
    return {"tools": [{"type": "function", **(function if api == RESPONSES_PATH else {"function": function})}]}


def past_call_fields(api: str, id: str, args: str) -> dict[str, Any]:
    """Return the conversation fields of a request whose history contains one call and its result."""
    if api == RESPONSES_PATH:
        call = {"type": "function_call", "call_id": id, "name": "get_weather", "arguments": args}
        output = {"type": "function_call_output", "call_id": id, "output": "sun"}
        return {"input": [{"role": "user", "content": "hi"}, call, output]}
    turns: list[dict[str, Any]]
    if api == MESSAGES_PATH:
        use = {"type": "tool_use", "id": id, "name": "get_weather", "input": json.loads(args)}
        result = {"type": "tool_result", "tool_use_id": id, "content": "sun"}
        turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    else:
        function = {"name": "get_weather", "arguments": args}
        calls = [{"id": id, "type": "function", "function": function}]
        turns = [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": id, "content": "sun"},
        ]
    return {"messages": [{"role": "user", "content": "hi"}, *turns]}
