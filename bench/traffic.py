"""Traffic of `bench.gateway`: streams as models send them, requests as agents send them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import interlingua as il
from bench.measure import CODE, PROSE, repeat_to_size

CHAT = "openai-chat"

__all__ = [
    "EVENT",
    "PATHS",
    "SESSION",
    "STAMP",
    "agent_request",
    "agent_session",
    "first_request",
    "http_requests",
    "native",
    "on_wire",
    "short",
    "small_request",
    "structured",
]

EVENT = 206
"""Bytes per event, including `data:` and the blank line."""
STAMP = "~0000000000000000"
"""Placeholder in which the upstream writes the time."""
SESSION = "@0000000000000000"
"""Placeholder in which the clients write the number of the session."""
SESSION_REQUESTS = 41
"""Requests of a session: the first has one message, and each has two more than the one before."""
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
}
PARAMS = ("path", "content", "pattern", "command", "limit", "offset")


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def native(count: int) -> str:
    """Return a stream with this number of events: half text, half a call in the native text of Kimi."""
    call = il.render(
        il.Reply(parts=[il.Call("functions.write:0", "write", '{"path":"a.py","content":"@"}')]), "kimi_k2"
    )
    before, _, after = call.partition("@")
    return _stream(
        [*_stamped(count // 2, _content), _content(before), *_stamped(count // 2, _content)], _content(after)
    )


def structured(count: int) -> str:
    """Return the same stream with a structured call."""
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "write", "arguments": '{"content":"'}}
    begun, ended = {"tool_calls": [call]}, _arguments('"}')
    return _stream([*_stamped(count // 2, _content), begun, *_stamped(count // 2, _arguments)], ended, "tool_calls")


def short(wire: str) -> str:
    """Return the shortest reply: one word and the end."""
    return on_wire(_stream([_content(STAMP)], {}), wire)


def on_wire(chat: str, wire: str) -> str:
    """Return a stream of chat completions as an upstream of another wire sends it."""
    if wire == CHAT:
        return chat
    translator = il.Translator(source=CHAT, target=wire)
    return (translator.feed(chat.encode()) + translator.close()).decode()


def _stream(deltas: list[dict[str, Any]], last: dict[str, Any], finish: str = "stop") -> str:
    chunks = [_chunk({"role": "assistant", "content": STAMP}), *map(_chunk, deltas), _chunk(last, finish)]
    return "".join([*chunks, "data: [DONE]\n\n"])


def _stamped(count: int, delta: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return deltas with a time stamp and words that fill the event."""
    room = EVENT - len(_chunk(delta(STAMP)))
    words = repeat_to_size(PROSE, 100 * room)
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
    """Return a request with one question and one tool."""
    messages = [{"role": "user", "content": "Write it."}]
    chat = {"model": model, "max_tokens": 4096, "stream": True, "messages": messages, "tools": [_tool(0)]}
    return chat if wire == CHAT else il.translate_request(chat, CHAT, wire)


def agent_request(wire: str, model: str, size: int) -> dict[str, Any]:
    """Return a request of about this many bytes, with 20 tools and 41 messages, as an agent sends it."""
    return _request(wire, model, _conversation(SESSION_REQUESTS // 2, size), [_tool(n) for n in range(20)])


def first_request(wire: str, model: str, size: int) -> dict[str, Any]:
    """Return the same request, but with tools and messages that no earlier request had."""
    tools = [_tool(n, SESSION) for n in range(20)]
    return _request(wire, model, [{"role": "system", "content": SESSION}, *_conversation(20, size)], tools)


def agent_session(wire: str, model: str, size: int) -> list[dict[str, Any]]:
    """Return the requests of an agent's session. They have this size on average, 20 tools, and 1 to 81 messages.

    Each request repeats the one before, with a call and its result in addition.
    """
    tools = [_tool(n) for n in range(20)]
    return [_request(wire, model, _conversation(turns, size), tools) for turns in range(SESSION_REQUESTS)]


def _request(wire: str, model: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    chat = {"model": model, "max_tokens": 4096, "stream": True, "messages": messages, "tools": tools}
    if wire == CHAT:
        return chat
    request = il.translate_request(chat, CHAT, wire)
    return {**request, "store": False} if wire == "openai-responses" else request  # as Codex sends it


def _conversation(turns: int, size: int) -> list[dict[str, Any]]:
    """Return a conversation with this many calls. With the mean number of a session, the request has this size."""
    mean_turns = SESSION_REQUESTS // 2
    fixed = len(json.dumps([_tool(n) for n in range(20)])) + size // 20 + 300 * mean_turns
    result = repeat_to_size(CODE, (size - fixed) // mean_turns)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": repeat_to_size(PROSE, size // 20)},
        {"role": "user", "content": f"{SESSION} Look at all of them. {PROSE}"},
    ]
    for n in range(turns):
        function = {"name": f"tool_{n % 20}", "arguments": json.dumps({"path": f"src/{n}.py", "limit": n})}
        call = {"id": f"call_{n:04}abcdefgh", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": f"I look at number {n}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result[: (size - fixed) // mean_turns]})
    return messages


def _tool(number: int, note: str = "") -> dict[str, Any]:
    params = {name: {"type": "string", "description": f"The {name} that is meant. {PROSE[:40]}"} for name in PARAMS}
    parameters = {"type": "object", "properties": params, "required": ["path"], "additionalProperties": False}
    function = {"name": f"tool_{number}", "description": PROSE[:100] + note, "parameters": parameters}
    return {"type": "function", "function": function}


def http_requests(path: str, *bodies: dict[str, Any]) -> bytes:
    return b"".join(_http_request(path, json.dumps(body).encode()) for body in bodies)


def _http_request(path: str, data: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
    )
    return f"{head}\r\n".encode() + data
