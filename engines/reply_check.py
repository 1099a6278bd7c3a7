"""Check of a reply that a decoder wrote: what Interlingua reads from it."""

from __future__ import annotations

import json
from typing import Any

import interlingua as il
from interlingua.common.schema.validation import validation_errors

__all__ = ["TOOLS", "find_problems"]

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "unit": {"enum": ["c", "f"]},
                    "days": {"type": "integer"},
                    "hourly": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "now",
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        },
    },
]
_SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}


def find_problems(text: str, dialect: il.Dialect, *, ended: bool, prefill: str = "") -> list[str]:
    """Return what is wrong with a reply of a model that has to call one of the tools.

    Args:
        text: The reply.
        dialect: The model's dialect.
        ended: True if the model has ended the reply; false if it was cut off at its maximum length. Then its last call
            may be incomplete.
        prefill: The beginning of the reply that the prompt contains.
    """
    reply = il.parse(text, dialect, tools=TOOLS, prefill=prefill)
    parser = il.Parser(dialect, tools=TOOLS, prefill=prefill)
    problems = []
    if il.fold([event for char in text for event in parser.feed(char)] + parser.close()) != reply:
        problems.append("streamed, the reply is another one")
    if ended and not reply.calls:
        problems.append("no call")
    for call in reply.calls:
        if not call.complete:
            problems += ["a call is incomplete"] if ended else []
        elif call.name not in _SCHEMAS:
            problems.append(f"{call.name!r:.40} is not offered")
        else:
            problems += validation_errors(json.loads(call.arguments), _SCHEMAS[call.name], call.name)
    return problems
