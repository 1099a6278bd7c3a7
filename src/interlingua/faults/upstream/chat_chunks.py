"""Events of a Chat Completions stream, well-formed or malformed."""

from __future__ import annotations

import json
from typing import Any

from interlingua.faults.upstream.script import ReceivedRequest, Step, send, send_headers

__all__ = ["DONE", "ROLE", "call", "call_delta", "chat_stream", "delta", "event"]


def event(chunk: Any) -> bytes:
    return b"data: " + (chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()) + b"\n\n"


def delta(content: str | None = None, finish: str | None = None, **fields: Any) -> bytes:
    message_delta = {"content": content, **fields} if content is not None else fields
    choice = {"index": 0, "delta": message_delta, "finish_reason": finish}
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    )


ROLE = delta("", role="assistant")
DONE = event(b"[DONE]")


def call(args: str, index: int = 0, name: str | None = None) -> bytes:
    """Return an arguments delta of a structured call. The first delta of a call has the name."""
    function = {"name": name, "arguments": args} if name else {"arguments": args}
    header_fields = {"id": f"call_{index}", "type": "function"} if name else {}
    return delta(tool_calls=[{"index": index, **header_fields, "function": function}])


def call_delta(index: int | None = None, id: str | None = None, **function: str) -> bytes:
    """Return a call delta. Fields that are None are left out."""
    fields = {"index": index, "id": id, "type": "function" if id else None, "function": function}
    return delta(tool_calls=[{key: value for key, value in fields.items() if value is not None}])


def chat_stream(*texts: str, finish: str | None = "stop", done: bool = True) -> Step:
    """Return a step that sends a stream with these texts."""
    stream = ROLE + b"".join(map(delta, texts))
    stream += delta(finish=finish) if finish else b""

    async def step(request: ReceivedRequest) -> None:
        await send_headers()(request)
        await send(stream + (DONE if done else b""))(request)

    return step
