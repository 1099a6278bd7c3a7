"""Helpers that write the samples of the built-in set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from interlingua.verification.samples.sample import Expectation, ExpectedCall, Sample

__all__ = ["array", "call", "calling", "enum", "integer", "number", "obj", "string", "talking", "tool", "turn", "user"]

Json = dict[str, Any]


def string(description: str = "", **keywords: Any) -> Json:
    return {"type": "string", **({"description": description} if description else {}), **keywords}


def integer(description: str = "", **keywords: Any) -> Json:
    return {"type": "integer", **({"description": description} if description else {}), **keywords}


def number(description: str = "", **keywords: Any) -> Json:
    return {"type": "number", **({"description": description} if description else {}), **keywords}


def enum(*values: Any, description: str = "") -> Json:
    return {"type": "string", "enum": list(values), **({"description": description} if description else {})}


def array(items: Json, **keywords: Any) -> Json:
    return {"type": "array", "items": items, **keywords}


def obj(properties: Json, required: Sequence[str] | None = None, **keywords: Any) -> Json:
    """Return the schema of an object. Without `required`, all properties are required."""
    names = list(properties) if required is None else list(required)
    return {"type": "object", "properties": properties, "required": names, **keywords}


def tool(name: str, description: str, parameters: Json) -> Json:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def call(name: str, /, **arguments: Any) -> ExpectedCall:
    return ExpectedCall(name, arguments)


def turn(*results: tuple[ExpectedCall, str], first_id: int = 0, thinking: str = "") -> list[Json]:
    """Return the messages of a past turn: the assistant's calls, and the result of each."""
    ids = [f"call_{first_id + number:08d}" for number in range(len(results))]
    calls = [
        {
            "id": id,
            "type": "function",
            "function": {"name": made.name, "arguments": json.dumps(made.arguments, ensure_ascii=False)},
        }
        for id, (made, _) in zip(ids, results, strict=True)
    ]
    assistant: Json = {"role": "assistant", "content": None, "tool_calls": calls}
    if thinking:
        assistant["reasoning_content"] = thinking
    outputs = [
        {"role": "tool", "tool_call_id": id, "content": output} for id, (_, output) in zip(ids, results, strict=True)
    ]
    return [assistant, *outputs]


def calling(
    id: str,
    prompt: str | Sequence[Json],
    tools: Sequence[Json],
    *calls: ExpectedCall,
    system: str = "",
    **fields: Any,
) -> Sample:
    """Return a sample to which the right reply is exactly these calls."""
    return _sample(id, prompt, tools, Expectation("calls", calls), system, fields)


def talking(id: str, prompt: str | Sequence[Json], tools: Sequence[Json], *, system: str = "", **fields: Any) -> Sample:
    """Return a sample to which the right reply is a text without calls."""
    return _sample(id, prompt, tools, Expectation("text"), system, fields)


def _sample(
    id: str, prompt: str | Sequence[Json], tools: Sequence[Json], expect: Expectation, system: str, fields: Json
) -> Sample:
    messages = [user(prompt)] if isinstance(prompt, str) else list(prompt)
    if system:
        messages.insert(0, {"role": "system", "content": system})
    category = id.rpartition("-")[0]
    return Sample(
        id=id, category=category, request={"messages": messages, "tools": list(tools), **fields}, expect=expect
    )
