"""The client that is nothing but a socket, of a gateway that was started for tests."""

from __future__ import annotations

import json
import socket
from typing import Any

from interlingua.faults.apis import CHAT_PATH as CHAT
from interlingua.faults.apis import MESSAGES_PATH as MESSAGES
from interlingua.faults.apis import RESPONSES_PATH as RESPONSES
from interlingua.faults.apis import TOOL, body_for, offered
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.raw_client import Got, finish, parsed, request, whole_answer
from tests.support.gateway_process import Running

__all__ = [
    "CHAT",
    "MESSAGES",
    "RESPONSES",
    "TOOL",
    "WIRES",
    "Got",
    "ask",
    "begin",
    "body_for",
    "calls_of",
    "connect",
    "finish",
    "get",
    "offered",
    "parsed",
    "request",
    "send",
    "text_of",
    "whole_answer",
    "whole_calls_of",
]

WIRES = [CHAT, MESSAGES, RESPONSES]


def connect(gateway: Running, seconds: float = 20) -> socket.socket:
    return client.connect(gateway.base, seconds)


def begin(gateway: Running, wire: str, model: str, stream: bool = True, **more: Any) -> socket.socket:
    """A connection on which the request has been sent, and nothing was read."""
    sock = connect(gateway)
    sock.sendall(request(f"/v1/{wire}", json.dumps(body_for(wire, model, stream, **more)).encode()))
    return sock


def ask(gateway: Running, wire: str, model: str, stream: bool = True, **more: Any) -> Got:
    return finish(begin(gateway, wire, model, stream, **more))


def send(gateway: Running, data: bytes) -> Got:
    """The answer to these bytes."""
    sock = connect(gateway)
    sock.sendall(data)
    return finish(sock)


def get(gateway: Running, path: str, **headers: str) -> Got:
    return send(gateway, request(path, headers={k.replace("_", "-"): v for k, v in headers.items()}, method="GET"))


def text_of(got: Got, wire: str) -> str:
    """What the model said in this reply, whole or streamed."""
    if str(got.header("content-type")).startswith("application/json"):
        return _whole_text(got.json, wire)
    events = [event for event in got.events if event != "[DONE]"]
    if wire == CHAT:
        return "".join(c["delta"].get("content") or "" for event in events for c in event.get("choices", []))
    kind = "content_block_delta" if wire == MESSAGES else "response.output_text.delta"
    deltas = [event["delta"] for event in events if event["type"] == kind]
    return "".join(d if isinstance(d, str) else d.get("text", "") for d in deltas)


def _whole_text(body: Any, wire: str) -> str:
    if wire == CHAT:
        return body["choices"][0]["message"]["content"] or ""
    if wire == MESSAGES:
        return "".join(block.get("text", "") for block in body["content"])
    return "".join(part.get("text", "") for item in body["output"] for part in item.get("content", []))


def calls_of(got: Got, wire: str) -> list[tuple[str, str]]:
    """Name and arguments of each call in a streamed reply, or one that is whole."""
    return [(name, args) for _, name, args in whole_calls_of(got, wire)]


def whole_calls_of(got: Got, wire: str) -> list[tuple[str, str, str]]:
    """The id of each, too."""
    events = [event for event in got.events if event != "[DONE]"]
    if not events:
        return _calls_in_body(got.json, wire)
    if wire == CHAT:
        return _chat_calls([c for event in events for c in event.get("choices", [])])
    if wire == RESPONSES:
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        return [(i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call"]
    blocks: dict[int, list[str]] = {}
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            blocks[event["index"]] = [event["content_block"]["id"], event["content_block"]["name"], ""]
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            blocks[event["index"]][2] += event["delta"]["partial_json"]
    return [(id, name, args) for id, name, args in blocks.values()]


def _chat_calls(choices: list[Any]) -> list[tuple[str, str, str]]:
    found: dict[int, tuple[str, str, list[str]]] = {}
    for choice in choices:
        for call in choice["delta"].get("tool_calls", []):
            function = call["function"]
            _, _, args = found.setdefault(call["index"], (call.get("id", ""), function.get("name", ""), []))
            args.append(function.get("arguments", ""))
    return [(id, name, "".join(args)) for id, name, args in found.values()]


def _calls_in_body(body: Any, wire: str) -> list[tuple[str, str, str]]:
    if wire == CHAT:
        calls = body["choices"][0]["message"].get("tool_calls", [])
        return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
    if wire == MESSAGES:
        blocks = [block for block in body["content"] if block["type"] == "tool_use"]
        return [(b["id"], b["name"], json.dumps(b["input"])) for b in blocks]
    return [(i["call_id"], i["name"], i["arguments"]) for i in body["output"] if i["type"] == "function_call"]
