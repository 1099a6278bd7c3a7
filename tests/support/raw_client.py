"""Raw socket client for a gateway that was started for tests."""

from __future__ import annotations

import json
import socket
from typing import Any

from interlingua.faults.apis import CHAT_PATH as CHAT
from interlingua.faults.apis import MESSAGES_PATH as MESSAGES
from interlingua.faults.apis import RESPONSES_PATH as RESPONSES
from interlingua.faults.apis import TOOL_PARAMETERS, minimal_body, tools_field
from interlingua.faults.checker import raw_client as client
from interlingua.faults.checker.raw_client import (
    RawResponse,
    build_request,
    parse_complete,
    parse_response,
    read_to_end,
)
from tests.support.gateway_process import GatewayProcess

__all__ = [
    "CHAT",
    "MESSAGES",
    "RESPONSES",
    "TOOL_PARAMETERS",
    "WIRES",
    "RawResponse",
    "build_request",
    "connect",
    "get",
    "minimal_body",
    "open_request",
    "parse_complete",
    "parse_response",
    "read_to_end",
    "reply_calls",
    "reply_calls_with_ids",
    "reply_text",
    "request_reply",
    "send_bytes",
    "tools_field",
]

WIRES = [CHAT, MESSAGES, RESPONSES]


def connect(gateway: GatewayProcess, seconds: float = 20) -> socket.socket:
    return client.connect(gateway.base, seconds)


def open_request(gateway: GatewayProcess, wire: str, model: str, stream: bool = True, **fields: Any) -> socket.socket:
    """Open a connection, send the request and return the socket without reading."""
    sock = connect(gateway)
    sock.sendall(build_request(f"/v1/{wire}", json.dumps(minimal_body(wire, model, stream, **fields)).encode()))
    return sock


def request_reply(gateway: GatewayProcess, wire: str, model: str, stream: bool = True, **fields: Any) -> RawResponse:
    return read_to_end(open_request(gateway, wire, model, stream, **fields))


def send_bytes(gateway: GatewayProcess, data: bytes, seconds: float = 20) -> RawResponse:
    """Send these bytes and return the response. Fail if nothing arrives for this time."""
    sock = connect(gateway, seconds)
    sock.sendall(data)
    return read_to_end(sock)


def get(gateway: GatewayProcess, path: str, **headers: str) -> RawResponse:
    return send_bytes(
        gateway, build_request(path, headers={k.replace("_", "-"): v for k, v in headers.items()}, method="GET")
    )


def reply_text(response: RawResponse, wire: str) -> str:
    """Return the text of a reply, whole or streamed."""
    if str(response.header("content-type")).startswith("application/json"):
        return _body_text(response.json, wire)
    events = [event for event in response.events if event != "[DONE]"]
    if wire == CHAT:
        return "".join(c["delta"].get("content") or "" for event in events for c in event.get("choices", []))
    event_type = "content_block_delta" if wire == MESSAGES else "response.output_text.delta"
    deltas = [event["delta"] for event in events if event["type"] == event_type]
    return "".join(d if isinstance(d, str) else d.get("text", "") for d in deltas)


def _body_text(body: Any, wire: str) -> str:
    if wire == CHAT:
        return body["choices"][0]["message"]["content"] or ""
    if wire == MESSAGES:
        return "".join(block.get("text", "") for block in body["content"])
    return "".join(part.get("text", "") for item in body["output"] for part in item.get("content", []))


def reply_calls(response: RawResponse, wire: str) -> list[tuple[str, str]]:
    """Return name and arguments of each call in a reply, whole or streamed."""
    return [(name, args) for _, name, args in reply_calls_with_ids(response, wire)]


def reply_calls_with_ids(response: RawResponse, wire: str) -> list[tuple[str, str, str]]:
    """Return id, name and arguments of each call in a reply, whole or streamed."""
    events = [event for event in response.events if event != "[DONE]"]
    if not events:
        return _calls_in_body(response.json, wire)
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
    calls: dict[int, tuple[str, str, list[str]]] = {}
    for choice in choices:
        for call in choice["delta"].get("tool_calls", []):
            function = call["function"]
            _, _, args = calls.setdefault(call["index"], (call.get("id", ""), function.get("name", ""), []))
            args.append(function.get("arguments", ""))
    return [(id, name, "".join(args)) for id, name, args in calls.values()]


def _calls_in_body(body: Any, wire: str) -> list[tuple[str, str, str]]:
    if wire == CHAT:
        calls = body["choices"][0]["message"].get("tool_calls", [])
        return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
    if wire == MESSAGES:
        blocks = [block for block in body["content"] if block["type"] == "tool_use"]
        return [(b["id"], b["name"], json.dumps(b["input"])) for b in blocks]
    return [(i["call_id"], i["name"], i["arguments"]) for i in body["output"] if i["type"] == "function_call"]
