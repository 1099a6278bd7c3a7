"""What goes over the sockets of `bench.gateway`: streams as models send them, requests as agents send them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import interlingua as il
from bench.measure import CODE, PROSE, repeated
from interlingua.upstreams.profile import CHAT

__all__ = ["EVENT", "PATHS", "STAMP", "agent_request", "http_request", "native", "short", "small_request", "structured"]

EVENT = 206
"""Bytes in an event, its blank line and `data:` included."""
STAMP = "~0000000000000000"
"""Where the upstream writes the time."""
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
}
PARAMS = ("path", "content", "pattern", "command", "limit", "offset")


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def native(count: int) -> str:
    """So many events of text, and of a call that a Kimi model writes as text: half and half."""
    call = il.render(
        il.Reply(parts=[il.Call("functions.write:0", "write", '{"path":"a.py","content":"@"}')]), "kimi_k2"
    )
    before, _, behind = call.partition("@")
    return _stream(
        [*_stamped(count // 2, _content), _content(before), *_stamped(count // 2, _content)], _content(behind)
    )


def structured(count: int) -> str:
    """The same, with the call in the fields that are made for it."""
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "write", "arguments": '{"content":"'}}
    begun, ended = {"tool_calls": [call]}, _arguments('"}')
    return _stream([*_stamped(count // 2, _content), begun, *_stamped(count // 2, _arguments)], ended, "tool_calls")


def short(wire: str) -> str:
    """The least that is a reply: a word and its end."""
    chat = _stream([_content(STAMP)], {})
    if wire == CHAT:
        return chat
    translator = il.Translator(source=CHAT, target=wire)
    return (translator.feed(chat.encode()) + translator.close()).decode()


def _stream(deltas: list[dict[str, Any]], last: dict[str, Any], finish: str = "stop") -> str:
    chunks = [_chunk({"role": "assistant", "content": STAMP}), *map(_chunk, deltas), _chunk(last, finish)]
    return "".join([*chunks, "data: [DONE]\n\n"])


def _stamped(count: int, delta: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Deltas with words behind the stamp, as many as an event has room for."""
    room = EVENT - len(_chunk(delta(STAMP)))
    words = repeated(PROSE, 100 * room)
    return [delta(STAMP + words[at % 90 * room :][:room]) for at in range(count)]


def _content(text: str) -> dict[str, Any]:
    return {"content": text}


def _arguments(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "k2", "choices": [choice]}
    return f"data: {json.dumps(body, separators=(',', ':'))}\n\n"


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def small_request(wire: str, model: str) -> dict[str, Any]:
    """One question, and one tool for it."""
    messages = [{"role": "user", "content": "Write it."}]
    chat = {"model": model, "max_tokens": 4096, "stream": True, "messages": messages, "tools": [_tool(0)]}
    return chat if wire == CHAT else il.translate_request(chat, CHAT, wire)


def agent_request(wire: str, model: str, size: int) -> dict[str, Any]:
    """20 tools and 41 messages, of about this many bytes: what an agent sends in the middle of its work."""
    turns = 13
    tools = [_tool(n) for n in range(20)]
    fixed = len(json.dumps(tools)) + 400 * turns
    result = repeated(CODE, (size - fixed) // turns)
    messages: list[dict[str, Any]] = [{"role": "system", "content": repeated(PROSE, size // 20)}]
    for n in range(turns):
        function = {"name": f"tool_{n}", "arguments": json.dumps({"path": f"src/{n}.py", "limit": n})}
        call = {"id": f"call_{n:04}abcdefgh", "type": "function", "function": function}
        messages.append({"role": "user", "content": f"Look at number {n} now. {PROSE}"})
        messages.append({"role": "assistant", "content": "I look at it.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result[: (size - fixed) // turns]})
    messages.append({"role": "user", "content": "And now?"})
    chat = {"model": model, "max_tokens": 4096, "stream": True, "messages": messages, "tools": tools}
    return chat if wire == CHAT else il.translate_request(chat, CHAT, wire)


def _tool(number: int) -> dict[str, Any]:
    params = {name: {"type": "string", "description": f"The {name} that is meant. {PROSE[:40]}"} for name in PARAMS}
    parameters = {"type": "object", "properties": params, "required": ["path"], "additionalProperties": False}
    function = {"name": f"tool_{number}", "description": PROSE[:100], "parameters": parameters}
    return {"type": "function", "function": function}


def http_request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
    )
    return f"{head}\r\n".encode() + data
